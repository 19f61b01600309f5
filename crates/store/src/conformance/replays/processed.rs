//! Letters that were processed while what came of them is not durable yet, and what letters belong to.

use redrive_core::replays::{Advance, Pacing};
use redrive_core::settlements::Outcome;
use serde_json::json;

use super::super::script::{Shared, assert_sound, at, attach, brought, dead, enqueue, job, lease_one, ledger, settle};
use super::{advance, at_once, bury_some, get, lease, replay_id, start};
use crate::contract::{DeadFilter, DiscardDead};

/// A letter that was processed counts for its step, once, and stays leased until it is settled.
pub async fn what_was_processed_is_counted_once_and_stays_leased(store: Shared) {
    bury_some(&store, 10).await;
    start(&store, 1, Pacing { ramp: vec![1, 3], ..Pacing::default() }).await;
    assert!(matches!(advance(&store, 1, at(101)).await, Advance::Send { letters: 1, .. }));
    let leased = lease(&store, 1, at(102)).await.remove(0);
    for _ in 0..2 {
        assert_eq!(store.note_processed(vec![leased.lease]).await.expect("noted"), [true]);
    }
    let progress = get(&store, 1).await.progress;
    assert_eq!((progress.running, progress.processed, progress.step.settled, progress.recovered), (1, 1, 1, 0));
    assert_eq!(ledger(&store).await.leased, 1, "nothing is settled");
    assert!(matches!(advance(&store, 1, at(103)).await, Advance::Send { letters: 3, .. }), "nobody waits for it");
    settle(&store, &leased, Outcome::Done, at(104)).await;
    let progress = get(&store, 1).await.progress;
    assert_eq!((progress.running, progress.processed, progress.recovered), (3, 0, 1));
    assert_eq!((progress.step.sent, progress.step.settled), (3, 0), "it was counted before");
    assert_eq!(store.note_processed(vec![leased.lease]).await.expect("noted"), [false]);
    enqueue(&store, vec![job(50, json!({"n": 50}))]).await;
    let queued = lease_one(&store, at(105)).await;
    assert_eq!(store.note_processed(vec![queued.lease]).await.expect("noted"), [true], "of no replay");
    assert_sound(&store).await;
}

/// It is known what the open letters of a replay belong to.
pub async fn open_letters_are_counted_by_group(store: Shared) {
    attach(&store, 1).await;
    let ids = bury_some(&store, 3).await;
    let mut letters = Vec::new();
    for (n, mut letter) in dead(&store, DeadFilter::default()).await.into_iter().enumerate() {
        letter.failures = store.get_dead(letter.id).await.expect("read").and_then(|whole| whole.failures);
        letter.id = job(100 + n as u128, json!({})).id;
        let group = if n == 0 { "books" } else { "toys" };
        letter.origin = serde_json::from_value(json!({"kind": "scrapy", "group": group})).expect("an origin");
        letter.key = Some(format!("of a group {n}"));
        letters.push(letter);
    }
    store.import_dead(brought(letters, at(50))).await.expect("imported");
    let by = super::super::script::ada();
    store.discard_dead(DiscardDead { ids, by, why: "old".into(), now: at(60) }).await.expect("discarded");
    start(&store, 1, at_once()).await;
    advance(&store, 1, at(101)).await;
    let groups = async || {
        let groups = store.replay_groups(replay_id(1), 100).await.expect("counted");
        groups.into_iter().map(|group| (group.group.unwrap_or_default(), group.open)).collect::<Vec<_>>()
    };
    assert_eq!(groups().await, [("books".to_owned(), 1), ("toys".to_owned(), 2)]);
    let leased = lease(&store, 1, at(102)).await;
    settle(&store, &leased[0], Outcome::Done, at(103)).await;
    assert_eq!(groups().await.iter().map(|(_, open)| open).sum::<u64>(), 2);
    assert_sound(&store).await;
}
