//! What must hold of answers that are kept.

use super::script::{Shared, at};
use crate::contract::{BeginRequest, BegunRequest, HoldRequest, KeepAnswer, KeptAnswer};

fn answer(body: &str) -> KeptAnswer {
    KeptAnswer { request: "hash".to_owned(), status: 201, body: body.as_bytes().to_vec() }
}

async fn keep(store: &Shared, (who, key): (&str, &str), body: &str, secs: i64) {
    let (who, key, answer) = (who.to_owned(), key.to_owned(), answer(body));
    store.keep_answer(KeepAnswer { who, key, answer, now: at(secs) }).await.expect("kept");
}

async fn begin(store: &Shared, (who, key): (&str, &str), request: &str, (since, now): (i64, i64)) -> BegunRequest {
    let (who, key, request) = (who.to_owned(), key.to_owned(), request.to_owned());
    let params = BeginRequest { who, key, request, since: at(since), now: at(now) };
    store.begin_request(params).await.expect("begun")
}

/// The first answer to a key stays, for who asked, until it is forgotten.
pub async fn the_first_answer_stays(store: Shared) {
    let begun =
        |begun_at, answer: Option<_>| BegunRequest { begun_at: at(begun_at), is_held: answer.is_none(), answer };
    assert_eq!(begin(&store, ("ada", "k"), "hash", (0, 10)).await, begun(10, None));
    keep(&store, ("ada", "k"), "first", 10).await;
    keep(&store, ("ada", "k"), "second", 11).await;
    begin(&store, ("bob", "k"), "hash", (0, 12)).await;
    keep(&store, ("bob", "k"), "his", 12).await;
    assert_eq!(begin(&store, ("ada", "k"), "other", (10, 13)).await, begun(10, Some(answer("first"))));
    assert_eq!(begin(&store, ("bob", "k"), "hash", (0, 13)).await, begun(12, Some(answer("his"))));
    assert_eq!(begin(&store, ("ada", "k"), "hash", (11, 14)).await, begun(14, None), "too old");
    while store.forget_answers(at(13), 1).await.expect("forgotten") {}
    assert_eq!(begin(&store, ("bob", "k"), "hash", (0, 15)).await, begun(15, None));
}

/// A request whose process ended before it was answered is the same one when it is sent again, and leaves its key to another.
pub async fn a_request_without_an_answer_is_begun_once(store: Shared) {
    let begun = |begun_at| BegunRequest { begun_at: at(begun_at), is_held: true, answer: None };
    assert_eq!(begin(&store, ("ada", "k"), "hash", (0, 10)).await, begun(10));
    assert_eq!(begin(&store, ("ada", "k"), "hash", (0, 20)).await, begun(10));
    assert_eq!(begin(&store, ("ada", "k"), "other", (0, 30)).await, begun(30));
    keep(&store, ("ada", "k"), "too late", 31).await;
    assert_eq!(begin(&store, ("ada", "k"), "other", (0, 40)).await, begun(30), "it was of the first");
}

/// While a process runs a request, no other begins it.
pub async fn a_request_is_held_by_one_process(store: Shared) {
    let begun = |is_held| BegunRequest { begun_at: at(10), is_held, answer: None };
    let hold = async |request: &str, until: i64| {
        let (who, key, request) = ("ada".to_owned(), "k".to_owned(), request.to_owned());
        store.hold_request(HoldRequest { who, key, request, until: at(until) }).await.expect("held");
    };
    assert_eq!(begin(&store, ("ada", "k"), "hash", (0, 10)).await, begun(true));
    assert_eq!(begin(&store, ("ada", "k"), "hash", (0, 10)).await, begun(false), "in the same moment");
    assert_eq!(begin(&store, ("ada", "k"), "hash", (0, 12)).await, begun(false));
    hold("hash", 20).await;
    hold("another", 40).await;
    assert_eq!(begin(&store, ("ada", "k"), "hash", (0, 19)).await, begun(false));
    assert_eq!(begin(&store, ("ada", "k"), "hash", (0, 20)).await, begun(true), "its process is gone");
    hold("hash", 0).await;
    assert_eq!(begin(&store, ("ada", "k"), "hash", (0, 21)).await, begun(true), "it was let go");
    keep(&store, ("ada", "k"), "first", 22).await;
    hold("hash", 30).await;
    let answered = BegunRequest { answer: Some(answer("first")), ..begun(false) };
    assert_eq!(begin(&store, ("ada", "k"), "hash", (0, 23)).await, answered);
}

/// Of answers that are too long together the oldest lose their bodies, and are not begun again.
pub async fn the_oldest_answers_are_shortened(store: Shared) {
    for (who, key, secs) in [("ada", "a", 10), ("ada", "b", 11), ("ada", "c", 12), ("bob", "a", 9)] {
        begin(&store, (who, key), "hash", (0, secs)).await;
        keep(&store, (who, key), "four", secs).await;
    }
    begin(&store, ("ada", "open"), "hash", (0, 5)).await;
    while store.shorten_answers(8, 1).await.expect("shortened") {}
    for (who, key, body) in [("ada", "a", ""), ("ada", "b", "four"), ("ada", "c", "four"), ("bob", "a", "four")] {
        let kept = begin(&store, (who, key), "hash", (0, 20)).await;
        assert_eq!((kept.is_held, kept.answer), (false, Some(answer(body))), "{who} {key}");
    }
    assert_eq!(begin(&store, ("ada", "open"), "hash", (0, 20)).await.begun_at, at(5), "it has no answer yet");
}
