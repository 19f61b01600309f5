//! What must hold of tasks before they are jobs.

use redrive_core::jobs::NewJob;
use redrive_core::settlements::Outcome;
use redrive_core::state::JobState;
use serde_json::json;

use super::script::{Shared, assert_sound, at, attach, enqueue, job, lease_one, ledger, pipeline, settle};
use crate::contract::{FindTasks, KnownTask};

/// Who asks whether tasks are known is told who has their keys, within the round; nothing is accepted by it.
pub async fn asking_who_is_known_changes_nothing(store: Shared) {
    let ask = |round: &str| FindTasks {
        pipeline: pipeline(),
        round: round.parse().ok(),
        keys: ["a", "b", "c"].map(str::to_owned).to_vec(),
    };
    assert_eq!(store.known_tasks(ask("")).await.expect("asked"), [None; 3], "the pipeline is not even there");
    attach(&store, 1).await;
    let first = job(1, json!({"key": "a"}));
    enqueue(&store, vec![first.clone()]).await;
    settle(&store, &lease_one(&store, at(0)).await, Outcome::Done, at(1)).await;
    let second = job(2, json!({"key": "c"}));
    enqueue(&store, vec![second.clone(), NewJob { round: "monday".parse().ok(), ..job(3, json!({"key": "b"})) }]).await;
    let before = ledger(&store).await;
    let done = KnownTask { id: first.id, state: JobState::Done, ended_at: Some(at(1)) };
    let queued = |id| KnownTask { id, state: JobState::Queued, ended_at: None };
    assert_eq!(store.known_tasks(ask("")).await.expect("asked"), [Some(done), None, Some(queued(second.id))]);
    let of_round = store.known_tasks(ask("monday")).await.expect("asked");
    assert_eq!(of_round.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(ledger(&store).await, before);
    assert!(store.task_files(pipeline()).await.expect("asked").is_empty(), "only older stores have some");
    assert_sound(&store).await;
}
