//! A file of results that people may rename, remove or replace while it is being appended to: log rotation does.
//!
//! Before and after every write the open file is compared with the one at its path. If it is another one by now, the path
//! is opened anew and the lines are written there: a line may then stand in both files, but it is never only in a file
//! that has no name any more. A named pipe is opened for writing only, so that its reader's going is noticed.

use std::borrow::Cow;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::de::IgnoredAny;

use super::last_lines::LastLines;

/// How often a file may be replaced under one write.
const REPLACED_MAX: u32 = 8;

/// Length of a job's id in a line, and the text behind it.
const ID_LENGTH: usize = 36;
const AFTER_ID: &[u8] = br#"","pipeline":""#;

#[derive(Debug)]
pub(super) struct ResultsFile {
    path: PathBuf,
    file: Option<File>,
    /// The last lines of the file, if they are not to be appended again.
    last: Option<LastLines>,
}

impl ResultsFile {
    /// Opens the file, which is made if need be and mended if its last line is torn. Waits for the reader of a named pipe.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = match open(path) {
            Err(error) if is_unread(&error) => {
                tracing::warn!(path = %path.display(), "nobody reads this named pipe yet: waiting for its reader");
                OpenOptions::new().write(true).open(path)?
            }
            opened => opened?,
        };
        Ok(Self { path: path.to_owned(), file: Some(file), last: None })
    }

    /// The same, but it is opened, and made, only when there is something to write.
    pub(super) fn later(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, last: None }
    }

    /// From now on leaves out lines that are among the last ones of the file.
    pub(super) fn leave_out_repeats(&mut self) {
        self.last = Some(LastLines::default());
    }

    /// Appends lines; when it returns they are on disk, in the file that is at the path.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        for _ in 0..REPLACED_MAX {
            let mut file = match self.file.take() {
                Some(file) if is_at(&file, &self.path)? => file,
                former => {
                    if former.is_some() {
                        tracing::warn!(path = %self.path.display(), "the file of results was moved or removed: opened anew");
                    }
                    self.last = self.last.take().map(|_| LastLines::default());
                    reopen(&self.path)?
                }
            };
            if !file.metadata()?.is_file() {
                file.write_all(lines)?;
                self.file = Some(file);
                return Ok(());
            }
            let written = append(&mut file, lines, self.last.as_mut());
            let still_there = is_at(&file, &self.path);
            self.file = Some(file);
            written?;
            if still_there? {
                return Ok(());
            }
        }
        Err(io::Error::other("it is replaced faster than it can be written"))
    }
}

/// Whether the file at a path is the one that is open.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let id = |found: &Metadata| (found.dev(), found.ino());
    match std::fs::metadata(path) {
        Ok(found) => Ok(id(&found) == id(&file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a file to append to, and makes sure that its name is on disk; or a named pipe that has a reader.
fn open(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let pipe = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
        // Only opening must not wait: a slow reader is waited for.
        rustix::fs::fcntl_setfl(&pipe, rustix::fs::fcntl_getfl(&pipe)? & !OFlags::NONBLOCK)?;
        return Ok(pipe);
    }
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    if file.metadata()?.is_file() {
        locked(&mut file, mend)?;
        sync_folder(path)?;
    }
    Ok(file)
}

/// Opens it in the middle of the work, when nobody can wait for a reader.
fn reopen(path: &Path) -> io::Result<File> {
    open(path).map_err(|error| if is_unread(&error) { io::Error::other("nobody reads this named pipe") } else { error })
}

/// Whether a named pipe could not be opened because nobody reads it.
fn is_unread(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}

/// Flushes the folder of a file, so that a file that is new has its name after a power cut.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some file systems cannot flush a folder, and some folders may be used but not read.
        Err(error)
            if matches!(error.raw_os_error().map(Errno::from_raw_os_error), Some(Errno::INVAL | Errno::ACCESS)) =>
        {
            Ok(())
        }
        flushed => flushed,
    }
}

/// Runs `run` while no other process may append to the file.
fn locked<T>(file: &mut File, run: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    file.lock()?;
    let done = run(file);
    file.unlock()?;
    done
}

/// Appends lines and flushes them. Other processes may append to the same file, and may have been killed in the middle of a
/// line. What is among the last lines is left out, but flushed, too: who wrote it may have been killed before it was.
fn append(file: &mut File, lines: &[u8], last: Option<&mut LastLines>) -> io::Result<()> {
    locked(file, |file| {
        mend(file)?;
        let lines = match last {
            Some(last) => {
                last.catch_up(file)?;
                last.without_known(lines)
            }
            None => Cow::Borrowed(lines),
        };
        let before = file.metadata()?.len();
        let written = file.write_all(&lines).and_then(|()| file.sync_data());
        if written.is_err() {
            // A full disk may have taken half a line.
            let _ = file.set_len(before);
        }
        written
    })
}

/// Makes the file end with a whole line: cuts off a torn line of ours, and ends any other.
fn mend(file: &mut File) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = last_line_start(file, length)?;
    if start == length {
        return Ok(());
    }
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    match is_torn_result(&tail) {
        true => file.set_len(start),
        false => file.write_all(b"\n"),
    }
}

/// Returns whether a line is the beginning of a whole result: somebody was killed while writing it. A bare one looks like any other JSON.
fn is_torn_result(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(br#"{"id":""#) else { return false };
    let (id, rest) = rest.split_at(rest.len().min(ID_LENGTH));
    let is_id = id.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let goes_on = rest.starts_with(AFTER_ID) || AFTER_ID.starts_with(rest);
    is_id && goes_on && serde_json::from_slice::<IgnoredAny>(line).is_err()
}

/// Where the text after the last end of line begins.
fn last_line_start(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    let mut block = vec![0; 64 * 1024];
    while end > 0 {
        let begin = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - begin) as usize];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(begin + at as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use redrive_core::ids::JobId;
    use redrive_core::jobs::Input;
    use redrive_core::results::{JobResult, ResultForm};

    use super::*;

    fn mended(text: impl AsRef<[u8]>) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.jsonl");
        std::fs::write(&path, text).expect("written");
        ResultsFile::open(&path).expect("opened");
        std::fs::read_to_string(&path).expect("read")
    }

    #[test]
    fn a_torn_result_is_cut_off_and_a_whole_one_is_ended() {
        let result = JobResult {
            id: JobId::from_bytes([7; 16]),
            pipeline: "p".parse().expect("a name"),
            round: None,
            key: None,
            input: Input::default(),
            result: "é".repeat(100_000).into(),
            log: None,
        };
        let line = result.line(ResultForm::Whole).expect("JSON").expect("a line");
        assert_eq!(mended(""), "");
        assert_eq!(mended(format!("{line}\n")), format!("{line}\n"));
        assert_eq!(mended(&line), format!("{line}\n"));
        for length in [7, 8, 40, 43, 44, 50, 60, 1_001, line.len() - 1] {
            let torn = &line.as_bytes()[..length];
            assert_eq!(mended([b"1\n", torn].concat()), "1\n", "{length}");
            assert_eq!(mended(torn), "", "{length}");
        }
    }

    /// A bare result cannot be told from what others wrote.
    #[test]
    fn what_others_wrote_stays() {
        let others =
            ["a note", "a note\nwithout an end", "{\"b\"", "{\"id\":\"x\"", "{\"id\": \"07", "1\n{", "\u{fffd}"];
        for text in others {
            assert_eq!(mended(text), format!("{text}\n"));
        }
        let other = format!("{{\"id\":\"{}\",\"name\":\"", JobId::from_bytes([7; 16]));
        assert_eq!(mended(&other), format!("{other}\n"));
    }

    #[test]
    fn lines_go_to_the_file_that_is_at_the_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.jsonl");
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        let mut file = ResultsFile::open(&path).expect("opened");
        file.write(b"1\n").expect("written");
        std::fs::rename(&path, folder.path().join("old.jsonl")).expect("renamed");
        file.write(b"2\n").expect("written");
        assert_eq!((read("old.jsonl"), read("out.jsonl")), ("1\n".into(), "2\n".into()));
        std::fs::write(folder.path().join("other.jsonl"), "3\n").expect("written");
        std::fs::rename(folder.path().join("other.jsonl"), &path).expect("replaced");
        file.write(b"4\n").expect("written");
        assert_eq!(read("out.jsonl"), "3\n4\n");
        std::fs::remove_file(&path).expect("removed");
        file.write(b"5\n").expect("written");
        assert_eq!(read("out.jsonl"), "5\n");
        std::fs::remove_dir_all(folder.path()).expect("removed");
        file.write(b"6\n").expect_err("there is no place for it");
    }

    /// A process that was killed wrote the first lines; others write the same file.
    #[test]
    fn lines_that_come_again_are_left_out_if_that_is_wanted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.jsonl");
        std::fs::write(&path, "1\n2\n").expect("written");
        let mut file = ResultsFile::later(&path);
        file.leave_out_repeats();
        let mut wrote = |lines: &[u8]| {
            file.write(lines).expect("written");
            std::fs::read_to_string(&path).expect("read")
        };
        assert_eq!(wrote(b"2\n3\n"), "1\n2\n3\n");
        assert_eq!(wrote(b"3\n1\n"), "1\n2\n3\n");
        ResultsFile::open(&path).expect("opened").write(b"4\n3\n").expect("written");
        assert_eq!(wrote(b"4\n5\n"), "1\n2\n3\n4\n3\n5\n", "of whoever wrote it");
        std::fs::write(&path, "6\n").expect("written");
        assert_eq!(wrote(b"5\n6\n"), "6\n5\n", "it was emptied meanwhile");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(wrote(b"5\n"), "5\n", "it is another file");
    }

    /// The file is taken away while the write is under way: it waits for a lock that the test holds.
    #[test]
    fn lines_that_went_to_a_removed_file_are_written_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.jsonl");
        let mut file = ResultsFile::open(&path).expect("opened");
        let other = File::open(&path).expect("opened");
        other.lock().expect("locked");
        let writing = std::thread::spawn(move || file.write(b"1\n"));
        while !waits_for_lock() {
            std::thread::yield_now();
        }
        std::fs::remove_file(&path).expect("removed");
        other.unlock().expect("unlocked");
        writing.join().expect("no panic").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there again"), "1\n");
    }

    /// Whether a thread of this process waits for a file lock, as the system lists them.
    fn waits_for_lock() -> bool {
        let locks = std::fs::read_to_string("/proc/locks").expect("read");
        let pid = format!(" {} ", std::process::id());
        locks.lines().any(|line| line.contains("->") && line.contains(&pid))
    }
}
