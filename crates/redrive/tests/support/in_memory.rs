//! Redrive on a store in memory, with a clock that the test moves, and waiting for what happens in real time.

use std::sync::Arc;
use std::time::Duration;

use redrive::api::breakers::{HeldBreakers, HoldBreaker, ListBreakers};
use redrive::api::{Caller, Deadline};
use redrive::chance::SeededChance;
use redrive::clock::TestClock;
use redrive::replays::NewReplay;
use redrive::{Error, Redrive};
use redrive_core::actors::{Actor, Via};
use redrive_core::breakers::BreakerView;
use redrive_core::jobs::Input;
use redrive_core::replays::{Pacing, ReplayMode, Wish};
use redrive_core::time::Timestamp;
use redrive_store::Store;
use redrive_store::contract::{DeadFilter, Selection};
use redrive_store::sqlite::SqliteStore;

/// What the clock shows at first.
pub fn at_start() -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000)
}

/// Redrive in memory, and its clock.
pub fn redrive() -> (Redrive, Arc<TestClock>) {
    over(Arc::new(SqliteStore::in_memory().expect("opened")))
}

/// Redrive over a store, and its clock.
pub fn over(store: Arc<dyn Store>) -> (Redrive, Arc<TestClock>) {
    let (redrive, clock) = (Redrive::over(store), Arc::new(TestClock::at(at_start())));
    (redrive.with_surroundings(Arc::<TestClock>::clone(&clock), Arc::new(SeededChance::new(7))), clock)
}

/// A replay of the letters that a filter finds, each in the way that suits it, at the usual pace.
pub fn replay_of(filter: DeadFilter) -> NewReplay {
    NewReplay {
        name: "again".into(),
        by: Actor::new("ada", Via::Api),
        selection: Selection { filter, ids: Vec::new() },
        wish: Wish::of(ReplayMode::Suited),
        force_why: None,
        pacing: Pacing::default(),
        edits: Input::new(),
        pins: Default::default(),
    }
}

/// Holds a target, as ada.
pub async fn hold(redrive: &Redrive, target: &str, until: Option<Deadline>) -> Result<HeldBreakers, Error> {
    let target = target.parse().expect("a target");
    let request = HoldBreaker { target, pipeline: None, until, why: None, version: None };
    redrive.ask(request, &Caller::local(Actor::new("ada", Via::Cli))).await
}

/// Lists the breakers that are not closed.
pub async fn breakers(redrive: &Redrive) -> Vec<BreakerView> {
    let caller = Caller::local(Actor::new("ada", Via::Cli));
    let listed = redrive.ask_all(ListBreakers::default(), &caller).await.expect("listed");
    listed.into_iter().map(|detail| detail.view).collect()
}

/// How often it is looked before something is said never to happen: a minute, or longer on a machine that is slow.
const LOOKS: u32 = 12_000;

/// Waits, in real time, until something holds.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..LOOKS {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}");
}

/// Lets second after second pass until something holds. There is a look for each: where the machine is slow, time is too, so that
/// leases are extended and leaders' terms renewed before they are over.
pub async fn as_time_passes(clock: &TestClock, what: &str, mut holds: impl AsyncFnMut() -> bool) {
    eventually(what, async || {
        clock.advance(Duration::from_secs(1));
        holds().await
    })
    .await;
}
