// SPDX-License-Identifier: Apache-2.0
//! The audit log: who changed what. Each change is one structured entry of the journal
//! (systemd.journal-fields(7)), or, without a journal, one line of `key=value` on standard error.

use std::os::unix::net::UnixDatagram;
use std::path::Path;

use penstock_linux::note;

use crate::format::printable;

/// The socket of the journal's native protocol.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// The process that asked for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    uid: u32,
    /// 0 in another namespace of processes.
    pid: u32,
    /// The user who logged in, whatever sudo or su made of him since; none for a service.
    login: Option<u32>,
}

impl Asker {
    /// A process of this user, while it is there.
    pub fn new(uid: u32, pid: u32) -> Asker {
        let login = std::fs::read_to_string(format!("/proc/{pid}/loginuid")).unwrap_or_default();
        let login = login.trim().parse().ok().filter(|uid| *uid != u32::MAX);
        Asker { uid, pid, login }
    }

    fn this() -> Asker {
        Asker::new(rustix::process::getuid().as_raw(), std::process::id())
    }
}

/// Logs a change of `interface` by this process, with details as pairs of a lower-case key and a value.
pub fn log(action: &str, interface: &str, details: &[(&str, &str)]) {
    let mut fields = fields(Some(Asker::this()), action, interface, details);
    if let Ok(user) = std::env::var("SUDO_USER") {
        fields.push(("sudo_user".to_owned(), printable(&user)));
    }
    record(&fields);
}

/// The same for the process that asked for the change; nothing is logged of one that is not known.
pub fn log_for(asker: Option<Asker>, action: &str, interface: &str, details: &[(&str, &str)]) {
    record(&fields(asker, action, interface, details));
}

fn record(fields: &Fields) {
    if send(Path::new(JOURNAL), fields).is_err() {
        note!("{}", line(fields));
    }
}

type Fields = Vec<(String, String)>;

/// What is logged of every change: action, interface, details, then who.
fn fields(asker: Option<Asker>, action: &str, interface: &str, details: &[(&str, &str)]) -> Fields {
    let mut fields: Fields = Vec::new();
    // Control characters would begin another field.
    let mut add = |key: &str, value: String| fields.push((key.to_owned(), printable(&value)));
    add("action", action.to_owned());
    if !interface.is_empty() {
        add("interface", interface.to_owned());
    }
    for (key, value) in details {
        add(key, (*value).to_owned());
    }
    if let Some(Asker { uid, pid, login }) = asker {
        add("uid", uid.to_string());
        add("pid", pid.to_string());
        if let Some(login) = login {
            add("login_uid", login.to_string());
        }
    }
    fields
}

/// `audit: action=attach interface=eth1 ...`; values with blanks are quoted.
fn line(fields: &Fields) -> String {
    let pairs = fields.iter().map(|(key, value)| {
        let is_plain = !value.is_empty() && !value.contains([' ', '"', '\\', '=']);
        match is_plain {
            true => format!(" {key}={value}"),
            false => format!(" {key}={value:?}"),
        }
    });
    pairs.fold("audit:".to_owned(), |line, pair| line + &pair)
}

fn send(socket: &Path, fields: &Fields) -> std::io::Result<()> {
    let mut entry = format!(
        "MESSAGE={}\nPRIORITY=5\nSYSLOG_IDENTIFIER=penstockd\n",
        line(fields)
    );
    for (key, value) in fields {
        entry += &format!("PENSTOCK_{}={value}\n", key.to_uppercase());
    }
    let journal = UnixDatagram::unbound()?;
    // One that takes no more must not keep a port from being detached.
    journal.set_nonblocking(true)?;
    journal.send_to(entry.as_bytes(), socket).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_linux::testkit::{PATIENCE, join};

    #[test]
    fn an_entry_of_the_journal_has_a_field_for_each_fact() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let journal = UnixDatagram::bind(&path).unwrap();
        let fields = fields(
            Some(Asker::this()),
            "attach",
            "eth1",
            &[("scheme", "fairq\nPRIORITY=0")],
        );
        send(&path, &fields).unwrap();
        let mut buffer = [0; 4096];
        let length = journal.recv(&mut buffer).unwrap();
        let entry = std::str::from_utf8(&buffer[..length]).unwrap();
        let facts: Vec<&str> = entry.lines().collect();
        let pid = format!("PENSTOCK_PID={}", std::process::id());
        for fact in [
            "PRIORITY=5",
            "SYSLOG_IDENTIFIER=penstockd",
            "PENSTOCK_ACTION=attach",
            "PENSTOCK_INTERFACE=eth1",
            "PENSTOCK_SCHEME=fairq?PRIORITY=0",
            &pid,
        ] {
            assert!(facts.contains(&fact), "{fact}: {entry}");
        }
        assert!(!facts.contains(&"PRIORITY=0"));
        assert!(facts[0].starts_with("MESSAGE=audit: action=attach interface=eth1 scheme="));
        assert!(send(&folder.path().join("none"), &fields).is_err());
    }

    #[test]
    fn who_asked_for_a_change_is_named_in_place_of_this_process() {
        let of = |asker| line(&fields(asker, "reload", "", &[]));
        let known = of(Some(Asker::new(1000, 0)));
        assert_eq!(known, "audit: action=reload uid=1000 pid=0");
        assert_eq!(of(None), "audit: action=reload");
    }

    #[test]
    fn a_journal_that_takes_no_more_keeps_no_command_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _journal = UnixDatagram::bind(&path).unwrap();
        let other = UnixDatagram::unbound().unwrap();
        other.set_nonblocking(true).unwrap();
        while other.send_to(&[7; 100], &path).is_ok() {}
        let fields = fields(None, "detach", "eth1", &[]);
        let sending = std::thread::spawn(move || send(&path, &fields).is_err());
        assert!(join(sending, PATIENCE));
    }

    #[test]
    fn a_line_quotes_what_has_blanks() {
        let fields = vec![
            ("action".to_owned(), "reload".to_owned()),
            ("config".to_owned(), "/a b/c\"d".to_owned()),
        ];
        assert_eq!(line(&fields), r#"audit: action=reload config="/a b/c\"d""#);
    }
}
