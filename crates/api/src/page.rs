//! Lists, page by page.

use data_encoding::BASE64URL_NOPAD;
use redrive_core::ids::PipelineName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Caller, Operation};
use crate::types::Limit;
use crate::wire::RequestError;

/// Part of a list that is requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Paging {
    /// Most items to return.
    #[serde(default)]
    pub limit: Limit,
    /// Position to continue from: `next` of the page before.
    pub cursor: Option<String>,
}

/// Request for a list.
pub trait List: Operation<Response = Page<<Self as List>::Item>> + Clone {
    /// Row of the list.
    type Item: Send;

    /// Returns the part that is requested.
    fn paging(&mut self) -> &mut Paging;

    /// Returns the same request with the longest pages.
    fn in_long_pages(mut self) -> Self {
        self.paging().limit = Limit::LONGEST;
        self
    }

    /// Returns the same request with all items on one page. It is refused over the network.
    fn on_one_page(mut self) -> Self {
        self.paging().limit = Limit::NONE;
        self
    }

    /// Returns the request for what comes after a page, if there is more.
    fn after(mut self, page: &Page<Self::Item>) -> Option<Self> {
        self.paging().cursor = Some(page.next.clone()?);
        Some(self)
    }
}

/// Row of a list.
pub trait Row {
    /// Returns the pipeline that it belongs to.
    fn pipeline(&self) -> &PipelineName;
    /// Returns the position in the list. Positions are unique and ascend.
    fn position(&self) -> String;
}

/// One page of a list.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// `cursor` of the next request. Absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T: Row> Page<T> {
    /// Cuts a page out of ascending rows, without rows of pipelines that the caller does not cover.
    ///
    /// This is the only constructor, so a list cannot forget the caller, and rows are filtered before the page is cut.
    pub fn new(rows: impl IntoIterator<Item = T>, paging: &Paging, caller: &Caller) -> Result<Self, RequestError> {
        let after = paging.cursor.as_deref().map(position_of).transpose()?;
        let is_after = |row: &T| after.as_ref().is_none_or(|after| row.position() > *after);
        let mut rows = rows.into_iter().filter(|row| caller.covers(row.pipeline()) && is_after(row));
        let items: Vec<T> = rows.by_ref().take(paging.limit.get()).collect();
        let next = rows.next().and_then(|_| items.last());
        Ok(Self { next: next.map(|last| cursor_of(&last.position())), items })
    }
}

/// Returns a cursor, which needs no escaping in a query.
fn cursor_of(position: &str) -> String {
    BASE64URL_NOPAD.encode(position.as_bytes())
}

fn position_of(cursor: &str) -> Result<String, RequestError> {
    let position = BASE64URL_NOPAD.decode(cursor.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    position.ok_or_else(|| RequestError::at("page.cursor", format!("{cursor:?} is no cursor of this list")))
}

#[cfg(test)]
mod tests {
    use redrive_core::actors::{Actor, Via};

    use super::*;

    #[derive(Debug)]
    struct Numbered(PipelineName, u32);

    impl Row for Numbered {
        fn pipeline(&self) -> &PipelineName {
            &self.0
        }

        fn position(&self) -> String {
            format!("{:03}", self.1)
        }
    }

    #[test]
    fn caller_with_some_pipelines_gets_full_pages_of_these() {
        let name = |text: &str| text.parse::<PipelineName>().expect("a name");
        let rows = || (0..9).map(|n| Numbered(name(if n % 2 == 0 { "shop" } else { "bank" }), n));
        let mut caller = Caller::local(Actor::new("ada", Via::Cli));
        caller.pipelines = vec!["shop".parse().expect("a pattern")];
        let mut paging = Paging { limit: Limit::try_from(2).expect("a limit"), cursor: None };
        let (mut pages, mut seen) = (Vec::new(), Vec::new());
        loop {
            let page = Page::new(rows(), &paging, &caller).expect("a page");
            pages.push(page.items.len());
            seen.extend(page.items.iter().map(|row| row.1));
            paging.cursor = page.next;
            if paging.cursor.is_none() {
                break;
            }
        }
        assert_eq!((pages, seen), (vec![2, 2, 1], vec![0, 2, 4, 6, 8]));
        let paging = Paging { cursor: Some("7 of 9".to_owned()), ..paging };
        let error = Page::new(rows(), &paging, &caller).expect_err("no cursor");
        assert_eq!(error.field.as_deref(), Some("page.cursor"));
    }

    #[test]
    fn list_without_limit_is_one_page_and_refused_over_the_network() {
        let rows = (0..2_000).map(|n| Numbered("shop".parse().expect("a name"), n));
        let paging = Paging { limit: Limit::NONE, cursor: None };
        let page = Page::new(rows, &paging, &Caller::local(Actor::new("ada", Via::Cli))).expect("a page");
        assert_eq!((page.items.len(), page.next), (2_000, None));
        let sent = serde_json::to_value(&paging).expect("JSON");
        assert!(serde_json::from_value::<Paging>(sent).is_err());
    }
}
