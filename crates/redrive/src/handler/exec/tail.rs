//! The two ends of a stream: everything is read, its beginning and its end are kept.
//!
//! The end is where most programs say what went wrong. The beginning is kept too because some print what went wrong first
//! and then pages of details: an error of axios that nobody caught has more than 16 KiB of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of the beginning of an error stream is kept, in bytes.
const HEAD_BYTES: usize = 4 * 1024;

/// How much of its end is kept, in bytes: with the line that says what is missing, 16 KiB in all.
const TAIL_BYTES: usize = 12 * 1024 - 64;

/// The two ends of what was read, shared with whoever reads on.
#[derive(Clone, Debug, Default)]
pub(in crate::handler) struct Tail(Arc<Mutex<Ends>>);

#[derive(Debug, Default)]
struct Ends {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Bytes between them that were not kept.
    dropped: usize,
}

impl Tail {
    /// Reads to the end of the stream.
    pub(in crate::handler) async fn fill(&self, mut stream: impl AsyncRead + Unpin) {
        let mut block = vec![0; 8 * 1024];
        while let Ok(read @ 1..) = stream.read(&mut block).await {
            self.ends().add(&block[..read]);
        }
    }

    /// What is kept, as text; empty if nothing was read.
    pub(in crate::handler) fn text(&self) -> String {
        let mut ends = self.ends();
        let mut bytes = ends.head.clone();
        if ends.dropped > 0 {
            bytes.extend(format!("\n… {} bytes …\n", ends.dropped).into_bytes());
        }
        bytes.extend_from_slice(ends.tail.make_contiguous());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Forgets what was kept.
    pub(in crate::handler) fn clear(&self) {
        *self.ends() = Ends::default();
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ends {
    fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - self.head.len()));
        self.head.extend(first);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
        self.dropped += excess;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keeps_the_beginning_and_the_end() {
        let tail = Tail::default();
        let stream: Vec<u8> = (0..100_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        tail.fill(stream.as_slice()).await;
        let text = tail.text();
        assert!(text.starts_with("0\n1\n2\n") && text.ends_with("99998\n99999\n"));
        let gap = format!("\n… {} bytes …\n", stream.len() - HEAD_BYTES - TAIL_BYTES);
        assert!(text.contains(&gap) && text.len() == HEAD_BYTES + gap.len() + TAIL_BYTES);
    }

    #[tokio::test]
    async fn what_fits_is_kept_as_it_came() {
        let tail = Tail::default();
        let text = format!("x{}", "é".repeat((HEAD_BYTES + TAIL_BYTES) / 2 - 1));
        tail.fill(text.as_bytes()).await;
        assert_eq!(tail.text(), text);
        tail.clear();
        assert_eq!(tail.text(), "");
    }
}
