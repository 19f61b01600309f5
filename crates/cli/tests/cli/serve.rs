//! `redrive serve`: that it begins, works, and stops when told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use crate::disk::Disk;
use crate::harness::{Ran, Sandbox, eventually, json_lines};
use crate::served::{Served, answered, ask, free_address, local, remember};

/// Starts a server; says where it listens.
fn serve(sandbox: &Sandbox, extra: &[&str]) -> (Child, String) {
    let mut command = sandbox.command();
    command.args(["serve", "--listen", "127.0.0.1:0"]).args(extra).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("redrive starts");
    let lines = BufReader::new(child.stderr.take().expect("an error stream")).lines();
    let mut lines = lines.map(|line| line.expect("read"));
    let address = lines.find_map(|line| Some(line.split_once("http://")?.1.to_owned())).expect("it says where");
    // What it says further is read, so that it never waits for us.
    std::thread::spawn(move || lines.count());
    remember(&command, &address);
    (child, address)
}

fn get(address: &str, path: &str) -> String {
    raw(address, "GET", path, "")
}

/// The whole answer to a request, with its head.
fn raw(address: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(300))).expect("set");
    let (token, length) = (local(address), body.len());
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}");
    let about = format!("content-type: application/json\r\ncontent-length: {length}\r\nconnection: close");
    write!(stream, "{head}\r\n{about}\r\n\r\n{body}").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    answer
}

#[test]
fn it_answers_works_and_stops_when_told_to() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.shop]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; echo 1\"]\n");
    sandbox.write("tasks.jsonl", "{\"n\":1}\n{\"n\":2}\n");
    let (mut server, address) = serve(&sandbox, &["--work"]);
    assert!(get(&address, "/healthz").starts_with("HTTP/1.1 200"));
    sandbox.redrive("push tasks.jsonl").expect(0);
    eventually("all are done", || sandbox.ledger("shop")["done"] == 2);
    assert!(get(&address, "/api/v1/jobs").contains("\"done\""));
    kill_process(Pid::from_child(&server), Signal::TERM).expect("signalled");
    assert_eq!(server.wait().expect("waited").code(), Some(0));
    assert_eq!(sandbox.redrive("status --json").expect(0).json()["workers"], serde_json::json!([]));
    sandbox.assert_sound();
}

#[test]
fn it_is_not_reached_from_elsewhere_without_a_token() {
    let sandbox = Sandbox::new();
    sandbox.redrive("serve --listen 0.0.0.0:0").expect(1).complains("the store has no token");
}

#[test]
fn a_changed_configuration_is_taken_up_when_it_is_hung_up() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.shop]\nhandler = \"remote\"\n");
    let server = Served::start(&sandbox, "127.0.0.1:0", &[]);
    let configured = |name: &str| {
        let shown = ask(&server.address, "", &format!("GET /pipelines/{name}"), None);
        shown.is_some_and(|(status, shown)| status == 200 && shown["configured"] == true)
    };
    answered(&server.address, "", "POST /jobs", &json!({ "pipeline": "books", "jobs": [{ "input": {} }] }));
    assert!(!configured("books"));
    sandbox.write("redrive.toml", "[pipeline.shop]\nhandler = \"remote\"\n[pipeline.books]\nhandler = \"remote\"\n");
    server.signal(Signal::HUP);
    eventually("it is taken up", || configured("books"));
    sandbox.write("redrive.toml", "[pipeline.shop]\nhandlr = 1\n");
    server.signal(Signal::HUP);
    server.signal(Signal::HUP);
    assert!(configured("books"), "one with a mistake is not, and the server goes on");
    server.stop();
}

#[test]
fn it_drains_when_told_to_stop_who_waits_is_answered_and_its_own_leases_are_returned() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "redrive.toml",
        "[pipeline.slow]\ncommand = [\"sleep\", \"600\"]\ntimeout = \"1h\"\n[pipeline.far]\nhandler = \"remote\"\n",
    );
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.redrive("push tasks.jsonl --pipeline slow").expect(0);
    let server = Served::start(&sandbox, "127.0.0.1:0", &["--work"]);
    eventually("its worker has the task", || sandbox.ledger("slow")["leased"] == 1);
    answered(&server.address, "", "POST /jobs", &json!({ "pipeline": "far", "jobs": [{ "input": {} }] }));
    let far = json!({ "pipelines": ["far"], "ttl": 600 });
    let leased = answered(&server.address, "", "POST /leases", &far);
    assert_eq!(leased["leases"].as_array().map(Vec::len), Some(1));
    std::thread::scope(|scope| {
        let address = server.address.clone();
        let waiting =
            scope.spawn(move || ask(&address, "", "POST /leases", Some(&json!({ "pipelines": ["far"], "wait": 30 }))));
        eventually("it waits", || {
            let text = get(&server.address, "/metrics");
            text.lines()
                .any(|line| line.strip_prefix("redrive_http_requests_in_flight ").is_some_and(|count| count != "1"))
        });
        server.signal(Signal::TERM);
        // Twice: what runs is returned soon, if the two are not taken for one.
        std::thread::sleep(Duration::from_millis(300));
        server.signal(Signal::TERM);
        let answer = waiting.join().expect("no panic").expect("answered before it ends");
        assert_eq!((answer.0, &answer.1["leases"]), (200, &json!([])));
        server.wait();
    });
    assert_eq!(sandbox.ledger("slow")["queued"], 1, "its own lease is returned");
    assert_eq!(sandbox.ledger("far")["leased"], 1, "that of a worker elsewhere is still its own");
    sandbox.assert_sound();
}

#[test]
fn a_check_says_whether_a_server_is_ready() {
    let sandbox = Sandbox::new();
    let address = free_address();
    sandbox.redrive(&format!("serve --check --listen {address}")).expect(1).complains("does not answer");
    let server = Served::start(&sandbox, &address, &[]);
    sandbox.redrive(&format!("serve --check --listen {address}")).expect(0);
    server.stop();
}

#[test]
fn a_line_of_the_log_is_one_line_whatever_is_asked() {
    let sandbox = Sandbox::new();
    let server = Served::start(&sandbox, "127.0.0.1:0", &["--log", "access.log"]);
    let odd = ["%0d%0aINFO%20redrive::access:%20answered%20who=\"root\"", "%1b%5b31mred", "%e2%80%aegpj", "%c2%85next"];
    for path in odd {
        ask(&server.address, "", &format!("GET /jobs/{path}"), None).expect("answered");
        let letter = json!({ "pipeline": "shop", "input": {}, "message": "a\r\nINFO redrive::access: answered", "origin": { "kind": "x\r\ny" } });
        ask(&server.address, "", "POST /letters", Some(&letter)).expect("answered");
    }
    eventually("all are logged", || sandbox.read("access.log").matches("GET").count() == odd.len());
    let metrics = get(&server.address, "/metrics");
    server.stop();
    let text = sandbox.read("access.log");
    let forged = text.lines().filter(|line| !line.contains("INFO") && !line.contains("WARN")).count();
    assert_eq!((forged, text.matches("who=\"root\"").count()), (0, 0), "{text}");
    assert!(!text.contains(['\u{1b}', '\r', '\u{202e}', '\u{85}']), "{text:?}");
    assert!(!metrics.contains("INFO") && !metrics.contains("gpj"), "{metrics}");
}

#[test]
fn requests_are_logged_as_json_with_who_asked_and_without_secrets() {
    let sandbox = Sandbox::new();
    let token = sandbox.redrive("token create ops --role admin").expect(0).stdout.trim().to_owned();
    let server = Served::start(&sandbox, "127.0.0.1:0", &["--log", "access.log", "--log-format", "json"]);
    ask(&server.address, &token, "GET /letters?text=hunter2", None).expect("answered");
    ask(&server.address, "wrong", "GET /letters", None).expect("answered");
    eventually("both are logged", || sandbox.read("access.log").matches("/api/v1/letters").count() == 2);
    server.stop();
    let lines: Vec<_> =
        json_lines(&sandbox.read("access.log")).into_iter().filter(|line| line["path"] == "/api/v1/letters").collect();
    assert_eq!(
        (&lines[0]["who"], &lines[0]["status"], &lines[0]["method"]),
        (&json!("ops"), &json!(200), &json!("GET")),
        "{lines:?}"
    );
    assert_eq!((&lines[1]["who"], &lines[1]["status"]), (&Value::Null, &json!(401)), "{lines:?}");
    assert!(lines[0]["client"] == "127.0.0.1" && lines[0]["millis"].is_number(), "{lines:?}");
    let text = sandbox.read("access.log");
    assert!(!text.contains("hunter2") && !text.contains(&token), "{text}");
}

/// A body as large as may be, of the values that take most for their length: objects with one field each.
#[test]
fn one_request_takes_at_most_ten_times_its_size_in_memory() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox, "127.0.0.1:0", &[]);
    ask(&served.address, "", "GET /status", None).expect("answered");
    let before = served.memory_peak();
    let (letters, values) = (15, 11_000);
    let many = vec![json!({ "n": 1 }); values];
    let letter = |n: usize| {
        let input = json!({ "n": n, "many": many, "text": "x".repeat(900_000) });
        json!({ "pipeline": "shop", "input": input, "message": "no" })
    };
    let body = json!((0..letters).map(letter).collect::<Vec<_>>());
    let told = answered(&served.address, "", "POST /letters", &body);
    assert_eq!(told["letters"].as_array().map(Vec::len), Some(letters));
    assert!(told["letters"].as_array().is_some_and(|all| all.iter().all(|letter| letter["result"] == "new")), "{told}");
    let (size, taken) = (body.to_string().len() as u64, served.memory_peak() - before);
    assert!(taken <= 10 * size, "{taken} bytes for a request of {size}");
}

#[test]
#[cfg_attr(not(feature = "jemalloc"), ignore = "scripts/soak runs it, with the feature jemalloc")]
fn memory_that_a_burst_took_is_returned_when_it_is_over() {
    let sandbox = Sandbox::new();
    let served = Served::start(&sandbox, "127.0.0.1:0", &[]);
    ask(&served.address, "", "GET /status", None).expect("answered");
    let before = served.memory();
    let address = served.address.as_str();
    let many = vec![json!({ "n": 1 }); 11_000];
    let letter = |who: u64, n: u64| {
        let input = json!({ "who": who, "n": n, "many": many, "text": "x".repeat(900_000) });
        json!({ "pipeline": "shop", "input": input, "message": "no" })
    };
    std::thread::scope(|scope| {
        for who in 0..4 {
            let body: Value = (0..14).map(|n| letter(who, n)).collect();
            scope.spawn(move || answered(address, "", "POST /letters", &body));
        }
    });
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(move || {
                let letters = get(address, "/api/v1/letters?limit=1000");
                assert!(letters.starts_with("HTTP/1.1 200"), "{}", letters.lines().next().unwrap_or_default());
            });
        }
    });
    assert!(served.memory_peak() - before > 200_000_000, "it is a burst");
    let over = Instant::now();
    while served.memory().saturating_sub(before) > 100_000_000 {
        let (peak, now) = (served.memory_peak(), served.memory());
        assert!(over.elapsed() < Duration::from_secs(15), "{before} bytes before, {peak} at most, {now} after");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_command_finds_the_token_file_by_itself_and_who_cannot_read_it_is_refused() {
    let (sandbox, elsewhere) = (Sandbox::new(), Sandbox::new());
    let server = Served::start(&sandbox, "127.0.0.1:0", &[]);
    let url = format!("http://{}", server.address);
    let port = url.rsplit(':').next().expect("a port").to_owned();
    let state = || sandbox.path("state");
    let copy = state().join("redrive/servers").join(port);
    for file in [sandbox.path(".redrive/redrive.db-token"), copy.clone()] {
        assert_eq!(file.metadata().expect("there").permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
    let asked = |by: &Sandbox, state: PathBuf| {
        let mut command = by.command();
        let ran = command.args(["--server", &url, "status"]).env("XDG_STATE_HOME", state).output();
        Ran::of(ran.expect("it runs"))
    };
    asked(&elsewhere, state()).expect(0);
    asked(&sandbox, elsewhere.path("state")).expect(0);
    asked(&elsewhere, elsewhere.path("state")).expect(1).complains("the store has no token yet");
    let refused = ask(&server.address, "rdl_guessed", "GET /jobs", None).expect("answered");
    assert_eq!((refused.0, &refused.1["error"]["code"]), (401, &json!("unauthenticated")));
    server.stop();
    assert!(!copy.exists(), "nobody is there to be found");
    sandbox.redrive("token create ops --role admin").expect(0);
    let server = Served::start(&sandbox, "127.0.0.1:0", &[]);
    let url = format!("http://{}", server.address);
    sandbox.run(&["--server", &url, "status"]).expect(1).complains("a token is needed");
    assert!(!sandbox.path(".redrive/redrive.db-token").exists(), "it lets nobody in");
}

#[test]
fn a_proxy_and_a_public_address_need_a_token() {
    let sandbox = Sandbox::new();
    for flags in ["--proxy 127.0.0.1", "--public-url https://redrive.example"] {
        let line = format!("serve --listen 127.0.0.1:0 {flags}");
        sandbox.redrive(&line).expect(1).complains("need a token").complains("redrive token create");
    }
}

#[test]
fn shipped_workers_find_the_token_file_by_themselves() {
    let sandbox = Sandbox::new();
    sandbox.write("redrive.toml", "[pipeline.shop]\nhandler = \"remote\"\n");
    let server = Served::start(&sandbox, "127.0.0.1:0", &[]);
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/remote/");
    for (done, (program, file)) in (1..).zip([("python3", "worker.py"), ("node", "worker.mjs")]) {
        let jobs = json!({ "pipeline": "shop", "jobs": [{ "input": { "title": file } }] });
        answered(&server.address, "", "POST /jobs", &jobs);
        let mut worker = Command::new(program);
        worker.arg(format!("{examples}{file}")).args(["shop", "--until-empty"]).env_remove("REDRIVE_TOKEN");
        worker.env("REDRIVE_SERVER", format!("http://{}", server.address)).env("XDG_STATE_HOME", sandbox.path("state"));
        Ran::of(worker.output().expect("it runs")).expect(0);
        assert_eq!(sandbox.ledger("shop")["done"], done, "{file}");
    }
}

/// Listens on a port, and prints what it is sent by each client.
const STRANGER: &str = r#"
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("listening", flush=True)
while True:
    client = listener.accept()[0]
    client.settimeout(30)
    heard = client.recv(65536)
    client.sendall(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}" if heard else b"")
    print("heard", heard, flush=True)
"#;

#[test]
fn token_file_is_not_sent_to_another_user_who_took_the_port_of_a_killed_server() {
    let sandbox = Sandbox::new();
    let server = Served::start(&sandbox, "127.0.0.1:0", &[]);
    let (address, token) = (server.address.clone(), local(&server.address));
    let port = address.rsplit(':').next().expect("a port").to_owned();
    sandbox.run(&["--server", &format!("http://{address}"), "status"]).expect(0);
    server.kill();
    assert!(sandbox.path("state/redrive/servers").join(&port).exists(), "nobody removed it");
    let mut stranger = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--pdeathsig=KILL"])
        .args(["python3", "-c", STRANGER, &port])
        // A python of root's own may be where nobody else may look.
        .env("PATH", "/usr/bin:/bin")
        .stdout(Stdio::piped())
        .spawn()
        .expect("setpriv is installed");
    let mut heard = BufReader::new(stranger.stdout.take().expect("piped")).lines().map_while(Result::ok);
    assert_eq!(heard.next().as_deref(), Some("listening"));
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/remote/");
    for (program, file) in [("python3", "worker.py"), ("node", "worker.mjs")] {
        let mut worker = Command::new(program);
        worker.arg(format!("{examples}{file}")).args(["shop", "--until-empty"]).env_remove("REDRIVE_TOKEN");
        worker.env("REDRIVE_SERVER", format!("http://{address}")).env("XDG_STATE_HOME", sandbox.path("state"));
        Ran::of(worker.output().expect("it runs")).expect(1).complains("another user");
    }
    for line in ["status", "activity"] {
        let ran = sandbox.run(&["--server", &format!("http://{address}"), line]).expect(1);
        ran.complains("belongs to the user 65534");
    }
    TcpStream::connect(&address).and_then(|mut last| last.write_all(b"the end")).expect("sent");
    let heard: Vec<_> = heard.take_while(|line| !line.contains("the end")).collect();
    let _ = (stranger.kill(), stranger.wait());
    assert!(!token.is_empty() && !heard.concat().contains(&token), "{heard:?}");
}

/// More connections than there are places, and than the server may have files, each with a head and half a body.
#[test]
fn half_sent_bodies_of_one_client_leave_room_for_others() {
    let sandbox = Sandbox::new();
    let served = Served::start_as(sandbox.command_with_files(1_024), "127.0.0.1:0", &[]);
    let ours = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: ours.maximum, ..ours }).expect("as many as may be");
    let half = |path: &str, kind: &str, body: &str| {
        let mut stream = TcpStream::connect(&served.address).expect("connected");
        // One that the server has ended already is no loss.
        let _ = write!(
            stream,
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: {kind}\r\ncontent-length: 1000\r\n\r\n{body}",
            served.address
        );
        stream
    };
    for (path, kind, body) in
        [("/login", "application/x-www-form-urlencoded", "token="), ("/api/v1/jobs", "application/json", "{")]
    {
        let held: Vec<_> = (0..2_100).map(|_| half(path, kind, body)).collect();
        let begun = Instant::now();
        let other = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let (from, to): (SocketAddr, SocketAddr) =
            (([127, 0, 0, 2], 0).into(), served.address.parse().expect("an address"));
        other.bind(&from.into()).expect("bound");
        other.connect(&to.into()).expect("connected");
        let mut other = TcpStream::from(other);
        other.set_read_timeout(Some(Duration::from_secs(1))).expect("set");
        write!(other, "GET /healthz HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        other.read_to_string(&mut answer).expect("answered in time");
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        assert!(begun.elapsed() < Duration::from_secs(1), "{path}: after {:?}", begun.elapsed());
        drop(held);
    }
}

#[test]
fn a_server_whose_disk_is_full_says_when_to_come_again_and_works_once_there_is_room() {
    let sandbox = Sandbox::new();
    let disk = Disk::mount(sandbox.path("disk"), "size=4m");
    let served = Served::start(&sandbox, "127.0.0.1:0", &["--store", "sqlite:disk/redrive.db"]);
    let letter = |n: u64| {
        let input = json!({ "n": n, "pad": "x".repeat(10_000) });
        json!({ "id": format!("01890a5d-0000-7000-8000-{n:012x}"), "pipeline": "shop", "input": input, "message": "no" })
    };
    answered(&served.address, "", "POST /letters", &letter(0));
    disk.fill();
    // More than the whole disk holds.
    let many: Value = (1..500).map(letter).collect();
    let refused = raw(&served.address, "POST", "/api/v1/letters", &many.to_string());
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("disk_full"), "{refused}");
    assert!(refused.to_lowercase().contains("\r\nretry-after: 30\r\n"), "{refused}");
    let read = get(&served.address, "/api/v1/letters");
    assert!(read.starts_with("HTTP/1.1 200"), "what is there is read: {read}");
    disk.remount("size=64m");
    answered(&served.address, "", "POST /letters", &many);
    served.stop();
    let store = ["--store", "sqlite:disk/redrive.db"];
    assert_eq!(sandbox.run(&["dead", "export", store[0], store[1]]).expect(0).json_lines().len(), 500);
    sandbox.run(&["audit", store[0], store[1]]).expect(0);
}
