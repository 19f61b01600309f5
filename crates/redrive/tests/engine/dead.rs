//! What can be done with dead letters: giving them up, carrying them to another store, counting them.

use std::time::Duration;

use redrive::contract::{DeadBy, DeadFilter, Selection};
use redrive::dead::{DeadError, ImportNote, Imported, NotDead, SearchAsked, foretell_import};
use redrive::{Error, ErrorKind, FailureReport, Job, Pipeline, Reason, Redrive, StoreError, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::dead::LetterSort;
use redrive_core::ids::JobId;
use redrive_core::jobs::InputLimits;
use redrive_core::state::JobState;

use self::in_memory::{at_start, redrive};

use crate::support::in_memory;

/// Buries so many jobs: odd ones for their input, even ones for what came.
async fn bury(redrive: &Redrive, jobs: u32) {
    let pipeline = Pipeline::new("p", |job: Job| async move {
        let odd = job.input["n"].as_u64().is_some_and(|n| n % 2 == 1);
        let reason = if odd { Reason::RejectedInput } else { Reason::MalformedPayload };
        Err::<serde_json::Value, _>(FailureReport::new(reason, "no"))
    });
    let pipeline = pipeline.expect("a pipeline").attempts(1);
    let task = |n| json!({"n": n, "key": format!("k{n}"), "url": format!("https://shop{}.example/", n % 3)});
    redrive.enqueue(&pipeline, (0..jobs).map(task)).await.expect("accepted");
    redrive.drain(pipeline).await.expect("drained");
}

fn by() -> Actor {
    Actor::new("ada", Via::Api)
}

fn filter(reason: Reason) -> DeadFilter {
    DeadFilter { reason: Some(reason), ..DeadFilter::default() }
}

async fn left(redrive: &Redrive) -> u64 {
    redrive.count_found(DeadFilter::default()).await.expect("counted")
}

#[tokio::test]
async fn letters_are_given_up_by_filter_in_steps_with_a_record() {
    let (redrive, _) = redrive();
    bury(&redrive, 1_203).await;
    let selection = Selection { filter: filter(Reason::MalformedPayload), ids: Vec::new() };
    let discarded = redrive.discard_dead(selection, "the shop is closed", &by()).await.expect("discarded");
    assert_eq!((discarded.letters, discarded.missing.len(), left(&redrive).await), (602, 0, 601));
    let died = redrive.count_died(&"p".parse().expect("a name"), at_start()).await.expect("counted");
    assert_eq!(died, 1_203, "each died once, whatever became of it");
    let name = "p".parse().expect("a name");
    assert_eq!(redrive.ledger(&name).await.expect("read").discarded, 602);
    assert_eq!(redrive.store().audit().await.expect("audited").problems, Vec::<String>::new());
}

#[tokio::test]
async fn letters_are_given_up_by_id_and_what_is_none_is_named() {
    let (redrive, _) = redrive();
    bury(&redrive, 2).await;
    let mut found = Vec::new();
    let all = redrive::contract::ListDead::newest(DeadFilter::default(), 9);
    let each = async |letters: Vec<redrive_core::dead::DeadLetter>| {
        found.extend(letters.iter().map(|letter| letter.id));
        Ok::<_, Error>(())
    };
    redrive.each_dead(all, each).await.expect("listed");
    let nobody = JobId::new(at_start(), 99);
    let selection = Selection { filter: DeadFilter::default(), ids: vec![found[0], nobody] };
    let discarded = redrive.discard_dead(selection, "x", &by()).await.expect("discarded");
    assert_eq!((discarded.letters, discarded.missing), (1, vec![nobody]));
    let alive = redrive.dead_letter(found[0]).await.expect_err("discarded");
    assert_eq!(alive.kind(), ErrorKind::Refused);
    let gone = NotDead { id: found[0], state: Some(JobState::Discarded) };
    assert!(matches!(alive, Error::Dead(DeadError::NotDead(not_dead)) if not_dead == gone));
    assert_eq!(redrive.dead_letter(nobody).await.expect_err("nobody").kind(), ErrorKind::Missing);
    assert_eq!(redrive.find_not_dead(&[found[1], found[0]]).await.expect("looked"), Some(gone));
}

#[tokio::test]
async fn to_mean_nothing_in_particular_is_refused() {
    let (redrive, _) = redrive();
    bury(&redrive, 2).await;
    let nothing = redrive.discard_dead(Selection::default(), "x", &by()).await;
    assert!(matches!(nothing, Err(Error::NothingChosen)));
    let twice = Selection { filter: filter(Reason::MalformedPayload), ids: vec![JobId::new(at_start(), 1)] };
    assert!(matches!(redrive.discard_dead(twice, "x", &by()).await, Err(Error::ChosenTwice)));
    assert_eq!(left(&redrive).await, 2);
}

#[tokio::test]
async fn what_one_store_exports_another_takes_in_once() {
    let ((from, _), (to, _)) = (redrive(), redrive());
    bury(&from, 450).await;
    let mut lines = Vec::new();
    assert_eq!(from.export_dead(DeadFilter::default(), &mut lines).await.expect("exported"), 450);
    lines.extend(b"\nnonsense\n");
    let mut notes = Vec::new();
    let file = std::io::Cursor::new(lines.clone());
    let imported = to
        .import_dead_file(("letters", file), (None, InputLimits::default()), &by(), |note| notes.push(note))
        .await
        .expect("imported");
    assert_eq!(imported, Imported { new: 450, broken: 1, ..Imported::default() });
    assert!(matches!(&notes[..], [ImportNote::Broken { number: 452, .. }]), "{notes:?}");
    let again = to
        .import_dead_file(("letters", std::io::Cursor::new(lines)), (None, InputLimits::default()), &by(), |_| {})
        .await
        .expect("imported");
    assert_eq!((again.new, again.known, left(&to).await), (0, 450, 450));
}

#[tokio::test]
async fn what_would_come_of_a_file_is_said_without_anything_being_taken_in() {
    let ((from, _), (to, _)) = (redrive(), redrive());
    bury(&from, 6).await;
    let mut lines = Vec::new();
    from.export_dead(DeadFilter::default(), &mut lines).await.expect("exported");
    lines.extend(b"nonsense\n");
    for (store, known) in [(None, 0), (Some(&to), 0), (Some(&from), 6)] {
        let mut notes = Vec::new();
        let file = ("letters", std::io::Cursor::new(lines.clone()));
        let foretold = foretell_import(store, file, (None, InputLimits::default()), to.now(), |note| notes.push(note))
            .await
            .expect("foretold");
        let imported = Imported { new: 6 - known, known, broken: 1, ..Imported::default() };
        assert_eq!(foretold.imported, imported, "in {}", store.map_or("no store", |_| "a store"));
        assert!(matches!(&notes[..], [ImportNote::Broken { number: 7, .. }]), "{notes:?}");
        assert_eq!(foretold.causes.iter().map(|cause| cause.letters).sum::<u64>(), 6 - known);
        assert_eq!(foretold.sample.is_some(), known == 0);
    }
    assert_eq!((left(&from).await, left(&to).await), (6, 0));
}

#[tokio::test]
async fn a_key_that_belongs_to_another_job_is_left_alone() {
    let ((from, _), (to, clock)) = (redrive(), redrive());
    bury(&from, 1).await;
    let mut lines = Vec::new();
    from.export_dead(DeadFilter::default(), &mut lines).await.expect("exported");
    // The same key, but another job.
    clock.advance(std::time::Duration::from_secs(5));
    let other = Pipeline::new("p", |_: Job| async { Ok(json!({})) }).expect("a pipeline");
    to.enqueue(&other, [json!({"key": "k0"})]).await.expect("accepted");
    let mut notes = Vec::new();
    let file = std::io::Cursor::new(lines);
    let imported = to
        .import_dead_file(("letters", file), (None, InputLimits::default()), &by(), |note| notes.push(note))
        .await
        .expect("imported");
    assert_eq!(imported, Imported { skipped: 1, ..Imported::default() });
    let taken = matches!(&notes[..], [ImportNote::KeyTaken { key, state: JobState::Queued, .. }] if key == "k0");
    assert!(taken, "{notes:?}");
}

#[tokio::test]
async fn letters_are_counted_by_what_they_have_in_common() {
    let (redrive, _) = redrive();
    bury(&redrive, 10).await;
    let by_reason = redrive.top_dead(DeadFilter::default(), DeadBy::Reason, 1).await.expect("counted");
    assert_eq!((by_reason.lines.len(), by_reason.others), (1, 5));
    assert!((by_reason.lines[0].share - 0.5).abs() < 1e-9, "{by_reason:?}");
    let by_target = redrive.top_dead(filter(Reason::MalformedPayload), DeadBy::Target, 9).await.expect("counted");
    let outcomes: Vec<_> = by_target.lines.iter().filter_map(|line| line.outcome).collect();
    assert_eq!((by_target.lines.len(), outcomes.len()), (3, 3), "each target has its denominator: {by_target:?}");
}

/// A search that has no time looks at one piece, and goes on where it stopped until all was looked at.
#[tokio::test]
async fn a_search_goes_on_where_it_stopped() {
    let (redrive, _) = redrive();
    bury(&redrive, 12).await;
    let asked = |limit, cursor| SearchAsked {
        filter: DeadFilter { text: Some("\"n\":".into()), ..DeadFilter::default() },
        sort: LetterSort::Newest,
        limit,
        cursor,
        within: Duration::ZERO,
    };
    let (mut cursor, mut seen, mut looked) = (None, Vec::new(), Vec::new());
    loop {
        let found = redrive.search_letters(asked(5, cursor)).await.expect("searched");
        seen.extend(found.letters.iter().map(|letter| letter.id));
        looked.push((found.looked_at, found.of));
        cursor = found.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(looked, [(5, Some(12)), (10, Some(12)), (12, Some(12))]);
    let all: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!((seen.len(), all.len()), (12, 12), "each once");
    let wrong = redrive.search_letters(asked(5, Some("5".into()))).await.expect_err("no cursor");
    assert!(matches!(wrong, Error::Store(StoreError::InvalidCursor(_))), "{wrong}");
}
