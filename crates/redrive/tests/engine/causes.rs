//! What can be asked of causes, and what people do to them.

use std::time::Duration;

use redrive::causes::CausesAsked;
use redrive::{Error, ErrorKind, FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::causes::changes::Unchangeable;
use redrive_core::causes::{CauseChange, CauseId, CauseState, Likeness, Mute, SplitBy};

use self::in_memory::{at_start, redrive};

use crate::support::in_memory;

fn by() -> Actor {
    Actor::new("ada", Via::Api)
}

/// Buries three jobs that time out, at two shops, and one that is malformed.
async fn bury(redrive: &Redrive) {
    let pipeline = Pipeline::new("p", |job: Job| async move {
        let report = match job.input["n"].as_u64() {
            Some(0..3) => FailureReport::new(Reason::HandlerError, "no price"),
            _ => FailureReport::new(Reason::MalformedPayload, "not JSON"),
        };
        Err::<serde_json::Value, _>(report)
    });
    let pipeline = pipeline.expect("a pipeline").attempts(1);
    let task = |n: u32| json!({"n": n, "url": format!("https://shop{}.example/", n / 2)});
    redrive.enqueue(&pipeline, (0..4).map(task)).await.expect("accepted");
    redrive.drain(pipeline).await.expect("drained");
}

fn asked() -> CausesAsked {
    CausesAsked { limit: 10, ..CausesAsked::default() }
}

async fn listed(redrive: &Redrive, asked: CausesAsked) -> Vec<(CauseId, i64)> {
    let found = redrive.list_causes(asked).await.expect("listed");
    found.causes.into_iter().map(|cause| (cause.id, cause.dead as i64)).collect()
}

#[tokio::test]
async fn causes_are_listed_by_impact_with_what_all_of_them_killed() {
    let (redrive, _) = redrive();
    bury(&redrive).await;
    let found = redrive.list_causes(CausesAsked { limit: 1, ..asked() }).await.expect("listed");
    assert_eq!((found.causes.len(), found.causes[0].dead, found.more, found.dead), (1, 3, true, 4));
    let all = redrive.list_causes(asked()).await.expect("listed");
    assert_eq!((all.causes.len(), all.more, all.dead), (2, false, 4));
}

#[tokio::test]
async fn a_cause_that_is_over_is_listed_if_it_is_asked_for() {
    let (redrive, _) = redrive();
    bury(&redrive).await;
    let (id, _) = listed(&redrive, asked()).await.remove(0);
    let selection = redrive::contract::Selection {
        filter: redrive::contract::DeadFilter { cause: Some(id.clone()), ..Default::default() },
        ids: Vec::new(),
    };
    redrive.discard_dead(selection, "the shop is closed", &by()).await.expect("discarded");
    redrive.change_cause(&id, &CauseChange::Resolve(None), &by()).await.expect("resolved");
    assert_eq!(listed(&redrive, asked()).await.len(), 1, "it is over");
    let resolved = CausesAsked { states: vec![CauseState::Resolved], ..asked() };
    assert_eq!(listed(&redrive, resolved).await, [(id, 0)]);
    assert_eq!(listed(&redrive, CausesAsked { all: true, ..asked() }).await.len(), 2);
}

#[tokio::test]
async fn a_cause_is_muted_until_a_time_that_is_to_come() {
    let (redrive, _) = redrive();
    bury(&redrive).await;
    let (id, _) = listed(&redrive, asked()).await.remove(0);
    let mute = async |secs: u64| {
        let until = Some(at_start() + Duration::from_secs(secs));
        redrive.change_cause(&id, &CauseChange::Mute(Mute { until, per_hour: None }), &by()).await
    };
    let over = mute(0).await.expect_err("it is over");
    assert_eq!(over.kind(), ErrorKind::Invalid);
    assert!(matches!(over, Error::Unchangeable { why: Unchangeable::Over(until), .. } if until == at_start()));
    mute(60).await.expect("muted");
    let muted = CausesAsked { states: vec![CauseState::Muted], ..asked() };
    assert_eq!(listed(&redrive, muted).await, [(id, 3)]);
}

#[tokio::test]
async fn a_part_is_a_cause_of_its_own_until_it_is_merged_back() {
    let (redrive, _) = redrive();
    bury(&redrive).await;
    let (id, _) = listed(&redrive, asked()).await.remove(0);
    let split = CauseChange::Split(SplitBy::Like(Likeness::Target("shop1.example".into())));
    let part = redrive.change_cause(&id, &split, &by()).await.expect("split");
    let now = listed(&redrive, asked()).await;
    assert!(now.contains(&(id.clone(), 2)) && now.contains(&(part.clone(), 1)), "{now:?}");
    let again = redrive.change_cause(&id, &split, &by()).await.expect_err("nothing is left to split off");
    assert_eq!(again.kind(), ErrorKind::Refused);
    let merged = redrive.change_cause(&part, &CauseChange::MergeInto(id.clone()), &by()).await.expect("merged");
    assert_eq!(merged, id);
    assert!(listed(&redrive, asked()).await.contains(&(id.clone(), 3)));
    let itself = redrive.change_cause(&id, &CauseChange::MergeInto(id.clone()), &by()).await;
    assert!(matches!(itself, Err(Error::Unchangeable { why: Unchangeable::SameCause, .. })));
}

#[tokio::test]
async fn a_letter_is_explained_by_what_its_last_failure_said() {
    let (redrive, _) = redrive();
    bury(&redrive).await;
    let filter = redrive::contract::DeadFilter { reason: Some(Reason::HandlerError), ..Default::default() };
    let params = redrive::contract::ListDead::newest(filter, 1);
    let letter = redrive.store().list_dead(params).await.expect("listed").items.remove(0);
    let explained = redrive.explain_letter(letter.id).await.expect("explained").expect("it failed");
    assert_eq!((explained.cause, explained.message.as_str()), (letter.cause, "no price"));
    assert!(explained.print.parts.iter().any(|part| part.value == "handler_error"), "{:?}", explained.print);
    let nobody = redrive_core::ids::JobId::new(at_start(), 99);
    let missing = redrive.explain_letter(nobody).await.expect_err("nobody");
    assert_eq!(missing.kind(), ErrorKind::Missing);
}
