//! What must hold of the counts by which those who died are compared with those who were done.

use redrive_core::definitions::DefinitionVersion;
use redrive_core::facets::{FacetCount, OTHERS, VALUES_MAX};
use redrive_core::failures::{FailureReport, Reason};
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_core::traffic::Facts;
use serde_json::json;

use super::causes::causes;
use super::replays::{bury_with_payload, replay_nth, replay_one};
use super::script::{
    Shared, ada, assert_sound, at, attach, enqueue, fatal, job, lease_one, pipeline, settle, settle_all, settle_as,
};
use crate::contract::{DiscardDead, DoneIn, Tidy};

async fn end(store: &Shared, n: u128, outcome: Outcome, proxy: &str, shop: &str) {
    enqueue(store, vec![job(n, json!({"url": "https://shop.example/", "shop": shop}))]).await;
    let leased = lease_one(store, at(5)).await;
    let ending = Ending { at: at(5), duration: None, worker: None, chance: 0.0 };
    let mut decision = decide(&Policy::default(), &leased, outcome, ending);
    decision.facts =
        Facts { proxy: Some(proxy.into()), tracked: vec![("shop".into(), shop.into())], ..Facts::default() };
    let rules = store.cause_rules().await.expect("read");
    let version = Some(DefinitionVersion::new("v1"));
    settle_all(store, vec![Settlement::new(&leased, decision, &rules).tried_with(version.as_ref())], at(5)).await;
}

fn died(proxy: &str) -> Outcome {
    let report = FailureReport::new(Reason::SchemaValidation, "no price").with_code("x");
    Outcome::Failed(FailureReport {
        proxy: Some(proxy.into()),
        http_status: Some(404),
        stage: Some("fetch".into()),
        ..report
    })
}

async fn counted(store: &Shared) -> Vec<FacetCount> {
    let causes = causes(store, at(9)).await;
    assert_eq!(causes.len(), 1, "one cause");
    store.cause_facets(causes[0].id.clone()).await.expect("counted")
}

fn of(counts: &[FacetCount], kind: &str) -> Vec<(String, u64)> {
    counts.iter().filter(|count| count.kind == kind).map(|count| (count.value.clone(), count.count)).collect()
}

/// Those who died and those who were done are counted by the same things, each once, however often a letter is replayed.
pub async fn both_sides_are_counted_once(store: Shared) {
    attach(&store, 1).await;
    end(&store, 1, died("p1"), "p1", "a").await;
    end(&store, 2, died("p2"), "p2", "a").await;
    end(&store, 3, Outcome::Done, "p2", "b").await;
    end(&store, 4, Outcome::Done, "p2", "a").await;
    let one = |value: &str, count: u64| (value.to_owned(), count);
    let counts = counted(&store).await;
    assert_eq!(of(&counts, "proxy"), [one("p1", 1), one("p2", 1)]);
    assert_eq!(of(&counts, "target"), [one("shop.example", 2)]);
    assert_eq!((of(&counts, "status"), of(&counts, "stage")), (vec![one("404", 2)], vec![one("fetch", 2)]));
    assert_eq!((of(&counts, "rules"), of(&counts, "input.shop")), (vec![one("v1", 2)], vec![one("a", 2)]));
    let done = async || {
        let params = DoneIn { pipeline: pipeline(), hours: vec![at(5).hour()] };
        store.done_facets(params).await.expect("counted")
    };
    let before = done().await;
    assert_eq!(of(&before, "proxy"), [one("p2", 2)]);
    assert_eq!(of(&before, "target"), [one("shop.example", 2)]);
    assert_eq!((of(&before, "rules"), of(&before, "input.shop")), (vec![one("v1", 2)], vec![one("a", 1), one("b", 1)]));
    let elsewhere = DoneIn { pipeline: pipeline(), hours: vec![at(5).hour() - 1] };
    assert!(store.done_facets(elsewhere).await.expect("counted").is_empty());
    // One fails again and then recovers: it is not counted a second time.
    for (n, outcome) in [(1, died("p1")), (2, Outcome::Done)] {
        let leased = replay_nth(&store, n).await;
        settle(&store, &leased, outcome, at(i64::from(n) * 100 + 50)).await;
    }
    assert_eq!(of(&counted(&store).await, "target"), [one("shop.example", 2)]);
    assert_eq!(done().await, before);
    assert_sound(&store).await;
}

/// Values that nobody bounded do not fill the store: what comes after the first ones is counted together.
pub async fn values_have_a_bound(store: Shared) {
    attach(&store, 1).await;
    let many = u128::from(VALUES_MAX) + 5;
    for n in 1..=many {
        end(&store, n, died("p1"), "p1", &format!("shop {n:04}")).await;
        if n == 100 {
            store.tidy(Tidy { led: None, limit: 10 }).await.expect("tidied");
        }
    }
    end(&store, many + 1, died("p1"), "p1", "shop 0001").await;
    let counts = counted(&store).await;
    let shops = of(&counts, "input.shop");
    assert_eq!(shops.len(), VALUES_MAX as usize + 1);
    assert!(shops.contains(&(OTHERS.to_owned(), 5)), "{:?}", shops.last());
    assert!(shops.contains(&("shop 0001".to_owned(), 2)), "who is known is counted");
    assert_eq!(shops.iter().map(|(_, count)| count).sum::<u64>(), u64::from(VALUES_MAX) + 6, "nobody is lost");
    while store.tidy(Tidy { led: None, limit: 1_000 }).await.expect("tidied").more {}
    assert_eq!(counted(&store).await, counts, "folding changes no sum");
    end(&store, many + 2, died("p1"), "p1", "shop 0000").await;
    assert!(of(&counted(&store).await, "input.shop").contains(&(OTHERS.to_owned(), 6)), "there is no room for others");
}

/// The same of those who were done, in every hour.
pub async fn values_of_an_hour_have_a_bound(store: Shared) {
    attach(&store, 1).await;
    let many = u128::from(VALUES_MAX) + 5;
    for n in 1..=many {
        end(&store, n, Outcome::Done, "p1", &format!("shop {n:04}")).await;
        if n == 100 {
            store.tidy(Tidy { led: None, limit: 10 }).await.expect("tidied");
        }
    }
    while store.tidy(Tidy { led: None, limit: 1_000 }).await.expect("tidied").more {}
    end(&store, many + 1, Outcome::Done, "p1", "shop 0001").await;
    while store.tidy(Tidy { led: None, limit: 1_000 }).await.expect("tidied").more {}
    let done = store.done_facets(DoneIn { pipeline: pipeline(), hours: vec![at(5).hour()] }).await.expect("counted");
    let shops = of(&done, "input.shop");
    assert_eq!(shops.len(), VALUES_MAX as usize + 1);
    assert!(shops.contains(&(OTHERS.to_owned(), 5)), "{:?}", shops.last());
    assert!(shops.contains(&("shop 0001".to_owned(), 2)), "who is known is counted");
    assert_sound(&store).await;
}

/// How many letters can be worked on from what was saved is known of each cause, whatever becomes of them.
pub async fn what_can_be_worked_on_from_saved_is_counted(store: Shared) {
    attach(&store, 1).await;
    let (id, _) = bury_with_payload(&store, 1).await;
    let saved = async || {
        let causes = causes(&store, at(9)).await;
        let detail = store.get_cause(causes[0].id.clone(), at(9)).await.expect("read").cause;
        assert_eq!((detail.dead, detail.saved), (causes[0].dead, causes[0].saved));
        (detail.dead, detail.saved)
    };
    assert_eq!(saved().await, (1, 1));
    let leased = replay_one(&store).await;
    assert_eq!(leased.lease.job, id);
    assert_eq!(saved().await, (0, 0), "it is under way");
    let ending = Ending { at: at(150), duration: None, worker: None, chance: 0.0 };
    let again = decide(&Policy::default(), &leased, fatal(Reason::SchemaValidation, "no price"), ending);
    settle_as(&store, &leased, again, at(150)).await;
    assert_eq!(saved().await, (1, 1), "it is dead again");
    store.tidy(Tidy { led: None, limit: 100 }).await.expect("tidied");
    assert_eq!(saved().await, (1, 1), "folding changes no sum");
    let discard = DiscardDead { ids: vec![id], by: ada(), why: "w".into(), now: at(160) };
    store.discard_dead(discard).await.expect("discarded");
    assert_eq!(saved().await, (0, 0));
    assert_sound(&store).await;
}
