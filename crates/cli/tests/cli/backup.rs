//! `redrive backup` and `redrive restore`: everything comes back, what is not whole is named, and what is not ours is refused.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::harness::{Sandbox, eventually};

/// Keeps a page of each task; every third fails.
const SCRAPE: &str = r#"
read -r job
n=$(printf %s "$job" | sed 's/.*"n":\([0-9]*\).*/\1/')
printf "<html>page %s</html>" "$n" > "$REDRIVE_PAYLOAD"
[ $((n % 3)) = 0 ] && exit 65
echo "$n"
"#;

fn sandbox(tasks: u32) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("scrape.sh", SCRAPE);
    sandbox.write("redrive.toml", "[pipeline.p]\ncommand = [\"sh\", \"scrape.sh\"]\n");
    sandbox.write("tasks.jsonl", (1..=tasks).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    sandbox
}

/// A store that is elsewhere in the sandbox.
const ELSEWHERE: [&str; 2] = ["--store", "sqlite:elsewhere/redrive.db"];

fn elsewhere(sandbox: &Sandbox, args: &[&str]) -> crate::harness::Ran {
    sandbox.run(&[&ELSEWHERE[..], args].concat())
}

#[test]
fn a_backup_made_while_workers_work_has_every_task_once() {
    let sandbox = sandbox(300);
    sandbox.redrive("push tasks.jsonl").expect(0);
    let mut worker = sandbox.spawn(&["work"]);
    eventually("some are done and some dead", || {
        let ledger = sandbox.ledger("p");
        ledger["done"].as_u64() > Some(5) && ledger["dead"].as_u64() > Some(5)
    });
    let made = sandbox.redrive("backup now.tar --json").expect(0).json();
    worker.kill().expect("killed");
    worker.wait().expect("ended");
    assert_eq!(made["tasks"], 300);
    assert!(made["payloads"].as_u64() > Some(0), "{made}");
    assert_eq!(made["problems"], serde_json::json!([]));

    let restored = elsewhere(&sandbox, &["restore", "now.tar", "--json"]).expect(0).json();
    for what in ["tasks", "payloads", "bytes"] {
        assert_eq!(restored[what], made[what], "{what}");
    }
    elsewhere(&sandbox, &["audit"]).expect(0);
    elsewhere(&sandbox, &["payload", "verify"]).expect(0);
    elsewhere(&sandbox, &["work", "--drain"]).expect(0);
    let status = elsewhere(&sandbox, &["status", "--json"]).expect(0).json();
    let ledger = &status["pipelines"]["p"];
    assert_eq!((ledger["done"].as_u64(), ledger["dead"].as_u64()), (Some(200), Some(100)), "{status}");
    assert!(
        fs::read_dir(sandbox.path(""))
            .expect("read")
            .flatten()
            .all(|entry| { !entry.file_name().to_string_lossy().starts_with(".tmp") })
    );
}

/// What a backup has begun to copy stays until it has ended.
#[test]
fn backup_is_whole_though_payloads_are_collected_meanwhile() {
    let sandbox = sandbox(240);
    sandbox.write("scrape.sh", "printf 'page %s' \"$REDRIVE_JOB\" > \"$REDRIVE_PAYLOAD\"; exit 65");
    sandbox.redrive("run tasks.jsonl -j 8").expect(3);
    sandbox.redrive("dead discard --pipeline p --why done --yes").expect(0);
    let making = sandbox.command().args(["backup", "now.tar", "--json"]).stdout(Stdio::piped()).spawn();
    let making = making.expect("started");
    let mut removed = 0;
    while removed < 240 {
        let collected = sandbox.redrive("payload gc --grace 0s --json").expect(0).json();
        removed += collected["unused"].as_u64().expect("a number");
    }
    let made = making.wait_with_output().expect("waited");
    let told = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success(), "{told}");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert!([0, 240].contains(&told["payloads"].as_u64().expect("a number")), "{told}");
    elsewhere(&sandbox, &["restore", "now.tar"]).expect(0);
    elsewhere(&sandbox, &["payload", "verify"]).expect(0);
}

#[test]
fn nobody_is_blamed_for_what_ran_when_the_backup_was_made() {
    let sandbox = sandbox(1);
    sandbox.write("scrape.sh", "exec sleep 600");
    sandbox.redrive("push tasks.jsonl").expect(0);
    let mut worker = sandbox.spawn(&["work"]);
    eventually("it runs", || sandbox.ledger("p")["leased"] == 1);
    sandbox.redrive("backup now.tar").expect(0);
    worker.kill().expect("killed");
    worker.wait().expect("ended");

    elsewhere(&sandbox, &["restore", "now.tar"]).expect(0);
    let jobs = elsewhere(&sandbox, &["job", "list", "--json"]).expect(0);
    let job = &jobs.json_lines()[0];
    assert_eq!((job["state"].as_str(), job["crashes"].as_u64()), (Some("queued"), Some(0)), "{job}");
}

#[test]
fn payloads_that_are_not_whole_are_named_and_the_rest_is_kept() {
    let sandbox = sandbox(9);
    sandbox.redrive("run tasks.jsonl").expect(3);
    let payloads = files(&sandbox.path(".redrive/payloads"));
    assert_eq!(payloads.len(), 3);
    fs::remove_file(&payloads[0]).expect("removed");
    fs::write(&payloads[1], "something else").expect("written");
    let made = sandbox.redrive("backup made.tar").expect(5);
    assert!(made.stdout.contains("is not in the vault") && made.stdout.contains("is damaged"), "{}", made.stdout);
    assert!(made.stdout.contains("9 tasks, 1 payloads"), "{}", made.stdout);
    let restored = elsewhere(&sandbox, &["restore", "made.tar"]).expect(5);
    assert!(restored.stdout.contains("2 payloads are not whole; 2 were not when"), "{}", restored.stdout);
    elsewhere(&sandbox, &["audit"]).expect(0);
}

#[test]
fn what_is_there_is_not_written_over() {
    let sandbox = sandbox(3);
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.redrive("backup made.tar").expect(0);
    let before = fs::read(sandbox.path("made.tar")).expect("read");
    sandbox.redrive("backup made.tar").expect(1).complains("made.tar is there already: name another file");
    assert!(fs::read(sandbox.path("made.tar")).expect("read") == before);
    sandbox.redrive("backup made.tar --force").expect(0);
    sandbox.redrive("restore made.tar").expect(1).complains("redrive.db is there already: move it away");
    assert_eq!(sandbox.ledger("p")["dead"], 1);
    sandbox.redrive("--store memory: backup other.tar").expect(2).complains("is not in a file");
    sandbox.redrive("restore nowhere.tar --store sqlite:x.db").expect(1).complains("cannot read nowhere.tar");
}

#[test]
fn what_is_not_a_whole_backup_makes_no_store() {
    let sandbox = sandbox(6);
    sandbox.redrive("run tasks.jsonl").expect(3);
    sandbox.redrive("backup made.tar").expect(0);
    let whole = fs::read(sandbox.path("made.tar")).expect("read");
    for bytes in [0, 100, 600, 5_000, whole.len() / 2, whole.len() - 2_048] {
        sandbox.write("cut.tar", &whole[..bytes]);
        elsewhere(&sandbox, &["restore", "cut.tar"]).expect(2).complains("is not a whole backup");
        assert!(!sandbox.path("elsewhere/redrive.db").exists(), "cut at {bytes}");
    }
    crate::harness::python(&sandbox, HOSTILE);
    for kind in ["climbing", "link", "foreign", "newer"] {
        elsewhere(&sandbox, &["restore", &format!("{kind}.tar")]).expect(2).complains("is not a whole backup");
        assert!(!sandbox.path("elsewhere/redrive.db").exists(), "{kind}");
        assert!(!sandbox.path("escaped").exists(), "{kind}");
    }
    elsewhere(&sandbox, &["restore", "made.tar"]).expect(0);
}

/// Archives that nobody made with `redrive backup`.
const HOSTILE: &str = r#"
import io, json, tarfile
made = tarfile.open("made.tar")
entries = [(member, made.extractfile(member).read()) for member in made]
def write(name, entries):
    with tarfile.open(name, "w") as out:
        for member, data in entries:
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))
def file(name, data=b"x"):
    return tarfile.TarInfo(name), data
write("climbing.tar", entries[:2] + [file("payloads/../../../escaped")] + entries[2:])
link = tarfile.TarInfo("payloads/link")
link.type, link.linkname = tarfile.SYMTYPE, "../../escaped"
write("link.tar", entries[:2] + [(link, b"")] + entries[2:])
write("foreign.tar", [file("README", b"hello")])
head = json.loads(entries[0][1])
head["format"] = 99
write("newer.tar", [file("redrive-backup.json", json.dumps(head).encode())] + entries[1:])
"#;

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}
