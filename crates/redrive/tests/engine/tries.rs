//! Tries: what would recover from the saved payloads, and the replays that rely on it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redrive::clock::TestClock;
use redrive::contract::{DeadFilter, Selection};
use redrive::handler::{Handler, HandlerError, Success};
use redrive::replays::{AskedReplay, NewTry, ReplayError, Tried, wish};
use redrive::vault::Vault;
use redrive::{CancellationToken, Error, ErrorKind, FailureReport, Job, Pipeline, Reason, Redrive, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::definitions::DefinitionVersion;
use redrive_core::jobs::Input;
use redrive_core::payloads::Response;
use redrive_core::replays::{Exclusion, HANDFUL, Pacing, ReplayMode};
use tempfile::TempDir;

use self::in_memory::redrive;

use crate::support::in_memory;

/// Without a saved page it saves one, if the task says so, and fails for the reason that the task names; with one it works, unless
/// the task is bad.
struct Reader;

#[async_trait]
impl Handler for Reader {
    async fn run(&self, job: Job) -> Result<Success, HandlerError> {
        let reason = job.input["reason"].as_str().and_then(|reason| reason.parse().ok()).expect("a reason");
        if job.saved.is_some() {
            return match job.input["bad"] == true {
                true => Err(FailureReport::new(reason, "no price").into()),
                false => Ok(json!(1).into()),
            };
        }
        if job.input["page"] == true {
            let mut capture = job.evidence.capture()?;
            capture.write(b"a page").expect("written");
            job.evidence.save(capture, Response::default(), None).await?;
        }
        Err(FailureReport::new(reason, "no price").into())
    }

    fn works_from_saved(&self, _edited: bool) -> bool {
        true
    }
}

fn by() -> Actor {
    Actor::new("ada", Via::Api)
}

/// Of five letters with a page four died of it, one of them badly, and one of a timeout; a sixth has no page.
async fn with_letters() -> (Redrive, Pipeline, TempDir) {
    let (redrive, _, pipeline, folder) = with_letters_and_clock().await;
    (redrive, pipeline, folder)
}

async fn with_letters_and_clock() -> (Redrive, Arc<TestClock>, Pipeline, TempDir) {
    let (redrive, clock) = redrive();
    let folder = tempfile::tempdir().expect("a folder");
    let vault = Vault::open(&folder.path().join("payloads").display().to_string(), &redrive).expect("a vault");
    let pipeline = Pipeline::new("p", Reader).expect("a pipeline").attempts(1).vault(vault);
    let task = |n: u32| {
        let reason = if n == 4 { "timeout" } else { "schema_validation" };
        json!({"n": n, "reason": reason, "page": n < 5, "bad": n == 3})
    };
    redrive.enqueue(&pipeline, (0..6).map(task)).await.expect("accepted");
    redrive.drain(pipeline.clone()).await.expect("drained");
    (redrive, clock, pipeline, folder)
}

fn all() -> Selection {
    let filter = DeadFilter { pipeline: "p".parse().ok(), ..DeadFilter::default() };
    Selection { filter, ids: Vec::new() }
}

async fn try_all(redrive: &Redrive, pipeline: &Pipeline) -> Tried {
    let new = NewTry { by: by(), selection: all(), force: false, edits: Input::new() };
    let pipelines = [pipeline.clone()];
    redrive.try_replay(&pipelines, new, (&CancellationToken::new(), |_, _| {}), None).await.expect("tried")
}

#[tokio::test]
async fn a_plan_says_what_each_letter_is_worked_on_from() {
    let (redrive, pipeline, _folder) = with_letters().await;
    let plan = async |mode| {
        let wish = wish(std::slice::from_ref(&pipeline), mode, false, &Input::new()).expect("possible");
        redrive.plan_replay(&all(), &wish).await.expect("planned")
    };
    let suited = plan(None).await;
    assert_eq!((suited.matched, suited.included, suited.saved, suited.anew), (6, 6, 4, 2));
    let saved = plan(Some(ReplayMode::Saved)).await;
    assert_eq!((saved.saved, saved.anew, saved.excluded[&Exclusion::PayloadGone]), (5, 0, 1));
    assert_eq!(plan(Some(ReplayMode::Refetch)).await.anew, 6);
    let nothing =
        redrive.plan_replay(&Selection::default(), &wish(&[], None, false, &Input::new()).expect("possible")).await;
    assert!(matches!(nothing, Err(Error::NothingChosen)));
}

#[tokio::test]
async fn a_try_says_what_would_recover_and_settles_nothing() {
    let (redrive, pipeline, _folder) = with_letters().await;
    let before = redrive.count_found(DeadFilter::default()).await.expect("counted");
    let tried = try_all(&redrive, &pipeline).await;
    assert_eq!((tried.tried, tried.recovered), (5, 4));
    assert_eq!(tried.remaining.iter().map(|remaining| remaining.letters).collect::<Vec<_>>(), [1]);
    assert_eq!(tried.remaining[0].reason, Reason::SchemaValidation);
    assert_eq!(tried.excluded.get(&Exclusion::PayloadGone), Some(&1));
    assert_eq!(redrive.count_found(DeadFilter::default()).await.expect("counted"), before, "nothing was settled");
    let kept = redrive.find_try(Some((&all(), &Input::new()))).await.expect("asked").expect("kept");
    assert_eq!((Some(kept.id), &kept.outcome["recovered"]), (tried.id, &json!(4)));
}

#[tokio::test]
async fn a_replay_of_what_a_try_recovered_takes_that_and_no_more() {
    let (redrive, pipeline, _folder) = with_letters().await;
    let ask = async |pipeline: &Pipeline| {
        let asked = AskedReplay { recoverable: true, ..AskedReplay::of(all(), by()) };
        redrive.ask_replay(asked, std::slice::from_ref(pipeline)).await
    };
    assert!(matches!(ask(&pipeline).await, Err(Error::Replay(ReplayError::NoTry))));
    let first = pipeline.clone().defined(DefinitionVersion::new("aa"));
    try_all(&redrive, &first).await;
    let other = ask(&pipeline.clone().defined(DefinitionVersion::new("bb"))).await.expect_err("defined otherwise");
    assert_eq!(other.kind(), ErrorKind::Refused);
    let started = ask(&first).await.expect("started");
    assert_eq!((started.mode, started.plan.included, started.plan.saved), (ReplayMode::Saved, 4, 4));
    let replay = redrive.find_replay(redrive::replays::ReplayRef::Last).await.expect("found");
    assert_eq!((Some(replay.id), replay.name.as_str(), replay.pins.len()), (started.id, "p", 1));
    assert_eq!(replay.pacing, Pacing::of_retry(4), "a handful goes at once, whatever becomes of it");
    assert!(started.all_taken && HANDFUL >= 4, "of a filter, those that may be replayed are meant");
}

#[tokio::test]
async fn a_try_of_what_was_dead_then_counts_until_somebody_else_dies() {
    let (redrive, clock, pipeline, _folder) = with_letters_and_clock().await;
    let until = |until| Selection { filter: DeadFilter { until, ..all().filter }, ids: Vec::new() };
    clock.advance(Duration::from_secs(1));
    let new = NewTry { by: by(), selection: until(Some(redrive.now())), force: false, edits: Input::new() };
    let stop = CancellationToken::new();
    let tried =
        redrive.try_replay(std::slice::from_ref(&pipeline), new, (&stop, |_, _| {}), None).await.expect("tried");
    let newest = async || redrive.newest_of(&all(), &Input::new()).await.expect("asked").map(|kept| kept.id);
    assert_eq!(newest().await, tried.id, "nobody died since");
    let relied = redrive.find_recoverable(&all(), &Input::new(), std::slice::from_ref(&pipeline)).await;
    assert_eq!(Some(relied.expect("found").id), tried.id);
    let later = json!({"n": 7, "reason": "timeout", "page": false, "bad": false});
    redrive.enqueue(&pipeline, [later]).await.expect("accepted");
    redrive.drain(pipeline.clone()).await.expect("drained");
    assert_eq!(newest().await, None, "of that one the try says nothing");
}

#[tokio::test]
async fn who_names_letters_hears_which_are_none() {
    let (redrive, pipeline, _folder) = with_letters().await;
    let mut dead = Vec::new();
    let params = redrive::contract::ListDead::newest(all().filter, 9);
    dead.extend(redrive.store().list_dead(params).await.expect("listed").items.into_iter().map(|letter| letter.id));
    let gone = dead[0];
    redrive.discard_dead(Selection { ids: vec![gone], ..Selection::default() }, "x", &by()).await.expect("discarded");
    let asked = |ids: &[_]| AskedReplay::of(Selection { ids: ids.to_vec(), ..Selection::default() }, by());
    let started = redrive.ask_replay(asked(&dead[..2]), std::slice::from_ref(&pipeline)).await.expect("started");
    assert_eq!((started.id.is_some(), started.plan.included, started.all_taken), (true, 1, false));
    assert_eq!(started.not_dead.iter().map(|not_dead| not_dead.id).collect::<Vec<_>>(), [gone]);
    let none = redrive.ask_replay(asked(&[gone]), &[pipeline]).await.expect("answered");
    assert_eq!((none.id, none.plan.matched, none.not_dead.len()), (None, 0, 1));
}
