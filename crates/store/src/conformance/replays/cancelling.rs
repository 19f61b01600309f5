//! What must hold of replays that are cancelled.

use super::*;

/// Letters whose turn has not come stay dead when a replay is cancelled; the others come to their end.
pub async fn a_cancelled_replay_lets_go(store: Shared) {
    bury_some(&store, 5).await;
    start(&store, 1, Pacing { ramp: vec![2], ..Pacing::default() }).await;
    let before = dead(&store, DeadFilter::default()).await;
    advance(&store, 1, at(101)).await;
    let leased = lease_some(&store, 1, 1, at(102)).await.remove(0);
    assert!(change(&store, 1, ReplayChange::Cancel).await);
    assert_sound(&store).await;
    let after = dead(&store, DeadFilter::default()).await;
    assert_eq!(after.len(), 4, "what was sent and not begun is dead again");
    assert!(after.iter().all(|letter| before.contains(letter)), "as it was");
    assert!(get(&store, 1).await.is_open());
    assert!(lease(&store, 1, at(102)).await.is_empty());
    settle(&store, &leased, Outcome::Done, at(103)).await;
    assert_eq!(advance(&store, 1, at(104)).await, Advance::Finish);
    assert!(!get(&store, 1).await.is_open());
    assert_eq!(start(&store, 2, at_once()).await.included, 4, "they can be replayed again");
    assert!(!change(&store, 1, ReplayChange::Resume).await);
    assert_sound(&store).await;
}

/// A replay that is cancelled after its worker was lost takes everything back. What had begun counts, and is still suspected if
/// it ran inside the worker; what had failed again says so, in the words of one failure; the rest is as it was.
pub async fn cancelling_counts_what_had_begun(store: Shared) {
    let ids = bury_some(&store, 4).await;
    let before = dead(&store, DeadFilter::default()).await;
    start(&store, 1, at_once()).await;
    advance(&store, 1, at(101)).await;
    let leased = lease(&store, 1, at(102)).await;
    let of = |id: JobId| leased.iter().find(|job| job.lease.job == id).expect("leased");
    for (id, own_process) in [(ids[0], true), (ids[1], false)] {
        store.start(StartJobs { leases: vec![of(id).lease], own_process }).await.expect("noted");
    }
    settle(&store, of(ids[2]), timeout(), at(103)).await;
    store.detach_worker(worker(1)).await.expect("it is gone");
    assert!(change(&store, 1, ReplayChange::Cancel).await);
    assert!(!get(&store, 1).await.is_open(), "nothing is left under way");
    assert_sound(&store).await;
    let after = dead(&store, DeadFilter::default()).await;
    let now = |id: JobId| after.iter().find(|letter| letter.id == id).expect("dead");
    let was = |id: JobId| before.iter().find(|letter| letter.id == id).expect("dead");
    for id in [ids[0], ids[1]] {
        let (now, was) = (now(id), was(id));
        assert_eq!((now.attempts, now.replays), (was.attempts + 1, 1), "it began");
        assert!(now.verdict.as_ref().is_some_and(|said| said.contains("cut short")));
        assert_eq!((now.reason, &now.code, &now.message), (was.reason, &was.code, &was.message));
    }
    let failed = now(ids[2]);
    assert_eq!((failed.attempts, failed.replays, failed.died_at), (2, 1, at(103)));
    let last = failed.failures.as_ref().and_then(|failures| failures.last()).expect("a failure");
    assert_eq!((failed.reason, &failed.code, &failed.message), (last.reason, &last.code, &last.message));
    assert_eq!((failed.http_status, &failed.proxy), (last.http_status, &last.proxy));
    assert_eq!((failed.reason, failed.gate), (Reason::Timeout, Gate::Review));
    assert_eq!(now(ids[3]), was(ids[3]), "nobody had begun it");
    attach(&store, 1).await;
    start_as(&store, 2, Asked { now: at(300), ..plan(all()) }, at_once(), Input::new()).await;
    advance(&store, 2, at(301)).await;
    let again = lease(&store, 2, at(302)).await;
    let suspects: Vec<_> = again.iter().filter(|job| job.tally.suspect).map(|job| job.lease.job).collect();
    assert_eq!(suspects, [ids[1]], "it may have taken its worker down");
    assert_sound(&store).await;
}

/// A letter that is taken back has the newest payload that any of its attempts brought, as if it had been buried; and says so if
/// that of the last one is lost.
pub async fn cancelling_keeps_the_newest_payload(store: Shared) {
    attach(&store, 1).await;
    let (_, old) = bury_with_payload(&store, 1).await;
    let newer = Payload { truncated: true, ..Payload::bare(PayloadHash::from_bytes([9; 32]), 3) };
    register(&store, newer.hash).await;
    let anew = Asked { mode: ReplayMode::Refetch, ..plan(all()) };
    start_as(&store, 1, anew, at_once(), Input::new()).await;
    advance(&store, 1, at(101)).await;
    let lost = Payload { lost: Some("no room".into()), ..Payload::bare(PayloadHash::from_bytes([8; 32]), 3) };
    for (payload, secs) in [(newer.clone(), 102), (lost, 150)] {
        let leased = lease(&store, 1, at(secs)).await.remove(0);
        let ending = Ending { at: at(secs), duration: None, worker: None, chance: 0.0 };
        let mut decision = decide(&Policy::default(), &leased, timeout(), ending);
        decision.keep(Some(payload));
        settle_as(&store, &leased, decision, at(secs)).await;
    }
    assert!(change(&store, 1, ReplayChange::Cancel).await);
    let letter = dead(&store, DeadFilter::default()).await.remove(0);
    assert_eq!(letter.payload, Some(newer.hash), "not {}, which is older", old.hash);
    let saved = plan_of(&store, Asked { mode: ReplayMode::Saved, now: at(300), ..plan(all()) }).await;
    assert_eq!(saved.included, 0, "only its beginning was kept");
    assert_sound(&store).await;
}

/// A letter without a payload says that it is lost if its last attempt in a cancelled replay had one that could not be kept.
pub async fn cancelling_tells_of_a_lost_payload(store: Shared) {
    bury_some(&store, 1).await;
    start(&store, 1, at_once()).await;
    advance(&store, 1, at(101)).await;
    let leased = lease(&store, 1, at(102)).await.remove(0);
    let ending = Ending { at: at(102), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, timeout(), ending);
    let lost = Payload::bare(PayloadHash::from_bytes([8; 32]), 3);
    decision.keep(Some(Payload { lost: Some("no room".into()), ..lost }));
    settle_as(&store, &leased, decision, at(102)).await;
    assert!(change(&store, 1, ReplayChange::Cancel).await);
    let saved = Asked { mode: ReplayMode::Saved, now: at(300), ..plan(all()) };
    let planned = plan_of(&store, saved).await;
    assert_eq!(planned.excluded.get(&Exclusion::PayloadLost), Some(&1), "{:?}", planned.excluded);
    assert_sound(&store).await;
}
