//! The suite's own driver of replays: what is to happen is decided by core, as everywhere.

use std::collections::BTreeSet;

use redrive_core::actors::{Actor, Via};
use redrive_core::causes::{CauseRules, Print};
use redrive_core::definitions::Pins;
use redrive_core::ids::TryId;
use redrive_core::replays::{
    NextReplay, ReplayPlan, Sent, Source, Step, StepChange, Wish, changed, next, outgoing, sent, treat, withdrawn,
};
use redrive_core::retry::RetryPolicy;

use super::*;
use crate::contract::{
    ClaimLetters, FindLetters, FoundLetter, ListPending, ListSent, NewReplay, OpenReplay, PendingLetter,
    ReleaseLetters, SendLetter, SendLetters, SentLetter, SetReplay, SurveyLetters, WithdrawLetter, WithdrawLetters,
};

/// A replay that somebody asks for.
#[derive(Clone, Debug)]
pub(in crate::conformance) struct Asked {
    pub(in crate::conformance) selection: Selection,
    pub(in crate::conformance) mode: ReplayMode,
    pub(in crate::conformance) force: bool,
    pub(in crate::conformance) automatic: Option<Automatic>,
    pub(in crate::conformance) tried: Option<TryId>,
    pub(in crate::conformance) supplied: Vec<String>,
    pub(in crate::conformance) by_name: bool,
    pub(in crate::conformance) now: Timestamp,
    pub(in crate::conformance) host: String,
}

impl Asked {
    fn wish(&self) -> Wish {
        let able = BTreeSet::from([pipeline()]);
        let (automatic, tried, supplied) = (self.automatic, self.tried, self.supplied.clone());
        Wish { force: self.force, able, automatic, tried, supplied, by_name: self.by_name, ..Wish::of(self.mode) }
    }
}

pub(in crate::conformance) fn ada() -> Actor {
    Actor::new("ada", Via::Cli)
}

/// What a replay would do.
pub(in crate::conformance) async fn plan_of(store: &Shared, asked: Asked) -> ReplayPlan {
    let wish = asked.wish();
    let params = SurveyLetters {
        closely: wish.looks_closely_at(),
        automatic: wish.automatic.is_some(),
        tried: wish.tried,
        lacking: wish.asks_for_lost(),
        selection: asked.selection,
        host: asked.host,
    };
    ReplayPlan::of(&store.survey_letters(params).await.expect("surveyed"), &wish)
}

/// Makes a replay without letters.
pub(in crate::conformance) async fn open(store: &Shared, n: u128, asked: &Asked) -> ReplayView {
    open_as(store, n, asked, at_once(), Input::new()).await
}

async fn open_as(store: &Shared, n: u128, asked: &Asked, pacing: Pacing, edits: Input) -> ReplayView {
    let new = NewReplay {
        name: format!("replay {n}"),
        by: ada(),
        selection: asked.selection.clone(),
        wish: asked.wish(),
        force_why: None,
        pacing,
        edits,
        pins: Pins::new(),
    };
    let params = OpenReplay { id: replay_id(n), new, pipelines: BTreeSet::new(), now: asked.now };
    store.open_replay(params).await.expect("opened")
}

/// The letters that come next in a replay that is being prepared.
pub(in crate::conformance) async fn found(store: &Shared, replay: &ReplayView, limit: u32) -> Vec<FoundLetter> {
    let params = FindLetters {
        selection: replay.selection.clone(),
        opened: Some(replay.id),
        tried: replay.wish.tried,
        host: "here".into(),
        whole: false,
        limit,
        cursor: replay.cursor.clone(),
    };
    store.find_letters(params).await.expect("found").items
}

/// The claim of all of them that may go.
pub(in crate::conformance) fn claim(replay: &ReplayView, found: &[FoundLetter]) -> ClaimLetters {
    let (mut letters, mut excluded) = (Vec::new(), replay.excluded.clone());
    let room = usize::try_from(replay.wish.room(replay.progress.total)).unwrap_or(usize::MAX);
    for found in found {
        match treat(&found.facts, &replay.wish) {
            Ok(_) if letters.len() >= room => break,
            Ok(source) => letters.push((found.id, source == Source::Saved)),
            Err(exclusion) => *excluded.entry(exclusion).or_default() += 1,
        }
    }
    ClaimLetters {
        id: replay.id,
        was: replay.version,
        letters,
        pipelines: BTreeSet::from([pipeline()]),
        excluded,
        cursor: found.last().map(|found| found.cursor.clone()),
    }
}

/// A change to a replay, decided on what it is.
pub(in crate::conformance) fn setting(replay: &ReplayView, state: ReplayState, now: Timestamp) -> SetReplay {
    let next = NextReplay::of(state, replay.why.clone(), &replay.progress);
    SetReplay { id: replay.id, was: replay.version, next, excluded: None, by: ada(), now }
}

/// Makes a replay and chooses its letters, two at once; says what came of it. A replay of nothing is dropped.
pub(in crate::conformance) async fn start_as(
    store: &Shared,
    n: u128,
    asked: Asked,
    pacing: Pacing,
    edits: Input,
) -> ReplayPlan {
    let mut replay = open_as(store, n, &asked, pacing, edits).await;
    loop {
        let letters = found(store, &replay, 2).await;
        let last = letters.len() < 2 || replay.wish.room(replay.progress.total) == 0;
        store.claim_letters(claim(&replay, &letters)).await.expect("claimed").expect("nobody else does");
        replay = get(store, n).await;
        if last {
            break;
        }
    }
    let (included, excluded) = (replay.progress.total, replay.excluded.clone());
    if included == 0 {
        assert!(store.drop_replay(replay.id, replay.version, asked.now).await.expect("dropped"));
    } else {
        assert!(store.set_replay(setting(&replay, ReplayState::Running, asked.now)).await.expect("set"));
    }
    let matched = included + excluded.values().sum::<u64>();
    ReplayPlan { matched, included, saved: replay.saved, excluded, ..ReplayPlan::default() }
}

pub(in crate::conformance) async fn start(store: &Shared, n: u128, pacing: Pacing) -> ReplayPlan {
    start_as(store, n, plan(all()), pacing, Input::new()).await
}

/// Takes the next step of a replay; says which it was.
pub(in crate::conformance) async fn advance(store: &Shared, n: u128, now: Timestamp) -> Advance {
    let replay = get(store, n).await;
    if !replay.is_open() {
        return Advance::Wait(None);
    }
    let advance = next(replay.state, &replay.pacing, &replay.progress, now);
    match &advance {
        Advance::Send { letters, step } => {
            let sending = sending(store, &replay, *letters, *step, now).await;
            assert!(store.send_letters(sending).await.expect("sent"));
        }
        Advance::Pause(why) => {
            let next = NextReplay::of(ReplayState::Paused, Some(why.clone()), &replay.progress);
            let set = SetReplay { next, ..setting(&replay, ReplayState::Paused, now) };
            assert!(store.set_replay(set).await.expect("set"));
        }
        Advance::Release => {
            store.release_letters(ReleaseLetters { id: replay.id, limit: 1_000, now }).await.expect("released");
        }
        Advance::Withdraw => drop(withdraw(store, n, now).await),
        Advance::Finish => finish(store, &replay, now).await,
        Advance::Choose | Advance::Wait(_) => {}
    }
    advance
}

async fn finish(store: &Shared, replay: &ReplayView, now: Timestamp) {
    let cancelled = replay.state == ReplayState::Cancelling;
    let state = if cancelled { ReplayState::Cancelled } else { ReplayState::Done };
    assert!(store.set_replay(setting(replay, state, now)).await.expect("set"));
}

/// The sending of the next letters, decided on what the replay is.
pub(in crate::conformance) async fn sending(
    store: &Shared,
    replay: &ReplayView,
    letters: u32,
    step: Step,
    now: Timestamp,
) -> SendLetters {
    let params = ListPending { id: replay.id, pipelines: replay.pipelines.clone(), limit: letters };
    let pending = store.list_pending(params).await.expect("listed");
    let (to, free_at) = sent(&replay.pacing, &replay.progress, step, pending.len() as u64, now);
    let (mut letters, mut gone) = (Vec::new(), Vec::new());
    for PendingLetter { job, saved, dead } in pending {
        let out = dead.and_then(|dead| {
            let (about, blame) = ((&dead.input, dead.target.as_deref()), (dead.crashes, dead.suspect));
            outgoing(about, blame, &replay.edits, replay.mode)
        });
        match out {
            Some(out) => {
                let (input, target, goes_on, suspect) = (out.input, out.target, out.goes_on, out.suspect);
                letters.push(SendLetter { job, input, target, saved, goes_on, suspect, origin: None });
            }
            None => gone.push(job),
        }
    }
    let step = StepChange { from: replay.progress.step, to };
    SendLetters { id: replay.id, was: replay.version, letters, gone, step, free_at, now }
}

/// Takes back what nobody works on; says how much that was.
pub(in crate::conformance) async fn withdraw(store: &Shared, n: u128, now: Timestamp) -> u64 {
    let waiting = store.list_sent(ListSent { id: replay_id(n), pipelines: None, limit: 1_000 }).await.expect("listed");
    let decide = |sent: SentLetter| {
        let (tally, begun, in_worker, gate) = (sent.tally, sent.begun, sent.in_worker, sent.gate);
        let (verdict, failure) = (sent.verdict.as_deref(), sent.failure.as_ref());
        let about = Sent { tally, begun, in_worker, gate, verdict, failure };
        let withdrawn = withdrawn(about, RetryPolicy::DEFAULT_ATTEMPTS_TOTAL_MAX);
        let print =
            failure.map(|failure| Print::of(&sent.pipeline, sent.target.as_deref(), failure, &CauseRules::default()));
        WithdrawLetter { sent, withdrawn, print }
    };
    let letters = waiting.into_iter().map(decide).collect();
    store.withdraw_letters(WithdrawLetters { id: replay_id(n), letters, now }).await.expect("withdrawn")
}

/// Pauses, resumes or cancels a replay, and takes back what can be; says whether that was possible.
pub(in crate::conformance) async fn change(store: &Shared, n: u128, change: ReplayChange) -> bool {
    let replay = get(store, n).await;
    let now = at(200);
    let Some(next) = changed(change, replay.state, &replay.progress, "ada") else { return false };
    assert!(store.set_replay(SetReplay { next, ..setting(&replay, replay.state, now) }).await.expect("set"));
    loop {
        let before = get(store, n).await.progress;
        let moved = change == ReplayChange::Cancel && !matches!(advance(store, n, now).await, Advance::Wait(_));
        if !moved || get(store, n).await.progress == before {
            return true;
        }
    }
}
