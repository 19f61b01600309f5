//! What must hold of pages that worked.

use redrive_core::causes::CauseChange;
use redrive_core::failures::Reason;
use redrive_core::good::{GoodPage, PAGES_MAX, SHAPES_MAX, url_shape};
use redrive_core::payloads::{Payload, PayloadHash};
use redrive_core::policy::Policy;
use redrive_core::settlements::{Ending, Outcome, Settlement, decide};
use redrive_core::time::Timestamp;
use serde_json::json;

use super::causes::{causes, change};
use super::replays::register;
use super::script::{Shared, ada, assert_sound, at, attach, enqueue, fatal, job, lease_one, pipeline, settle_all};
use crate::contract::{DeadFilter, DiscardDead, FindGood, ListDead, ReleaseGood, SweepPayloads};

/// The payload by number.
fn payload(n: u16) -> Payload {
    let mut bytes = [0; 32];
    bytes[..2].copy_from_slice(&n.to_be_bytes());
    Payload::bare(PayloadHash::from_bytes(bytes), 100)
}

/// A job about an address ends, with a payload that is kept as a page that worked if it is done.
async fn end(store: &Shared, (n, url): (u16, &str), outcome: Outcome, now: Timestamp) {
    enqueue(store, vec![job(u128::from(n), json!({"url": url}))]).await;
    let leased = lease_one(store, now).await;
    let ending = Ending { at: now, duration: None, worker: None, chance: 0.0 };
    let decision = decide(&Policy::default(), &leased, outcome, ending);
    let rules = store.cause_rules().await.expect("read");
    let shape = url_shape(url);
    let good = GoodPage {
        target: leased.target.clone().unwrap_or_default(),
        shape: shape.clone().expect("a shape"),
        url: url.to_owned(),
        payload: payload(n),
        at: now,
        rules: Some("v1".into()),
    };
    let settlement = Settlement::new(&leased, decision, &rules).about_page(Some(Box::new(good)), shape);
    settle_all(store, vec![settlement], now).await;
}

async fn works(store: &Shared, n: u16, url: &str, now: Timestamp) {
    register(store, payload(n).hash).await;
    end(store, (n, url), Outcome::Done, now).await;
}

async fn pages(store: &Shared, cause: bool) -> Vec<(String, Timestamp)> {
    let cause = if cause { causes(store, at(9)).await.pop().map(|cause| cause.id) } else { None };
    let find = FindGood { pipeline: pipeline(), target: None, cause, limit: 2_000 };
    let found = store.good_pages(find).await.expect("found");
    assert!(found.iter().all(|page| page.rules.as_deref() == Some("v1") && page.payload.size_bytes == 100));
    found.into_iter().map(|page| (page.url, page.at)).collect()
}

async fn sweep(store: &Shared) -> usize {
    let params = SweepPayloads { before: at(900_000), limit: 100, by: ada(), now: at(0) };
    store.sweep_payloads(params).await.expect("swept").len()
}

async fn release(store: &Shared, before: Timestamp) -> bool {
    store.release_good(ReleaseGood { led: None, before, limit: 100 }).await.expect("released")
}

fn page(url: &str, secs: i64) -> (String, Timestamp) {
    (url.to_owned(), at(secs))
}

const FIRST: &str = "https://shop.example/p/1";
const SECOND: &str = "https://shop.example/p/2";

/// Of each shape the last page is kept, anew every ten minutes, and its payload as long as that.
pub async fn the_last_page_of_each_shape_is_kept(store: Shared) {
    attach(&store, 1).await;
    works(&store, 1, FIRST, at(10)).await;
    works(&store, 2, SECOND, at(600)).await;
    works(&store, 3, "https://shop.example/about", at(20)).await;
    assert_eq!(pages(&store, false).await, [page("https://shop.example/about", 20), page(FIRST, 10)]);
    assert_eq!(sweep(&store).await, 1, "the one that came too early");
    works(&store, 4, SECOND, at(611)).await;
    assert_eq!(pages(&store, false).await[0], page(SECOND, 611));
    assert_eq!(sweep(&store).await, 1, "the one that made way");
    end(&store, (5, "https://shop.example/new/5"), Outcome::Done, at(700)).await;
    assert_eq!(pages(&store, false).await.len(), 2, "what is not registered is no page");
    let target = FindGood { pipeline: pipeline(), target: Some("other.example".into()), cause: None, limit: 9 };
    assert!(store.good_pages(target).await.expect("found").is_empty());
    assert_sound(&store).await;
}

/// The first death of a cause holds on to the page as it was; it is let go of when the cause has ended, and not before.
pub async fn a_cause_holds_on_to_the_page_that_worked(store: Shared) {
    attach(&store, 1).await;
    works(&store, 1, FIRST, at(10)).await;
    end(&store, (2, SECOND), fatal(Reason::SchemaValidation, "no price"), at(20)).await;
    works(&store, 3, SECOND, at(1_000)).await;
    end(&store, (4, SECOND), fatal(Reason::SchemaValidation, "no price"), at(1_010)).await;
    works(&store, 5, FIRST, at(2_000)).await;
    assert_eq!(pages(&store, true).await, [page(FIRST, 10), page(FIRST, 2_000)], "its own first");
    assert_eq!(pages(&store, false).await, [page(FIRST, 2_000)]);
    assert_eq!(sweep(&store).await, 1, "only the one between");
    release(&store, at(90_000)).await;
    assert_eq!(pages(&store, true).await.len(), 2, "its letters are dead");
    let list = ListDead::newest(DeadFilter::default(), 9);
    let ids = store.list_dead(list).await.expect("listed").items.into_iter().map(|letter| letter.id).collect();
    store.discard_dead(DiscardDead { ids, by: ada(), why: "w".into(), now: at(2_000) }).await.expect("discarded");
    release(&store, at(1_000)).await;
    assert_eq!(pages(&store, true).await.len(), 2, "it was seen since");
    release(&store, at(90_000)).await;
    assert_eq!(pages(&store, true).await, [page(FIRST, 2_000)]);
    assert_eq!(sweep(&store).await, 1);
    assert_sound(&store).await;
}

/// A cause that is resolved lets go at once, unless it comes back.
pub async fn a_resolved_cause_lets_go_of_its_page(store: Shared) {
    attach(&store, 1).await;
    works(&store, 1, FIRST, at(10)).await;
    end(&store, (2, SECOND), fatal(Reason::SchemaValidation, "no price"), at(20)).await;
    works(&store, 3, FIRST, at(1_000)).await;
    let cause = causes(&store, at(1_000)).await.remove(0).id;
    change(&store, &cause, CauseChange::Resolve(None)).await;
    release(&store, at(0)).await;
    assert_eq!(pages(&store, true).await, [page(FIRST, 1_000)]);
    assert_sound(&store).await;
}

/// A target has so many shapes, a pipeline so many pages: the oldest make way, those that a cause holds on to last.
pub async fn pages_have_a_bound(store: Shared) {
    attach(&store, 1).await;
    works(&store, 1, "https://shop.example/first", at(1)).await;
    end(&store, (2, "https://shop.example/first"), fatal(Reason::SchemaValidation, "no"), at(2)).await;
    for n in 0..u16::try_from(SHAPES_MAX).expect("small") + 3 {
        let name: String = format!("{n:04}").chars().map(|c| char::from(c as u8 - b'0' + b'a')).collect();
        works(&store, 100 + n, &format!("https://shop.example/{name}"), at(10 + i64::from(n))).await;
    }
    let kept = pages(&store, false).await;
    assert_eq!(kept.len(), SHAPES_MAX as usize);
    assert!(kept.contains(&page("https://shop.example/first", 1)), "a cause holds on to it");
    assert!(kept.iter().all(|(url, at_)| *at_ >= at(14) || url.ends_with("first")), "{kept:?}");
    const { assert!(PAGES_MAX == 1_000) };
    assert_sound(&store).await;
}
