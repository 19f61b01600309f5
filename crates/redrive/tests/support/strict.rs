//! A service that takes notices of alerts and is as strict as the real ones, on a thread of its own.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// What becomes of a request instead of being judged by what is in it.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It is taken, whatever it is.
    Take,
    /// It is refused with a status and with headers, each with the end of its line.
    Status(u16, &'static str),
    /// The connection ends before anything was answered, or taken.
    Break,
    /// It is taken, and nothing is ever answered.
    TakeAndHang,
}

/// What it has seen so far.
#[derive(Default)]
struct Seen {
    planned: VecDeque<Answer>,
    asked: usize,
    taken: Vec<Value>,
    refused: Vec<String>,
    hanging: Vec<TcpStream>,
}

/// A running service.
pub struct Service {
    address: String,
    seen: Arc<Mutex<Seen>>,
}

impl Service {
    /// Starts one that takes what a judge finds right.
    pub fn start(judge: fn(&Value) -> Result<(), String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let seen = Arc::<Mutex<Seen>>::default();
        let state = Arc::clone(&seen);
        // It ends with the test.
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                serve(socket, judge, &state);
            }
        });
        Self { address, seen }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}/services/T0/B0/x", self.address)
    }

    /// Says what becomes of the next requests.
    pub fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.seen.lock().expect("not poisoned").planned.extend(answers);
    }

    /// How many requests came.
    pub fn asked(&self) -> usize {
        self.seen.lock().expect("not poisoned").asked
    }

    /// What was taken, in its order.
    pub fn taken(&self) -> Vec<Value> {
        self.seen.lock().expect("not poisoned").taken.clone()
    }

    /// Why something was refused by its judge.
    pub fn refused(&self) -> Vec<String> {
        self.seen.lock().expect("not poisoned").refused.clone()
    }
}

/// Serves one request and closes the connection. What a client that left does not read is nobody's loss.
fn serve(mut socket: TcpStream, judge: fn(&Value) -> Result<(), String>, state: &Mutex<Seen>) {
    let Some(body) = read(&socket) else { return };
    let mut seen = state.lock().expect("not poisoned");
    seen.asked += 1;
    let (status, headers, text) = match seen.planned.pop_front() {
        None => match judge(&body) {
            Ok(()) => (200, "", "ok".to_owned()),
            Err(why) => (400, "", why),
        },
        Some(Answer::Take) => (200, "", "ok".to_owned()),
        Some(Answer::Status(status, headers)) => (status, headers, "no".to_owned()),
        Some(Answer::Break) => return,
        Some(Answer::TakeAndHang) => {
            seen.taken.push(body);
            seen.hanging.push(socket);
            return;
        }
    };
    match status {
        200 => seen.taken.push(body),
        400 if text != "no" => seen.refused.push(text.clone()),
        _ => {}
    }
    drop(seen);
    let length = text.len();
    let _ =
        write!(socket, "HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{text}");
}

fn read(socket: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(socket);
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(("content-length", value)) = line.trim().to_ascii_lowercase().split_once(": ") {
            length = value.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn text<'a>(value: &'a Value, what: &str, chars_max: usize) -> Result<&'a str, String> {
    let text = value.as_str().ok_or_else(|| format!("{what} is no text: {value}"))?;
    let chars = text.chars().count();
    if chars == 0 || chars > chars_max { Err(format!("{what} has {chars} characters")) } else { Ok(text) }
}

/// As an incoming webhook of Slack: a text, and blocks of which each has at most 3,000 characters. Nothing may mention anybody, and
/// all that is marked up is a link that stands alone.
pub fn slack(message: &Value) -> Result<(), String> {
    let mut texts = vec![text(&message["text"], "text", 40_000)?];
    let blocks = message["blocks"].as_array().ok_or("no blocks")?;
    if blocks.len() > 50 {
        return Err("invalid_blocks: too many".to_owned());
    }
    for block in blocks {
        let inner = &block["text"];
        if block["type"] == "section" && inner["type"] == "mrkdwn" {
            let link = text(&inner["text"], "the text of a block", 3_000)?;
            let parts = link.strip_prefix("<http").and_then(|rest| rest.strip_suffix('>')?.split_once('|'));
            if parts.is_none_or(|(to, said)| to.contains(['<', '>', ' ']) || said.contains(['<', '>', '|'])) {
                return Err(format!("it is no link: {link}"));
            }
            continue;
        }
        if block["type"] != "section" || inner["type"] != "plain_text" || !inner["emoji"].is_boolean() {
            return Err(format!("invalid_blocks: {block}"));
        }
        texts.push(text(&inner["text"], "the text of a block", 3_000)?);
    }
    match texts.iter().find(|text| text.contains(['<', '>'])) {
        Some(text) => Err(format!("it may mention somebody: {text}")),
        None => Ok(()),
    }
}

/// As PagerDuty's Events API, version 2.
pub fn pagerduty(event: &Value) -> Result<(), String> {
    if event.to_string().len() > 512 * 1_024 {
        return Err("the event is larger than 512 KB".to_owned());
    }
    if text(&event["routing_key"], "routing_key", 32)?.len() != 32 {
        return Err("routing_key must have 32 characters".to_owned());
    }
    if !["trigger", "acknowledge", "resolve"].contains(&text(&event["event_action"], "event_action", 20)?) {
        return Err(format!("event_action is {}", event["event_action"]));
    }
    text(&event["dedup_key"], "dedup_key", 255)?;
    for link in
        event.get("links").map(|links| links.as_array().ok_or("links are no list")).transpose()?.into_iter().flatten()
    {
        if !text(&link["href"], "href", 2_000)?.starts_with("http") {
            return Err(format!("href is {}", link["href"]));
        }
        text(&link["text"], "the text of a link", 255)?;
    }
    let payload = event["payload"].as_object().ok_or("no payload")?;
    text(&payload["summary"], "summary", 1_024)?;
    text(&payload["source"], "source", 255)?;
    if !["info", "warning", "error", "critical"].contains(&text(&payload["severity"], "severity", 20)?) {
        return Err(format!("severity is {}", payload["severity"]));
    }
    let is_time = |text: &str| text.parse::<jiff::Timestamp>().is_ok();
    if !is_time(text(&payload["timestamp"], "timestamp", 40)?) {
        return Err(format!("timestamp is {}", payload["timestamp"]));
    }
    for field in ["component", "class", "group"] {
        payload.get(field).map(|value| text(value, field, 255)).transpose()?;
    }
    payload
        .get("custom_details")
        .filter(|details| !details.is_object())
        .map_or(Ok(()), |_| Err("no details".to_owned()))
}
