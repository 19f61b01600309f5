//! What lies between a command and the server that it asks: tokens, certificates, proxies, other versions, and what is no server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::harness::{Ran, Sandbox, eventually};
use crate::network::{Serving, at, failed};
use crate::real::authority::Authority;
use crate::served::local;

#[test]
fn tokens_are_asked_for_and_what_they_may_is_said() {
    let sandbox = failed();
    let token = |line: &str| sandbox.redrive(line).expect(0).stdout.trim_end().to_owned();
    let admin = token("token create ops --role admin");
    let viewer = token("token create eve --role viewer");
    let serving = Serving::start(&sandbox, &[]);
    let url = serving.url();
    at(&sandbox, &url, None, "status").expect(1).complains("a token is needed").complains("set REDRIVE_TOKEN");
    at(&sandbox, &url, Some("rdr_wrong"), "status").expect(1).complains("no such token");
    at(&sandbox, &url, Some(&viewer), "status").expect(0);
    let refused = at(&sandbox, &url, Some(&viewer), "pipeline pause default").expect(1);
    refused.complains("needs a token with the role operator; this one has the role viewer");
    assert!(
        at(&sandbox, &url, Some(&admin), "doctor").expect(0).stdout.contains("token: ops (admin), for all pipelines")
    );
    let made = at(&sandbox, &url, Some(&admin), "token create ci --role viewer --json").expect(0).json();
    sandbox.write("token", format!("{}\n", made["secret"].as_str().expect("a secret")));
    at(&sandbox, &url, None, "status --token-file token").expect(0);
    at(&sandbox, &url, Some(&admin), "token revoke ci").expect(0);
    let gone = at(&sandbox, &url, None, "status --token-file token --json").expect(1);
    assert!(gone.complains("token ci was revoked").stdout.is_empty());
}

#[test]
fn where_to_ask_is_said_once() {
    let sandbox = failed();
    let both = sandbox.redrive("status --store sqlite:a.db --server http://127.0.0.1:1");
    both.expect(2).complains("--store and --server are both given");
    at(&sandbox, "http://127.0.0.1:1", None, "status --store sqlite:.redrive/redrive.db").expect(0);
    for (url, why) in [
        ("redrive.example", "is not the address of a server"),
        ("https://me:secret@redrive.example", "no name and no password"),
        ("https://redrive.example/?a=b", "nothing after its path"),
    ] {
        at(&sandbox, url, None, "status").expect(2).complains(why);
    }
    let plain = at(&sandbox, "http://redrive.example", Some("rdr_secret"), "status").expect(2);
    assert!(!plain.complains("only sent over https, or to this machine").stderr.contains("rdr_secret"));
}

/// Something that answers each request with the same bytes, and keeps what it was asked.
fn answering(answer: String) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, asked) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = sender.send(answer_one(stream, &answer));
        }
    });
    (url, asked)
}

fn answer_one(mut stream: TcpStream, answer: &str) -> String {
    let mut asked = Vec::new();
    let mut buffer = [0; 4096];
    while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(n) => asked.extend_from_slice(&buffer[..n]),
        }
    }
    let _ = stream.write_all(answer.as_bytes());
    String::from_utf8_lossy(&asked).into_owned()
}

fn http(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

const STATUS: &str =
    r#"{"pipelines":{},"replays":[],"breakers":[],"workers":[],"alerts":[],"failing_sinks":[],"pauses":{},"new":1}"#;

#[test]
fn neighbouring_versions_understand_each_other_and_others_say_that_they_do_not() {
    let sandbox = Sandbox::new();
    let of = |version: &str| {
        answering(http(&format!("200 OK\r\nredrive-version: {version}\r\ncontent-type: application/json"), STATUS)).0
    };
    let own: Vec<u64> = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse().expect("a number")).collect();
    let (major, minor) = (own[0], own[1]);
    for near in
        [format!("{major}.{minor}.99"), format!("{major}.{}.0", minor + 1), format!("{major}.{}.0-rc.1", minor + 1)]
    {
        let ran = at(&sandbox, &of(&near), None, "status").expect(0);
        assert!(ran.stdout.contains("no tasks yet"), "{}", ran.stdout);
    }
    for far in [format!("{major}.{}.0", minor + 2), format!("{}.0.0", major + 1)] {
        let ran = at(&sandbox, &of(&far), None, "status").expect(1);
        ran.complains(&format!("is redrive {far}, this is")).complains("they do not understand each other: bring");
    }
    let newer = format!("200 OK\r\nredrive-version: {major}.{minor}.1\r\ncontent-type: application/json");
    let (url, _asked) = answering(http(&newer, r#"{"pipelines":[1]}"#));
    at(&sandbox, &url, None, "status").expect(1).complains("said something that redrive");
}

#[test]
fn what_is_no_server_is_said_to_be_none() {
    let sandbox = Sandbox::new();
    let (page, _) = answering(http("200 OK\r\ncontent-type: text/html; charset=utf-8", "<html>Sign in</html>"));
    let ran = at(&sandbox, &page, None, "status").expect(1);
    ran.complains("answers with 200 OK and text/html, not as a redrive server does").complains("look at --server");
    let (other, asked_other) = answering(http("200 OK\r\ncontent-type: application/json", STATUS));
    let moved = format!("307 Temporary Redirect\r\nlocation: {other}/api/v1/status?x=1");
    let (url, asked) = answering(http(&moved, ""));
    let ran = at(&sandbox, &url, Some("rdr_secret"), "status").expect(1);
    ran.complains(&format!("leads to {other}, and is not followed there"));
    assert!(asked.recv().expect("it was asked").contains("Bearer rdr_secret"));
    assert!(asked_other.try_recv().is_err(), "nothing is sent to where it leads");
}

#[test]
fn a_proxy_of_the_environment_is_not_sent_the_token() {
    let sandbox = failed();
    let (proxy, asked) = answering(http("502 Bad Gateway", ""));
    let serving = Serving::start(&sandbox, &[]);
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", serving.url()).env("REDRIVE_TOKEN", local(&serving.address));
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"] {
        command.env(name, &proxy);
    }
    Ran::of(command.args(["status"]).output().expect("redrive starts")).expect(0);
    assert!(asked.try_recv().is_err(), "the proxy was not asked");
}

/// Something that answers by what it is asked.
fn answering_each(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut line = String::new();
            let _ = BufReader::new(stream.try_clone().expect("cloned")).read_line(&mut line);
            let _ = stream.write_all(answer(&line).as_bytes());
        }
    });
    url
}

#[test]
fn a_payload_that_ends_too_soon_is_no_whole_one() {
    let sandbox = Sandbox::new();
    let version = env!("CARGO_PKG_VERSION");
    let head = move |kind: &str| format!("200 OK\r\nredrive-version: {version}\r\ncontent-type: {kind}");
    let hash = "ab".repeat(32);
    let payload = format!(r#"{{"hash":"{hash}","size_bytes":1000}}"#);
    let url = answering_each(move |asked| match asked.contains("/bytes") {
        true => format!(
            "HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: 1000\r\n\r\nonly this",
            head("application/octet-stream")
        ),
        false => http(&head("application/json"), &payload),
    });
    let ran = at(&sandbox, &url, None, &format!("payload show {hash} --out page")).expect(1);
    ran.complains("could not be read whole");
}

#[test]
fn a_token_that_has_expired_is_said_to_have() {
    let sandbox = failed();
    let token = |line: &str| sandbox.redrive(line).expect(0).stdout.trim_end().to_owned();
    token("token create ops --role admin");
    let short = token("token create short --role viewer --expires 3s");
    let serving = Serving::start(&sandbox, &[]);
    eventually("it is over", || {
        let ran = at(&sandbox, &serving.url(), Some(&short), "status");
        ran.code == Some(1) && ran.stderr.contains("token short has expired")
    });
}

#[test]
fn an_authority_of_ones_own_is_believed_if_it_is_named() {
    let sandbox = failed();
    let token = sandbox.redrive("token create ops --role admin").expect(0).stdout.trim_end().to_owned();
    let authority = Authority::new(&sandbox.path(""), "own");
    authority.sign(&sandbox.path(""), "server", "localhost", 2090);
    let tls = ["--tls-certificate", "server.pem", "--tls-key", "server.key"];
    let serving = Serving::start(&sandbox, &tls);
    let port = serving.address.rsplit(':').next().expect("a port");
    let url = format!("https://localhost:{port}");
    let stranger = at(&sandbox, &url, Some(&token), "status").expect(1);
    assert!(stranger.stderr.contains("certificate"), "{}", stranger.stderr);
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", &url).env("REDRIVE_TOKEN", &token).env("REDRIVE_CA", &authority.pem);
    Ran::of(command.arg("status").output().expect("redrive starts")).expect(0);
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", &url).env("REDRIVE_CA", sandbox.path("nowhere.pem"));
    Ran::of(command.arg("status").output().expect("redrive starts")).expect(2).complains("REDRIVE_CA");
}

#[test]
fn a_server_is_reached_through_the_proxy_that_is_named_for_it() {
    let sandbox = Sandbox::new();
    let version = env!("CARGO_PKG_VERSION");
    let head = format!("200 OK\r\nredrive-version: {version}\r\ncontent-type: application/json");
    let (proxy, asked) = answering(http(&head, STATUS));
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", "http://redrive.example").env("REDRIVE_PROXY", &proxy).arg("status");
    Ran::of(command.output().expect("redrive starts")).expect(0);
    let asked = asked.recv().expect("it was asked");
    assert!(asked.starts_with("GET http://redrive.example/api/v1/status"), "{asked}");
    let mut command = sandbox.command();
    command.env("REDRIVE_SERVER", "http://redrive.example").env("REDRIVE_PROXY", "not an address").arg("status");
    Ran::of(command.output().expect("redrive starts")).expect(2).complains("REDRIVE_PROXY");
}
