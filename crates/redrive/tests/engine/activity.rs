//! What people did is noted: who began a round, who gave the store's space back.

use std::time::Duration;

use redrive::contract::ListActivity;
use redrive::{Error, ErrorKind, Job, Pipeline, Redrive, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::ids::WorkerId;
use redrive_store::contract::Beat;

use self::in_memory::{at_start, redrive};

use crate::support::in_memory;

fn by(name: &str) -> Actor {
    Actor::new(name, Via::Api)
}

fn asked() -> ListActivity {
    ListActivity { limit: 10, ..ListActivity::default() }
}

async fn done(redrive: &Redrive, asked: ListActivity) -> Vec<String> {
    let page = redrive.list_activity(asked).await.expect("listed");
    page.items.iter().map(|activity| format!("{} {} {}", activity.by.name, activity.verb, activity.object)).collect()
}

#[tokio::test]
async fn who_begins_a_round_is_noted_and_each_gets_a_name_of_their_own() {
    let (redrive, clock) = redrive();
    let name = "p".parse().expect("a name");
    let (ada, bob) = (by("ada"), by("bob"));
    let (one, other) = tokio::join!(redrive.begin_round(&name, &ada), redrive.begin_round(&name, &bob));
    let (one, other) = (one.expect("begun"), other.expect("begun"));
    assert_ne!(one, other);
    clock.advance(Duration::from_secs(5));
    let third = redrive.begin_round(&name, &by("ada")).await.expect("begun");
    let mut noted = done(&redrive, asked()).await;
    assert_eq!(noted.remove(0), format!("ada begin round {third}"));
    noted.sort();
    assert_eq!(noted, [format!("ada begin round {one}"), format!("bob begin round {other}")]);
    let rounds = redrive.rounds(Some(&name), 10).await.expect("listed");
    assert_eq!((rounds.len(), &rounds[0].round), (3, &third));
    let of_ada = ListActivity { who: Some("ada".into()), ..asked() };
    let lately = ListActivity { since: Some(at_start() + Duration::from_secs(5)), ..asked() };
    let of_other = ListActivity { pipeline: "q".parse().ok(), ..asked() };
    for (asked, count) in [(of_ada, 2), (lately, 1), (of_other, 0)] {
        assert_eq!(done(&redrive, asked.clone()).await.len(), count, "{asked:?}");
    }
}

#[tokio::test]
async fn space_is_given_back_while_nobody_works_and_that_is_noted() {
    let (redrive, _) = redrive();
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!(1)) }).expect("a pipeline");
    redrive.enqueue(&pipeline, [json!({"n": 1})]).await.expect("accepted");
    let worker = WorkerId::new(at_start(), 9);
    let (host, runs, leases, at) = ("here".to_owned(), Vec::new(), Vec::new(), at_start());
    let beat = Beat { worker, host, pid: 1, remote: true, runs, leases, until: at, now: at };
    redrive.store().beat(beat).await.expect("attached");
    let refused = redrive.compact(&by("ada")).await.expect_err("somebody works");
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(matches!(refused, Error::AtWork { workers: 1 }));
    assert!(done(&redrive, asked()).await.is_empty());
    redrive.store().detach_worker(worker).await.expect("detached");
    let compacted = redrive.compact(&by("ada")).await.expect("compacted");
    assert!(compacted.after_bytes <= compacted.before_bytes);
    assert_eq!(done(&redrive, asked()).await, ["ada compact store"]);
}
