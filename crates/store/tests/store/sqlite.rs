//! The conformance suite on a SQLite file, and what only a file must hold to.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redrive_core::policy::Bounds;
use redrive_store::conformance::Fixture;
use redrive_store::conformance::script::{
    Shared, ada, assert_sound, at, attach, enqueue, job, lease_all, lease_one, listen, pipeline, plain, try_enqueue,
};
use redrive_store::contract::{Change, Changes, Compact, DeadFilter, Topic};
use redrive_store::contract::{FindLostLeases, SweepPayloads};
use redrive_store::sqlite::SqliteStore;
use redrive_store::{Options, Store, StoreError};
use rusqlite::Connection;
use tempfile::TempDir;

/// A store in a file, and others beside it.
struct InFiles(TempDir);

fn in_files() -> InFiles {
    InFiles(tempfile::tempdir().expect("a temporary folder"))
}

#[async_trait]
impl Fixture for InFiles {
    async fn handle(&self) -> Shared {
        open(self.0.path())
    }

    async fn other(&self) -> Shared {
        open(&self.0.path().join("other"))
    }
}

async fn fresh() -> (Arc<dyn Store>, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    (open(folder.path()), folder)
}

fn open(folder: &Path) -> Shared {
    Arc::new(SqliteStore::open(&folder.join("sub/redrive.db"), Options::create()).expect("a store opens"))
}

redrive_store::conformance_tests!(in_files);

#[tokio::test]
async fn what_was_acknowledged_is_there_after_reopening() {
    let (store, folder) = fresh().await;
    enqueue(&store, (1..=100).map(|n| job(n, plain())).collect()).await;
    drop(store);
    let store = open(folder.path());
    attach(&store, 1).await;
    assert_eq!(lease_all(&store, 1_000, at(0)).await.jobs.len(), 100);
    assert_sound(&store).await;
}

#[tokio::test]
async fn a_worker_that_is_gone_is_noticed_at_once() {
    let (first, folder) = fresh().await;
    let second = open(folder.path());
    attach(&first, 1).await;
    enqueue(&first, vec![job(1, plain())]).await;
    lease_one(&first, at(0)).await;
    let ask = FindLostLeases { pipelines: vec![pipeline()], silent: Vec::new(), limit: 10, now: at(1) };
    assert_eq!(second.lost_leases(ask.clone()).await.expect("asked").len(), 0, "the worker lives");
    drop(first);
    let lost = second.lost_leases(ask.clone()).await.expect("asked");
    assert_eq!(lost.len(), 1);
    assert!(lost[0].worker_gone);
    assert_eq!(second.list_workers().await.expect("listed").len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_in_two_processes_share_one_file() {
    let (first, folder) = fresh().await;
    let second = open(folder.path());
    let tasks: Vec<_> = (0..64_u128)
        .map(|caller| {
            let store = if caller % 2 == 0 { Arc::clone(&first) } else { Arc::clone(&second) };
            tokio::spawn(async move {
                for n in 0..20 {
                    enqueue(&store, vec![job(1 + caller * 1_000 + n, plain())]).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no caller fails");
    }
    attach(&first, 1).await;
    assert_eq!(lease_all(&second, 10_000, at(0)).await.jobs.len(), 64 * 20);
    assert_sound(&first).await;
}

#[tokio::test]
async fn the_audit_notices_what_does_not_add_up() {
    for tampering in [
        "DELETE FROM job WHERE seq = 1",
        "DELETE FROM place",
        "INSERT INTO lane VALUES (-1, 1, 'hshop', 2); INSERT INTO place SELECT -1, due_at, seq FROM place",
        "UPDATE pipeline SET done = done + 1",
        "UPDATE pipeline SET accepted = accepted + 1, queued = queued + 1",
        "UPDATE pipeline SET retrying = 5",
        "INSERT INTO done (job, pipeline, accepted_at, done_at, attempts, crashes, replays)
         SELECT id, pipeline, accepted_at, 0, 1, 0, 0 FROM job",
        "UPDATE counter SET value = 1",
        "INSERT INTO dead (id, pipeline, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, message, input)
         SELECT id, pipeline, accepted_at, 0, 0, 1, 0, 0, 'auto', 'dns', '', '{}' FROM job LIMIT 1",
        "INSERT INTO identity VALUES (1, '', 'nobody', x'00', 0)",
        "INSERT INTO lease (job, seq, worker, token, epoch, until) VALUES (x'00', 99, x'00', x'00', 1, 0)",
    ] {
        let (store, folder) = fresh().await;
        enqueue(&store, vec![job(1, plain()), job(2, plain())]).await;
        assert_sound(&store).await;
        let conn = Connection::open(folder.path().join("sub/redrive.db")).expect("opened");
        conn.execute_batch(tampering).expect(tampering);
        let audit = store.audit().await.expect("audited");
        assert!(!audit.problems.is_empty(), "{tampering} went unnoticed");
    }
}

fn refusal(path: &Path, options: Options) -> String {
    SqliteStore::open(path, options).err().expect("refused").to_string()
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    drop(SqliteStore::open(&path, Options::create()).expect("made"));
    Connection::open(&path).and_then(|conn| conn.pragma_update(None, "user_version", 999)).expect("tampered");
    let error = refusal(&path, Options::create());
    assert!(error.contains("newer version") && error.contains("999"), "{error}");
}

async fn next(changes: &mut Changes) -> Result<Change, StoreError> {
    tokio::time::timeout(Duration::from_secs(60), changes.next()).await.expect("in time")
}

/// Whoever works on a store notices that another brought it to a newer version.
#[tokio::test]
async fn a_store_that_becomes_newer_is_noticed() {
    let (store, folder) = fresh().await;
    let mut changes = listen(&store).await;
    let path = folder.path().join("sub/redrive.db");
    Connection::open(path).and_then(|conn| conn.pragma_update(None, "user_version", 999)).expect("brought forward");
    for _ in 0..2 {
        let error = next(&mut changes).await.expect_err("it is not ours any more").to_string();
        assert!(error.contains("newer version") && error.contains("999"), "{error}");
    }
}

/// Whoever works on a store notices that its file was taken away.
#[tokio::test]
async fn a_store_that_is_taken_away_is_noticed() {
    let (store, folder) = fresh().await;
    let mut changes = listen(&store).await;
    std::fs::rename(folder.path().join("sub/redrive.db"), folder.path().join("sub/elsewhere.db")).expect("moved");
    assert!(matches!(next(&mut changes).await, Err(StoreError::Gone { .. })));
}

/// A change in another process is heard by those whom it concerns, and an own one once.
#[tokio::test]
async fn changes_of_another_process_are_heard_by_topic() {
    let (first, folder) = fresh().await;
    let second = open(folder.path());
    attach(&first, 1).await;
    let (mut here, mut there) = (listen(&first).await, listen(&second).await);
    enqueue(&first, vec![job(1, plain())]).await;
    for changes in [&mut here, &mut there] {
        assert_eq!(next(changes).await.expect("heard"), Topic::Jobs.into());
    }
    attach(&first, 2).await;
    for changes in [&mut here, &mut there] {
        assert_eq!(next(changes).await.expect("heard"), Topic::Workers.into());
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(here.pending().expect("listened").is_none(), "what it wrote itself is not heard again");
    assert!(there.pending().expect("listened").is_none());
    // Who stopped listening and comes again is told of everything first.
    drop(there);
    tokio::time::sleep(Duration::from_millis(100)).await;
    enqueue(&first, vec![job(2, plain())]).await;
    let mut there = listen(&second).await;
    enqueue(&first, vec![job(3, plain())]).await;
    assert_eq!(next(&mut there).await.expect("heard"), Topic::Jobs.into());
}

/// A kill right after SQLite made the file leaves it empty. The payloads of another store beside it say nothing about it.
#[test]
fn an_empty_file_beside_another_store_is_a_new_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join(format!("payloads/{0}/ab/{1}-0123abcd.zst", "0".repeat(32), "ab".repeat(32)));
    std::fs::create_dir_all(page.parent().expect("a folder")).expect("made");
    std::fs::write(&page, "a page").expect("written");
    let empty = folder.path().join("stock.db");
    std::fs::write(&empty, "").expect("written");
    let error = refusal(&empty, Options::create());
    assert!(error.contains("payloads is there") && error.contains("remove the empty file"), "{error}");
    drop(SqliteStore::open(&folder.path().join("shop.db"), Options::create()).expect("another store"));
    drop(SqliteStore::open(&empty, Options::create()).expect("the pages may be the other's"));
    // The way out that was named is one.
    let alone = tempfile::tempdir().expect("a folder");
    std::fs::rename(folder.path().join("payloads"), alone.path().join("payloads")).expect("moved");
    let empty = alone.path().join("stock.db");
    std::fs::write(&empty, "").expect("written");
    refusal(&empty, Options::create());
    std::fs::remove_file(&empty).expect("removed");
    drop(SqliteStore::open(&empty, Options::create()).expect("begun anew"));
}

#[test]
fn what_is_not_a_store_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "these are my notes, and they are long enough to look like a page\n".repeat(50))
        .expect("written");
    let error = refusal(&text, Options::create());
    assert!(error.contains("not a redrive store"), "{error}");
    assert!(std::fs::read_to_string(&text).expect("read").starts_with("these are my notes"));

    let other = folder.path().join("other.db");
    Connection::open(&other).and_then(|conn| conn.execute_batch("CREATE TABLE mine (x)")).expect("made");
    let error = refusal(&other, Options::create());
    assert!(error.contains("another program"), "{error}");

    let missing = folder.path().join("missing.db");
    assert!(refusal(&missing, Options::default()).contains("no store at"));
    assert!(!missing.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_process_waits_for_the_lock() {
    let (store, folder) = fresh().await;
    enqueue(&store, vec![job(1, plain())]).await;
    let conn = Connection::open(folder.path().join("sub/redrive.db")).expect("opened");
    conn.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        async move { enqueue(&store, vec![job(2, plain())]).await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "a second process waits rather than fails");
    conn.execute_batch("ROLLBACK").expect("unlocked");
    waiting.await.expect("it went on");
    assert_sound(&store).await;
}

#[tokio::test]
async fn people_can_read_it_with_any_sqlite_tool() {
    let (store, folder) = fresh().await;
    attach(&store, 1).await;
    let id = redrive_store::conformance::script::bury(
        &store,
        job(1, plain()),
        redrive_core::failures::Reason::Blocked,
        "challenge",
        at(1),
    )
    .await;
    let conn = Connection::open(folder.path().join("sub/redrive.db")).expect("opened");
    let row: (String, String, String) = conn
        .query_row("SELECT id, pipeline, died_at FROM dead_letters", [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
        .expect("readable");
    assert_eq!(row, (id.to_string(), "suite".to_owned(), at(1).to_string()));
}

#[tokio::test]
async fn a_store_of_an_older_version_is_brought_forward() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("sub")).expect("made");
    let conn = Connection::open(folder.path().join("sub/redrive.db")).expect("opened");
    conn.execute_batch(include_str!("../../src/sqlite/schema/001_jobs.sql")).expect("the first schema");
    conn.execute_batch(
        "PRAGMA application_id = 0x52445256; PRAGMA user_version = 1;
         INSERT INTO pipeline (id, name, accepted, queued) VALUES (1, 'suite', 1, 1);
         INSERT INTO job (seq, id, pipeline, accepted_at, due_at, input) VALUES (1, randomblob(16), 1, 0, 0, '{\"old\":1}');
         INSERT INTO queue VALUES (1, 0, 1);
         UPDATE pipeline SET accepted = 3, dead = 2;
         INSERT INTO dead (seq, id, pipeline, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, message, input)
         VALUES (1, x'00000000000000000000000000000001', 1, 0, 5000, 5000, 1, 0, 0, 'review', 'handler_error', 'task 11 broke', '{}'),
                (2, x'00000000000000000000000000000002', 1, 0, 6000, 6000, 1, 0, 0, 'review', 'handler_error', 'task 22 broke', '{}');
         INSERT INTO failure SELECT id, 1, json_object('at', '2026-11-15T14:02:00Z', 'attempt', 1, 'replay', 0,
                                                        'reason', reason, 'message', message) FROM dead;",
    )
    .expect("an old job and two old letters");
    drop(conn);
    let store = open(folder.path());
    attach(&store, 1).await;
    assert_eq!(lease_one(&store, at(0)).await.input["old"], 1);
    let letters = redrive_store::conformance::script::dead(&store, DeadFilter::default()).await;
    assert_eq!(letters.len(), 2);
    assert!(letters[0].cause.is_some() && letters[0].cause == letters[1].cause, "old letters are recognised");
    assert_sound(&store).await;
}

/// A store of version 4: a letter whose last attempt brought no page, one whose page was collected too soon, and a page that
/// nobody wants.
#[tokio::test]
async fn payloads_of_an_older_version_are_brought_forward() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("sub")).expect("made");
    let conn = Connection::open(folder.path().join("sub/redrive.db")).expect("opened");
    for schema in [
        include_str!("../../src/sqlite/schema/001_jobs.sql"),
        include_str!("../../src/sqlite/schema/002_payloads.sql"),
        include_str!("../../src/sqlite/schema/003_progress.sql"),
        include_str!("../../src/sqlite/schema/004_causes.sql"),
    ] {
        conn.execute_batch(schema).expect("the schema");
    }
    let place = |byte: &str| format!("{byte}/{}-00000001.zst", byte.repeat(32));
    conn.execute_batch(&format!(
        "PRAGMA application_id = 0x52445256; PRAGMA user_version = 4;
         INSERT INTO pipeline (id, name, accepted, dead) VALUES (1, 'suite', 2, 2);
         INSERT INTO cause (id, name, pipeline) VALUES (1, 'c', 1);
         INSERT INTO cause_key (id, key, cause, origin, template, reason, parts, sample, first_seen, last_seen, dead)
         VALUES (1, 'k', 1, 1, 't', 'network', '[]', 's', 0, 0, 2);
         INSERT INTO dead (seq, id, pipeline, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, message,
                           input, cause_key, payload)
         VALUES (1, x'00000000000000000000000000000001', 1, 0, 5000, 5000, 1, 0, 0, 'review', 'network', 'm', '{{}}', 1, NULL),
                (2, x'00000000000000000000000000000002', 1, 0, 6000, 6000, 1, 0, 0, 'review', 'network', 'm', '{{}}', 1,
                 x'{gone}');
         INSERT INTO failure SELECT id, 1, json_object('at', '2026-11-15T14:02:00Z', 'attempt', 1, 'replay', 0,
                                                        'reason', reason, 'message', message) FROM dead;
         INSERT INTO payload VALUES (x'{kept}', '{kept_at}', 3, 2, 0, 0), (x'{unused}', '{unused_at}', 3, 2, 0, 0);
         INSERT INTO payload_use VALUES
            (x'00000000000000000000000000000001', x'{kept}', 1, '{{\"hash\":\"{kept}\",\"size_bytes\":3}}'),
            (x'00000000000000000000000000000002', x'{gone}', 1, '{{\"hash\":\"{gone}\",\"size_bytes\":3}}');",
        kept = "aa".repeat(32),
        kept_at = place("aa"),
        unused = "bb".repeat(32),
        unused_at = place("bb"),
        gone = "cc".repeat(32),
    ))
    .expect("an old store");
    drop(conn);
    let store = open(folder.path());
    let letters = redrive_store::conformance::script::dead(&store, DeadFilter::default()).await;
    let kept: Vec<_> = letters.iter().map(|letter| letter.payload.map(|hash| hash.to_string())).collect();
    assert_eq!(kept, [None, Some("aa".repeat(32))], "newest first: the lost one is told, the other has its page again");
    assert_sound(&store).await;
    let ids = store.store_ids().await.expect("ids");
    assert!(ids.older && !ids.older_inherited && ids.inherited.is_empty());
    let swept =
        store.sweep_payloads(SweepPayloads { before: at(0), limit: 10, by: ada(), now: at(0) }).await.expect("swept");
    assert_eq!(swept.iter().map(ToString::to_string).collect::<Vec<_>>(), [place("bb")]);
}

/// What was forgotten leaves room, and compacting gives it back; nothing else changes.
#[tokio::test]
async fn compacting_gives_space_back() {
    let (store, folder) = fresh().await;
    attach(&store, 1).await;
    let large = |n: u128| job(n, serde_json::json!({"key": format!("k{n}"), "page": "x".repeat(2_000)}));
    enqueue(&store, (1..=1_001).map(large).collect()).await;
    let left = store.cancel_jobs(redrive_store::contract::CancelJobs {
        ids: (2..=1_001).map(|n| large(n).id).collect(),
        by: redrive_store::conformance::script::ada(),
        why: "no".into(),
        now: at(1),
    });
    assert_eq!(left.await.expect("cancelled").len(), 1_000);
    let size = || std::fs::metadata(folder.path().join("sub/redrive.db")).expect("a file").len();
    let compacted = store.compact(Compact { by: ada(), now: at(1) }).await.expect("compacted");
    assert!(compacted.after_bytes < compacted.before_bytes / 2, "{compacted:?}");
    assert_eq!(size(), compacted.after_bytes, "on the disk too");
    assert_eq!(lease_all(&store, 9, at(2)).await.jobs.len(), 1);
    assert_sound(&store).await;
    drop(store);
    assert_sound(&open(folder.path())).await;
}

/// SQLite finds the log by the name of the file: under another name it would not find what the first has acknowledged.
#[test]
fn file_with_two_names_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (folder.path().join("a.db"), folder.path().join("b.db"));
    drop(SqliteStore::open(&one, Options::create()).expect("made"));
    std::fs::hard_link(&one, &other).expect("linked");
    for name in [&one, &other] {
        let error = refusal(name, Options::create());
        assert!(error.contains("2 names"), "{error}");
    }
    std::fs::remove_file(&other).expect("removed");
    drop(SqliteStore::open(&one, Options::default()).expect("it has one name again"));
    std::os::unix::fs::symlink(&one, &other).expect("linked");
    drop(SqliteStore::open(&other, Options::default()).expect("a symbolic link is no name of its own"));
}

/// The log is bounded by the room that there is, so that it does not keep a disk full.
#[tokio::test]
async fn log_leaves_room_on_a_small_disk() {
    let disk = tempfile::tempdir().expect("a folder");
    let run = |program: &str, args: &[&str]| {
        let status = std::process::Command::new(program).args(args).arg(disk.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "the tests mount disks: run them as root");
    };
    run("mount", &["-t", "tmpfs", "-o", "size=12m", "tmpfs"]);
    let store = open(disk.path());
    let (mut longest, mut accepted) = (0, 0);
    let full = loop {
        let jobs = (1..=20).map(|n| job(accepted + n, serde_json::json!({"page": "x".repeat(4_000)}))).collect();
        match try_enqueue(&store, jobs, Bounds::default()).await {
            Ok(_) => accepted += 20,
            Err(error) => break error,
        }
        let log = std::fs::metadata(disk.path().join("sub/redrive.db-wal")).expect("there").len();
        longest = longest.max(log);
    };
    assert!(matches!(full, StoreError::DiskFull { .. }), "{full}");
    assert!(longest < 5 * 1024 * 1024, "the log had {longest} bytes");
    assert!(accepted * 4_000 > 6 * 1024 * 1024, "only {accepted} jobs found room");
    assert_sound(&store).await;
    drop(store);
    run("umount", &["-l"]);
}

#[test]
fn file_that_is_mounted_alone_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, mounted) = (folder.path().join("a.db"), folder.path().join("volume.db"));
    drop(SqliteStore::open(&path, Options::create()).expect("made"));
    std::fs::write(&mounted, "").expect("written");
    let run = |program: &str, args: &[&Path]| {
        std::process::Command::new(program).args(args).status().is_ok_and(|status| status.success())
    };
    assert!(run("mount", &[Path::new("--bind"), &path, &mounted]), "the tests mount files: run them as root");
    let error = refusal(&mounted, Options::default());
    assert!(run("umount", &[&mounted]));
    assert!(error.contains("mount the folder, not the file"), "{error}");
}

/// The log has what was acknowledged last. Without it nothing more is acknowledged, and the file stays as it is.
#[tokio::test]
async fn log_that_is_taken_away_is_noticed() {
    let (store, folder) = fresh().await;
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let path = folder.path().join("sub/redrive.db");
    let before = std::fs::read(&path).expect("read");
    std::fs::remove_file(path.with_extension("db-wal")).expect("removed");
    let refused = try_enqueue(&store, vec![job(2, plain())], Bounds::default()).await;
    assert!(matches!(&refused, Err(StoreError::Gone { place }) if place.ends_with("-wal")), "{refused:?}");
    assert!(matches!(store.ledgers().await, Err(StoreError::Gone { .. })));
    drop(store);
    assert!(std::fs::read(&path).expect("read") == before, "who lost the log writes nothing to the file");
}

/// Leases all that is queued; says how many jobs that are.
async fn lease_all_of(store: &Shared) -> usize {
    attach(store, 9).await;
    lease_all(store, 1_000, at(0)).await.jobs.len()
}

/// A file that is moved to where a store was finds the log of that store beside it, whether or not a worker ever used it.
#[tokio::test]
async fn log_of_another_store_is_refused() {
    for has_worker in [true, false] {
        let (killed, folder) = fresh().await;
        if has_worker {
            attach(&killed, 1).await;
        }
        enqueue(&killed, (1..=10).map(|n| job(n, plain())).collect()).await;
        // As a kill leaves it: nobody copies the log into the file.
        std::mem::forget(killed);
        let path = folder.path().join("sub/redrive.db");
        let other = folder.path().join("sub/other.db");
        let store: Shared = Arc::new(SqliteStore::open(&other, Options::create()).expect("made"));
        enqueue(&store, (21..=25).map(|n| job(n, plain())).collect()).await;
        drop(store);
        std::fs::rename(&other, &path).expect("moved");
        let error = refusal(&path, Options::default());
        assert!(error.contains("redrive.db-wal belongs to another file"), "{error}");
        // The way out that was named is one.
        for ending in ["-wal", "-shm"] {
            let beside = |name: &str| folder.path().join(format!("sub/{name}{ending}"));
            std::fs::rename(beside("redrive.db"), beside("moved.db")).expect("moved away");
        }
        let store = open(folder.path());
        assert_eq!(lease_all_of(&store).await, 5);
        assert_sound(&store).await;
    }
}
