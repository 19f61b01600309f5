//! A web server for tests that serves given pages, and counts nothing.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a path answers: its `Content-Type`, and the body.
type Page = (&'static str, Vec<u8>);

/// Serves pages by path on loopback until it is dropped.
pub struct Pages {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Pages {
    /// HTML pages by path, in UTF-8 unless they say something else themselves.
    pub fn html<B: Into<Vec<u8>>>(pages: impl IntoIterator<Item = (&'static str, B)>) -> Self {
        Self::of(pages.into_iter().map(|(path, body)| (path, ("text/html", body.into()))))
    }

    /// Any pages by path.
    pub fn of(pages: impl IntoIterator<Item = (&'static str, Page)>) -> Self {
        let pages: Arc<HashMap<_, _>> = Arc::new(pages.into_iter().collect());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let stopped = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&stopped);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let pages = Arc::clone(&pages);
                // An error is the client's: it has left.
                std::thread::spawn(move || answer(stream, &pages).ok());
            }
        });
        Self { address, stopped }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn answer(mut stream: TcpStream, pages: &HashMap<&str, Page>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let not_found = ("text/plain", path.as_bytes().to_vec());
    let (status, (kind, body)) = pages.get(path).map_or((404, &not_found), |page| (200, page));
    let head = format!("HTTP/1.1 {status} x\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    stream.write_all(body)
}
