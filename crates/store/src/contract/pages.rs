//! Lists come in pages: so many items, or so many bytes, and a cursor for the next ones.

/// The most that a page of a list with inputs has, in bytes of JSON, unless one item alone is longer.
pub const PAGE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The room of a page.
#[derive(Default)]
pub(crate) struct Room(u64);

impl Room {
    /// Takes an item of so many bytes. Returns whether it fits, and more may follow.
    pub(crate) const fn take(&mut self, bytes: u64) -> bool {
        self.0 = self.0.saturating_add(bytes);
        self.0 <= PAGE_BYTES_MAX
    }

    /// Reads rows until one does not fit: that one is the last.
    pub(crate) fn fill<T, E>(rows: impl Iterator<Item = Result<T, E>>, bytes: impl Fn(&T) -> u64) -> Result<Vec<T>, E> {
        let (mut room, mut read) = (Self::default(), Vec::new());
        for row in rows {
            let row = row?;
            let fits = room.take(bytes(&row));
            read.push(row);
            if !fits {
                break;
            }
        }
        Ok(read)
    }
}

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

    /// Makes a page of items as [`Page::cut`] does that ends before the first item that does not fit.
    pub(crate) fn fit(items: Vec<T>, limit: u32, bytes: impl Fn(&T) -> u64, cursor: impl Fn(&T) -> String) -> Self {
        let mut room = Room::default();
        let fitting = items.iter().take_while(|item| room.take(bytes(item))).count().max(1);
        Self::cut(items, limit.min(u32::try_from(fitting).unwrap_or(u32::MAX)), cursor)
    }
}
