//! The end of a stream: everything is read, only the last part is kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};

/// How much of an error stream is kept, in bytes.
pub(super) const TAIL_BYTES: usize = 16 * 1024;

/// The last part of what was read, shared with whoever reads on.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<u8>>>);

impl Tail {
    /// Reads to the end of the stream.
    pub(super) async fn fill(&self, mut stream: impl AsyncRead + Unpin) {
        let mut block = vec![0; 8 * 1024];
        while let Ok(read @ 1..) = stream.read(&mut block).await {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(&block[..read]);
            let excess = kept.len().saturating_sub(TAIL_BYTES);
            kept.drain(..excess);
        }
    }

    /// What is kept, as text; empty if nothing was read.
    pub(super) fn text(&self) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).into_owned()
    }

    /// Forgets what was kept.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keeps_the_end() {
        let tail = Tail::default();
        let stream: Vec<u8> = (0..100_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        tail.fill(stream.as_slice()).await;
        let text = tail.text();
        assert_eq!(text.len(), TAIL_BYTES);
        assert!(text.ends_with("99998\n99999\n"));
    }
}
