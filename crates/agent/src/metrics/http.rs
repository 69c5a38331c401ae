// SPDX-License-Identifier: Apache-2.0
//! As much of HTTP as a scraper needs: `GET` and `HEAD` of `/metrics`, one request per connection, one
//! connection at a time. Slow or long requests are cut off, so that none blocks the others.
//!
//! No library, as the kept ones cost more than these hundred lines: tiny_http limits neither the time
//! of a request nor its threads, one for each slow client; hyper needs an async runtime.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::openmetrics::CONTENT_TYPE;

/// Longest head of a request.
const HEAD: usize = 8192;

/// Time limit of a request, and of its answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers scrapes with what `page` returns; never returns.
pub fn serve(listener: &TcpListener, page: impl Fn() -> Result<String, String>) {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                // A client that has gone away is no error of ours.
                let _ = answer(stream, &page);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            // Out of descriptors, or an aborted connection: the next may succeed.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// A response: status, type of its body, body.
type Response = (&'static str, &'static str, String);

fn answer(mut stream: TcpStream, page: impl Fn() -> Result<String, String>) -> std::io::Result<()> {
    let line = request_line(&mut stream)?;
    let (is_head, response) = match &line {
        Some(line) => {
            let mut words = line.split(' ');
            let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            (method == "HEAD", response(method, path, page))
        }
        None => (false, text("400 Bad Request", "no HTTP\n")),
    };
    respond(&mut stream, &response, is_head)
}

fn text(status: &'static str, body: &str) -> Response {
    (status, "text/plain", body.to_owned())
}

fn response(method: &str, path: &str, page: impl Fn() -> Result<String, String>) -> Response {
    match (method, path.split('?').next()) {
        ("GET" | "HEAD", Some("/metrics")) => match page() {
            Ok(page) => ("200 OK", CONTENT_TYPE, page),
            Err(error) => text("500 Internal Server Error", &format!("{error}\n")),
        },
        ("GET" | "HEAD", _) => text("404 Not Found", "see /metrics\n"),
        _ => text("405 Method Not Allowed", "GET only\n"),
    }
}

/// What is left until `end`.
///
/// # Errors
/// Nothing is.
fn left_until(end: Instant) -> std::io::Result<Duration> {
    match end.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// The first line of a request, once its head is whole; none if it is not HTTP or too long.
fn request_line(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let end = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        stream.set_read_timeout(Some(left_until(end)?))?;
        let length = stream.read(&mut part)?;
        head.extend_from_slice(&part[..length]);
        if length == 0 || head.len() > HEAD {
            return Ok(None);
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or(&[]);
    let line = std::str::from_utf8(line)
        .ok()
        .filter(|line| line.contains(" HTTP/1."));
    Ok(line.map(str::to_owned))
}

fn respond(
    stream: &mut TcpStream,
    (status, content_type, body): &Response,
    is_head: bool,
) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let end = Instant::now() + PATIENCE;
    let body = if is_head { "" } else { body };
    for mut part in [head.as_bytes(), body.as_bytes()] {
        // A client that takes a byte now and then must not prolong the whole.
        while !part.is_empty() {
            stream.set_write_timeout(Some(left_until(end)?))?;
            let written = stream.write(part)?;
            part = &part[written..];
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_linux::testkit::join;
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
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let _ = answer(stream, || page.clone());
        });
        let mut client = connect(address);
        // The server may stop reading what is too long.
        let _ = client.write_all(request);
        let _ = client.shutdown(std::net::Shutdown::Write);
        let mut response = String::new();
        let _ = client.read_to_string(&mut response);
        join(server, LIMIT);
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
}
