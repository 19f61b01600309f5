//! Lists come in pages: so many items and a cursor for the next ones.

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The items, newest first.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Makes a page of items that were asked for with one more than the limit, to see whether there are more.
    pub fn cut(mut items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> String) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(cursor);
        Self { items, next }
    }
}
