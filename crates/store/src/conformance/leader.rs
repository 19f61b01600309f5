//! What must hold of the leader.

use std::time::Duration;

use redrive_core::time::Timestamp;

use super::script::{Shared, at, attach, worker};
use crate::contract::{Lead, NoteChore};

fn asks(n: u128, now: Timestamp) -> Lead {
    Lead { names: vec!["a".into(), "b".into()], holder: worker(n), until: now + Duration::from_secs(15), now }
}

async fn lead(store: &Shared, n: u128, now: Timestamp) -> Vec<Option<u64>> {
    store.lead(asks(n, now)).await.expect("asked")
}

/// One leads until its time is over; whoever comes then has a term of its own.
pub async fn one_leads_at_a_time(store: Shared) {
    attach(&store, 1).await;
    attach(&store, 2).await;
    assert_eq!(lead(&store, 1, at(0)).await, [Some(1), Some(1)]);
    assert_eq!(lead(&store, 2, at(5)).await, [None, None]);
    assert_eq!(lead(&store, 1, at(5)).await, [Some(1), Some(1)], "it asks again");
    assert_eq!(lead(&store, 2, at(19)).await, [None, None]);
    assert_eq!(lead(&store, 2, at(20)).await, [Some(2), Some(2)], "it was not heard of for 15 s");
    assert_eq!(lead(&store, 1, at(21)).await, [None, None]);
}

/// A leader that is known to be gone is replaced at once.
pub async fn a_leader_that_is_gone_is_replaced_at_once(store: Shared) {
    attach(&store, 1).await;
    attach(&store, 2).await;
    lead(&store, 1, at(0)).await;
    store.detach_worker(worker(1)).await.expect("detached");
    assert_eq!(lead(&store, 2, at(1)).await, [Some(2), Some(2)]);
}

/// Clocks that differ by minutes do not make two leaders take turns; one that was ahead by a day holds nobody up.
pub async fn a_lead_survives_clocks_that_differ(store: Shared) {
    attach(&store, 1).await;
    attach(&store, 2).await;
    lead(&store, 2, at(0)).await;
    assert_eq!(lead(&store, 1, at(120)).await, [Some(2), Some(2)], "by its clock nobody leads");
    for secs in [5, 10, 15] {
        assert_eq!(lead(&store, 2, at(secs)).await, [None, None]);
        assert_eq!(lead(&store, 1, at(120 + secs)).await, [Some(2), Some(2)]);
    }
    lead(&store, 1, at(86_400)).await;
    assert_eq!(lead(&store, 2, at(20)).await, [Some(3), Some(3)]);
}

/// A chore is begun once in its time, and only by who leads.
pub async fn a_chore_is_begun_once(store: Shared) {
    attach(&store, 1).await;
    attach(&store, 2).await;
    lead(&store, 1, at(0)).await;
    let chore = NoteChore { led: "a".into(), term: 1, name: "clear".into(), was: None, now: at(1) };
    assert!(store.note_chore(chore.clone()).await.expect("noted"));
    assert!(!store.note_chore(chore.clone()).await.expect("asked"), "it was begun");
    let listed = store.list_chores("a".into()).await.expect("listed");
    assert_eq!(
        listed.iter().map(|chore| (chore.name.as_str(), chore.last_run)).collect::<Vec<_>>(),
        [("clear", at(1))]
    );
    assert_eq!(store.list_chores("b".into()).await.expect("listed"), []);
    let again = NoteChore { was: Some(at(1)), now: at(60), ..chore };
    lead(&store, 2, at(60)).await;
    assert!(!store.note_chore(again.clone()).await.expect("asked"), "another leads by now");
    assert!(store.note_chore(NoteChore { term: 2, ..again }).await.expect("noted"));
}
