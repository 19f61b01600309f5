//! Connections that are cut at any byte, or go silent.

use std::time::Duration;

use redrive_store::conformance::histories;
use redrive_store::conformance::load::Load;
use redrive_store::conformance::script::{assert_sound, enqueue, job, plain};

use super::{open, times};
use crate::support::proxy::{Fate, From, Proxy, Toward, What};
use crate::support::schemas::store;
use crate::support::server::{schema, server};

/// Cuts at bytes that a seed says, in both directions. Some connections last for longer, so that something gets done.
fn cuts(seed: u64) -> Vec<Fate> {
    let mut chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut roll = |sides: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        usize::try_from(chance % sides).expect("few")
    };
    let mut fate = |n: u64| {
        let toward = if roll(2) == 0 { Toward::Server } else { Toward::Client };
        let from = match n % 4 {
            0 => From::Byte(200 + roll(3_000)),
            1 => From::Commit(1 + roll(9)),
            2 => From::Byte(3_000 + roll(30_000)),
            _ => From::Byte(50_000 + roll(50_000)),
        };
        Fate { what: What::Cut, toward, from }
    };
    (0..100_000).map(&mut fate).collect()
}

/// Two handles do whatever comes while their connections are cut at any byte: every answer is exact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_history_adds_up_when_connections_are_cut() {
    let schema = schema();
    drop(store(&schema).await);
    let ways = [Proxy::to(server(), cuts(1)).await, Proxy::to(server(), cuts(2)).await];
    let (first, second) = (open(&ways[0].address(), &schema).await, open(&ways[1].address(), &schema).await);
    histories::live([first, second], 1..=times(2)).await;
    let met: usize = ways.iter().map(Proxy::met).sum();
    assert!(met > 10, "{met} connections were cut");
}

/// The same for many who do everything at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_lose_nothing_when_connections_are_cut() {
    let schema = schema();
    drop(store(&schema).await);
    let (mut ways, mut stores) = (Vec::new(), Vec::new());
    for seed in 1..=3 {
        let way = Proxy::to(server(), cuts(seed + 100)).await;
        stores.push(open(&way.address(), &schema).await);
        ways.push(way);
    }
    let mut load = Load::begin(stores).await;
    for _ in 0..times(1) {
        load.settle_more(100).await;
    }
    load.end().await;
    let met: usize = ways.iter().map(Proxy::met).sum();
    assert!(met > 10, "{met} connections were cut");
}

/// Connections go silent, before a commit and after it, or are late by longer than anybody waits: it is noticed, what the old
/// connection left behind is ended, and nothing happens twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_goes_silent_is_noticed() {
    let schema = schema();
    drop(store(&schema).await);
    let late = What::Delay(Duration::from_secs(14));
    let kinds = [
        (What::Swallow, Toward::Server),
        (What::Swallow, Toward::Client),
        (late, Toward::Server),
        (late, Toward::Client),
    ];
    let (mut ways, mut stores) = (Vec::new(), Vec::new());
    for (what, toward) in kinds {
        // The connection that writes first, then the next one of any kind, then one that is silent from the beginning.
        let fates = [From::Commit(5), From::Byte(20_000), From::Byte(20)].map(|from| Fate { what, toward, from });
        let way = Proxy::to(server(), fates.to_vec()).await;
        stores.push(open(&way.address(), &schema).await);
        ways.push(way);
    }
    let mut load = Load::begin(stores).await;
    for way in &ways {
        while way.met() < 2 {
            load.settle_more(1).await;
        }
    }
    load.settle_more(40).await;
    load.end().await;
}

/// The server has closed a connection, and the client was not told. It is not waited for as long as a statement that may be at work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_connection_is_noticed_at_the_first_look() {
    let schema = schema();
    drop(store(&schema).await);
    let fates =
        [From::Commit(2), From::Commit(2)].map(|from| Fate { what: What::HalfOpen, toward: Toward::Server, from });
    let way = Proxy::to(server(), fates.to_vec()).await;
    let store = open(&way.address(), &schema).await;
    let mut longest = Duration::ZERO;
    for n in 1..=20 {
        let begun = std::time::Instant::now();
        enqueue(&store, vec![job(n, plain())]).await;
        longest = longest.max(begun.elapsed());
    }
    assert!(way.met() > 0, "a connection was left half open");
    // As documented: no answer for 10 s, then a look of at most 10 s.
    assert!(longest < Duration::from_secs(20), "noticed after {longest:?}");
    assert_sound(&store).await;
}
