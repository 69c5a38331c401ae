// SPDX-License-Identifier: Apache-2.0
//! As much of HTTP as a scraper needs: `GET /metrics`, one request per connection, one connection at
//! a time. Slow or long requests are cut off, so that none blocks the others.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::openmetrics::CONTENT_TYPE;

/// Longest head of a request.
const HEAD: usize = 8192;

/// Time limit of a request, and of writing the answer.
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

fn answer(mut stream: TcpStream, page: impl Fn() -> Result<String, String>) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let line = match request_line(&mut stream) {
        Ok(Some(line)) => line,
        Ok(None) => return respond(&mut stream, "400 Bad Request", "text/plain", "no HTTP\n"),
        Err(error) => return Err(error),
    };
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = path.split('?').next().unwrap_or("");
    match (method, path) {
        ("GET", "/metrics") => match page() {
            Ok(text) => respond(&mut stream, "200 OK", CONTENT_TYPE, &text),
            Err(error) => {
                let text = format!("{error}\n");
                respond(
                    &mut stream,
                    "500 Internal Server Error",
                    "text/plain",
                    &text,
                )
            }
        },
        ("GET", _) => respond(&mut stream, "404 Not Found", "text/plain", "see /metrics\n"),
        _ => respond(
            &mut stream,
            "405 Method Not Allowed",
            "text/plain",
            "GET only\n",
        ),
    }
}

/// The first line of a request, once its head is whole; none if it is not HTTP or too long.
fn request_line(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let end = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
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
    status: &str,
    content_type: &str,
    body: &str,
) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server whose page is `page` answers to `request`.
    fn ask(request: &[u8], page: Result<String, String>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let _ = answer(stream, || page.clone());
        });
        let mut client = TcpStream::connect(address).unwrap();
        // The server may stop reading what is too long.
        let _ = client.write_all(request);
        let _ = client.shutdown(std::net::Shutdown::Write);
        let mut response = String::new();
        let _ = client.read_to_string(&mut response);
        server.join().unwrap();
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
    fn an_error_is_told() {
        let response = ask(b"GET /metrics HTTP/1.1\r\n\r\n", Err("no bpffs".to_owned()));
        assert!(response.starts_with("HTTP/1.1 500") && response.ends_with("no bpffs\n"));
    }
}
