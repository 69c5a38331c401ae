// SPDX-License-Identifier: Apache-2.0
//! The configuration on stdin, and the variables of the environment.

use std::path::PathBuf;

use penstock_linux::agent_folders::LOCKS;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::error::{Code, Error, Result};

/// The versions of the specification that the plugin follows.
pub const VERSIONS: [&str; 5] = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// Where penstockd is by default.
const PENSTOCKD: &str = "/usr/sbin/penstockd";

/// Longest wait in the queue of a limit, as that of the standard plugin, in milliseconds.
const LATENCY_MS: u64 = 25;

/// Fewest bytes that the queue of a limit has room for.
const LEAST_BUFFER: u64 = 32_000;

/// The bandwidth capability. Rates are in bits per second and bursts in bits; 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bandwidth {
    /// Of what the pod receives.
    pub ingress_rate: u64,
    /// What it may receive at once after a pause.
    pub ingress_burst: u64,
    /// Of what it sends.
    pub egress_rate: u64,
    /// What it may send at once after a pause.
    pub egress_burst: u64,
}

/// A limit of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Bits per second.
    pub rate_bps: u64,
    /// Bytes that may pass at once after a pause.
    pub burst_bytes: u32,
}

impl Limit {
    /// Bytes that may wait for their turn.
    pub fn buffer_bytes(&self) -> u32 {
        let bytes = self.rate_bps / 8 * LATENCY_MS / 1000;
        u32::try_from(bytes.max(LEAST_BUFFER)).unwrap_or(u32::MAX)
    }
}

/// How the ingress limit is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// A token bucket on the host's end of the pod's veth, whose queue Grant keeps from overflowing.
    #[default]
    Port,
    /// Grant's virtual queue in the pod's namespace. Limits TCP alone.
    Limit,
}

/// The plugin's configuration.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    #[serde(default)]
    pub name: String,
    #[serde(flatten)]
    given: Bandwidth,
    #[serde(default)]
    runtime_config: Option<RuntimeConfig>,
    /// What the plugins before this one did.
    pub prev_result: Option<Map<String, Value>>,
    /// How the ingress limit is kept.
    #[serde(default)]
    pub side: Side,
    /// The agent's program.
    #[serde(default = "penstockd")]
    pub penstockd: PathBuf,
    /// The agent's folder of pins, if not its default.
    pub pins: Option<PathBuf>,
    /// The agent's folder of locks. Records of pods are in `cni/` below it.
    #[serde(default = "locks")]
    pub locks: PathBuf,
    /// GC: the pods that are left; `null` is an empty list, as Go writes it.
    #[serde(
        default,
        rename = "cni.dev/valid-attachments",
        deserialize_with = "list"
    )]
    pub valid_attachments: Option<Vec<Attachment>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct RuntimeConfig {
    bandwidth: Option<Bandwidth>,
}

/// An interface of a pod, by the names that the runtime gives it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Attachment {
    /// The container.
    #[serde(rename = "containerID")]
    pub container: String,
    /// The interface in it.
    #[serde(rename = "ifname")]
    pub interface: String,
}

/// A key that is there, if only as `null`.
fn list<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Option<Vec<Attachment>>, D::Error> {
    let given = Option::deserialize(from)?;
    Ok(Some(given.unwrap_or_default()))
}

fn penstockd() -> PathBuf {
    PENSTOCKD.into()
}

fn locks() -> PathBuf {
    LOCKS.into()
}

/// The version that a configuration names; by the specification 0.1.0 where it names none.
pub fn version(config: &Value) -> String {
    let version = config.get("cniVersion").and_then(Value::as_str);
    version.unwrap_or("0.1.0").to_owned()
}

/// Reads the configuration. Limits are checked by the commands that need them: DEL and GC must remove
/// what is there even if ADD refused them.
///
/// # Errors
/// One of the specification's.
pub fn parse(config: Value) -> Result<Config> {
    let version = version(&config);
    if !VERSIONS.contains(&version.as_str()) {
        let msg = format!("incompatible CNI version {version}");
        return Err(
            Error::new(Code::Version, msg).with(format!("supported are {}", VERSIONS.join(", ")))
        );
    }
    let invalid = |msg: String| Error::new(Code::Config, msg);
    let config: Config =
        serde_json::from_value(config).map_err(|error| invalid(format!("invalid key: {error}")))?;
    if !is_name(&config.name) {
        return Err(invalid(format!(
            "name {:?}: expected letters, digits, '.', '_' and '-'",
            config.name
        )));
    }
    Ok(config)
}

/// Whether this is a name as the specification allows for networks and containers.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c))
}

impl Config {
    /// As the standard plugin: keys of the configuration go before those of the runtime.
    fn bandwidth(&self) -> Bandwidth {
        match self.given == Bandwidth::default() {
            true => self
                .runtime_config
                .and_then(|given| given.bandwidth)
                .unwrap_or_default(),
            false => self.given,
        }
    }

    /// The limit of what the pod receives.
    ///
    /// # Errors
    /// It is incomplete or too large.
    pub fn ingress(&self) -> Result<Option<Limit>> {
        let given = self.bandwidth();
        limit("ingress", given.ingress_rate, given.ingress_burst)
    }

    /// The limit of what the pod sends.
    ///
    /// # Errors
    /// It is incomplete or too large.
    pub fn egress(&self) -> Result<Option<Limit>> {
        let given = self.bandwidth();
        limit("egress", given.egress_rate, given.egress_burst)
    }
}

fn limit(direction: &str, rate_bps: u64, burst_bits: u64) -> Result<Option<Limit>> {
    let invalid = |what: &str| Err(Error::new(Code::Config, format!("{direction}{what}")));
    match (rate_bps, burst_bits) {
        (0, 0) => Ok(None),
        (_, 0) => invalid("Burst: if rate is set, burst must also be set"),
        (0, _) => invalid("Rate: if burst is set, rate must also be set"),
        (..8, _) => invalid("Rate: at least 8 bits per second"),
        _ => match u32::try_from(burst_bits / 8) {
            Ok(burst_bytes) if burst_bytes < u32::MAX => Ok(Some(Limit {
                rate_bps,
                burst_bytes,
            })),
            _ => invalid("Burst: burst cannot be more than 4 GB"),
        },
    }
}

/// The container and interface of a command, from the environment.
///
/// # Errors
/// A variable is missing or invalid.
pub fn attachment() -> Result<Attachment> {
    let attachment = Attachment {
        container: variable("CNI_CONTAINERID")?,
        interface: variable("CNI_IFNAME")?,
    };
    let invalid = |name, text: &str| {
        let msg = format!("{name}: {text:?} is invalid");
        Err(Error::new(Code::Environment, msg))
    };
    if !is_name(&attachment.container) {
        return invalid("CNI_CONTAINERID", &attachment.container);
    }
    let is_interface = |text: &str| {
        text.len() <= 15
            && ![".", ".."].contains(&text)
            && !text.contains(|c: char| c == '/' || c == ':' || c.is_whitespace())
    };
    if !is_interface(&attachment.interface) {
        return invalid("CNI_IFNAME", &attachment.interface);
    }
    Ok(attachment)
}

/// A variable of the environment.
///
/// # Errors
/// It is missing or empty.
pub fn variable(name: &str) -> Result<String> {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => Ok(value),
        _ => Err(Error::new(Code::Environment, format!("{name} is missing"))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(mut keys: Value) -> Result<Config> {
        keys["cniVersion"] = json!("1.1.0");
        keys["name"] = json!("net");
        parse(keys)
    }

    #[test]
    fn keys_of_the_configuration_go_before_those_of_the_runtime() {
        let runtime = json!({"bandwidth": {"ingressRate": 8_000_000, "ingressBurst": 80_000}});
        let config = read(json!({"runtimeConfig": runtime})).unwrap();
        let limit = config.ingress().unwrap().unwrap();
        assert_eq!((limit.rate_bps, limit.burst_bytes), (8_000_000, 10_000));
        assert_eq!(limit.buffer_bytes(), 32_000);
        let own = json!({"runtimeConfig": runtime, "egressRate": 80, "egressBurst": 8});
        let config = read(own).unwrap();
        assert_eq!(config.ingress().unwrap(), None);
        assert_eq!(config.egress().unwrap().unwrap().rate_bps, 80);
    }

    #[test]
    fn wrong_configurations_have_the_codes_of_the_specification() {
        let code = |keys| {
            let limits = |config: Config| config.ingress().and(config.egress());
            read(keys).and_then(limits).unwrap_err().code
        };
        assert_eq!(code(json!({"ingressRate": 1000})), Code::Config);
        assert_eq!(code(json!({"egressBurst": 1000})), Code::Config);
        assert_eq!(
            code(json!({"ingressRate": 8, "ingressBurst": 1u64 << 36})),
            Code::Config
        );
        assert_eq!(code(json!({"side": "receiver"})), Code::Config);
        assert_eq!(code(json!({"ingressRate": "fast"})), Code::Config);
        let old = parse(json!({"cniVersion": "0.2.0", "name": "net"}));
        assert_eq!(old.unwrap_err().code, Code::Version);
        let unnamed = parse(json!({"cniVersion": "1.0.0", "name": "../net"}));
        assert_eq!(unnamed.unwrap_err().code, Code::Config);
    }
}
