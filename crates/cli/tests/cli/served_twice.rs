//! Two servers on one store in PostgreSQL: either answers, tokens are good at both, what one changes the other tells, and no job is
//! leased twice.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::harness::{Sandbox, eventually};
use crate::postgres_server::{schema, url};
use crate::served::{Served, answered, ask};

/// What monitoring reads of a server.
fn metrics(address: &str, token: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("connected");
    let head = format!(
        "GET /metrics HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("read");
    page
}

#[test]
fn two_servers_share_one_store() {
    let sandbox = Sandbox::with_store(url(&schema()));
    let token = sandbox.redrive("token create ops --role admin").expect(0).stdout.trim().to_owned();
    let servers = [Served::start(&sandbox, "127.0.0.1:0", &[]), Served::start(&sandbox, "127.0.0.1:0", &[])];
    let [one, other] = [&servers[0].address, &servers[1].address];
    let secret = answered(one, &token, "POST /tokens", &json!({ "name": "crawler", "role": "worker" }));
    let secret = secret["secret"].as_str().expect("a secret").to_owned();
    eventually("a token of one is good at the other", || {
        ask(other, &secret, "GET /jobs", None).is_some_and(|(status, _)| status == 200)
    });
    let heard = Mutex::new(String::new());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut events = TcpStream::connect(other).expect("connected");
            let head =
                format!("GET /api/v1/events HTTP/1.1\r\nhost: {other}\r\nauthorization: Bearer {secret}\r\n\r\n");
            events.write_all(head.as_bytes()).expect("sent");
            for line in BufReader::new(events).lines().map_while(Result::ok) {
                let told = line.starts_with("data: ");
                heard.lock().expect("locked").push_str(&format!("{line}\n"));
                if told {
                    return;
                }
            }
        });
        eventually("the reader is let in", || heard.lock().expect("locked").contains("200 OK"));
        let jobs: Vec<_> = (0..200).map(|n| json!({ "input": { "n": n } })).collect();
        answered(one, &secret, "POST /jobs", &json!({ "pipeline": "shop", "jobs": jobs }));
        reader.join().expect("it heard something");
    });
    let told = heard.into_inner().expect("ended");
    assert!(told.contains("jobs") || told.contains("all"), "{told}");
    let leased = Mutex::new(Vec::<(String, Value, Value)>::new());
    std::thread::scope(|scope| {
        for n in 0..6 {
            let (address, secret, leased) = ([one, other][n % 2], &secret, &leased);
            scope.spawn(move || {
                loop {
                    let got = answered(
                        address,
                        secret,
                        "POST /leases",
                        &json!({ "pipelines": ["shop"], "max": 7, "ttl": 600 }),
                    );
                    let leases = got["leases"].as_array().expect("leases").clone();
                    if leases.is_empty() {
                        return;
                    }
                    let id = |lease: &Value| lease["id"].as_str().expect("an id").to_owned();
                    leased
                        .lock()
                        .expect("locked")
                        .extend(leases.iter().map(|lease| (id(lease), lease["lease"].clone(), got["worker"].clone())));
                }
            });
        }
    });
    let leased = leased.into_inner().expect("ended");
    let ids: BTreeSet<_> = leased.iter().map(|(id, ..)| id).collect();
    assert_eq!((leased.len(), ids.len()), (200, 200), "each job is leased once");
    for (n, (_, lease, worker)) in leased.iter().enumerate() {
        let settle = json!({ "worker": worker, "jobs": [{ "lease": lease, "verdict": "done" }] });
        // Whoever gave the lease, the other settles it as well.
        let told = answered([other, one][n % 2], &secret, "POST /leases/settle", &settle);
        assert_eq!(told["jobs"][0]["result"], "ok", "{told}");
    }
    let dead = json!({ "pipeline": "shop", "input": { "n": 1 }, "message": "no", "reason": "not_found" });
    answered(one, &secret, "POST /letters", &dead);
    let pages = [metrics(one, &token), metrics(other, &token)];
    for series in [
        "redrive_jobs_accepted_total{pipeline=\"shop\"} 200",
        "redrive_jobs_done_total{pipeline=\"shop\"} 200",
        "redrive_jobs{pipeline=\"shop\",state=\"queued\"} 0",
        "redrive_jobs{pipeline=\"shop\",state=\"dead\"} 1",
        "redrive_jobs_died_total{pipeline=\"shop\",reason=\"not_found\"} 1",
        "redrive_ledger_balanced{pipeline=\"shop\"} 1",
    ] {
        assert!(pages.iter().all(|page| page.lines().any(|line| line == series)), "{series}\n{}", pages[0]);
    }
    servers.into_iter().for_each(Served::stop);
    assert_eq!(sandbox.ledger("shop")["done"], 200);
    sandbox.assert_sound();
}
