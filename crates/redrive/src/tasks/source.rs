//! Where tasks are read from: a file that can be read as often as need be, or a stream that is read once, as it comes.
//! Compressed ones are unpacked on the way.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio_util::sync::CancellationToken;

use super::written::{MidLine, Patience};

/// How long a stream is waited for before it is asked whether to go on.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// To look without waiting.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// How long a stream that does not end is still read after it is to end: what others have written by then is not lost.
const LAST_READS: Duration = Duration::from_secs(1);

/// Bytes that are read at once.
const CHUNK: usize = 256 * 1024;

/// How compressed files begin.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// What happens while a stream is read.
#[derive(Clone)]
pub(super) struct Attention {
    /// Once it is cancelled, only what is there already is read.
    pub(super) stop: CancellationToken,
    /// Called before anything is waited for.
    pub(super) before_waiting: Arc<dyn Fn() + Send + Sync>,
}

/// Something that is open and can be read.
pub(super) struct Opened {
    /// The bytes, unpacked.
    pub(super) reader: Box<dyn BufRead + Send>,
    /// Whether they are compressed, so that they may break off.
    pub(super) is_packed: bool,
    /// Set once a stream was left before its end: its last line may not be whole.
    pub(super) is_cut: Arc<AtomicBool>,
    /// Why the last line of a file may not be whole, once its end was seen and somebody may be writing it.
    pub(super) unfinished: Arc<OnceLock<String>>,
}

/// A file from its beginning, no longer than it was when it was opened: what is added meanwhile belongs to the next reading.
/// One that only this process knows has nobody else who writes it.
pub(super) fn file(file: &File, length: u64, is_private: bool) -> io::Result<Opened> {
    let mut head = [0; 4];
    let known = file.read_at(&mut head, 0)?;
    let is_packed = head[..known].starts_with(GZIP) || head[..known].starts_with(ZSTD);
    // The last line of compressed data is not where its bytes end.
    let length = if is_packed { u64::MAX } else { length };
    let patience = (!is_packed && !is_private).then(Patience::default);
    let bounded = Bounded { patience, ..Bounded::of(file, length)? };
    let unfinished = Arc::clone(&bounded.unfinished);
    Ok(Opened { unfinished, ..unpacked(bounded, Arc::default())? })
}

/// The same, as it is.
pub(super) fn bytes(file: &File, length: u64) -> io::Result<impl Read + Send + use<>> {
    Bounded::of(file, length)
}

/// A stream, as it comes.
pub(super) fn stream(file: File, attention: Attention) -> io::Result<Opened> {
    let is_cut = Arc::<AtomicBool>::default();
    unpacked(Live { file, attention, is_cut: Arc::clone(&is_cut), stopped_at: None }, is_cut)
}

/// The bytes as they were before they were compressed, if they were.
fn unpacked(mut raw: impl Read + Send + 'static, is_cut: Arc<AtomicBool>) -> io::Result<Opened> {
    let head = head(&mut raw)?;
    let is = |magic: &[u8]| head.starts_with(magic);
    let (is_gzip, is_zstd) = (is(GZIP), is(ZSTD));
    let whole = BufReader::with_capacity(CHUNK, Cursor::new(head).chain(raw));
    let reader: Box<dyn BufRead + Send> = match (is_gzip, is_zstd) {
        (true, _) => Box::new(BufReader::with_capacity(CHUNK, flate2::bufread::MultiGzDecoder::new(whole))),
        (_, true) => Box::new(BufReader::with_capacity(CHUNK, zstd::Decoder::with_buffer(whole)?)),
        _ => Box::new(whole),
    };
    Ok(Opened { reader, is_packed: is_gzip || is_zstd, is_cut, unfinished: Arc::default() })
}

/// The first bytes: as many as tell whether they are compressed.
fn head(raw: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let undecided = |head: &[u8]| [GZIP, ZSTD].iter().any(|magic| head.len() < magic.len() && magic.starts_with(head));
    while undecided(&head) {
        let mut byte = [0];
        match raw.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => head.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

/// A file up to a length. If that is in the middle of a line, somebody was writing it: it is read to its end.
struct Bounded {
    file: File,
    at: u64,
    length: u64,
    last: u8,
    /// How the end of the last line is waited for, where somebody may be writing it.
    patience: Option<Patience>,
    unfinished: Arc<OnceLock<String>>,
}

impl Bounded {
    fn of(file: &File, length: u64) -> io::Result<Self> {
        let file = file.try_clone()?;
        Ok(Self { file, at: 0, length, last: b'\n', patience: None, unfinished: Arc::default() })
    }

    /// Whether there may be more where the bytes end in the middle of a line; waits a little for it.
    fn may_go_on(&mut self) -> io::Result<bool> {
        let Some(patience) = &mut self.patience else { return Ok(false) };
        let more = || Ok(self.file.read_at(&mut [0], self.at)? > 0);
        Ok(match patience.wait(&self.file, more)? {
            MidLine::Again => true,
            MidLine::Whole => false,
            MidLine::Unfinished(why) => {
                // Whoever looks at the end twice is told what was seen first.
                let _ = self.unfinished.set(why);
                false
            }
        })
    }

    fn read_once(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = if left > 0 { left.min(buffer.len()) } else { buffer.len() };
        if left == 0 && self.last == b'\n' {
            return Ok(0);
        }
        let mut read = self.file.read_at(&mut buffer[..wanted], self.at)?;
        if left == 0 {
            let end = buffer[..read].iter().position(|byte| *byte == b'\n');
            read = end.map_or(read, |end| end + 1);
        }
        self.at += read as u64;
        self.last = buffer[..read].last().copied().unwrap_or(self.last);
        if let Some(patience) = self.patience.as_mut().filter(|_| read > 0) {
            patience.note_more();
        }
        Ok(read)
    }
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.read_once(buffer)?;
            let ends_mid_line = read == 0 && !buffer.is_empty() && self.last != b'\n';
            if !ends_mid_line || !self.may_go_on()? {
                return Ok(read);
            }
        }
    }
}

/// A stream that is waited for only as long as it is wanted.
struct Live {
    file: File,
    attention: Attention,
    is_cut: Arc<AtomicBool>,
    /// When it was first seen that it is to end.
    stopped_at: Option<Instant>,
}

impl Live {
    /// Waits for bytes, or the end of the stream; says whether there is any of it.
    fn is_ready(&self, wait: &Timespec) -> io::Result<bool> {
        match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(wait)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn leave(&self) -> io::Result<usize> {
        self.is_cut.store(true, Ordering::Relaxed);
        Ok(0)
    }
}

impl Read for Live {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ready = self.is_ready(&AT_ONCE)?;
        if !ready {
            (self.attention.before_waiting)();
        }
        loop {
            if self.attention.stop.is_cancelled() {
                let stopped_at = *self.stopped_at.get_or_insert_with(Instant::now);
                // It may have come after it was last looked for and before it was told to end.
                ready = ready || self.is_ready(&AT_ONCE)?;
                if !ready || stopped_at.elapsed() > LAST_READS {
                    return self.leave();
                }
            }
            if ready {
                return self.file.read(buffer);
            }
            ready = self.is_ready(&LOOK_EVERY)?;
        }
    }
}
