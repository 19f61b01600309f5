//! What must hold of copies: whatever a store has comes over, and works on there.
//!
//! [`copied_tests!`](crate::copied_tests) runs other cases of the suite, copies what each of them left, and compares.

use redrive_core::copies::{Copies, CopyNote};
use redrive_core::crashes::{LostLease, judge};
use redrive_core::failures::Reason;
use redrive_core::ids::{CopyId, PipelineName};
use redrive_core::policy::{Bounds, Policy};
use redrive_core::settlements::{Ending, Outcome, Settlement};
use redrive_core::time::Timestamp;
use serde_json::json;

use super::histories::live;
use super::recount::assert_recounted;
use super::replays;
use super::script::{
    Shared, ada, assert_sound, at, attach, beat, bury, dead, enqueue, job, lease_all, lease_of, lease_one, plain,
    settle, try_enqueue,
};
use crate::StoreError;
use crate::contract::{
    Cell, CopyCursor, DeadFilter, EndCopy, FindLostLeases, Lane, PARTS, Part, ReadPart, Row, SettleJobs, TakeCounters,
    WritePart,
};

/// Where the stores are called to be.
const SOURCE: &str = "the source";
const TARGET: &str = "the target";

fn copy_id() -> CopyId {
    CopyId::new(at(0), 77)
}

async fn note(other: &Shared, place: &str) -> CopyNote {
    let store = other.store_ids().await.expect("read").own;
    CopyNote { id: copy_id(), place: place.into(), store, vault: None, begun_at: at(0), finished_at: None }
}

async fn mark_source(from: &Shared, to: &Shared) -> crate::Result<()> {
    from.begin_copy_from(note(to, TARGET).await).await
}

async fn mark_target(from: &Shared, to: &Shared) -> crate::Result<()> {
    to.begin_copy_to(note(from, SOURCE).await).await
}

fn end() -> EndCopy {
    EndCopy { id: copy_id(), detail: json!({}), by: ada(), now: at(1) }
}

/// Takes back what is leased, as nobody works any more.
async fn rest(store: &Shared) {
    let pipelines: Vec<PipelineName> = store.ledgers().await.expect("ledgers").into_keys().collect();
    let far = Timestamp::from_millis(i64::MAX / 2);
    let params = FindLostLeases { pipelines, silent: Vec::new(), limit: 1_000, now: far };
    let lost = store.lost_leases(params).await.expect("asked");
    let rules = store.cause_rules().await.expect("read");
    let ending = Ending { at: at(0), duration: None, worker: None, chance: 0.0 };
    let given_back = |lost: &LostLease| {
        let blameless = LostLease { worker_gone: false, ..lost.clone() };
        Settlement::new(&lost.job, judge(&Policy::default(), &blameless, ending), &rules)
    };
    let settlements = lost.iter().map(given_back).collect();
    let worker = super::script::worker(9);
    let params = SettleJobs { settlements, worker, breakers: Vec::new(), keep_late: false, now: at(0) };
    store.settle(params).await.expect("settled");
}

async fn rows(store: &Shared, part: &'static Part, after: Option<Row>) -> Vec<Row> {
    let params = ReadPart { part, after, rows_max: 3, bytes_max: 1_000_000 };
    store.read_part(params).await.expect("read")
}

async fn all_rows(store: &Shared, part: &'static Part) -> Vec<Row> {
    let params = ReadPart { part, after: None, rows_max: 1_000_000, bytes_max: usize::MAX };
    store.read_part(params).await.expect("read")
}

/// Writes the next piece, by nothing but what the target knows; says whether there was one.
async fn write_piece(from: &Shared, to: &Shared) -> bool {
    let was = to.copy_cursor().await.expect("read");
    let Some(part) = PARTS.get(was.parts) else { return false };
    let rows = rows(from, part, was.after).await;
    let last = rows.last().map(|row| row[..part.key_columns()].to_vec());
    let parts = if last.is_none() { was.parts + 1 } else { was.parts };
    let next = CopyCursor { pieces: was.pieces + 1, parts, after: last, noted: json!({"seen": was.pieces}) };
    to.write_part(WritePart { id: copy_id(), part, rows, next }).await.expect("written");
    true
}

async fn finish(from: &Shared, to: &Shared) {
    let counters = from.copy_counters().await.expect("read");
    let params = TakeCounters { id: copy_id(), counters, inherited: Vec::new(), inherits_older: false };
    to.take_counters(params.clone()).await.expect("taken");
    to.take_counters(params).await.expect("taken again");
    to.end_copy_to(end()).await.expect("finished");
    from.end_copy_from(end()).await.expect("released");
}

async fn copy(from: &Shared, to: &Shared) {
    rest(from).await;
    mark_source(from, to).await.expect("marked");
    mark_target(from, to).await.expect("marked");
    while write_piece(from, to).await {}
}

/// The rows without what differs from store to store: epochs are raised, what is done by hand is noted on both sides.
fn comparable(part: &Part, mut rows: Vec<Row>) -> Vec<Row> {
    for row in &mut rows {
        match part.name {
            "pipeline" => row[part.column("epoch").expect("a column")] = Cell::Null,
            // A value of several forms: text, or what text is made of.
            "replay_letter" => {
                let letter = &mut row[part.column("letter").expect("a column")];
                if let Cell::Text(text) = letter {
                    let read: serde_json::Value = serde_json::from_str(text).expect("JSON");
                    *letter = Cell::Text(read["message"].to_string());
                }
            }
            _ => {}
        }
    }
    rows
}

/// Copies a store, and compares: every row, the ledgers, the audits, what the suite itself counts. The copy works on then.
pub async fn copy_and_compare(from: Shared, to: Shared) {
    copy(&from, &to).await;
    for part in PARTS {
        let [source, target] = [all_rows(&from, part).await, all_rows(&to, part).await];
        assert_eq!(comparable(part, source), comparable(part, target), "{}", part.label);
    }
    assert_eq!(from.count_parts().await.expect("counted"), to.count_parts().await.expect("counted"));
    finish(&from, &to).await;
    assert_eq!(from.ledgers().await.expect("ledgers"), to.ledgers().await.expect("ledgers"));
    assert_recounted(&to).await;
    assert_eq!(from.audit().await.expect("audited").problems, to.audit().await.expect("audited").problems);
    works_on(&to).await;
}

/// Numbers and ids go on, jobs are leased and settled, letters die and come back.
async fn works_on(store: &Shared) {
    attach(store, 1).await;
    store
        .set_pause(crate::contract::SetPause {
            pipeline: super::script::pipeline(),
            was: store.pauses().await.expect("read").remove(&super::script::pipeline()),
            next: None,
            by: ada(),
            now: at(0),
        })
        .await
        .expect("goes on");
    let far = at(10_000_000);
    loop {
        // A target that was waited for gives the rest once one has come through.
        let leased = lease_all(store, 1_000, far).await.jobs;
        if leased.is_empty() {
            break;
        }
        for leased in &leased {
            settle(store, leased, Outcome::Done, far).await;
        }
    }
    let counted = |letters: Vec<redrive_core::dead::DeadLetter>| letters.len();
    let before = counted(dead(store, DeadFilter::default()).await);
    bury(store, job(9_999_999, plain()), Reason::HandlerError, "after all", far).await;
    assert_eq!(counted(dead(store, DeadFilter::default()).await), before + 1);
    let plan = replays::start(store, 9_999, replays::at_once()).await;
    if plan.included > 0 {
        replays::advance(store, 9_999, far).await;
        for leased in replays::lease(store, 9_999, far).await {
            settle(store, &leased, Outcome::Done, far).await;
        }
    }
    assert_recounted(store).await;
    assert_sound(store).await;
}

/// Whatever happened in a store, its copy has all of it.
pub async fn any_history_comes_over(store: Shared, other: Shared) {
    live([std::sync::Arc::clone(&store), std::sync::Arc::clone(&store)], 1..=3).await;
    copy_and_compare(store, other).await;
}

/// Who would write to a store that is being copied is told so; who reads is not disturbed. Afterwards all is as before.
pub async fn a_store_that_is_copied_is_not_written(store: Shared, other: Shared) {
    bury(&store, job(1, plain()), Reason::Blocked, "no", at(0)).await;
    mark_source(&store, &other).await.expect("marked");
    let copied = |error: StoreError| matches!(error, StoreError::BeingCopied { to, .. } if to == TARGET);
    assert!(copied(try_enqueue(&store, vec![job(2, plain())], Bounds::default()).await.expect_err("refused")));
    assert!(copied(store.lease(lease_of(Lane::Queue, 1, at(0))).await.expect_err("refused")));
    assert!(copied(store.beat(beat(1, Vec::new(), at(0))).await.expect_err("refused")));
    assert_eq!(dead(&store, DeadFilter::default()).await.len(), 1, "reading goes on");
    let Copies { to: Some(marked), from: None } = store.copies().await.expect("read") else { panic!("marked") };
    assert_eq!(marked, note(&other, TARGET).await);
    mark_source(&store, &other).await.expect("begun anew");
    store.end_copy_from(EndCopy { id: CopyId::new(at(0), 1), ..end() }).await.expect("another copy");
    assert!(try_enqueue(&store, vec![job(2, plain())], Bounds::default()).await.is_err(), "that was another copy");
    for _ in 0..2 {
        store.end_copy_from(end()).await.expect("released");
    }
    assert_eq!(store.copies().await.expect("read"), Copies::default());
    enqueue(&store, vec![job(2, plain())]).await;
}

/// An unfinished target takes nothing but what is copied.
pub async fn an_unfinished_copy_is_not_worked_on(store: Shared, other: Shared) {
    enqueue(&store, vec![job(1, plain())]).await;
    mark_source(&store, &other).await.expect("marked");
    mark_target(&store, &other).await.expect("marked");
    let refused = try_enqueue(&other, vec![job(2, plain())], Bounds::default()).await.expect_err("refused");
    assert!(matches!(refused, StoreError::Unfinished { from, .. } if from == SOURCE));
    while write_piece(&store, &other).await {}
    assert!(other.beat(beat(1, Vec::new(), at(0))).await.is_err(), "all has come over, and nobody has said so");
    finish(&store, &other).await;
    works_on(&other).await;
    let known = other.copies().await.expect("read").from.expect("known");
    assert_eq!((known.id, known.finished_at), (copy_id(), Some(at(1))));
}

/// A store that has anything of its own is not filled, and one that is worked on is not copied.
pub async fn a_store_is_copied_at_rest_to_an_empty_one(store: Shared, other: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    let leased = lease_one(&store, at(0)).await;
    let refused = mark_source(&store, &other).await.expect_err("refused");
    assert!(matches!(refused, StoreError::Leased { leases: 1, .. }), "{refused}");
    assert_eq!(store.copies().await.expect("read"), Copies::default());
    settle(&store, &leased, Outcome::Done, at(1)).await;
    let refused = store.begin_copy_to(note(&other, SOURCE).await).await.expect_err("refused");
    assert!(matches!(&refused, StoreError::NotEmpty { has, .. } if has == "pipelines"), "{refused}");
    enqueue(&store, vec![job(2, plain())]).await;
}

/// Of two that write the same piece one is heard, and what was written is not written again.
pub async fn a_piece_is_written_once(store: Shared, other: Shared) {
    enqueue(&store, (1..=5).map(|n| job(n, plain())).collect()).await;
    mark_source(&store, &other).await.expect("marked");
    mark_target(&store, &other).await.expect("marked");
    let part = &PARTS[0];
    let next = CopyCursor { pieces: 1, parts: 1, ..CopyCursor::default() };
    let write = WritePart { id: copy_id(), part, rows: all_rows(&store, part).await, next: next.clone() };
    other.write_part(write.clone()).await.expect("written");
    assert_eq!(other.copy_cursor().await.expect("read"), next);
    for stale in
        [write.clone(), WritePart { id: CopyId::new(at(0), 1), next: CopyCursor { pieces: 2, ..next }, ..write }]
    {
        let refused = other.write_part(stale).await.expect_err("refused");
        assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    }
    assert_eq!(all_rows(&other, part).await.len(), 1);
    while write_piece(&store, &other).await {}
    finish(&store, &other).await;
    works_on(&other).await;
}
