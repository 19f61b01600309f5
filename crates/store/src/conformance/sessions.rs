//! What must hold of sessions.

use redrive_core::tokens::TokenHash;

use super::script::{Shared, at};
use crate::contract::OpenSession;

async fn open(store: &Shared, session: &str, token: &str, ends_at: i64) {
    let (session, token) = (TokenHash::of(session), TokenHash::of(token));
    store
        .open_session(OpenSession { session, token, ends_at: at(ends_at), most: 9, now: at(0) })
        .await
        .expect("opened");
}

async fn find(store: &Shared, session: &str, now: i64) -> Option<TokenHash> {
    store.find_session(TokenHash::of(session), at(now)).await.expect("answered")
}

/// A session holds until its time, or until it is ended, and tells which token it was opened with.
pub async fn a_session_holds_until_it_ends(store: Shared) {
    assert_eq!(find(&store, "s", 0).await, None);
    open(&store, "s", "ada", 10).await;
    open(&store, "s", "bob", 99).await;
    open(&store, "t", "bob", 20).await;
    assert_eq!(find(&store, "s", 9).await, Some(TokenHash::of("ada")), "the same again changes nothing");
    assert_eq!(find(&store, "s", 10).await, None, "it is over");
    store.end_session(TokenHash::of("s")).await.expect("ended");
    store.end_session(TokenHash::of("s")).await.expect("ended twice");
    assert_eq!(find(&store, "s", 1).await, None);
    assert_eq!(find(&store, "t", 1).await, Some(TokenHash::of("bob")), "others are not concerned");
}

/// A token has no more sessions than it may: the oldest end first, those of others stay.
pub async fn a_token_has_no_more_sessions_than_it_may(store: Shared) {
    open(&store, "other", "bob", 99).await;
    for n in 0..4 {
        let (session, token) = (TokenHash::of(&format!("s{n}")), TokenHash::of("ada"));
        store.open_session(OpenSession { session, token, ends_at: at(99), most: 2, now: at(n) }).await.expect("opened");
    }
    for (session, is_open) in [("s0", false), ("s1", false), ("s2", true), ("s3", true), ("other", true)] {
        assert_eq!(find(&store, session, 10).await.is_some(), is_open, "{session}");
    }
}

/// Sessions that are over are forgotten in pieces, others are not.
pub async fn sessions_that_are_over_are_forgotten(store: Shared) {
    for n in 0..5 {
        open(&store, &format!("s{n}"), "ada", n).await;
    }
    open(&store, "late", "ada", 50).await;
    assert!(store.forget_sessions(at(10), 2).await.expect("forgotten"), "there are more");
    while store.forget_sessions(at(10), 2).await.expect("forgotten") {}
    assert_eq!(find(&store, "s4", 0).await, None);
    assert!(find(&store, "late", 10).await.is_some());
}
