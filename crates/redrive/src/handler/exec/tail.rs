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

/// How far from where a stream is cut the end of a line, or else a blank, is looked for, in bytes. Without either so much is
/// left out: a secret of which one half was cut off would not be known as one.
const EDGE_BYTES: usize = 1024;

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
        let Ends { head, tail, dropped } = &mut *ends;
        let (mut head, mut tail) = (head.as_slice(), &*tail.make_contiguous());
        let mut gap = Vec::new();
        if *dropped > 0 {
            let kept = head.len() + tail.len();
            (head, tail) = (&head[..head.len() - edge(head.iter().rev())], &tail[edge(tail.iter())..]);
            gap = format!("\n… {} bytes …\n", *dropped + kept - head.len() - tail.len()).into_bytes();
        }
        String::from_utf8_lossy(&[head, &gap, tail].concat()).into_owned()
    }

    /// Forgets what was kept.
    pub(in crate::handler) fn clear(&self) {
        *self.ends() = Ends::default();
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many bytes to leave out where a stream was cut, seen from there.
fn edge<'a>(bytes: impl Iterator<Item = &'a u8> + Clone) -> usize {
    let bytes = bytes.take(EDGE_BYTES);
    let to = |is_end: fn(&u8) -> bool| bytes.clone().position(is_end);
    let line = to(|byte| *byte == b'\n').map(|at| at + 1);
    line.or_else(|| to(u8::is_ascii_whitespace)).unwrap_or_else(|| bytes.clone().count())
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
        let (head, rest) = text.split_once("\n… ").expect("a gap");
        let (gap, tail) = rest.split_once(" bytes …\n").expect("a gap");
        assert_eq!(gap.parse::<usize>().ok(), Some(stream.len() - head.len() - tail.len()));
        assert!(HEAD_BYTES - head.len() < 8 && TAIL_BYTES - tail.len() < 8);
        let is_whole = |line: &str| line.parse::<usize>().is_ok_and(|n| !(2_000..=90_000).contains(&n));
        assert!(head.lines().chain(tail.lines()).all(is_whole), "lines stay whole");
    }

    /// A secret that was cut would not be found any more.
    #[tokio::test]
    async fn what_is_cut_is_cut_between_lines_or_words() {
        for (parted, expected) in [("\n", "s3cret\n"), (" ", "s3cret "), ("", "")] {
            let tail = Tail::default();
            for n in 0..7 {
                let stream = format!("{}{}", "x".repeat(n), format!("s3cret{parted}").repeat(10_000));
                tail.clear();
                tail.fill(stream.as_bytes()).await;
                let text = tail.text();
                let (head, rest) = text.split_once("\n… ").expect("a gap");
                let (_, end) = rest.split_once(" bytes …\n").expect("a gap");
                match parted {
                    "" => assert!(head.len() <= HEAD_BYTES - EDGE_BYTES && end.len() <= TAIL_BYTES - EDGE_BYTES),
                    _ => {
                        assert!(head.trim_end().ends_with("s3cret"), "{n}");
                        assert!(end.trim_start().starts_with(expected), "{n}");
                    }
                }
            }
        }
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
