//! The pages of the dashboard over a million dead letters: how long the server takes for each, what a browser loads besides, and how
//! soon somebody who looks sees that something was settled.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use redrive::config::TokenFile;
use serde_json::Value;

use crate::command::binary;

/// What a page may take, and how soon a number is to change.
const PAGE: Duration = Duration::from_millis(50);
const CHANGE: Duration = Duration::from_secs(2);

/// What a page may take that looks through letters for a text, which stops after 100 ms.
const SEARCH: Duration = Duration::from_millis(150);

/// What a page may take that plans, which counts every letter that is meant.
const PLAN: Duration = Duration::from_millis(200);

/// What a browser may load besides a page, in bytes.
const ASSETS: usize = 60 * 1_024;

/// How often each page is asked for; the median counts, the slowest is shown.
const RUNS: usize = 11;

/// How often something is settled while somebody looks.
const CHANGES: usize = 5;

/// Measures a server over a store that has letters.
pub fn measure(path: &Path, letters: u64) -> Result<()> {
    let served = Served::start(path)?;
    let cause = served.json("/api/v1/causes?limit=500")?;
    let causes = cause["items"].as_array().context("causes")?;
    let cause = causes.get(causes.len() / 2).context("a cause")?["id"].as_str().context("an id")?.to_owned();
    let letter = served.json("/api/v1/letters?limit=1")?;
    let letter = letter["items"][0]["id"].as_str().context("a letter")?.to_owned();
    println!();
    println!("| page | dead letters | ms | slowest | processors' ms | KiB | limit | processors' share of the limit |");
    println!("|---|--:|--:|--:|--:|--:|--:|--:|");
    for path in [
        "/".to_owned(),
        "/?pipeline=pipeline-3".to_owned(),
        "/causes".to_owned(),
        "/causes?tab=all".to_owned(),
        "/causes?tab=all&pipeline=pipeline-3".to_owned(),
        format!("/causes/{cause}"),
        format!("/causes/{cause}?view=diff"),
        "/letters".to_owned(),
        "/letters?reason=timeout".to_owned(),
        "/letters?pipeline=pipeline-3&reason=timeout&target=shop3.example".to_owned(),
        "/letters?gate=never".to_owned(),
        format!("/letters?cause={cause}&text=nowhere"),
        "/letters?text=products%2F77".to_owned(),
        "/letters?text=nowhere+to+be+found".to_owned(),
        format!("/letters/{letter}"),
        format!("/letters/discard?cause={cause}"),
        format!("/replays/new?cause={cause}"),
        "/replays/new?reason=timeout".to_owned(),
        "/replays/new?reason=schema_validation".to_owned(),
        "/replays".to_owned(),
        "/alerts".to_owned(),
        "/pipelines".to_owned(),
        "/pipelines/pipeline-3".to_owned(),
        "/activity".to_owned(),
        "/settings/tokens".to_owned(),
        format!("/search?q={cause}"),
    ] {
        let worked = served.worked()?;
        let mut taken: Vec<(Duration, usize)> = (0..RUNS).map(|_| served.timed(&path)).collect::<Result<_>>()?;
        taken.sort();
        let (median, slowest) = (taken[RUNS / 2].0, taken[RUNS - 1].0);
        let limit = match path.split_once('?') {
            Some((_, query)) if query.contains("text=") => SEARCH,
            Some(("/replays/new", _)) => PLAN,
            _ => PAGE,
        };
        let worked = (served.worked()? - worked) / RUNS as u32;
        let [ms, most, worked, limit] = [median, slowest, worked, limit].map(|time| time.as_secs_f64() * 1e3);
        let kib = taken[0].1 as f64 / 1_024.0;
        println!(
            "| {path} | {letters} | {ms:.1} | {most:.1} | {worked:.1} | {kib:.0} | {limit:.0} | {:.2} |",
            worked / limit
        );
    }
    assets(&served)?;
    changes(&served)
}

/// What a browser loads besides the page, once.
fn assets(served: &Served) -> Result<()> {
    let page = served.get("/", "")?;
    let names: Vec<&str> = page.split('"').filter(|part| part.starts_with("/assets/")).collect();
    let bytes: usize = names.iter().map(|name| served.get(name, "").map(|asset| asset.len())).sum::<Result<usize>>()?;
    println!();
    println!("| what | requests | bytes | limit | share of the limit |");
    println!("|---|--:|--:|--:|--:|");
    println!(
        "| a page for the first time, besides itself | {} | {bytes} | {ASSETS} | {:.2} |",
        names.len(),
        bytes as f64 / ASSETS as f64
    );
    println!("| a page from then on | 0 | 0 | | |");
    Ok(())
}

/// From a letter that is settled to the changed number: a hint, and the parts that changed.
fn changes(served: &Served) -> Result<()> {
    let mut hints = served.events()?;
    let parts = "x-parts: pipelines,headline,failed-pl,failed-lately\r\n";
    let mut taken = Vec::new();
    for n in 0..CHANGES {
        let before = served.get("/?pipeline=fresh", parts)?;
        std::thread::sleep(Duration::from_millis(1_200));
        let begun = Instant::now();
        // One that is known already would change nothing.
        let n = (fastrand::u64(..) >> 12) + n as u64;
        let letter = format!(r#"{{"pipeline":"fresh","input":{{"n":{n}}},"message":"ERROR_FRESH: it broke"}}"#);
        served.post("/api/v1/letters", &letter)?;
        while served.get("/?pipeline=fresh", parts)? == before {
            hints.next_hint()?;
            ensure!(begun.elapsed() < CHANGE * 10, "the number never changes");
        }
        taken.push(begun.elapsed());
    }
    taken.sort();
    let [ms, most, limit] = [taken[CHANGES / 2], taken[CHANGES - 1], CHANGE].map(|time| time.as_secs_f64() * 1e3);
    println!();
    println!("| what | ms | slowest | limit | share of the limit |");
    println!("|---|--:|--:|--:|--:|");
    println!("| from a settlement to the changed number | {ms:.0} | {most:.0} | {limit:.0} | {:.2} |", ms / limit);
    Ok(())
}

/// A server that runs.
struct Served {
    child: Child,
    address: String,
    /// The line by which pages and the API let requests in.
    let_in: [String; 2],
}

impl Served {
    fn start(path: &Path) -> Result<Self> {
        let mut child = Command::new(binary()?)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("REDRIVE_STORE", format!("sqlite:{}", path.display()))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().context("piped")?).lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("http://")?.1.to_owned())).context("an address")?;
        let link = lines
            .find_map(|line| Some(line.split_once("/login?")?.1.split(' ').next()?.to_owned()))
            .context("a link")?;
        // What it says further is read, so that it never waits for us.
        std::thread::spawn(move || lines.count());
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).context("a port")?;
        let token = TokenFile::find(port, || None).context("a token")?;
        let mut served = Self { child, address, let_in: [String::new(), format!("authorization: Bearer {token}\r\n")] };
        let mut answer = String::new();
        served.connect("GET", &format!("/login?{link}"), "connection: close\r\n", "")?.read_to_string(&mut answer)?;
        let given = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).context("a cookie")?;
        served.let_in[0] = format!("cookie: {}\r\n", given.split(';').next().unwrap_or_default());
        Ok(served)
    }

    /// For how long processors worked for it so far, in steps of 10 ms.
    fn worked(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(')').context("the state of a process")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
        Ok(Duration::from_millis(ticks * 10))
    }

    fn connect(&self, method: &str, path: &str, more: &str, body: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let (length, let_in) = (body.len(), &self.let_in[usize::from(path.starts_with("/api/"))]);
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n{let_in}content-length: {length}\r\n{more}", self.address);
        stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
        Ok(stream)
    }

    fn ask(&self, method: &str, path: &str, more: &str, body: &str) -> Result<String> {
        let mut stream = self.connect(method, path, &format!("connection: close\r\n{more}"), body)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
        let is_good = ["200", "201", "303", "304"].iter().any(|status| head[9..].starts_with(status));
        ensure!(is_good, "{path}: {}", head.lines().next().unwrap_or_default());
        Ok(body.to_owned())
    }

    fn get(&self, path: &str, more: &str) -> Result<String> {
        self.ask("GET", path, more, "")
    }

    fn post(&self, path: &str, body: &str) -> Result<String> {
        self.ask("POST", path, "content-type: application/json\r\n", body)
    }

    fn json(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.get(path, "")?)?)
    }

    fn timed(&self, path: &str) -> Result<(Duration, usize)> {
        let begun = Instant::now();
        let page = self.get(path, "")?;
        Ok((begun.elapsed(), page.len()))
    }

    fn events(&self) -> Result<Hints> {
        let stream = self.connect("GET", "/events", "accept: text/event-stream\r\n", "")?;
        Ok(Hints(BufReader::new(stream)))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a page that is open is told.
struct Hints(BufReader<TcpStream>);

impl Hints {
    fn next_hint(&mut self) -> Result<()> {
        let mut line = String::new();
        while !line.starts_with("event: change") {
            line.clear();
            ensure!(self.0.read_line(&mut line)? > 0, "the server hung up");
        }
        Ok(())
    }
}
