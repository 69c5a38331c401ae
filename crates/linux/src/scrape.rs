// SPDX-License-Identifier: Apache-2.0
//! As much of HTTP as a scraper needs: `GET` and `HEAD` of `/metrics`, one request per connection. All
//! connections are served by one thread as they become ready. Slow or long requests are cut off, and
//! silent connections make room for new ones, so that none blocks the others.
//!
//! No library, as the kept ones cost more than these lines: tiny_http limits neither the time of a
//! request nor its threads, one for each slow client; hyper needs an async runtime.

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Content type of OpenMetrics by its specification.
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Longest head of a request.
const HEAD: usize = 8192;

/// Time limit of a request, and of its answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Most connections at the same time.
const MOST: usize = 64;

/// Age up to which a page is given to other connections too, so that many ask for no more work and memory
/// than one.
const FRESH: Duration = Duration::from_secs(1);

/// A page of metrics, or why there is none.
type Page = Result<Rc<[u8]>, String>;

/// Answers scrapes with what `page` returns; never returns.
pub fn serve(listener: &TcpListener, page: impl Fn() -> Result<String, String>) {
    // It fails for a closed descriptor only.
    let _ = listener.set_nonblocking(true);
    let mut connections: Vec<Connection> = Vec::new();
    let mut last: Option<(Instant, Page)> = None;
    let mut page = || match &last {
        Some((when, page)) if when.elapsed() < FRESH => page.clone(),
        _ => {
            let page = page().map(|page| Rc::from(page.into_bytes()));
            last = Some((Instant::now(), page.clone()));
            page
        }
    };
    loop {
        wait(listener, &connections);
        let is_accepting = accept(listener, &mut connections);
        let now = Instant::now();
        connections.retain_mut(|connection| now < connection.end && connection.go_on(&mut page));
        if !is_accepting {
            // Out of descriptors, or an aborted connection: the next may succeed.
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Waits until something can be done, or the time of a connection is over.
fn wait(listener: &TcpListener, connections: &[Connection]) {
    let now = Instant::now();
    let next = connections.iter().map(|connection| connection.end).min();
    let timeout = next.map(|end| {
        let left = end.saturating_duration_since(now);
        Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        }
    });
    let mut polled = vec![PollFd::new(listener, PollFlags::IN)];
    polled.extend(connections.iter().map(|connection| {
        let wanted = match connection.work {
            Work::Read(_) => PollFlags::IN,
            Work::Write { .. } => PollFlags::OUT,
        };
        PollFd::new(&connection.stream, wanted)
    }));
    let _ = poll(&mut polled, timeout.as_ref());
}

/// Accepts all that wait, at most [`MOST`] at a time; the oldest silent connections make room. False
/// if the kernel refuses.
fn accept(listener: &TcpListener, connections: &mut Vec<Connection>) -> bool {
    for _ in 0..MOST {
        match listener.accept() {
            Ok((stream, _)) => {
                if connections.len() >= MOST {
                    let silent = connections.iter().position(Connection::is_silent);
                    connections.remove(silent.unwrap_or(0));
                }
                // A client that has gone away is no error of ours.
                connections.extend(Connection::new(stream));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(_) => return false,
        }
    }
    true
}

struct Connection {
    stream: TcpStream,
    work: Work,
    /// When it is cut off.
    end: Instant,
}

/// What a connection waits for.
enum Work {
    /// The rest of a request, of which this has arrived.
    Read(Vec<u8>),
    /// Room for a response, of which so much has left.
    Write {
        head: Vec<u8>,
        body: Rc<[u8]>,
        sent: usize,
    },
}

impl Connection {
    fn new(stream: TcpStream) -> Option<Connection> {
        stream.set_nonblocking(true).ok()?;
        Some(Connection {
            stream,
            work: Work::Read(Vec::new()),
            end: Instant::now() + PATIENCE,
        })
    }

    fn is_silent(&self) -> bool {
        matches!(&self.work, Work::Read(head) if head.is_empty())
    }

    /// Does what can be done now; false once the connection is done.
    fn go_on(&mut self, page: impl FnMut() -> Page) -> bool {
        if let Work::Read(head) = &mut self.work {
            match read(&mut self.stream, head) {
                Ok(None) => return true,
                Err(_) => return false,
                Ok(Some(line)) => {
                    let (head, body) = answer(line.as_deref(), page);
                    self.work = Work::Write {
                        head,
                        body,
                        sent: 0,
                    };
                    self.end = Instant::now() + PATIENCE;
                }
            }
        }
        let Work::Write { head, body, sent } = &mut self.work else {
            return false;
        };
        while *sent < head.len() + body.len() {
            let parts = [
                IoSlice::new(&head[(*sent).min(head.len())..]),
                IoSlice::new(&body[sent.saturating_sub(head.len())..]),
            ];
            match self.stream.write_vectored(&parts) {
                Ok(0) => return false,
                Ok(length) => *sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(_) => return false,
            }
        }
        false
    }
}

/// Reads what has arrived: nothing until the head is whole, then its first line; that is none if it is
/// not HTTP or too long.
fn read(stream: &mut TcpStream, head: &mut Vec<u8>) -> std::io::Result<Option<Option<String>>> {
    let mut part = [0; 1024];
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        match stream.read(&mut part) {
            Ok(length) => {
                head.extend_from_slice(&part[..length]);
                if length == 0 || head.len() > HEAD {
                    return Ok(Some(None));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or(&[]);
    let line = std::str::from_utf8(line)
        .ok()
        .filter(|line| line.contains(" HTTP/1."));
    Ok(Some(line.map(str::to_owned)))
}

/// A response: status, type of its body, body.
type Response = (&'static str, &'static str, Rc<[u8]>);

/// The head and body of the response to a request with this first line.
fn answer(line: Option<&str>, page: impl FnMut() -> Page) -> (Vec<u8>, Rc<[u8]>) {
    let Some(line) = line else {
        return parts(text("400 Bad Request", "no HTTP\n"), false);
    };
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    parts(response(method, path, page), method == "HEAD")
}

fn text(status: &'static str, body: &str) -> Response {
    (status, "text/plain", body.as_bytes().into())
}

fn response(method: &str, path: &str, mut page: impl FnMut() -> Page) -> Response {
    match (method, path.split('?').next()) {
        ("GET" | "HEAD", Some("/metrics")) => match page() {
            Ok(page) => ("200 OK", CONTENT_TYPE, page),
            Err(error) => text("500 Internal Server Error", &format!("{error}\n")),
        },
        ("GET" | "HEAD", _) => text("404 Not Found", "see /metrics\n"),
        _ => text("405 Method Not Allowed", "GET only\n"),
    }
}

fn parts((status, content_type, body): Response, is_head: bool) -> (Vec<u8>, Rc<[u8]>) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    (
        head.into_bytes(),
        if is_head { Rc::default() } else { body },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::join;
    use std::net::SocketAddr;

    /// Longest wait of a test.
    const LIMIT: Duration = Duration::from_secs(30);

    fn connect(address: SocketAddr) -> TcpStream {
        let client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(LIMIT)).unwrap();
        client.set_write_timeout(Some(LIMIT)).unwrap();
        client
    }

    /// What a server whose page is `page` answers to `request`.
    fn ask(request: &[u8], page: Result<String, String>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // It serves until the tests end.
        std::thread::spawn(move || serve(&listener, || page.clone()));
        let mut client = connect(address);
        // The server may stop reading what is too long.
        let _ = client.write_all(request);
        let _ = client.shutdown(std::net::Shutdown::Write);
        let mut response = String::new();
        let _ = client.read_to_string(&mut response);
        response
    }

    fn status(request: &[u8]) -> String {
        let response = ask(request, Ok("# EOF\n".to_owned()));
        response.lines().next().unwrap_or("").to_owned()
    }

    #[test]
    fn metrics_are_found_at_their_path_only() {
        let response = ask(
            b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
            Ok("# EOF\n".to_owned()),
        );
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        assert!(response.contains("Content-Length: 6\r\n"), "{response}");
        assert!(response.contains(CONTENT_TYPE) && response.ends_with("\r\n\r\n# EOF\n"));
        let only_head = ask(b"HEAD /metrics HTTP/1.1\r\n\r\n", Ok("# EOF\n".to_owned()));
        assert!(only_head.contains("Content-Length: 6\r\n"), "{only_head}");
        assert!(only_head.ends_with("\r\n\r\n"), "{only_head}");
        assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
        assert_eq!(
            status(b"POST /metrics HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 405 Method Not Allowed"
        );
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert_eq!(status(b"hello\r\n\r\n"), "HTTP/1.1 400 Bad Request");
        assert_eq!(
            status(b"GET /metrics HTTP/1.1\r\n"),
            "HTTP/1.1 400 Bad Request"
        );
        assert_eq!(
            status(b"\xff\xfe HTTP/1.1\r\n\r\n"),
            "HTTP/1.1 400 Bad Request"
        );
    }

    #[test]
    fn a_request_without_end_is_cut_off() {
        let response = status(&vec![b'a'; 1 << 20]);
        assert!(
            response.is_empty() || response.contains("400"),
            "{response}"
        );
    }

    #[test]
    fn an_error_is_reported() {
        let response = ask(b"GET /metrics HTTP/1.1\r\n\r\n", Err("no bpffs".to_owned()));
        assert!(response.starts_with("HTTP/1.1 500") && response.ends_with("no bpffs\n"));
    }

    /// Clients that send or take a byte now and then, each within the socket's own time limits.
    #[test]
    fn slow_clients_are_cut_off_and_the_next_is_served() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let page = "x".repeat(8 << 20);
        std::thread::spawn(move || serve(&listener, || Ok(page.clone())));
        let start = Instant::now();
        let mut slow_sender = connect(address);
        let sending = std::thread::spawn(move || {
            while slow_sender.write_all(b"a").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let mut slow_taker = connect(address);
        slow_taker
            .write_all(b"GET /metrics HTTP/1.1\r\n\r\n")
            .unwrap();
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            while slow_taker.read(&mut part).is_ok_and(|length| length > 0) {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let mut client = connect(address);
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut response = String::new();
        client.read_to_string(&mut response).unwrap();
        assert!(response.len() > 8 << 20);
        // To take the page at its pace, the slow client would need 40 s.
        assert!(start.elapsed() < 10 * PATIENCE, "{:?}", start.elapsed());
        join(sending, LIMIT);
    }

    /// Sixty connections that ask and read nothing cost one page, and see what comes after it.
    #[test]
    fn connections_share_a_page_for_a_second() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, pages) = std::sync::mpsc::channel();
        let page = move || {
            sender.send(()).unwrap();
            Ok("x".repeat(8 << 20))
        };
        std::thread::spawn(move || serve(&listener, page));
        let ask = || {
            let mut client = connect(address);
            client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            client
        };
        let read = |mut client: TcpStream| {
            let mut response = String::new();
            client.read_to_string(&mut response).unwrap();
            assert!(response.len() > 8 << 20, "{}", response.len());
        };
        let start = Instant::now();
        let silent: Vec<_> = (0..60).map(|_| ask()).collect();
        read(ask());
        let seconds = start.elapsed().as_secs() as usize;
        let count = pages.try_iter().count();
        assert!((1..=seconds + 1).contains(&count), "{count} in {seconds} s");
        std::thread::sleep(FRESH);
        read(ask());
        assert_eq!(pages.try_iter().count(), 1, "a later one is new");
        drop(silent);
    }

    #[test]
    fn a_thousand_silent_connections_do_not_hold_up_a_scrape() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let current = limit.maximum;
        setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || serve(&listener, || Ok("# EOF\n".to_owned())));
        let mut silent = Vec::new();
        for number in 0..1000 {
            silent.push(connect(address));
            if number % 100 == 0 {
                let mut client = connect(address);
                client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
                let mut response = String::new();
                client.read_to_string(&mut response).unwrap();
                assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
            }
        }
        // All but the newest were dropped to make room.
        let mut dropped = 0;
        for client in &mut silent[..1000 - MOST] {
            dropped += u32::from(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
        }
        assert_eq!(dropped as usize, 1000 - MOST);
    }
}
