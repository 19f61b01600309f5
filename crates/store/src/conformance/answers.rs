//! What must hold of answers that are kept.

use super::script::{Shared, at};
use crate::contract::{FindAnswer, KeepAnswer, KeptAnswer};

fn answer(body: &str) -> KeptAnswer {
    KeptAnswer { request: "hash".to_owned(), status: 201, body: body.as_bytes().to_vec() }
}

async fn keep(store: &Shared, (who, key): (&str, &str), body: &str, secs: i64) {
    let (who, key, answer) = (who.to_owned(), key.to_owned(), answer(body));
    store.keep_answer(KeepAnswer { who, key, answer, now: at(secs) }).await.expect("kept");
}

async fn find(store: &Shared, (who, key): (&str, &str), since: i64) -> Option<KeptAnswer> {
    let (who, key) = (who.to_owned(), key.to_owned());
    store.find_answer(FindAnswer { who, key, since: at(since) }).await.expect("answered")
}

/// The first answer to a key stays, for who asked, until it is forgotten.
pub async fn the_first_answer_stays(store: Shared) {
    assert_eq!(find(&store, ("ada", "k"), 0).await, None);
    keep(&store, ("ada", "k"), "first", 10).await;
    keep(&store, ("ada", "k"), "second", 11).await;
    keep(&store, ("bob", "k"), "his", 12).await;
    assert_eq!(find(&store, ("ada", "k"), 10).await, Some(answer("first")));
    assert_eq!(find(&store, ("bob", "k"), 0).await, Some(answer("his")));
    assert_eq!(find(&store, ("ada", "k"), 11).await, None, "too old");
    while store.forget_answers(at(11), 1).await.expect("forgotten") {}
    assert_eq!(find(&store, ("ada", "k"), 0).await, None);
    assert!(find(&store, ("bob", "k"), 0).await.is_some());
}
