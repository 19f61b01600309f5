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
use redrive_store::conformance::script::{
    Shared, ada, assert_sound, at, attach, dead, enqueue, job, lease_all, lease_of, lease_past_breakers, ledger,
    pipeline, settle, timeout,
};
use redrive_store::contract::{
    CountTraffic, DeadFilter, DiscardDead, EnqueuedJob, FindLostLeases, FindTasks, JobFilter, Lane, ListJobs,
    ListReplays, ListSent, ReleaseLetters, SentLetter, SetReplay, SweepPayloads, TrafficBy, TrafficStore,
    WithdrawLetter, WithdrawLetters,
};
use redrive_store::sqlite::SqliteStore;
use rusqlite::Connection;
use serde_json::json;

const VERSION_4: [&str; 4] = [
    include_str!("../src/sqlite/schema/001_jobs.sql"),
    include_str!("../src/sqlite/schema/002_payloads.sql"),
    include_str!("../src/sqlite/schema/003_progress.sql"),
    include_str!("../src/sqlite/schema/004_causes.sql"),
];

/// Job `xNN` stands for the id that ends in NN, payload `pNN` for the hash of NN only.
const ROWS: &str = r#"
    PRAGMA application_id = 0x52445256; PRAGMA user_version = 4;
    INSERT INTO pipeline (id, name, epoch, accepted, queued, leased, done, dead, discarded, retrying, recovered, replaying)
    VALUES (1, 'suite', 7, 12, 3, 1, 1, 6, 1, 1, 0, 1);

    INSERT INTO job (seq, id, pipeline, key, target, accepted_at, due_at, attempts, attempts_before, replays, reason, input, replay,
                     saved, cause_key)
    VALUES (1, x01, 1, 'k1', NULL, 0, 0, 0, 0, 0, NULL, '{"n":1}', NULL, NULL, NULL),
           (2, x02, 1, NULL, 'ill', 0, 0, 0, 0, 0, NULL, '{"n":2}', NULL, NULL, NULL),
           (3, x03, 1, NULL, NULL, 0, 0, 0, 0, 0, NULL, '{"n":3}', NULL, NULL, NULL),
           (4, x04, 1, NULL, NULL, 0, 0, 1, 1, 1, 'handler_error', '{"n":4}', 1, NULL, 1);
    INSERT INTO queue VALUES (1, 0, 1);
    INSERT INTO held VALUES (1, 'ill', 2);
    INSERT INTO lease VALUES (x03, 3, x99, x98, 7, 5000, 1);
    INSERT INTO identity VALUES (1, 'k1', x01), (1, 'k5', x05), (1, '0123456789abcdef01234567:12', x02),
        (1, '0123456789abcdef0123456x:12', x02), (1, '0123456789abcdef01234568:x', x02);
    INSERT INTO breaker VALUES (1, 'ill', 1, 1, '{"state":"open","since":"2020-01-01T00:00:00Z","open_until":"2020-01-01T00:05:00Z",
        "attempts":9,"failures":9,"blocked":0,"openings":1,"probes_out":0,"probes_ok":0}');
    INSERT INTO worker VALUES (x99, 4242, 0);
    INSERT INTO done VALUES (x05, 1, 'k5', NULL, 0, 1000, 1, 0, 0);
    INSERT INTO discarded VALUES (x06, 1, NULL, NULL, 'dead', 'timeout', NULL, 4, 0, 0, 0, 900, 1000, 'ada', 'old');
    INSERT INTO late VALUES (x05, 2000, x99, 6, 'done', NULL);

    INSERT INTO cause (id, name, pipeline, owner) VALUES (1, 'c1', 1, 'ada');
    INSERT INTO cause_key (id, key, cause, origin, template, reason, parts, sample, first_seen, last_seen, total, dead)
    VALUES (1, 'k', 1, 1, 'task <n> broke', 'handler_error', '[]', 'task 1 broke', 0, 6000, 7, 6);
    -- Part of it was split off; that part was resolved, and came back.
    INSERT INTO cause (id, name, pipeline, regressed_at) VALUES (2, 'c2', 1, 6000);
    INSERT INTO cause_key (id, key, cause, origin, template, reason, parts, sample, first_seen, last_seen, total)
    VALUES (2, 'k/target=far', 2, 2, 'task <n> broke [target=far]', 'handler_error', '[]', 'task 1 broke', 0, 6000, 1);
    INSERT INTO cause_split VALUES (1, 'far', NULL, 2);
    INSERT INTO cause_note VALUES (1, 1, 'ada', 'looking at it');
    INSERT INTO cause_hour VALUES (1, 0, 7);
    INSERT INTO cause_target VALUES (1, 'shop', 7, 6000);

    INSERT INTO dead (id, pipeline, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, message, input,
                      cause_key, payload, payload_cut)
    VALUES (x11, 1, 0, 1000, 1000, 2, 0, 0, 'review', 'handler_error', 'task 1 broke', '{}', 1, pcc, 0),
           (x12, 1, 0, 2000, 2000, 1, 0, 0, 'review', 'handler_error', 'task 2 broke', '{}', 1, pbb, 0),
           (x13, 1, 0, 3000, 3000, 1, 0, 0, 'auto', 'handler_error', 'task 3 broke', '{}', 1, NULL, 0),
           (x14, 1, 0, 4000, 4000, 1, 0, 0, 'auto', 'handler_error', 'task 4 broke', '{}', 1, NULL, 0),
           (x15, 1, 0, 5000, 5000, 1, 0, 0, 'review', 'handler_error', 'task 5 broke', '{}', 1, pee, 0),
           (x16, 1, 0, 6000, 6000, 1, 0, 0, 'review', 'handler_error', 'task 6 broke', '{}', 1, NULL, 0);
    INSERT INTO failure SELECT id, 1, json_object('at', '2026-11-15T14:02:00Z', 'attempt', 1, 'replay', 0,
        'reason', reason, 'message', message) FROM dead;
    INSERT INTO failure VALUES (x04, 1, json_object('at', '2026-11-15T14:02:00Z', 'attempt', 1, 'replay', 0,
        'reason', 'handler_error', 'message', 'task 9 broke'));

    -- x11: the newer of its two pages was collected. x12 was imported: nothing claims its page. x15 was imported without its
    -- page. x16: its last attempt brought none. x04 is under way, and was imported with a page.
    INSERT INTO payload VALUES (paa, 'aa/PLACEaa', 3, 2, 0, 0), (pbb, 'bb/PLACEbb', 3, 2, 0, 0), (pdd, 'dd/PLACEdd', 3, 2, 0, 0),
                               (pff, 'ff/PLACEff', 3, 2, 0, 0), (p12, '12/PLACE12', 3, 2, 0, 0);
    INSERT INTO payload_use VALUES (x11, paa, 500, '{"hash":"HASHaa","size_bytes":3,"truncated":true}'),
                                   (x11, pcc, 900, '{"hash":"HASHcc","size_bytes":3}'),
                                   (x16, pff, 900, '{"hash":"HASHff","size_bytes":3}');

    INSERT INTO replay (id, uuid, name, actor, mode, state, automatic, selection, pipelines, pacing, edits, excluded, created_at,
                        total, pending, running, step, step_sent)
    VALUES (1, x77, 'r', 'ada', 'refetch', 'running', 0, '{}', '["suite"]', '{"ramp":[1],"refail_max":0.5}', '{}', '{}', 0,
            2, 1, 1, 0, 1);
    INSERT INTO replay_letter (replay, n, job, pipeline, cause_key, state, claimed, letter)
    VALUES (1, 1, x04, 1, 1, 'running', 1, json_object('gate', 'review', 'died_at', 900, 'kept_from', 900, 'http_status', NULL,
            'proxy', NULL, 'message', 'task 9 broke', 'verdict', NULL, 'cut', 0, 'payload', 'HASH12')),
           (1, 2, x14, 1, 1, 'pending', 1, NULL);
    INSERT INTO replay_queue VALUES (1, 1, 0, 4);
    INSERT INTO auto_replay VALUES (1, 'timeout', 0);
    INSERT INTO hourly VALUES (1, 0, 'buried', 'handler_error', 7);
    INSERT INTO traffic VALUES (1, 0, 'shop', '', 'handler_error', 7);
    INSERT INTO coverage VALUES (1, 'v', 0, 'price', 3, 1);
    INSERT INTO tracked VALUES (1, 'sitekey', 'k1', -1, 2, 0);
"#;

fn id(last: u8) -> JobId {
    JobId::from_bytes(bytes(last))
}

fn bytes(last: u8) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[15] = last;
    bytes
}

/// The rows with ids, hashes and places written out.
fn rows() -> String {
    let mut rows = ROWS.to_owned();
    for byte in 0..=255_u8 {
        let hex = format!("{byte:02x}");
        let whole = hex.repeat(32);
        rows = rows
            .replace(&format!("PLACE{hex}"), &format!("{whole}-00000001.zst"))
            .replace(&format!("HASH{hex}"), &whole);
        for (end, after) in [(",", ","), (")", ")")] {
            rows = rows
                .replace(&format!("x{hex}{end}"), &format!("x'{:0>32}'{after}", hex))
                .replace(&format!("p{hex}{end}"), &format!("x'{whole}'{after}"));
        }
    }
    rows
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
        conn.execute_batch(include_str!("../src/sqlite/schema/005_mended.sql")).expect("the schema");
        conn.execute_batch(ROWS_5).expect("a store of version 5");
    }
    assert_eq!(empty_tables(&conn), Vec::<String>::new(), "version {version}");
    drop(conn);
    Arc::new(SqliteStore::open(&path, Options::default()).expect("brought forward"))
}

/// What only version 5 has.
const ROWS_5: &str = r#"
    PRAGMA user_version = 5;
    INSERT INTO clock VALUES (1, '{"at":"2020-01-01T00:00:00Z","uptime":null,"wait":null}');
    INSERT OR IGNORE INTO store_id VALUES ('0198f2c57d3e7a10', 'own', NULL, NULL);
    INSERT INTO condemned VALUES ('aa/nowhere', 0);
"#;

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
    let replays = ListReplays { open_only: true, limit: 9, cursor: None };
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

/// A worker of version 5 that has the file open while another process brings it forward: whatever would move a job is refused, as
/// a whole, and its process ends by that.
#[tokio::test]
async fn a_worker_of_an_older_version_that_still_runs_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    let older = of_version_5(&path);
    let [enqueue, lease, done, retry, bury] =
        STATEMENTS_5.map(|statements| statements.map(|sql| sql.replace("x03", &hex(3))));
    // It works, and has its statements prepared.
    for statements in [&enqueue, &lease, &done, &retry, &bury] {
        transact(&older, statements).expect("a worker of version 5 does that");
        older.execute_batch("ROLLBACK").expect("taken back");
    }
    let store: Shared = Arc::new(SqliteStore::open(&path, Options::default()).expect("brought forward"));
    let before = ledger(&store).await;
    for statements in [&enqueue, &lease, &done, &retry, &bury] {
        let refused = transact(&older, statements).expect_err("refused");
        assert!(refused.to_string().contains("no such table"), "{refused}: {statements:?}");
        older.execute_batch("ROLLBACK").expect("taken back");
    }
    assert_eq!(ledger(&store).await, before);
    assert_sound(&store).await;
}

fn hex(last: u8) -> String {
    format!("x'{:032x}'", last)
}

fn of_version_5(path: &Path) -> Connection {
    let conn = Connection::open(path).expect("opened");
    conn.execute_batch("PRAGMA journal_mode = WAL").expect("a log");
    VERSION_4.iter().for_each(|schema| conn.execute_batch(schema).expect("the schema"));
    conn.execute_batch(&rows()).expect("a store of version 4");
    conn.execute_batch(include_str!("../src/sqlite/schema/005_mended.sql")).expect("the schema");
    conn.execute_batch(ROWS_5).expect("a store of version 5");
    conn
}

fn transact(conn: &Connection, statements: &[String]) -> rusqlite::Result<()> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    statements.iter().filter(|sql| !sql.is_empty()).try_for_each(|sql| {
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    })
}

/// What version 5 writes to accept a job, to lease one, and to settle one that is done, is to be tried again, or is dead.
const STATEMENTS_5: [[&str; 5]; 5] = [
    [
        "INSERT OR IGNORE INTO identity (pipeline, key, job) VALUES (1, 'k99', x'99')",
        "INSERT INTO job (id, pipeline, key, accepted_at, due_at, input) VALUES (x'99', 1, 'k99', 0, 0, '{}')",
        "INSERT INTO queue (pipeline, due_at, seq) VALUES (1, 0, 99)",
        "UPDATE pipeline SET accepted = accepted + 1, queued = queued + 1 WHERE id = 1",
        COUNT_5,
    ],
    [
        "SELECT j.id FROM queue q JOIN job j ON j.seq = q.seq WHERE q.pipeline = 1 AND q.due_at <= 0 ORDER BY q.due_at, q.seq",
        "DELETE FROM queue WHERE pipeline = 1 AND due_at = 0 AND seq = 1",
        "INSERT INTO lease (job, seq, worker, token, epoch, until) VALUES (x'01', 1, x'99', x'97', 8, 5000)",
        "UPDATE pipeline SET queued = queued - 1, leased = leased + 1 WHERE id = 1",
        "UPDATE pipeline SET epoch = 8 WHERE id = 1",
    ],
    [
        "DELETE FROM lease WHERE job = x03",
        "DELETE FROM job WHERE seq = 3",
        "INSERT INTO done (job, pipeline, key, target, accepted_at, done_at, attempts, crashes, replays)
         VALUES (x03, 1, NULL, NULL, 0, 9, 1, 0, 0)",
        "UPDATE pipeline SET leased = leased - 1, done = done + 1 WHERE id = 1",
        COUNT_5,
    ],
    [
        "DELETE FROM lease WHERE job = x03",
        "UPDATE job SET due_at = 9, attempts = 1, crashes = 0, suspect = 0, begun = 0 WHERE seq = 3 RETURNING pipeline",
        "INSERT INTO queue (pipeline, due_at, seq) VALUES (1, 9, 3)",
        "UPDATE pipeline SET leased = leased - 1, queued = queued + 1, retrying = retrying + 1 WHERE id = 1",
        COUNT_5,
    ],
    [
        "DELETE FROM lease WHERE job = x03",
        "INSERT INTO dead (id, pipeline, accepted_at, died_at, kept_from, attempts, crashes, replays, gate, reason, message, input,
                           cause_key)
         SELECT id, pipeline, accepted_at, 9, 9, 1, 0, 0, 'auto', 'timeout', 'x', input, 1 FROM job WHERE seq = 3",
        "DELETE FROM job WHERE seq = 3",
        "UPDATE pipeline SET leased = leased - 1, dead = dead + 1 WHERE id = 1",
        COUNT_5,
    ],
];

/// All that moves a job is counted by the hour.
const COUNT_5: &str = "INSERT INTO hourly (pipeline, hour, event, reason, count) VALUES (1, 0, 'done', '', 1)
    ON CONFLICT DO UPDATE SET count = count + excluded.count";

/// Of the attempts of an older store it is known which ended a job as far as that can be: a rate has a denominator.
#[tokio::test]
async fn attempts_of_an_older_store_have_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    let older = of_version_5(&path);
    older
        .execute_batch(
            "DELETE FROM traffic;
             UPDATE dead SET target = 'shop' WHERE died_at < 4000;
             INSERT INTO traffic VALUES (1, 0, 'shop', '', 'handler_error', 7), (1, 0, 'shop', '', '', 9),
                                        (1, 0, 'shop', '', 'timeout', 5);",
        )
        .expect("filled");
    drop(older);
    let store = SqliteStore::open(&path, Options::default()).expect("brought forward");
    let since = redrive_core::time::Timestamp::from_millis(0);
    let params = CountTraffic { pipeline: None, since, by: TrafficBy::Target };
    let told: Vec<_> = store.traffic(params).await.expect("counted").iter().map(|row| (row.count, row.ended)).collect();
    assert_eq!(told, [(9, 9), (7, 3), (5, 0)], "who succeeded, who is dead still, and who went on");
}
