//! What `doctor` finds out about the vault, on a real S3 server and in folders, and that it leaves nothing behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use redrive::config::{Config, Setting};
use redrive::doctor::{Finding, examine};
use tempfile::TempDir;

use crate::support::misbehaving::ports::ClosedPort;
use crate::support::s3::S3;

/// A folder with a store, or with none yet, and a configuration.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn setting(&self, config: &str) -> Setting {
        let config = Config::parse(config, &self.folder.path().join("redrive.toml")).expect("a configuration");
        let store = format!("sqlite:{}", self.folder.path().join("redrive.db").display());
        Setting::of(config, Some(&store)).expect("a setting")
    }

    async fn make_store(&self) {
        self.setting("").redrive().await.expect("made");
    }

    /// What is found about the vault.
    async fn vault(&self, config: &str) -> (bool, String) {
        let findings = examine(&self.setting(config)).await;
        let vault = findings.iter().find(|finding| finding.check == "vault");
        let Finding { ok, found, .. } = vault.unwrap_or_else(|| panic!("{findings:?}"));
        (*ok, found.clone())
    }
}

/// The section of a vault on a server.
fn section(s3: &S3, bucket: &str, secret: &str) -> String {
    format!(
        "[vault]\nurl = \"s3://{bucket}/pages\"\nendpoint = \"http://{}\"\nregion = \"us-east-1\"\n\
         access_key_id = \"the-id\"\nsecret_access_key = \"{secret}\"\n",
        s3.address
    )
}

/// Reads a request to its end: a connection that is closed before that is reset, and its answer may be lost.
fn take_request(stream: &TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    for line in reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()) {
        let header = line.to_ascii_lowercase();
        length = header.strip_prefix("content-length:").map_or(length, |value| value.trim().parse().expect("a length"));
    }
    let _ = reader.read_exact(&mut vec![0; length]);
}

/// A server that gives every request the same answer, as S3 does when it refuses.
fn refusing(status: &'static str, code: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            take_request(&stream);
            let body = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = write!(&stream, "{head}{body}");
        }
    });
    endpoint
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    let mut all: Vec<_> = all.collect();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn a_bucket_on_any_endpoint_is_tried_and_left_as_it_was() {
    let (s3, place) = (S3::start(), Place::new());
    let bucket = s3.folder.path().join("evidence");
    std::fs::create_dir_all(bucket.join("pages")).expect("made");
    std::fs::write(bucket.join("pages/mine.txt"), "of somebody else").expect("written");
    let before = files(&bucket);
    for with_store in [false, true] {
        if with_store {
            place.make_store().await;
        }
        let (ok, found) = place.vault(&section(&s3, "evidence", "the-secret")).await;
        assert!(ok, "{found}");
        let expected =
            format!("s3://evidence/pages (at http://{}): a payload was written, read and removed", s3.address);
        assert_eq!(found, expected);
        assert_eq!(files(&bucket), before);
    }
    assert_eq!(std::fs::read_to_string(bucket.join("pages/mine.txt")).expect("there"), "of somebody else");
}

/// The section that the reference shows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn the_vault_of_the_reference_works() {
    let (s3, place) = (S3::start(), Place::new());
    let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let reference = std::fs::read_to_string(reference).expect("the reference");
    let (_, section) = reference.split_once("```toml file=redrive.toml\n[vault]\n").expect("an example");
    let section = section.split("```").next().expect("an end");
    let key = place.folder.path().join("vault.key");
    std::fs::write(&key, "the-secret\n").expect("written");
    let said = [
        ("127.0.0.1:9000", s3.address.to_string()),
        ("\"shop\"", "\"the-id\"".to_owned()),
        ("vault.key", key.display().to_string()),
    ];
    let section = said.iter().fold(section.to_owned(), |section, (theirs, ours)| {
        assert!(section.contains(theirs), "{theirs} in {section}");
        section.replace(theirs, ours)
    });
    let (ok, found) = place.vault(&format!("[vault]\n{section}")).await;
    assert!(ok, "{found}");
    assert_eq!(s3.files(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
async fn what_is_wrong_with_a_bucket_is_told_with_what_to_do() {
    let (s3, place) = (S3::start(), Place::new());
    let closed = ClosedPort::reserve();
    let own = format!("http://{}", s3.address);
    let at = |endpoint: String| section(&s3, "evidence", "x").replace(&own, &endpoint);
    for (config, expected) in [
        (section(&s3, "evidence", "an0ther-secret"), "; the key or its secret is wrong"),
        (at(refusing("404 Not Found", "NoSuchBucket")), "; make the bucket, or name another in the vault's URL"),
        (at(refusing("403 Forbidden", "AccessDenied")), "; the key must be allowed to put, get and delete objects"),
        (at(refusing("400 Bad Request", "AuthorizationHeaderMalformed")), "; the region may be wrong"),
        (at(closed.url("")), "a payload cannot be written: "),
        ("vault = \"http://127.0.0.1:9000/evidence\"\n".to_owned(), "expected a folder, or s3://bucket/prefix"),
        ("[vault]\nurl = \"s3://b\"\nendpoint = \"127.0.0.1:9000\"\n".to_owned(), "write http://host:9000"),
        (
            "[vault]\nurl = \"s3://b\"\nregion = \"${env:NO_SUCH}\"\n".to_owned(),
            "s3://b: it cannot be opened: the environment has",
        ),
    ] {
        let (ok, found) = place.vault(&config).await;
        assert!(!ok && found.contains(expected), "{config}\n{found}");
        assert!(!found.contains("an0ther-secret") && !found.contains("may be left"), "{found}");
    }
    assert_eq!(s3.files(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_is_left_as_it_was_too() {
    let place = Place::new();
    place.make_store().await;
    let (ok, found) = place.vault("").await;
    assert!(ok && found.ends_with("payloads is not there yet; the first run makes it"), "{found}");
    let folder = place.folder.path().join("payloads");
    assert!(!folder.exists());
    std::fs::create_dir_all(folder.join("ab")).expect("made");
    std::fs::write(folder.join("ab/notes.zst"), "mine").expect("written");
    let (ok, found) = place.vault("").await;
    assert!(ok && found.ends_with("payloads: a payload was written, read and removed"), "{found}");
    let entries = std::fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.file_name());
    assert_eq!(entries.collect::<Vec<_>>(), ["ab"], "no folder is left either");
    assert_eq!(files(&folder), [folder.join("ab/notes.zst")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_cannot_be_written_is_told() {
    let place = Place::new();
    std::fs::write(place.folder.path().join("vault"), "a file").expect("written");
    let path = place.folder.path().join("vault").display().to_string();
    let (ok, found) = place.vault(&format!("vault = {path:?}\n")).await;
    assert!(!ok && found.starts_with(&format!("{path}: it cannot be opened: ")), "{found}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_cannot_be_made_is_told() {
    let place = Place::new();
    let fetching = "[pipeline.p]\nhandler = \"http\"\n[pipeline.p.extract.fields]\ntitle = ";
    for (field, expected) in [("\"h1\"", None), ("\"//h1\"", Some("it is XPath"))] {
        let findings = examine(&place.setting(&format!("{fetching}{field}\n"))).await;
        let found = findings.iter().find(|finding| finding.check == "handler").expect("it was looked at");
        assert_eq!(found.ok, expected.is_none(), "{found:?}");
        assert!(found.found.contains(expected.unwrap_or("http (pipeline p)")), "{found:?}");
    }
}
