//! What must hold of activity.

use redrive_core::actors::{Actor, Via};
use redrive_core::failures::Reason;
use redrive_core::pipelines::Pause;
use serde_json::json;

use super::script::{Shared, ada, at, attach, brought, bury, dead, enqueue, job, pipeline, plain};
use crate::StoreError;
use crate::contract::{
    ActivityView, CancelJobs, Compact, Compacted, DeadFilter, DiscardDead, ImportDead, ListActivity, SetPause,
};

async fn page(store: &Shared, limit: u32, cursor: Option<String>) -> (Vec<ActivityView>, Option<String>) {
    let page = store.list_activity(ListActivity { limit, cursor, ..ListActivity::default() }).await.expect("listed");
    (page.items, page.next)
}

/// What people do is noted with what they did; what had no effect, or Redrive does all the time, is not.
pub async fn what_people_do_is_noted(store: Shared) {
    attach(&store, 1).await;
    let letter = bury(&store, job(1, plain()), Reason::Blocked, "no", at(0)).await;
    enqueue(&store, vec![job(2, plain())]).await;
    let cancel = CancelJobs { ids: vec![job(2, plain()).id], by: ada(), why: "wrong".into(), now: at(5) };
    store.cancel_jobs(cancel.clone()).await.expect("cancelled");
    store.cancel_jobs(cancel).await.expect("nothing left to cancel");
    let letters = dead(&store, DeadFilter::default()).await;
    let discard = DiscardDead { ids: vec![letter], by: ada(), why: "old".into(), now: at(6) };
    store.discard_dead(discard.clone()).await.expect("discarded");
    let again = ImportDead { by: ada(), ..brought(letters, at(7)) };
    store.import_dead(again).await.expect("known");
    let by_itself = DiscardDead { by: Actor::redrive(), ..discard };
    store.discard_dead(by_itself).await.expect("nothing left");
    let (noted, next) = page(&store, 10, None).await;
    let told: Vec<_> = noted.iter().map(|a| (a.at, a.verb.as_str(), a.by.clone(), a.detail.clone())).collect();
    let discarded = (at(6), "discard", ada(), json!({"letters": 1, "why": "old", "pipelines": ["suite"]}));
    let cancelled = (at(5), "cancel", ada(), json!({"jobs": 1, "why": "wrong", "pipelines": ["suite"]}));
    assert_eq!((told, next), (vec![discarded, cancelled], None));
    assert_eq!(noted[0].object, format!("letter {letter}"));
}

/// Of what Redrive does by itself that is noted which somebody asks about who was not there: that a pause came to its end.
pub async fn what_ends_by_itself_is_noted(store: Shared) {
    let pause = Pause { by: ada(), since: at(1), why: Some("it moves".into()), until: Some(at(9)) };
    let set = SetPause { pipeline: pipeline(), was: None, next: Some(pause.clone()), by: ada(), now: at(1) };
    assert!(store.set_pause(set).await.expect("paused"));
    let over = SetPause { pipeline: pipeline(), was: Some(pause), next: None, by: Actor::redrive(), now: at(9) };
    assert!(store.set_pause(over).await.expect("resumed"));
    let (noted, _) = page(&store, 10, None).await;
    let told: Vec<_> = noted.iter().map(|a| (a.at, a.verb.as_str(), a.by.via)).collect();
    assert_eq!(told, [(at(9), "resume", Via::Automatic), (at(1), "pause", ada().via)]);
    assert_eq!(noted[1].detail, json!({"pipelines": ["suite"], "why": "it moves", "until": at(9)}));
}

/// Who gives the store's space back is noted, with what it was and is.
pub async fn compacting_is_noted(store: Shared) {
    let compacted = store.compact(Compact { by: ada(), now: at(3) }).await.expect("compacted");
    let (noted, _) = page(&store, 10, None).await;
    let told: Vec<_> = noted.iter().map(|a| (a.at, a.verb.as_str(), a.object.as_str(), &a.by)).collect();
    assert_eq!(told, [(at(3), "compact", "store", &ada())]);
    let Compacted { before_bytes, after_bytes } = compacted;
    assert_eq!(noted[0].detail, json!({"before_bytes": before_bytes, "after_bytes": after_bytes}));
}

/// Pages go on where they ended, also among things that were done at one moment.
pub async fn activity_is_listed_in_pages(store: Shared) {
    for n in 0..5 {
        enqueue(&store, vec![job(n, plain())]).await;
        let by = Actor::new(format!("p{n}"), Via::Api);
        let cancel = CancelJobs { ids: vec![job(n, plain()).id], by, why: "x".into(), now: at(1) };
        store.cancel_jobs(cancel).await.expect("cancelled");
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let (items, next) = page(&store, 2, cursor).await;
        seen.extend(items.into_iter().map(|activity| activity.by.name));
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["p4", "p3", "p2", "p1", "p0"]);
    let only = ListActivity { who: Some("p3".into()), limit: 9, ..ListActivity::default() };
    assert_eq!(store.list_activity(only).await.expect("listed").items.len(), 1);
    let cancelled = ListActivity { verb: Some("cancel".into()), limit: 9, ..ListActivity::default() };
    let others = ListActivity { verb: Some("discard".into()), ..cancelled.clone() };
    let one = ListActivity { object: Some(job(3, plain()).id.to_string()), ..cancelled.clone() };
    for (asked, count) in [(cancelled, 5), (others, 0), (one, 1)] {
        assert_eq!(store.list_activity(asked.clone()).await.expect("listed").items.len(), count, "{asked:?}");
    }
    let bad = ListActivity { cursor: Some("x".into()), limit: 1, ..ListActivity::default() };
    assert!(matches!(store.list_activity(bad).await, Err(StoreError::InvalidCursor(_))));
}
