//! Taking bytes in: hashed and compressed as they come, into a temporary file, up to a cap. What lies beyond it is counted,
//! not kept.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use redrive_core::payloads::{Payload, PayloadHash, Response};

/// zstd's own default: most of what the higher levels save, at the speed of a disk.
const LEVEL: i32 = 1;

/// A payload on its way in.
pub struct Capture {
    hasher: blake3::Hasher,
    compressed: zstd::stream::write::Encoder<'static, BufWriter<File>>,
    cap_bytes: u64,
    kept_bytes: u64,
    seen_bytes: u64,
}

impl Capture {
    /// Begins; at most `cap_bytes` are kept.
    pub fn begin(cap_bytes: u64) -> io::Result<Self> {
        let file = BufWriter::with_capacity(64 * 1024, tempfile::tempfile()?);
        let compressed = zstd::stream::write::Encoder::new(file, LEVEL)?;
        Ok(Self { hasher: blake3::Hasher::new(), compressed, cap_bytes, kept_bytes: 0, seen_bytes: 0 })
    }

    /// Takes in more bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(self.cap_bytes - self.kept_bytes).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        self.hasher.update(kept);
        self.compressed.write_all(kept)?;
        self.kept_bytes += kept.len() as u64;
        self.seen_bytes += bytes.len() as u64;
        Ok(())
    }

    /// Whether more came than is kept.
    pub const fn is_full(&self) -> bool {
        self.seen_bytes > self.kept_bytes
    }

    /// Takes in a file from its beginning; of what lies beyond the cap only the length is read. What is added to it meanwhile
    /// is left out: somebody may write faster than we read.
    pub fn read_file(&mut self, file: &mut File) -> io::Result<()> {
        let total = file.metadata()?.len();
        let mut file = file.take(total);
        let mut block = vec![0; 256 * 1024];
        while !self.is_full() {
            match file.read(&mut block)? {
                0 => break,
                read => self.write(&block[..read])?,
            }
        }
        self.seen_bytes = self.seen_bytes.max(total);
        Ok(())
    }

    /// Writes what was kept to a file, as it came; says how much came.
    pub async fn write_to(self, path: PathBuf) -> io::Result<u64> {
        let seen_bytes = self.seen_bytes;
        let write = move || {
            let mut packed = self.finish(Response::default(), None)?.file;
            packed.seek(SeekFrom::Start(0))?;
            let mut options = File::options();
            let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
            zstd::stream::copy_decode(packed, file)
        };
        tokio::task::spawn_blocking(write).await.unwrap_or_else(|panic| Err(io::Error::other(panic)))?;
        Ok(seen_bytes)
    }

    /// Packs what was taken in. `total_bytes` is how long it is said to be, where that is known.
    pub(super) fn finish(self, response: Response, total_bytes: Option<u64>) -> io::Result<Packed> {
        let size_bytes = self.kept_bytes;
        let total = self.seen_bytes.max(total_bytes.unwrap_or(0));
        let truncated = total > size_bytes;
        let file = self.compressed.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        let payload = Payload {
            hash: PayloadHash::from_bytes(*self.hasher.finalize().as_bytes()),
            size_bytes,
            truncated,
            total_bytes: truncated.then_some(total),
            lost: None,
            response,
        };
        Ok(Packed { payload, stored_bytes: file.metadata()?.len(), file })
    }
}

/// A payload that is packed into a temporary file.
#[derive(Debug)]
pub(super) struct Packed {
    pub(super) payload: Payload,
    pub(super) stored_bytes: u64,
    pub(super) file: File,
}
