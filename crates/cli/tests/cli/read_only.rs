//! Stores that cannot be written can be read; what is left of a store is never mistaken for a new one.

use std::fs;

use rusqlite::Connection;

use crate::disk::Disk;
use crate::harness::{Ran, Sandbox};

/// What people ask of a store without changing it.
const READS: [&str; 9] = [
    "status --json",
    "audit",
    "dead list --json",
    "dead export",
    "job list --json",
    "cause list --json",
    "report --json",
    "payload list --json",
    "replay list --json",
];

const STORE: &str = "sqlite:disk/redrive.db";

/// A store with dead letters and their payloads on a small disk of its own.
fn sandbox() -> (Sandbox, Disk) {
    let sandbox = Sandbox::new();
    let disk = Disk::mount(sandbox.path("disk"), "size=16m");
    sandbox.write("redrive.toml", format!("store = \"{STORE}\"\n[pipeline.p]\ncommand = [\"sh\", \"fail.sh\"]\n"));
    sandbox.write("fail.sh", "cat > $REDRIVE_PAYLOAD; exit 65\n");
    sandbox.write("tasks.jsonl", (0..20).map(|n| format!("{{\"n\":{n}}}\n")).collect::<String>());
    sandbox.redrive("run tasks.jsonl").expect(3);
    (sandbox, disk)
}

/// What all of them say. Ages and times of the report are left out.
fn read_all(sandbox: &Sandbox) -> Vec<String> {
    let read = |line: &&str| sandbox.redrive(line).expect(0).stdout;
    let id = sandbox.dead()[0]["id"].as_str().expect("an id").to_owned();
    // The store counts reads of payloads where it can be written: they come first.
    let of_one = ["payload show", "dead show", "job show"].map(|line| format!("{line} {id}"));
    let mut said: Vec<String> = of_one.iter().map(|line| read(&line.as_str())).collect();
    said.extend(READS.iter().filter(|line| !line.starts_with("report")).map(read));
    sandbox.redrive("report --json").expect(0);
    sandbox.redrive("doctor");
    said
}

/// Every way to change something is refused with the reason.
fn refuses_changes(sandbox: &Sandbox, why: &str) {
    let id = sandbox.dead()[0]["id"].as_str().expect("an id").to_owned();
    let cancel = format!("dead discard {id} --why x --yes");
    for line in ["push tasks.jsonl", "run tasks.jsonl", "work --drain", cancel.as_str()] {
        let ran: Ran = sandbox.redrive(line).expect(1);
        ran.complains("disk/redrive.db").complains(why);
    }
}

#[test]
fn a_store_on_a_read_only_disk_can_be_read() {
    let (sandbox, disk) = sandbox();
    let before = read_all(&sandbox);
    disk.remount("ro");
    assert_eq!(read_all(&sandbox), before);
    refuses_changes(&sandbox, "it is on a read-only file system");
    disk.remount("rw");
    sandbox.assert_sound();
}

#[test]
fn a_store_on_a_full_disk_can_be_read() {
    let (sandbox, disk) = sandbox();
    let before = read_all(&sandbox);
    disk.fill();
    assert_eq!(read_all(&sandbox), before);
    refuses_changes(&sandbox, "the disk is full");
    fs::remove_file(sandbox.path("disk/filler")).expect("removed");
    sandbox.assert_sound();
}

#[test]
fn an_unfinished_log_on_a_read_only_disk_is_read_too() {
    for with_index in [true, false] {
        let (sandbox, disk) = sandbox();
        // Somebody reads, so that the log is not finished when the last writer goes.
        let reader = Connection::open(sandbox.path("disk/redrive.db")).expect("opened");
        reader.execute_batch("BEGIN; SELECT * FROM pipeline").expect("read");
        sandbox.write("more.jsonl", "{\"n\":100}\n");
        sandbox.redrive("run more.jsonl").expect(3);
        let before = read_all(&sandbox);
        fs::create_dir(sandbox.path("copy")).expect("made");
        let files = if with_index { &["", "-wal", "-shm"][..] } else { &["", "-wal"] };
        for ending in files {
            let name = format!("redrive.db{ending}");
            fs::copy(sandbox.path(&format!("disk/{name}")), sandbox.path(&format!("copy/{name}"))).expect("copied");
        }
        drop(reader);
        for ending in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(sandbox.path(&format!("disk/redrive.db{ending}")));
        }
        for ending in files {
            let name = format!("redrive.db{ending}");
            fs::copy(sandbox.path(&format!("copy/{name}")), sandbox.path(&format!("disk/{name}"))).expect("copied");
        }
        disk.remount("ro");
        assert_eq!(read_all(&sandbox), before, "with the log's index: {with_index}");
        assert_eq!(sandbox.ledger("p")["dead"], 21);
        refuses_changes(&sandbox, "it is on a read-only file system");
    }
}

#[test]
fn a_store_of_an_older_version_says_why_it_cannot_be_read() {
    let (sandbox, disk) = sandbox();
    let conn = Connection::open(sandbox.path("disk/redrive.db")).expect("opened");
    conn.pragma_update(None, "user_version", 4).expect("written");
    drop(conn);
    disk.remount("ro");
    let ran = sandbox.redrive("status").expect(1).complains("disk/redrive.db was made by an older version of redrive");
    ran.complains("read-only file system");
}

#[test]
fn a_store_that_was_cut_to_nothing_is_not_a_new_one() {
    for left in ["redrive.db-wal", "redrive.db-workers", "payloads"] {
        let (sandbox, _disk) = sandbox();
        fs::write(sandbox.path("disk/redrive.db"), "").expect("cut");
        for other in ["redrive.db-workers", "payloads"].into_iter().filter(|other| *other != left) {
            fs::remove_dir_all(sandbox.path(&format!("disk/{other}"))).expect("removed");
        }
        // Who ends in a hurry leaves a log.
        let _ = fs::remove_file(sandbox.path("disk/redrive.db-wal"));
        if left == "redrive.db-wal" {
            sandbox.write("disk/redrive.db-wal", "the log of the store that was here");
        }
        for line in ["status", "push tasks.jsonl", "run tasks.jsonl", "audit"] {
            sandbox.redrive(line).expect(1).complains("disk/redrive.db is empty, but").complains(left);
        }
        assert_eq!(fs::metadata(sandbox.path("disk/redrive.db")).expect("there").len(), 0, "it is left as it was");
        assert!(sandbox.path(&format!("disk/{left}")).exists());
        if left == "redrive.db-wal" {
            fs::remove_file(sandbox.path("disk/redrive.db")).expect("removed");
            sandbox.redrive("push tasks.jsonl").expect(1).complains("disk/redrive.db is missing, but");
        }
    }
    let sandbox = Sandbox::new();
    sandbox.write("tasks.jsonl", "{\"n\":1}\n");
    sandbox.write("new.db", "");
    sandbox.redrive("run tasks.jsonl --store sqlite:new.db -- true").expect(0);
}
