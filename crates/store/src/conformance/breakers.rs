//! What must hold of breakers: the jobs of a failing target wait, untouched, and the others go on.

use redrive_core::failures::{Disposition, FailureReport, Reason};
use redrive_core::jobs::NewJob;
use redrive_core::policy::Bounds;
use redrive_core::settlements::Outcome;
use redrive_core::state::JobState;
use serde_json::json;

use redrive_core::breakers::{BreakerPolicy, BreakerTurn, Gate, HeldBy, NextBreaker, TargetFailure, turned};
use redrive_core::causes::CauseRules;
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Settlement, decide, give_up};

use super::script::{
    Shared, ada, assert_sound, at, attach, changes, enqueue, job, known, lease_all, lease_of, lease_one, ledger,
    pipeline, settle, settle_as, timeout, worker,
};
use crate::contract::{
    BreakersOf, CancelJobs, EnqueueJobs, Lane, LeaseJobs, ListActivity, Only, SettleJobs, Settled, TurnBreaker,
};

fn sick(n: u128) -> NewJob {
    job(n, json!({"url": "https://sick/", "n": n}))
}

fn well(n: u128) -> NewJob {
    job(n, json!({"url": "https://well/", "n": n}))
}

async fn hold_the_sick_one(store: &Shared) {
    attach(store, 1).await;
    enqueue(store, vec![sick(1)]).await;
    let first = lease_one(store, at(0)).await;
    let hold = FailureReport { disposition: Some(Disposition::Hold), ..FailureReport::new(Reason::Blocked, "closed") };
    settle(store, &first, Outcome::Failed(hold), at(0)).await;
}

/// While a breaker is open its target's jobs stay queued without losing attempts; others flow; all can be cancelled.
pub async fn a_hold_sets_the_targets_jobs_aside(store: Shared) {
    hold_the_sick_one(&store).await;
    enqueue(&store, vec![sick(2), well(3), sick(4), well(5)]).await;
    let leased = lease_all(&store, 10, at(1)).await;
    let ids: Vec<_> = leased.jobs.iter().map(|job| job.lease.job).collect();
    assert_eq!(ids, [well(3).id, well(5).id]);
    let listed = store.list_breakers().await.expect("listed");
    assert_eq!((listed.len(), listed[0].target.as_str(), listed[0].held), (1, "sick", 3));
    let detail = store.get_job(sick(1).id).await.expect("looked up").expect("there");
    assert_eq!((detail.job.state, detail.job.attempts, detail.job.held), (JobState::Queued, 0, true));
    assert_eq!(lease_all(&store, 10, at(2)).await.next_due, Some(at(30)));
    assert_sound(&store).await;
    let cancel = CancelJobs { ids: vec![sick(2).id], by: ada(), why: "w".into(), now: at(3) };
    assert_eq!(store.cancel_jobs(cancel).await.expect("cancelled").len(), 1);
    assert_eq!(ledger(&store).await.queued, 2);
    assert_sound(&store).await;
}

/// After the cool-down a probe goes, then more, then all.
pub async fn probes_go_first_and_success_releases_the_rest(store: Shared) {
    hold_the_sick_one(&store).await;
    enqueue(&store, (2..=20).map(sick).collect()).await;
    assert_eq!(lease_all(&store, 50, at(1)).await.jobs.len(), 0);
    let mut now = 30;
    for expected in [1, 2] {
        let probes = lease_all(&store, 50, at(now)).await.jobs;
        assert!(probes.len() <= expected, "{} probes at once", probes.len());
        assert!(!probes.is_empty());
        for probe in probes {
            settle(&store, &probe, Outcome::Done, at(now)).await;
        }
        now += 1;
        assert_sound(&store).await;
    }
    let rest = lease_all(&store, 50, at(now)).await.jobs;
    assert_eq!(ledger(&store).await.queued, 0, "all the others were let go");
    for job in rest {
        settle(&store, &job, Outcome::Done, at(now)).await;
    }
    assert_eq!(store.list_breakers().await.expect("listed").len(), 0);
    assert_eq!(ledger(&store).await.done, 20);
    assert_sound(&store).await;
}

/// Enough failures open the breaker by themselves; a failed probe opens it again.
pub async fn a_failing_target_opens_its_breaker(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, (1..=40).map(sick).collect()).await;
    for _ in 0..20 {
        let leased = lease_one(&store, at(0)).await;
        settle(&store, &leased, timeout(), at(0)).await;
    }
    assert_eq!(lease_all(&store, 50, at(5)).await.jobs.len(), 0);
    let probe = lease_all(&store, 50, at(30)).await.jobs;
    assert_eq!(probe.len(), 1);
    settle(&store, &probe[0], timeout(), at(31)).await;
    let waiting = lease_all(&store, 50, at(60)).await;
    assert_eq!((waiting.jobs.len(), waiting.next_due), (0, Some(at(31 + 60))));
    assert_eq!(ledger(&store).await.queued, 40);
    assert_sound(&store).await;
}

/// An open breaker says which failure opened it, what its target last failed with, and since when it is open, however often it was probed since.
pub async fn a_breaker_says_why_and_since_when(store: Shared) {
    hold_the_sick_one(&store).await;
    let probe = lease_all(&store, 50, at(30)).await.jobs;
    settle(&store, &probe[0], timeout(), at(31)).await;
    let breaker = store.list_breakers().await.expect("listed").remove(0).breaker;
    assert_eq!(breaker.opened_at, Some(at(0)));
    assert!(breaker.last.as_ref().is_some_and(|last| last.reason == Reason::Timeout), "{:?}", breaker.last);
    let opener = breaker.opened_by.expect("a failure opened it");
    assert_eq!((opener.reason, opener.message.as_str()), (Reason::Blocked, "closed"));
}

/// A probe that fails for its target's sake loses no attempt, and the next one is another job.
pub async fn the_next_probe_is_another_job(store: Shared) {
    hold_the_sick_one(&store).await;
    enqueue(&store, (2..=3).map(sick).collect()).await;
    let mut probed = Vec::new();
    for now in [100, 1_000, 2_000] {
        let probe = lease_all(&store, 50, at(now)).await.jobs;
        assert_eq!(probe.len(), 1);
        assert!(probe[0].probe);
        settle(&store, &probe[0], timeout(), at(now)).await;
        let after = store.get_job(probe[0].lease.job).await.expect("looked up").expect("there").job;
        assert_eq!((after.state, after.attempts), (JobState::Queued, 0));
        probed.push(probe[0].lease.job);
    }
    probed.sort();
    assert_eq!(probed, [sick(1).id, sick(2).id, sick(3).id]);
    assert_sound(&store).await;
}

/// However long a target is down, a job that is its probe again and again has one failure of that to show, the newest.
pub async fn a_job_that_probes_for_days_keeps_one_failure_of_it(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![sick(1)]).await;
    let first = lease_one(&store, at(0)).await;
    settle(&store, &first, timeout(), at(0)).await;
    let second = lease_one(&store, at(10)).await;
    let hold = FailureReport { disposition: Some(Disposition::Hold), ..FailureReport::new(Reason::Blocked, "closed") };
    settle(&store, &second, Outcome::Failed(hold), at(10)).await;
    for day in 1..=50 {
        let probe = lease_one(&store, at(day * 86_400)).await;
        assert!(probe.probe);
        settle(&store, &probe, timeout(), at(day * 86_400 + 1)).await;
    }
    let detail = store.get_job(sick(1).id).await.expect("looked up").expect("there");
    let told: Vec<_> = detail.failures.iter().map(|failure| (failure.probe, failure.at)).collect();
    assert_eq!(told, [(false, at(0)), (false, at(10)), (true, at(50 * 86_400 + 1))]);
    assert_sound(&store).await;
}

/// However many ask, no more probes are out than may be; one that comes back without a verdict leaves its place to another.
pub async fn probes_are_counted_by_their_leases(store: Shared) {
    hold_the_sick_one(&store).await;
    enqueue(&store, (2..=5).map(sick).collect()).await;
    let first = lease_all(&store, 50, at(100)).await.jobs;
    assert_eq!(first.len(), 1);
    for now in 101..105 {
        assert!(lease_all(&store, 50, at(now)).await.jobs.is_empty(), "one is out");
    }
    settle(&store, &first[0], Outcome::Returned, at(105)).await;
    assert_eq!(lease_all(&store, 50, at(106)).await.jobs.len(), 1, "it said nothing");
    assert_sound(&store).await;
}

/// What is said of a target in settlements that were all decided by the same, older breaker is folded in: none is lost.
pub async fn what_is_said_at_once_is_folded_in(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, (1..=12).map(sick).collect()).await;
    let leased = lease_all(&store, 12, at(1)).await.jobs;
    let stale = known(&store).await;
    let (policy, rules) = (Policy::default(), CauseRules::default());
    let mut tasks = tokio::task::JoinSet::new();
    for job in leased {
        let ending = Ending { at: at(1), duration: None, worker: None, chance: 0.0 };
        let settlements = vec![Settlement::new(&job, decide(&policy, &job, timeout(), ending), &rules)];
        let breakers = changes(&settlements, &stale, at(1));
        let params = SettleJobs { settlements, worker: worker(1), breakers, keep_late: true, now: at(1) };
        let store = Shared::clone(&store);
        tasks.spawn(async move { store.settle(params).await.expect("settled") });
    }
    while let Some(answer) = tasks.join_next().await {
        assert_eq!(answer.expect("no panic").settled, [Settled::Applied], "a breaker stops no settlement");
    }
    let mut known = known(&store).await;
    let change = known.catch_up("sick", &BreakerPolicy::default()).expect("there is something to fold in");
    let row = store.change_breakers(vec![change.clone()]).await.expect("changed").remove(0);
    let breaker = row.breaker.expect("a breaker");
    assert_eq!((breaker.attempts, breaker.failures, row.pending.len()), (12, 12, 0));
    let again = store.change_breakers(vec![change]).await.expect("answered").remove(0);
    assert_eq!((again.version, again.breaker), (row.version, Some(breaker)), "a stale change changes nothing");
}

/// What a settlement says counts only if it is applied.
pub async fn a_stale_settlement_says_nothing(store: Shared) {
    attach(&store, 1).await;
    enqueue(&store, vec![sick(1), sick(2)]).await;
    let leased = lease_all(&store, 2, at(1)).await.jobs;
    settle(&store, &leased[0], Outcome::Done, at(1)).await;
    let (policy, rules) = (Policy::default(), CauseRules::default());
    let ending = Ending { at: at(1), duration: None, worker: None, chance: 0.0 };
    let settlement = |job| Settlement::new(job, decide(&policy, job, timeout(), ending), &rules);
    let settlements: Vec<_> = leased.iter().map(settlement).collect();
    let breakers = changes(&settlements, &known(&store).await, at(1));
    let params = SettleJobs { settlements, worker: worker(1), breakers, keep_late: true, now: at(1) };
    let answer = store.settle(params).await.expect("settled");
    assert_eq!(answer.settled, [Settled::Stale, Settled::Applied]);
    assert_eq!((answer.breakers[0].version, answer.breakers[0].pending.len()), (None, 1));
    assert!(
        answer.breakers[0].as_of > leased[1].lease.epoch,
        "it is later than what was known before something was said"
    );
    // What was said of a target that has no breaker is found by who tidies up, and goes.
    let all = || BreakersOf { pipeline: pipeline(), after: None, limit: 9 };
    let listed = store.breakers_of(all()).await.expect("listed");
    assert_eq!((listed.len(), listed[0].pending.len()), (1, 1));
    let change = listed[0].tidied(&BreakerPolicy::default(), at(999_999)).expect("something to do");
    store.change_breakers(vec![change]).await.expect("changed");
    assert_eq!(store.breakers_of(all()).await.expect("listed"), []);
}

/// Whoever asks with gates that are others by now gets them, and no job.
pub async fn stale_gates_lease_nothing(store: Shared) {
    hold_the_sick_one(&store).await;
    enqueue(&store, vec![well(2)]).await;
    let asked = LeaseJobs { gates_seen: Some(0), ..lease_of(Lane::Queue, 9, at(1)) };
    let refused = store.lease(asked.clone()).await.expect("answered");
    let gates = refused.gates.expect("they are told");
    assert_eq!((refused.jobs.len(), gates.rows.len(), gates.rows[0].target.as_str()), (0, 1, "sick"));
    let gate = Gate { target: "sick".into(), probes: 0 };
    let heeded = LeaseJobs { gates: vec![gate], gates_seen: Some(gates.version), ..asked };
    let leased = store.lease(heeded).await.expect("leased");
    assert_eq!((leased.jobs.len(), leased.held.and_then(|held| held.get("sick").copied())), (1, Some(1)));
    assert_sound(&store).await;
}

/// Many jobs of a target that lets nothing through are held in bounded steps, and the answer says that there is more to do.
pub async fn holding_goes_in_steps(store: Shared) {
    hold_the_sick_one(&store).await;
    enqueue(&store, (2..=2_600).map(sick).collect()).await;
    let first = lease_all(&store, 10, at(1)).await;
    assert!(first.jobs.is_empty() && first.next_due.is_some_and(|due| due <= at(1)), "there is more");
    let held = store.list_breakers().await.expect("listed")[0].held;
    assert!((2_000..2_100).contains(&held), "{held}");
    assert_eq!(lease_all(&store, 10, at(2)).await.next_due, Some(at(30)));
    assert_eq!(store.list_breakers().await.expect("listed")[0].held, 2_600);
    assert_eq!(ledger(&store).await.queued, 2_600);
    assert_eq!(pipeline(), store.list_breakers().await.expect("listed")[0].pipeline);
    assert_sound(&store).await;
}

/// Jobs that have waited for their target for too long are leased without those that came later and those that wait for nothing, and
/// become letters. Their probes do not count as such.
pub async fn jobs_that_were_held_for_too_long_are_leased_alone(store: Shared) {
    hold_the_sick_one(&store).await;
    enqueue(&store, vec![sick(2), well(3)]).await;
    let late = EnqueueJobs { pipeline: pipeline(), jobs: vec![sick(4)].into(), bounds: Bounds::default(), now: at(9) };
    store.enqueue(late).await.expect("accepted");
    let now = at(10);
    lease_all(&store, 10, now).await;
    enqueue(&store, vec![well(5)]).await;
    let gates = store.lease(lease_of(Lane::Queue, 10, now)).await.expect("answered").gates.expect("they are told");
    let overdue = LeaseJobs {
        only: Some(Only::HeldSince(at(5))),
        freed: vec!["sick".into()],
        gates_seen: Some(gates.version),
        ..lease_of(Lane::Queue, 10, now)
    };
    let leased = store.lease(overdue).await.expect("answered");
    let ids: Vec<_> = leased.jobs.iter().map(|job| (job.lease.job, job.probe)).collect();
    assert_eq!(ids, [(sick(1).id, false), (sick(2).id, false)]);
    assert_eq!(leased.held.expect("it is told")["sick"], 1);
    let last = TargetFailure { reason: Reason::Blocked, code: None, http_status: Some(403), message: "closed".into() };
    let ending = Ending { at: now, duration: None, worker: None, chance: 0.0 };
    for job in &leased.jobs {
        assert_eq!(settle_as(&store, job, give_up(job, &last, ending), now).await, Settled::Applied);
    }
    assert_eq!(ledger(&store).await.dead, 2);
    assert_sound(&store).await;
}

/// A turn of a person, made from the breaker as it is.
async fn turn(store: &Shared, turn: BreakerTurn, secs: i64) -> bool {
    let row = store.get_breaker(pipeline(), "sick".into()).await.expect("read");
    let breaker = turned(row.breaker.as_ref(), &turn, at(secs)).expect("it can be turned");
    let next = NextBreaker { was: row.version, breaker, folded_to: row.pending_to };
    let (verb, why) = (turn.as_str(), turn.why().map(str::to_owned));
    let params = TurnBreaker { pipeline: pipeline(), target: "sick".into(), next, verb, why, by: ada(), now: at(secs) };
    store.turn_breaker(params).await.expect("answered")
}

/// People hold a target before it fails, have a probe go, and let all go on; what they did is written down.
pub async fn people_turn_breakers(store: Shared) {
    attach(&store, 1).await;
    let hold = HeldBy { by: ada(), why: Some("no money".into()), until: None };
    assert!(turn(&store, BreakerTurn::Hold(hold), 0).await, "also before the first job");
    enqueue(&store, vec![sick(1), sick(2), well(3)]).await;
    let leased = lease_all(&store, 9, at(1)).await;
    assert_eq!(leased.jobs.iter().map(|job| job.lease.job).collect::<Vec<_>>(), [well(3).id]);
    let listed = store.list_breakers().await.expect("listed");
    assert_eq!((listed[0].held, listed[0].breaker.explained().as_deref()), (2, Some("held by ada: no money")));
    assert!(turn(&store, BreakerTurn::Probe, 2).await);
    let probes = lease_all(&store, 9, at(2)).await.jobs;
    assert_eq!((probes.len(), probes[0].probe), (1, true));
    assert!(turn(&store, BreakerTurn::Close, 3).await);
    assert_eq!(lease_all(&store, 9, at(3)).await.jobs.len(), 1);
    assert!(store.list_breakers().await.expect("listed").is_empty());
    let params = ListActivity { limit: 9, ..ListActivity::default() };
    let noted = store.list_activity(params).await.expect("listed").items;
    assert_eq!(noted.iter().map(|view| view.verb.as_str()).collect::<Vec<_>>(), ["close", "probe", "hold"]);
    assert!(noted.iter().all(|view| view.object == "breaker sick"));
    assert_sound(&store).await;
}

/// Of two who turn a breaker at once one is told to look again.
pub async fn a_turn_of_what_moved_writes_nothing(store: Shared) {
    hold_the_sick_one(&store).await;
    let row = store.get_breaker(pipeline(), "sick".into()).await.expect("read");
    assert!(turn(&store, BreakerTurn::Close, 1).await);
    let next = NextBreaker { was: row.version, breaker: row.breaker, folded_to: row.pending_to };
    let (by, target) = (ada(), "sick".to_owned());
    let late = TurnBreaker { pipeline: pipeline(), target, next, verb: "probe", why: None, by, now: at(2) };
    assert!(!store.turn_breaker(late).await.expect("answered"));
    assert!(store.get_breaker(pipeline(), "sick".into()).await.expect("read").breaker.is_none());
}
