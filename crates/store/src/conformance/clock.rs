//! What must hold when the clock jumps.

use std::time::Duration;

use redrive_core::breakers::Signal;
use redrive_core::clock::Uptime;
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::ids::ReplayId;
use redrive_core::jobs::{LeasedJob, NewJob};
use redrive_core::policy::Bounds;
use redrive_core::policy::Policy;
use redrive_core::retry::RetryPolicy;
use redrive_core::settlements::{Ending, Outcome, decide};
use redrive_core::time::Timestamp;
use serde_json::json;

use super::replays::replay_one;
use super::script::{
    Shared, assert_sound, at, attach, bury, enqueue, job, lease_all, lease_of, lease_one, lease_past_breakers,
    pipeline, plain, settle, settle_as, timeout,
};
use crate::contract::{EnqueueJobs, FindLostLeases, Lane, LeasedJobs, LookAtClock, LookedAtClock, MendDueTimes};

const HOURS_3: i64 = 3 * 3_600;

async fn look(store: &Shared, now: Timestamp, uptime: Option<Uptime>) -> LookedAtClock {
    store.look_at_clock(LookAtClock { now, uptime }).await.expect("looked")
}

async fn mend(store: &Shared, now: Timestamp) -> u64 {
    let params = MendDueTimes {
        pipeline: pipeline(),
        retry: RetryPolicy::default(),
        lease: Duration::from_secs(30),
        limit: 100,
        now,
    };
    store.mend_due_times(params).await.expect("mended")
}

/// A jump is noticed by whoever looks next, and waited for.
pub async fn a_jump_is_remembered(store: Shared) {
    let up = |millis| Some(Uptime { boot: "a".into(), millis });
    assert_eq!(look(&store, at(0), up(0)).await.jumped, None);
    assert_eq!(look(&store, at(60), up(60_000)).await.seen.expires_by(), at(60));
    let jumped = look(&store, at(45 * 86_400), up(61_000)).await;
    assert!(jumped.jumped.is_some());
    assert_eq!(jumped.seen.expires_by(), at(60));
    let later = look(&store, at(45 * 86_400 + 3_600), up(3_661_000)).await;
    assert_eq!((later.jumped, later.seen.expires_by()), (None, at(60)), "it waits");
}

/// Retries that were given a due time while the clock was ahead are due when it is right again; what a target asked for is
/// honoured, and what is due in time stays where it is.
pub async fn due_times_of_a_clock_that_was_ahead_are_mended(store: Shared) {
    attach(&store, 1).await;
    let jobs = ["slow", "told", "in time"].map(|name| json!({"url": format!("https://{}/", name.len()), "name": name}));
    enqueue(&store, jobs.into_iter().zip(1..).map(|(input, n)| job(n, input)).collect()).await;
    let leased = lease_all(&store, 3, at(1)).await.jobs;
    settle(&store, &leased[0], timeout(), at(HOURS_3)).await;
    let told = FailureReport { retry_after_secs: Some(600.0), ..FailureReport::new(Reason::RateLimited, "later") };
    settle(&store, &leased[1], Outcome::Failed(told), at(HOURS_3)).await;
    settle(&store, &leased[2], timeout(), at(2)).await;
    let fresh = EnqueueJobs {
        pipeline: pipeline(),
        jobs: vec![late_job(4)].into(),
        bounds: Bounds::default(),
        now: at(HOURS_3),
    };
    store.enqueue(fresh).await.expect("accepted");
    assert!(lease_all(&store, 9, at(2)).await.jobs.is_empty());
    assert_eq!(mend(&store, at(2)).await, 3);
    assert_eq!(mend(&store, at(2)).await, 0, "once is enough");
    assert_sound(&store).await;
    let names = |leased: LeasedJobs| leased.jobs.iter().map(|job| job.lease.job).collect::<Vec<_>>();
    let mut due = names(lease_all(&store, 9, at(2)).await);
    due.sort();
    assert_eq!(due, [job(1, plain()).id, job(4, plain()).id]);
    assert_eq!(names(lease_all(&store, 9, at(4)).await), [job(3, plain()).id], "its time had come anyway");
    assert_eq!(lease_all(&store, 9, at(500)).await.jobs.len(), 0);
    assert_eq!(names(lease_all(&store, 9, at(602)).await), [job(2, plain()).id], "the target's wait is honoured");
    assert_sound(&store).await;
}

/// A job that was enqueued while the clock was ahead.
fn late_job(n: u128) -> NewJob {
    NewJob { due_at: at(HOURS_3), ..job(n, plain()) }
}

/// A job that was asked to wait two days, while the clock was ahead, waits two days and no less, however often it is mended.
pub async fn a_scheduled_job_is_pulled_in_once(store: Shared) {
    attach(&store, 1).await;
    let wait = 2 * 86_400;
    let scheduled = NewJob { due_at: at(HOURS_3 + wait), ..job(1, plain()) };
    let params =
        EnqueueJobs { pipeline: pipeline(), jobs: vec![scheduled].into(), bounds: Bounds::default(), now: at(HOURS_3) };
    store.enqueue(params).await.expect("accepted");
    assert_eq!(mend(&store, at(0)).await, 1);
    assert_eq!(mend(&store, at(60)).await, 0, "once is enough");
    assert_eq!(mend(&store, at(120)).await, 0);
    assert_eq!(lease_all(&store, 9, at(wait - 1)).await.jobs.len(), 0, "it is not time yet");
    assert_eq!(lease_all(&store, 9, at(wait)).await.jobs.len(), 1);
    assert_sound(&store).await;
}

/// A breaker that opened while the clock was ahead holds its jobs as long as it was told to, and letters of a replay with them.
pub async fn holds_are_kept_and_not_prolonged(store: Shared) {
    attach(&store, 1).await;
    bury(&store, job(1, json!({"url": "https://ill/"})), Reason::HandlerError, "no", at(1)).await;
    let sent = replay_one(&store).await;
    settle(&store, &sent, Outcome::Returned, at(103)).await;
    enqueue(&store, vec![job(2, json!({"url": "https://ill/2"}))]).await;
    let leased = lease_one(&store, at(104)).await;
    let ending = Ending { at: at(HOURS_3), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, timeout(), ending);
    decision.signal = Signal::Hold(Duration::from_secs(1_200));
    settle_as(&store, &leased, decision, at(HOURS_3)).await;
    // The letter is held until the breaker lets it through, in three hours.
    assert!(lease_replay(&store, at(HOURS_3 + 1)).await.is_empty());
    assert_eq!(lease_all(&store, 9, at(200)).await.jobs.len(), 0);
    mend(&store, at(200)).await;
    assert!(lease_replay(&store, at(1_000)).await.is_empty(), "a hold is exempt");
    let probe = lease_replay(&store, at(1_500)).await;
    assert_eq!(probe.len(), 1, "it lasts as long as it was told to");
    assert_sound(&store).await;
}

async fn lease_replay(store: &Shared, now: Timestamp) -> Vec<LeasedJob> {
    lease_past_breakers(store, lease_of(Lane::Replay(ReplayId::new(at(0), 1)), 9, now)).await.jobs
}

/// A letter that died while the clock was ahead can be replayed when it is right again.
pub async fn a_letter_of_the_future_can_be_replayed(store: Shared) {
    attach(&store, 1).await;
    let id = bury(&store, job(1, plain()), Reason::HandlerError, "no", at(HOURS_3)).await;
    assert_eq!(replay_one(&store).await.lease.job, id);
    assert_sound(&store).await;
}

/// A lease that was given while the clock was ahead runs out when a lease does.
pub async fn long_leases_are_shortened(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![job(1, plain())]).await;
    lease_one(&store, at(HOURS_3)).await;
    let lost = async |now| {
        let params = FindLostLeases { pipelines: vec![pipeline()], silent: Vec::new(), limit: 9, now };
        store.lost_leases(params).await.expect("asked").len()
    };
    mend(&store, at(10)).await;
    assert_eq!((lost(at(39)).await, lost(at(41)).await), (0, 1));
}
