//! Stores of older versions with rows in all of their tables: they are brought forward, add up, and work goes on.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::actors::{Actor, Via};
use redrive_core::causes::{CauseRule, CauseRules, CauseState, Likeness, Print};
use redrive_core::ids::{JobId, ReplayId};
use redrive_core::jobs::LeasedJob;
use redrive_core::replays::{ReplayChange, ReplayMode, Sent, changed, withdrawn};
use redrive_core::settlements::Outcome;
use redrive_store::Options;
use redrive_store::conformance::histories::{live, seen};
use redrive_store::conformance::recount::assert_recounted;
use redrive_store::conformance::script::{
    Shared, ada, assert_sound, at, attach, dead, enqueue, job, lease_all, lease_of, lease_past_breakers, ledger,
    pipeline, settle, timeout,
};
use redrive_store::contract::{
    DeadFilter, DiscardDead, EnqueuedJob, FindLostLeases, FindTasks, JobFilter, Lane, ListJobs, ListReplays, ListSent,
    ReleaseLetters, SentLetter, SetReplay, SweepPayloads, WithdrawLetter, WithdrawLetters,
};
use redrive_store::sqlite::SqliteStore;
use rusqlite::Connection;
use serde_json::json;

use crate::support::older::{ROWS_5, VERSION_4, bytes, rows};

fn id(last: u8) -> JobId {
    JobId::from_bytes(bytes(last))
}

fn filled(folder: &Path) -> Shared {
    filled_as(folder, 4)
}

/// A store of a version, with rows in every table that the version has.
fn filled_as(folder: &Path, version: i64) -> Shared {
    let path = folder.join("redrive.db");
    let conn = Connection::open(&path).expect("opened");
    VERSION_4.iter().for_each(|schema| conn.execute_batch(schema).expect("the schema"));
    conn.execute_batch(&rows()).expect("a store of version 4");
    if version >= 5 {
        conn.execute_batch(include_str!("../../src/sqlite/schema/005_mended.sql")).expect("the schema");
        conn.execute_batch(ROWS_5).expect("a store of version 5");
    }
    assert_eq!(empty_tables(&conn), Vec::<String>::new(), "version {version}");
    drop(conn);
    Arc::new(SqliteStore::open(&path, Options::default()).expect("brought forward"))
}

fn empty_tables(conn: &Connection) -> Vec<String> {
    let mut select = conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").expect("read");
    let names = select.query_map([], |row| row.get::<_, String>(0)).expect("read").map(|name| name.expect("a name"));
    let is_empty = |name: &String| {
        let count: i64 =
            conn.query_row(&format!("SELECT count(*) FROM {name}"), [], |row| row.get(0)).expect("counted");
        count == 0
    };
    names.filter(is_empty).collect()
}

/// Every version since 4 is brought forward with all of its rows, adds up, and is worked on: what was queued is done, what was dead
/// is discarded and replayed, keys are known, and no number is given twice.
#[tokio::test]
async fn filled_stores_of_every_version_since_4_are_brought_forward_and_used() {
    for version in [4, 5] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = filled_as(folder.path(), version);
        assert_sound(&store).await;
        let before = ledger(&store).await;
        assert_eq!((before.accepted, before.dead, before.done, before.discarded), (12, 6, 1, 1), "version {version}");
        let known = enqueue(&store, vec![job(40, json!({"key": "k1"})), job(41, json!({"key": "k5"}))]).await;
        assert!(known.iter().all(|answer| matches!(answer, EnqueuedJob::Known { .. })), "{known:?}");
        enqueue(&store, vec![job(42, json!({"key": "new"}))]).await;
        attach(&store, 1).await;
        for leased in lease_all(&store, 9, at(1)).await.jobs {
            settle(&store, &leased, Outcome::Done, at(2)).await;
        }
        let discard = DiscardDead { ids: vec![id(0x13)], by: ada(), why: "old".into(), now: at(3) };
        assert_eq!(store.discard_dead(discard).await.expect("discarded"), [id(0x13)]);
        for sent in lease_replay(&store).await {
            settle(&store, &sent, Outcome::Done, at(4)).await;
        }
        let after = ledger(&store).await;
        assert_eq!((after.accepted, after.dead, after.discarded), (13, 5, 2), "version {version}");
        assert!(after.recovered > before.recovered, "version {version}");
        let listed = ListJobs { filter: JobFilter::default(), limit: 99, cursor: None };
        let numbers: Vec<i64> =
            store.list_jobs(listed).await.expect("listed").items.iter().filter_map(|job| job.number).collect();
        let distinct: BTreeSet<_> = numbers.iter().collect();
        assert_eq!(distinct.len(), numbers.len(), "version {version}");
        assert!(numbers.len() > 8, "letters and open jobs have one: {numbers:?}");
        assert_sound(&store).await;
    }
}

/// The schema of each version since the fifth.
const LATER: [&str; 6] = [
    include_str!("../../src/sqlite/schema/005_mended.sql"),
    include_str!("../../src/sqlite/schema/006_seam.sql"),
    include_str!("../../src/sqlite/schema/007_every_day.sql"),
    include_str!("../../src/sqlite/schema/008_serve.sql"),
    include_str!("../../src/sqlite/schema/009_serving.sql"),
    include_str!("../../src/sqlite/schema/010_dashboard.sql"),
];

/// A store of an earlier version with all that another one has, as far as that version knows it.
fn earlier(path: &Path, version: usize, lived: &Path) {
    let conn = Connection::open(path).expect("opened");
    VERSION_4.iter().chain(&LATER[..version - 4]).for_each(|schema| conn.execute_batch(schema).expect("the schema"));
    let texts = |sql: &str| -> Vec<String> {
        let mut select = conn.prepare(sql).expect(sql);
        select.query_map([], |row| row.get(0)).expect(sql).map(|text| text.expect("a text")).collect()
    };
    // Rows come as they are: what triggers make of them is among them.
    let triggers = texts("SELECT sql FROM sqlite_schema WHERE type = 'trigger'");
    for name in texts("SELECT name FROM sqlite_schema WHERE type = 'trigger'") {
        conn.execute_batch(&format!("DROP TRIGGER {name}")).expect("dropped");
    }
    conn.execute_batch(&format!("ATTACH '{}' AS lived; PRAGMA foreign_keys = OFF", lived.display())).expect("attached");
    for table in texts("SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY name <> 'sqlite_sequence'") {
        let columns = texts(&format!(
            "SELECT a.name FROM pragma_table_info('{table}', 'main') a JOIN pragma_table_info('{table}', 'lived') b USING (name)"
        ));
        let columns = columns.join(", ");
        let rows = format!(
            "DELETE FROM main.{table}; INSERT INTO main.{table} ({columns}) SELECT {columns} FROM lived.{table}"
        );
        conn.execute_batch(&rows).expect(&rows);
    }
    triggers.iter().for_each(|trigger| conn.execute_batch(trigger).expect("made again"));
    let marks = format!("PRAGMA application_id = 0x52445256; PRAGMA user_version = {version}");
    conn.execute_batch(&marks).expect("marked");
}

/// What was written by whatever happens to a store is brought forward from each of the last versions: it is seen as before, and goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_lived_in_one_of_the_last_versions_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let lived = folder.path().join("lived.db");
    let open = |path: &Path| -> Shared { Arc::new(SqliteStore::open(path, Options::create()).expect("opened")) };
    let handles = [open(&lived), open(&lived)];
    live(handles.clone(), [3, 4]).await;
    // None of these versions wrote when a replay last moved.
    let forgotten = Connection::open(&lived).and_then(|conn| conn.execute_batch("UPDATE replay SET moved_at = 0"));
    forgotten.expect("forgotten");
    let before = seen(&handles[0]).await;
    drop(handles);
    for version in [7, 8, 9, 10] {
        let path = folder.path().join(format!("{version}.db"));
        earlier(&path, version, &lived);
        let store = open(&path);
        assert_eq!(seen(&store).await, before, "version {version}");
        assert_sound(&store).await;
        assert_recounted(&store).await;
        for leased in lease_all(&store, 99, at(9_000_000)).await.jobs {
            settle(&store, &leased, Outcome::Done, at(9_000_001)).await;
        }
        assert_sound(&store).await;
    }
}

/// A worker of an older version that still runs beside a newer one knows nothing of pages that worked: it can remove none of them.
#[test]
fn a_worker_of_an_older_version_removes_no_page_that_worked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    drop(SqliteStore::open(&path, Options::create()).expect("opened"));
    let conn = Connection::open(&path).expect("opened");
    conn.execute_batch(
        "INSERT INTO payload (hash, place, size_bytes, stored_bytes, created_at, touched_at)
         VALUES (X'01', 'a', 1, 1, 0, 0), (X'02', 'b', 1, 1, 0, 0);
         INSERT INTO good (pipeline, target, shape, current, url, hash, payload, at)
         VALUES (1, 'shop.example', '/p/*', 1, 'https://shop.example/p/1', X'01', '{}', 0);",
    )
    .expect("a page that worked, and another");
    // As version 9 sweeps: it looks for uses, finds none, and removes the row before the bytes.
    let sweep = |hash: &str| conn.execute(&format!("DELETE FROM payload WHERE hash = {hash}"), []);
    let refused = sweep("X'01'").expect_err("refused").to_string();
    assert!(refused.contains("a page that worked is kept"), "{refused}");
    assert_eq!(sweep("X'02'").expect("swept"), 1, "nobody needs it");
    conn.execute("DELETE FROM good", []).expect("let go");
    assert_eq!(sweep("X'01'").expect("swept"), 1);
}

fn replay() -> ReplayId {
    ReplayId::from_bytes(bytes(0x77))
}

async fn lease_replay(store: &Shared) -> Vec<LeasedJob> {
    lease_past_breakers(store, lease_of(Lane::Replay(replay()), 9, at(1))).await.jobs
}

/// Cancels the replay step by step.
async fn cancel(store: &Shared) {
    let view = store.get_replay(replay()).await.expect("read").expect("there");
    assert_eq!((view.mode, view.wish.mode, view.version), (ReplayMode::Suited, ReplayMode::Suited, 0));
    let next = changed(ReplayChange::Cancel, view.state, &view.progress, "ada").expect("possible");
    let (was, by) = (view.version, Actor::new("ada", Via::Cli));
    let set = SetReplay { id: replay(), was, next, excluded: None, by, now: at(4) };
    assert!(store.set_replay(set).await.expect("set"));
    let release = ReleaseLetters { id: replay(), limit: 9, now: at(4) };
    assert_eq!(store.release_letters(release).await.expect("released"), 1);
    let decide = |sent: SentLetter| {
        let (tally, begun, in_worker, gate) = (sent.tally, sent.begun, sent.in_worker, sent.gate);
        let (verdict, failure) = (sent.verdict.as_deref(), sent.failure.as_ref());
        let withdrawn = withdrawn(Sent { tally, begun, in_worker, gate, verdict, failure }, 6);
        let print = failure.map(|failure| Print::of(&sent.pipeline, None, failure, &CauseRules::default()));
        WithdrawLetter { sent, withdrawn, print }
    };
    let sent = ListSent { id: replay(), pipelines: None, limit: 9 };
    let letters = store.list_sent(sent).await.expect("listed").into_iter().map(decide).collect();
    let take = WithdrawLetters { id: replay(), letters, now: at(4) };
    assert_eq!(store.withdraw_letters(take).await.expect("withdrawn"), 1);
}

/// Tasks that were known by the hash of their file and their line are still known so: the hashes are there to be compared.
#[tokio::test]
async fn files_whose_tasks_were_known_by_line_are_remembered() {
    for version in [4, 5] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = filled_as(folder.path(), version);
        assert_eq!(store.task_files(pipeline()).await.expect("asked"), ["0123456789abcdef01234567"]);
        assert!(store.task_files("other".parse().expect("a name")).await.expect("asked").is_empty());
        let keys = vec!["0123456789abcdef01234567:12".to_owned()];
        let known = store.known_tasks(FindTasks { pipeline: pipeline(), round: None, keys }).await.expect("asked");
        assert_eq!(known[0].map(|task| task.id), Some(id(2)));
    }
}

#[tokio::test]
async fn a_filled_store_of_version_4_adds_up_and_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path());
    assert_sound(&store).await;
    assert_eq!(dead(&store, DeadFilter::default()).await.len(), 6);
    let replays = ListReplays::open(9);
    assert_eq!(store.list_replays(replays).await.expect("listed").items.len(), 1);
    attach(&store, 1).await;
    let lost = FindLostLeases { pipelines: vec![pipeline()], silent: Vec::new(), limit: 9, now: at(1) };
    assert_eq!(store.lost_leases(lost).await.expect("asked").len(), 1);
    let leased = lease_all(&store, 9, at(1)).await.jobs;
    let mut ids: Vec<_> = leased.iter().map(|job| job.lease.job).collect();
    ids.sort();
    assert_eq!(ids, [id(1), id(2)], "what was queued, and what a breaker held long enough");
    for job in &leased {
        settle(&store, job, Outcome::Done, at(2)).await;
    }
    let sent = lease_replay(&store).await;
    assert_eq!(sent.iter().map(|job| job.lease.job).collect::<Vec<_>>(), [id(4)]);
    settle(&store, &sent[0], timeout(), at(3)).await;
    cancel(&store).await;
    let ledger = ledger(&store).await;
    assert_eq!((ledger.done, ledger.dead, ledger.leased), (3, 7, 1));
    assert_sound(&store).await;
}

#[tokio::test]
async fn payloads_of_a_filled_store_of_version_4_are_claimed() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path());
    let letters = dead(&store, DeadFilter::default()).await;
    let payload = |last: u8| {
        let letter = letters.iter().find(|letter| letter.id == id(last)).expect("a letter");
        letter.payload.map(|hash| hash.to_string()[..2].to_owned())
    };
    let all = [0x11, 0x12, 0x13, 0x14, 0x15, 0x16].map(payload);
    let some = |hash: &str| Some(hash.to_owned());
    assert_eq!(all, [some("aa"), some("bb"), None, None, some("ee"), some("ff")], "the newest that is here");
    let conn = Connection::open(folder.path().join("redrive.db")).expect("opened");
    let told: (i64, i64) = conn
        .query_row("SELECT payload_lost, payload_cut FROM dead WHERE id = ?1", [id(0x11).as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("read");
    assert_eq!(told, (1, 1), "the newer one is lost, of the older only the beginning was kept");
    let swept = SweepPayloads { before: at(0) + Duration::from_secs(1), limit: 10, by: ada(), now: at(0) };
    let swept = store.sweep_payloads(swept).await.expect("swept");
    assert_eq!(
        swept.iter().map(|place| place.to_string()[..2].to_owned()).collect::<Vec<_>>(),
        ["dd"],
        "nobody wants it"
    );
    for imported in [0x12, 0x04] {
        assert_eq!(store.payloads_of(id(imported)).await.expect("listed").len(), 1, "it can be read");
    }
    assert_sound(&store).await;
}

#[tokio::test]
async fn causes_of_a_filled_store_of_version_4_keep_their_rules_and_their_states() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = filled(folder.path());
    let far = CauseRule { key: "k".into(), like: Likeness::Target("far".into()), into: "k/target=far".into() };
    assert_eq!(store.cause_rules().await.expect("read").rules, [far]);
    assert_eq!(store.unresolved_letters(10).await.expect("read"), None, "nothing is to be done anew");
    let part = store.get_cause("c2".parse().expect("an id"), at(0)).await.expect("there");
    assert_eq!(part.cause.state, CauseState::Regressed);
    let notes = store.get_cause("c1".parse().expect("an id"), at(0)).await.expect("there").notes;
    assert_eq!(notes[0].by, Actor::new("ada", Via::Cli));
}
