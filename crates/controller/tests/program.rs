// SPDX-License-Identifier: Apache-2.0
//! The program: its limits, its socket for the status, and what it prints.

mod wire;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_penstock-controller");
const PATIENCE: Duration = Duration::from_secs(20);

/// A controller that runs, and its folder.
struct Program {
    process: Child,
    folder: tempfile::TempDir,
    switches: SocketAddr,
}

impl Program {
    /// With commands of the shell before it, and a number of watched ports.
    fn start(commands: &str, ports: u32) -> Program {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let switches = listener.local_addr().expect("it has one");
        drop(listener);
        let path = |name| folder.path().join(name).display().to_string();
        let mut text = format!(
            "openflow = \"{switches}\"\nagents = \"127.0.0.1:0\"\nstatus = \"{}\"\n\
             [controller]\nkind = \"sicc\"\n[agent]\n",
            path("socket")
        );
        for port in 1..=ports {
            text +=
                &format!("[watch.p{port}]\ndatapath = \"1\"\nport = {port}\nbuffer = \"1 kB\"\n");
        }
        std::fs::write(path("config"), text).expect("it is written");
        let mut command = Command::new("sh");
        let script = format!("{commands} exec \"$0\" run \"$1\"");
        command.args(["-c", &script, PROGRAM, &path("config")]);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let process = command.spawn().expect("a shell");
        let program = Program {
            process,
            folder,
            switches,
        };
        let begun = Instant::now();
        while UnixStream::connect(program.path("socket")).is_err() {
            assert!(begun.elapsed() < PATIENCE, "it does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        program
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.switches).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream
    }

    /// A connection of a switch without watched ports of its own.
    fn switch(&self) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(&wire::greeting(1)).expect("it is read");
        stream
    }

    fn status(&self, arguments: &str) -> Output {
        let script = format!("\"$0\" status \"$1\" {arguments}");
        let mut command = Command::new("sh");
        command.args(["-c", &script, PROGRAM, &self.path("config")]);
        command.output().expect("a shell")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// HELLO of the controller.
fn is_greeted(stream: &mut TcpStream) {
    let mut hello = [0; 16];
    stream.read_exact(&mut hello).expect("it is accepted");
}

#[test]
fn the_limit_of_open_files_is_raised() {
    let program = Program::start("ulimit -Sn 64;", 1);
    let mut streams: Vec<_> = (0..200).map(|_| program.connect()).collect();
    streams.iter_mut().for_each(is_greeted);
}

#[test]
fn a_connection_that_waits_for_others_to_end_is_accepted_then() {
    let program = Program::start("ulimit -n 64;", 1);
    let mut early: Vec<_> = (0..64).map(|_| program.connect()).collect();
    is_greeted(&mut early[0]);
    let mut late: Vec<_> = (0..40).map(|_| program.connect()).collect();
    drop(early);
    late.iter_mut().for_each(is_greeted);
}

#[test]
fn a_long_status_is_read_whole_and_a_reader_that_is_slow_holds_up_nothing() {
    let program = Program::start("", 6000);
    let switch = program.switch();
    let begun = Instant::now();
    loop {
        let json = program.status("--json");
        let text = String::from_utf8(json.stdout).expect("text");
        if text.contains("0000000000000001:5999") {
            assert!(text.len() > 300_000 && text.ends_with("}\n"));
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "the ports are watched");
    }
    let mut slow = UnixStream::connect(program.path("socket")).expect("it listens");
    assert!(program.status("").status.success());
    let mut text = String::new();
    slow.read_to_string(&mut text).expect("it answers");
    assert!(text.ends_with('}'));
    drop(switch);
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let program = Program::start("", 1);
    for arguments in [">/dev/full", "--json >/dev/full"] {
        let printed = program.status(arguments);
        assert_eq!(printed.status.code(), Some(2), "{printed:?}");
        let text = String::from_utf8(printed.stderr).expect("text");
        assert!(text.contains("standard output"), "{text}");
    }
}

#[test]
fn connections_are_logged_few_times_for_each_address() {
    let mut program = Program::start("", 1);
    for _ in 0..20 {
        let mut switch = program.switch();
        is_greeted(&mut switch);
    }
    drop(program.connect());
    let log = program.process.stderr.take().expect("it is piped");
    let lines = BufReader::new(log).lines().map_while(Result::ok);
    let mut about = Vec::new();
    for line in lines.filter(|line| line.contains(": switch ")) {
        about.push(line);
        if about.len() == 10 {
            break;
        }
    }
    assert!(about[0].contains("switch 0000000000000001 at"), "{about:?}");
    assert!(about[0].ends_with(": connected"), "{about:?}");
    assert!(about[1].contains(": connection closed: "), "{about:?}");
    assert!(about[9].contains("no further lines"), "{about:?}");
}
