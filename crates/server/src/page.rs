//! Lists, page by page: `limit` and `cursor` mean the same in each of them.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use redrive::contract::Page;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::asked::Fields;
use crate::error::ApiError;

/// Items on a page unless something else is asked for.
pub const LIMIT: u32 = 50;

/// The most items on a page.
const LIMIT_MAX: u32 = 1_000;

/// The furthest that a list goes whose cursors count its items.
const SKIPPED_MAX: usize = 100_000;

/// A page of a list that is asked for: which items, how many, and from where.
pub struct List<T> {
    /// Which items.
    pub asked: T,
    /// At most so many.
    pub limit: u32,
    /// Where to go on.
    pub cursor: Option<String>,
}

/// No more than which page.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for List<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Fields::from_request_parts(parts, state).await?.list()
    }
}

impl Fields {
    /// Reads what is left as a page of a list.
    pub fn list<T: DeserializeOwned>(mut self) -> Result<List<T>, ApiError> {
        let (limit, cursor) = (limit(self.take("limit"))?, self.take("cursor"));
        Ok(List { asked: self.read()?, limit, cursor })
    }
}

impl<T> List<T> {
    /// The items before the page, of a list whose cursors count them.
    fn skipped(&self) -> Result<usize, ApiError> {
        let Some(cursor) = &self.cursor else { return Ok(0) };
        let skipped = cursor.parse().ok().filter(|skipped| *skipped <= SKIPPED_MAX);
        skipped.ok_or_else(|| ApiError::invalid("cursor", format!("{cursor:?} is no cursor of this list")))
    }

    /// How many items of such a list are to be read, so that it is seen whether there is another page.
    pub fn reach(&self) -> Result<u32, ApiError> {
        Ok(u32::try_from(self.skipped()?).unwrap_or(u32::MAX).saturating_add(self.limit).saturating_add(1))
    }

    /// The items up to the end of the page, of such a list.
    pub fn end(&self) -> Result<usize, ApiError> {
        Ok(self.skipped()? + self.limit as usize)
    }

    /// The page of a list that has been read so far, of items that who asks may see.
    pub fn cut<I>(&self, items: Vec<I>) -> Result<Listed<I>, ApiError> {
        let (skipped, end) = (self.skipped()?, self.end()?);
        let next = (items.len() > end).then(|| end.to_string());
        let items = items.into_iter().skip(skipped).take(self.limit as usize).collect();
        Ok(Listed { items, next })
    }
}

/// How many items are wanted.
fn limit(asked: Option<String>) -> Result<u32, ApiError> {
    let Some(asked) = asked else { return Ok(LIMIT) };
    let limit = asked.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| ApiError::invalid("limit", format!("limit is {asked:?}: expected 1 to {LIMIT_MAX}")))
}

/// How many items are wanted, as the document has it.
pub fn limit_param() -> Value {
    let schema = json!({"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT});
    json!({"name": "limit", "in": "query", "required": false, "schema": schema, "description": "At most so many."})
}

/// Where to go on, as the document has it.
pub fn cursor_param() -> Value {
    let told = "Where to go on: `next` of the page before.";
    json!({"name": "cursor", "in": "query", "required": false, "schema": {"type": "string"}, "description": told})
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Listed<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins: `cursor` of the next request. Not there on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> Listed<T> {
    /// A page of items that who asks may see: what they may not is left out by the store, so that `next` says nothing of it.
    pub fn of(page: Page<T>) -> Self {
        Self { items: page.items, next: page.next }
    }

    /// All that there is.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_list_are_all_of_it() {
        let all: Vec<u32> = (0..25).collect();
        let (mut cursor, mut seen) = (None, Vec::new());
        loop {
            let list = List { asked: (), limit: 10, cursor };
            let read = all.iter().copied().take(list.reach().expect("a cursor") as usize).collect();
            let page = list.cut(read).expect("a page");
            seen.extend(page.items);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all);
        for wrong in ["x", "-1", "1e9", "99999999999999999999"] {
            let list = List { asked: (), limit: 10, cursor: Some(wrong.to_owned()) };
            assert!(list.reach().is_err(), "{wrong}");
        }
    }
}
