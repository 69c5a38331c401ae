// SPDX-License-Identifier: Apache-2.0
//! The window policy of a scheme, and its controller.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

use penstock_core::WindowScheme;
use penstock_core::definitions::Definition;
use penstock_core::scheme::{Counting, DataFate, WscaleSource};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, EnumAccess, VariantAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use super::de::TAGGED;
use super::kinds::kinds;
use super::params::{Params, Table, Word, sicc, window_kinds};
use super::quantities::Share;
use crate::units::Time;

/// The receive window that an ACK may grant its sender: one of the window schemes of `core/`, or none, with its
/// parameters and those common to all.
#[derive(Clone, Debug, PartialEq)]
pub struct Window(Params);

impl Window {
    /// The scheme; `None` where ACKs pass as they are.
    pub fn scheme(&self) -> Option<&'static Definition> {
        self.0.kind().definition
    }

    /// Whether windows are credit, which the policy of a link grants flow by flow.
    pub fn is_credit(&self) -> bool {
        self.scheme()
            .is_some_and(|definition| definition.scheme == 0)
    }

    /// Whether the policy is where a port's link ends, and not at the port.
    pub fn is_behind_port(&self) -> bool {
        self.is_credit() && self.0.word("side") > 0
    }

    /// Whether the scheme needs the number of flows.
    pub fn counts_flows(&self) -> bool {
        self.at_port()
            .is_some_and(|port| port.counting() != Counting::None)
    }

    /// Whether the scheme drops data that a queue has room for.
    pub fn drops_data(&self) -> bool {
        self.at_port()
            .is_some_and(|port| port.drops(u32::MAX, u32::MAX, false) != DataFate::Passes)
    }

    /// The scheme at a port, if it is one that is the same for all flows.
    fn at_port(&self) -> Option<WindowScheme> {
        let scheme = self.scheme().filter(|_| !self.is_credit());
        let params = scheme.and_then(|_| self.core(1, None).ok());
        params.map(|params| WindowScheme::new(&params))
    }

    /// How ports learn the window scales of flows.
    pub fn wscale_source(&self) -> WscaleSource {
        WscaleSource::ALL[self.0.word("wscale_source")]
    }
}

impl Default for Window {
    fn default() -> Window {
        Window(Params::new(&window_kinds()[0]))
    }
}

impl Deref for Window {
    type Target = Params;
    fn deref(&self) -> &Params {
        &self.0
    }
}

impl DerefMut for Window {
    fn deref_mut(&mut self) -> &mut Params {
        &mut self.0
    }
}

impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer, Some(self.0.kind().name))
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Window, D::Error> {
        deserializer.deserialize_enum(TAGGED, window_names(), Reader)
    }
}

fn window_names() -> &'static [&'static str] {
    static NAMES: std::sync::LazyLock<Vec<&'static str>> =
        std::sync::LazyLock::new(|| window_kinds().iter().map(|kind| kind.name).collect());
    &NAMES
}

/// Reads a window by its `kind`.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Window;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with a key \"kind\"")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Window, A::Error> {
        let (place, body) = access.variant_seed(Word(window_names()))?;
        body.newtype_variant_seed(Table(&window_kinds()[place]))
            .map(Window)
    }
}

impl JsonSchema for Window {
    fn schema_name() -> Cow<'static, str> {
        "Window".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = window_kinds().iter().map(|kind| {
            let mut schema = kind.schema(generator);
            let tag = json!({ "type": "string", "const": kind.name });
            if let Some(properties) = schema.get_mut("properties") {
                properties["kind"] = tag;
            }
            schema.insert("required".to_owned(), json!(["kind"]));
            schema
        });
        let kinds: Vec<Schema> = kinds.collect();
        json_schema!({ "description": "The receive window that an ACK may grant its sender.", "oneOf": kinds })
    }
}

/// What the network as a whole knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Controller {
    /// Nothing.
    #[default]
    None,
    /// Foresees incast and has the shims clamp (SICC Alg. 1 and 2).
    Sicc(Sicc),
    /// Counts the flows of each port for its window policy (FairQ §III-B).
    FlowCounts(FlowCounts),
}

/// A controller that counts each port's flows by copies of their SYN and FIN, and sends the port each
/// new number, which it uses instead of a count of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowCounts {
    /// Time that a message takes between switch and controller. Default: 100 us.
    pub latency: Time,
    /// Share of the messages that are lost. Default: 0.
    pub loss: Share,
}

impl Default for FlowCounts {
    fn default() -> FlowCounts {
        FlowCounts {
            latency: Time::from_micros(100),
            loss: Share(0.0),
        }
    }
}

impl Controller {
    /// Its parameters, if there is one.
    pub fn params(&self) -> Option<&crate::params::Params> {
        match self {
            Controller::None | Controller::FlowCounts(_) => None,
            Controller::Sicc(params) => Some(params),
        }
    }
}

/// The table of a kind without parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

/// `None` as a kind: serde's unit variants take no table.
enum ControllerParts {
    None(#[allow(dead_code)] Empty),
    Sicc(Sicc),
    FlowCounts(FlowCounts),
}

kinds!(ControllerParts { "none" => None, "sicc" => Sicc, "flow-counts" => FlowCounts });

impl<'de> Deserialize<'de> for Controller {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Controller, D::Error> {
        Ok(match ControllerParts::deserialize(deserializer)? {
            ControllerParts::None(_) => Controller::None,
            ControllerParts::Sicc(sicc) => Controller::Sicc(sicc),
            ControllerParts::FlowCounts(counts) => Controller::FlowCounts(counts),
        })
    }
}

/// The parameters of one scheme as the type of a kind's table.
macro_rules! params_of {
    ($(#[$doc:meta])* $type:ident, $kind:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $type($crate::params::Params);

        impl Default for $type {
            fn default() -> $type {
                $type($crate::params::Params::new($kind))
            }
        }

        impl std::ops::Deref for $type {
            type Target = $crate::params::Params;
            fn deref(&self) -> &$crate::params::Params {
                &self.0
            }
        }

        impl std::ops::DerefMut for $type {
            fn deref_mut(&mut self) -> &mut $crate::params::Params {
                &mut self.0
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.write(serializer, None)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                let table = $crate::params::Table($kind);
                serde::de::DeserializeSeed::deserialize(table, deserializer).map($type)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $kind.schema(generator)
            }
        }
    };
}

pub(super) use params_of;

params_of!(
    /// SICC: the controller expects `new connections * IW * MSS + queue` and clamps before it comes.
    Sicc,
    sicc()
);
