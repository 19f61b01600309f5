//! A server on loopback that answers as a test says: each request is handed to a closure, with its number.
//!
//! It also plays a proxy: a client that goes through one asks it for the whole address.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request, as far as tests care.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What stands in the request line: a path with its query, or a whole address if a proxy is asked.
    pub path: String,
    /// How many requests came before it for the same path without its query.
    pub before: usize,
}

/// The running server; its thread ends with the test's process.
pub struct Scripted {
    /// Host and port.
    pub address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Scripted {
    /// Starts a server that answers with a status and a body.
    pub fn start(answer: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let (record, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (record, answer) = (Arc::clone(&record), Arc::clone(&answer));
                std::thread::spawn(move || serve(stream, &record, answer.as_ref()));
            }
        });
        Self { address, asked }
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("unpoisoned").clone()
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.asked().iter().filter(|asked| bare(&asked.path) == path).count()
    }
}

fn bare(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// Reads one request and answers it; a client that leaves early is no error.
fn serve(stream: TcpStream, record: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> (u16, String)) {
    let Some(path) = read(&stream) else { return };
    let asked = {
        let mut all = record.lock().expect("unpoisoned");
        let before = all.iter().filter(|earlier| bare(&earlier.path) == bare(&path)).count();
        all.push(Asked { path, before });
        all[all.len() - 1].clone()
    };
    let (status, body) = answer(&asked);
    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
}

/// What is asked for; the body is read to its end and not looked at.
fn read(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(path)
}
