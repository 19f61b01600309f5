//! Lists with a cursor.

use redrive::contract::Page;
use serde::Serialize;
use utoipa::ToSchema;

use crate::asked::Number;
use crate::error::ApiError;

/// Items on a page unless something else is asked for.
const LIMIT: u32 = 50;

/// The most items on a page.
pub const LIMIT_MAX: u32 = 1_000;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Listed<T> {
    /// The items.
    #[schema(value_type = Vec<Object>)]
    pub items: Vec<T>,
    /// Where the next page begins: `cursor` of the next request. Not there on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> Listed<T> {
    /// A page, as far as who asks may see it.
    pub fn of(page: Page<T>, may: impl Fn(&T) -> bool) -> Self {
        Self { items: page.items.into_iter().filter(may).collect(), next: page.next }
    }

    /// All that there is.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// How many items are wanted.
pub fn limit(asked: Option<Number>) -> Result<u32, ApiError> {
    match asked {
        None => Ok(LIMIT),
        Some(Number(limit)) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(Number(limit)) => Err(ApiError::invalid("limit", format!("limit is {limit}: expected 1 to {LIMIT_MAX}"))),
    }
}
