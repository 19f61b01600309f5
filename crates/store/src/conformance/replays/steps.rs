//! What must hold of the single steps of a replay: each is bounded, and written only on what it was decided on.

use redrive_core::replays::{Step, Withdrawn, next};

use super::*;
use crate::contract::{
    ActivityView, ForgetReplays, ListActivity, ListPending, ListSent, ReleaseLetters, SentLetter, WithdrawLetter,
    WithdrawLetters,
};

/// A replay is prepared in steps: a letter that was claimed is nobody else's, and any driver goes on where the last one stopped.
pub async fn letters_are_chosen_in_steps(store: Shared) {
    let ids = bury_some(&store, 5).await;
    let mut replay = open(&store, 1, &plan(all())).await;
    assert_eq!((replay.state, replay.progress.total), (ReplayState::Preparing, 0));
    assert_eq!(open(&store, 1, &plan(all())).await.version, replay.version, "it is made once");
    let mut sizes = Vec::new();
    loop {
        let letters = found(&store, &replay, 2).await;
        sizes.push(letters.len());
        let claimed = store.claim_letters(claim(&replay, &letters)).await.expect("claimed").expect("as it was");
        assert_eq!((claimed.claimed, claimed.refused), (letters.len() as u64, 0));
        replay = get(&store, 1).await;
        assert_eq!(claimed.version, replay.version);
        assert_sound(&store).await;
        if letters.len() < 2 {
            break;
        }
        assert!(lease(&store, 1, at(100)).await.is_empty(), "nothing goes before all are chosen");
        assert!(!change(&store, 1, ReplayChange::Pause).await);
    }
    assert_eq!((sizes, replay.progress.total), (vec![2, 2, 1], 5));
    assert!(found(&store, &replay, 2).await.is_empty());
    assert!(store.set_replay(setting(&replay, ReplayState::Running, at(101))).await.expect("set"));
    assert_eq!(letters(&store, 1).await.iter().map(|letter| letter.id).collect::<Vec<_>>(), ids, "oldest first");
    let far = ListReplayLetters { id: replay_id(1), state: None, limit: 10, cursor: Some(i64::MAX.to_string()) };
    assert!(store.list_replay_letters(far).await.expect("listed").items.is_empty(), "nothing is after the last row");
    let running = get(&store, 1).await;
    assert!(store.claim_letters(claim(&running, &[])).await.expect("asked").is_none(), "it is no longer prepared");
}

/// Letters that die while a replay is prepared are not part of it, whatever was discarded meanwhile.
pub async fn who_dies_later_is_not_chosen(store: Shared) {
    let ids = bury_some(&store, 3).await;
    let mut replay = open(&store, 1, &plan(all())).await;
    let letters = found(&store, &replay, 1).await;
    store.claim_letters(claim(&replay, &letters)).await.expect("claimed").expect("as it was");
    let discard = DiscardDead { ids: vec![ids[2]], by: ada(), why: "x".into(), now: at(100) };
    store.discard_dead(discard).await.expect("discarded");
    // Its clock is behind: by its time alone it would be the oldest.
    bury(&store, job(9, plain()), Reason::HandlerError, "task 1 was lost", at(2)).await;
    replay = get(&store, 1).await;
    let rest: Vec<_> = found(&store, &replay, 10).await.into_iter().map(|found| found.id).collect();
    assert_eq!(rest, [ids[1]]);
    assert_sound(&store).await;
}

/// A step that was decided on what a replay was before writes nothing.
pub async fn a_step_on_what_was_writes_nothing(store: Shared) {
    bury_some(&store, 3).await;
    let opened = open(&store, 1, &plan(all())).await;
    let first = claim(&opened, &found(&store, &opened, 10).await);
    assert!(store.claim_letters(first.clone()).await.expect("claimed").is_some());
    assert!(store.claim_letters(first).await.expect("asked").is_none(), "the same claim, sent again");
    assert!(!store.set_replay(setting(&opened, ReplayState::Running, at(100))).await.expect("asked"));
    assert!(!store.drop_replay(opened.id, opened.version, at(100)).await.expect("asked"));
    let chosen = get(&store, 1).await;
    assert!(!store.drop_replay(opened.id, chosen.version, at(100)).await.expect("asked"), "it has letters");
    assert!(store.set_replay(setting(&chosen, ReplayState::Running, at(100))).await.expect("set"));
    let running = get(&store, 1).await;
    let send = sending(&store, &running, 1, Step::default(), at(101)).await;
    assert!(store.send_letters(send.clone()).await.expect("sent"));
    let before = get(&store, 1).await.progress;
    assert!(!store.send_letters(send).await.expect("asked"), "the same sending, sent again");
    assert!(!store.set_replay(setting(&running, ReplayState::Paused, at(102))).await.expect("asked"));
    let after = get(&store, 1).await;
    assert_eq!((after.progress, after.state), (before, ReplayState::Running));
    assert_eq!(lease(&store, 1, at(103)).await.len(), 1);
    assert_sound(&store).await;
}

/// Of two drivers that decide the same at the same time one is heard.
pub async fn of_two_drivers_one_is_heard(store: Shared) {
    bury_some(&store, 8).await;
    start(&store, 1, Pacing { ramp: vec![3], ..Pacing::default() }).await;
    let replay = get(&store, 1).await;
    let one = sending(&store, &replay, 3, Step::default(), at(101)).await;
    let (a, b) = tokio::join!(store.send_letters(one.clone()), store.send_letters(one));
    assert!(a.expect("answered") ^ b.expect("answered"));
    let progress = get(&store, 1).await.progress;
    assert_eq!((progress.pending, progress.running, progress.step.sent), (5, 3, 3));
    assert_sound(&store).await;
}

/// Two replays that choose the same letters at the same time share them, and each knows how many it got.
pub async fn one_letter_goes_to_one_of_two_replays(store: Shared) {
    bury_some(&store, 4).await;
    let (one, two) = (open(&store, 1, &plan(all())).await, open(&store, 2, &plan(all())).await);
    let (first, second) = (found(&store, &one, 3).await, found(&store, &two, 10).await);
    let (a, b) = tokio::join!(store.claim_letters(claim(&one, &first)), store.claim_letters(claim(&two, &second)));
    let (a, b) = (a.expect("claimed").expect("as it was"), b.expect("claimed").expect("as it was"));
    assert_eq!((a.claimed + b.claimed, a.refused + b.refused), (4, 3));
    let total = async |n| get(&store, n).await.progress.total;
    assert_eq!((total(1).await, total(2).await), (a.claimed, b.claimed));
    assert_sound(&store).await;
}

/// What settles between a decision and its writing is counted all the same.
pub async fn what_settles_meanwhile_is_not_lost(store: Shared) {
    bury_some(&store, 6).await;
    start(&store, 1, at_once()).await;
    let replay = get(&store, 1).await;
    let send = sending(&store, &replay, 2, Step::default(), at(101)).await;
    assert!(store.send_letters(send).await.expect("sent"));
    let decided_on = get(&store, 1).await;
    let leased = lease(&store, 1, at(102)).await;
    settle(&store, &leased[0], Outcome::Done, at(103)).await;
    settle(&store, &leased[1], fatal(Reason::RejectedInput, "no"), at(103)).await;
    let more = sending(&store, &decided_on, 2, decided_on.progress.step, at(104)).await;
    assert!(store.send_letters(more).await.expect("sent"), "letters that settle do not stop what was decided");
    let progress = get(&store, 1).await.progress;
    assert_eq!(progress.step, Step { number: 0, sent: 4, settled: 2, failed: 1 });
    assert_eq!((progress.recovered, progress.failed, progress.running, progress.pending), (1, 1, 2, 2));
    assert_sound(&store).await;
}

/// A replay says which pipelines have letters that have not come to their end.
pub async fn a_replay_knows_what_is_left(store: Shared) {
    bury_some(&store, 2).await;
    start(&store, 1, Pacing { ramp: vec![1, 1], ..Pacing::default() }).await;
    let left = async || store.left_in_replay(replay_id(1)).await.expect("asked").contains(&pipeline());
    let moved = async || get(&store, 1).await.moved_at;
    let oldest = async || get(&store, 1).await.oldest;
    assert!(left().await, "both wait");
    assert_eq!((oldest().await, moved().await), (Some(at(1)), at(100)));
    for (secs, died_at) in [(101, at(1)), (111, at(2))] {
        advance(&store, 1, at(secs)).await;
        assert!(left().await, "one is under way");
        assert_eq!((oldest().await, moved().await), (Some(died_at), at(secs)));
        let leased = lease(&store, 1, at(secs + 1)).await;
        settle(&store, &leased[0], Outcome::Done, at(secs + 2)).await;
        assert_eq!(moved().await, at(secs + 2));
    }
    assert!(!left().await);
    assert_eq!(oldest().await, None, "none is left");
    let listed = store.list_replays(ListReplays::newest(9)).await.expect("listed");
    assert_eq!(listed.items[0].per_minute(at(999)), Some(2.0 * 60.0 / 899.0), "it has not ended");
    let none = ListPending {
        id: replay_id(1),
        pipelines: std::iter::once("other".parse().expect("a name")).collect(),
        limit: 9,
    };
    assert!(store.list_pending(none).await.expect("listed").is_empty());
}

/// A replay is cancelled in steps: between them its letters are its own, or dead as they were.
pub async fn a_replay_is_cancelled_in_steps(store: Shared) {
    bury_some(&store, 5).await;
    let before = dead(&store, DeadFilter::default()).await;
    start(&store, 1, Pacing { ramp: vec![1], ..Pacing::default() }).await;
    advance(&store, 1, at(101)).await;
    let running = get(&store, 1).await;
    let release = ReleaseLetters { id: running.id, limit: 3, now: at(102) };
    assert_eq!(store.release_letters(release).await.expect("asked"), 0, "it is not being cancelled");
    assert_eq!(withdraw(&store, 1, at(102)).await, 0, "nor are letters taken back from it");
    assert!(store.set_replay(setting(&running, ReplayState::Cancelling, at(102))).await.expect("set"));
    assert!(lease(&store, 1, at(102)).await.is_empty());
    assert_eq!(store.release_letters(release).await.expect("released"), 3);
    assert_sound(&store).await;
    let halfway = plan_of(&store, plan(all())).await;
    assert_eq!((halfway.included, halfway.excluded.get(&Exclusion::BeingReplayed)), (3, Some(&1)));
    assert_eq!(store.release_letters(release).await.expect("released"), 1);
    assert_eq!(withdraw(&store, 1, at(103)).await, 1);
    assert_eq!(withdraw(&store, 1, at(103)).await, 0);
    assert_eq!(dead(&store, DeadFilter::default()).await, before, "as they were");
    let cancelling = get(&store, 1).await;
    assert_eq!(next(cancelling.state, &cancelling.pacing, &cancelling.progress, at(104)), Advance::Finish);
    assert_eq!((cancelling.progress.cancelled(), cancelling.is_open()), (5, true));
    assert_eq!(advance(&store, 1, at(104)).await, Advance::Finish);
    let over = get(&store, 1).await;
    assert_eq!((over.state, over.finished_at), (ReplayState::Cancelled, Some(at(104))));
    assert!(!store.set_replay(setting(&over, ReplayState::Running, at(105))).await.expect("asked"), "it is over");
    assert_sound(&store).await;
}

/// A letter that is no longer as it was found is not taken back: somebody works on it, or something has happened to it.
pub async fn who_works_on_a_letter_keeps_it(store: Shared) {
    bury_some(&store, 2).await;
    start(&store, 1, at_once()).await;
    advance(&store, 1, at(101)).await;
    let seen = store.list_sent(ListSent { id: replay_id(1), pipelines: None, limit: 10 }).await.expect("listed");
    assert_eq!(seen.len(), 2);
    for (name, expected) in [(pipeline(), 2), ("other".parse().expect("a name"), 0)] {
        let of = ListSent { id: replay_id(1), pipelines: Some([name].into()), limit: 10 };
        assert_eq!(store.list_sent(of).await.expect("listed").len(), expected, "only of those that are named");
    }
    let leased = lease_some(&store, 1, 1, at(102)).await.remove(0);
    let running = get(&store, 1).await;
    assert!(store.set_replay(setting(&running, ReplayState::Cancelling, at(103))).await.expect("set"));
    let as_it_was = |sent: SentLetter| {
        let (attempts, gate) = (sent.tally.attempts, sent.gate);
        let withdrawn = Withdrawn { attempts, replays: 0, counts: false, suspect: false, gate, verdict: None };
        WithdrawLetter { sent, withdrawn, print: None }
    };
    let letters: Vec<_> = seen.into_iter().map(as_it_was).collect();
    let take = WithdrawLetters { id: replay_id(1), letters, now: at(104) };
    assert_eq!(store.withdraw_letters(take.clone()).await.expect("withdrawn"), 1);
    assert_sound(&store).await;
    settle(&store, &leased, timeout(), at(105)).await;
    assert_eq!(store.withdraw_letters(take).await.expect("withdrawn"), 0, "it has failed since");
    assert_eq!(withdraw(&store, 1, at(106)).await, 1);
    assert_eq!(dead(&store, DeadFilter::default()).await.len(), 2);
    assert_sound(&store).await;
}

/// Replays that ended long ago are forgotten with their letters, a bounded number at once; the others stay.
pub async fn old_replays_are_forgotten_in_steps(store: Shared) {
    bury_some(&store, 5).await;
    start(&store, 1, at_once()).await;
    change(&store, 1, ReplayChange::Cancel).await;
    assert!(!get(&store, 1).await.is_open());
    let other = Asked { now: at(300), ..plan(all()) };
    start_as(&store, 2, other, at_once(), Input::new()).await;
    let forget = async |before, limit| {
        store.forget_replays(ForgetReplays { before, limit, led: None }).await.expect("forgotten")
    };
    assert!(!forget(at(200), 10).await);
    assert!(store.get_replay(replay_id(1)).await.expect("read").is_some(), "it ended later");
    let mut steps = 0;
    while forget(at(1_000), 2).await {
        steps += 1;
        assert_sound(&store).await;
    }
    assert!((2..=3).contains(&steps), "five letters, two at once: {steps}");
    assert!(store.get_replay(replay_id(1)).await.expect("read").is_none());
    assert_eq!(get(&store, 2).await.progress.total, 5, "it is open");
    assert_sound(&store).await;
}

/// What people do to replays is noted, what Redrive does with them is not.
pub async fn what_people_do_to_a_replay_is_noted(store: Shared) {
    bury_some(&store, 2).await;
    start(&store, 1, Pacing { ramp: vec![1], ..at_once() }).await;
    advance(&store, 1, at(101)).await;
    for done in [ReplayChange::Pause, ReplayChange::Resume, ReplayChange::Cancel] {
        assert!(change(&store, 1, done).await);
    }
    let listed = async |params: ListActivity| {
        let noted = store.list_activity(ListActivity { limit: 9, ..params }).await.expect("listed").items;
        let told = |noted: &ActivityView| {
            assert_eq!((noted.object.clone(), noted.by.name.as_str()), (format!("replay {}", replay_id(1)), "ada"));
            noted.verb.clone()
        };
        noted.iter().map(told).collect::<Vec<_>>()
    };
    assert_eq!(listed(ListActivity::default()).await, ["cancel", "resume", "pause", "start"]);
    let of = ListActivity { pipeline: Some(pipeline()), ..ListActivity::default() };
    assert_eq!(listed(of).await, ["cancel", "resume", "pause"], "when it was started its letters were not chosen");
    let of = ListActivity { pipeline: "other".parse().ok(), ..ListActivity::default() };
    assert!(listed(of).await.is_empty());
    let since = |since| ListActivity { since: Some(since), ..ListActivity::default() };
    assert_eq!((listed(since(at(200))).await.len(), listed(since(at(201))).await.len()), (3, 0));
}
