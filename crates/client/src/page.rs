//! Lists that come in pieces: a server gives no more than so many items at once.

use redrive::Error;
use redrive::contract::Page;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::server::Server;

/// The most items that a server gives at once.
const AT_ONCE: u32 = 1_000;

/// A piece of a list.
#[derive(Debug, Deserialize)]
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    #[serde(default = "none")]
    pub(crate) next: Option<String>,
}

const fn none() -> Option<String> {
    None
}

/// A page of so many items, whatever comes at once.
pub(crate) async fn page<T>(
    limit: u32,
    mut cursor: Option<String>,
    fetch: impl AsyncFn(u32, Option<String>) -> Result<Listed<T>, Error>,
) -> Result<Page<T>, Error> {
    let mut items = Vec::new();
    loop {
        let piece = fetch(left(limit, items.len()), cursor).await?;
        items.extend(piece.items);
        cursor = piece.next;
        if cursor.is_none() || items.len() >= limit as usize {
            return Ok(Page { items, next: cursor });
        }
    }
}

/// How many items are asked for next, where so many of all that are wanted are here.
pub(crate) fn left(limit: u32, here: usize) -> u32 {
    limit.saturating_sub(u32::try_from(here).unwrap_or(u32::MAX)).clamp(1, AT_ONCE)
}

/// All items of a list, whatever comes at once.
pub(crate) async fn all<T: DeserializeOwned>(
    server: &Server,
    names: &[&str],
    asked: Vec<(String, String)>,
) -> Result<Vec<T>, Error> {
    up_to(u32::MAX, server, names, asked).await.map(|page| page.items)
}

/// The first so many items of a list, whatever comes at once.
pub(crate) async fn up_to<T: DeserializeOwned>(
    limit: u32,
    server: &Server,
    names: &[&str],
    asked: Vec<(String, String)>,
) -> Result<Page<T>, Error> {
    page(limit, None, async |limit, cursor| {
        let paged = fields(json!({ "limit": limit, "cursor": cursor }));
        server.get(names).query(asked.iter().cloned().chain(paged)).read().await
    })
    .await
}

/// What stands after a question mark: the fields of something, without those that have no value.
pub(crate) fn fields(of: Value) -> Vec<(String, String)> {
    let Value::Object(fields) = of else { return Vec::new() };
    fields.into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect()
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        Value::Array(values) if values.is_empty() => None,
        Value::Array(values) => Some(values.into_iter().filter_map(text).collect::<Vec<_>>().join(",")),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn more_than_comes_at_once_is_fetched_in_pieces() {
        let fetch = async |limit: u32, cursor: Option<String>| {
            let from: u32 = cursor.map_or(0, |cursor| cursor.parse().expect("a number"));
            let until = (from + limit).min(2_500);
            Ok(Listed { items: (from..until).collect(), next: (until < 2_500).then(|| until.to_string()) })
        };
        let all = page(5_000, None, fetch).await.expect("a page");
        assert_eq!((all.items.len(), all.next), (2_500, None));
        let some = page(1_500, None, fetch).await.expect("a page");
        assert_eq!((some.items.len(), some.next.as_deref()), (1_500, Some("1500")));
    }

    #[test]
    fn fields_without_a_value_are_left_out() {
        let of = serde_json::json!({"a": "x", "b": null, "c": [], "d": ["y", "z"], "e": 5, "f": true});
        let named: Vec<_> = fields(of).into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(named, ["a=x", "d=y,z", "e=5", "f=true"]);
    }
}
