//! `redrive payload show`: the exact bytes, or what came with them.
//!
//! A payload is hostile: on a terminal it is printed only if nothing in it would be obeyed there.

use std::fs::File;
use std::io::{self, IsTerminal, Seek, Write};
use std::path::Path;

use anyhow::{Context as _, Result};
use redrive_core::hidden::is_hidden;

use super::Kept;
use crate::args::PayloadShowArgs;
use crate::exit::{Exit, usage};
use crate::output::json;
use crate::output::print::say;

pub async fn run(kept: &Kept, args: PayloadShowArgs) -> Result<Exit> {
    let payload = kept.desk.find_payload(&args.id).await?;
    if args.meta {
        json::document(&payload)?;
        return Ok(Exit::Ok);
    }
    // Nothing is shown of a payload that turns out to be damaged at its end.
    let mut whole = tempfile::tempfile().context("cannot make a temporary file")?;
    kept.write(&args.id, &payload, whole.try_clone()?).await?;
    whole.rewind()?;
    match args.out.as_deref() {
        Some(path) if path != Path::new("-") => {
            let unwritten = || format!("cannot write {}", path.display());
            let mut file = File::create(path).with_context(unwritten)?;
            io::copy(&mut whole, &mut file).with_context(unwritten)?;
        }
        forced => {
            if forced.is_none() && io::stdout().is_terminal() {
                check(&mut whole, &args.id)?;
                whole.rewind()?;
            }
            let mut stdout = io::stdout().lock();
            io::copy(&mut whole, &mut stdout)?;
            stdout.flush()?;
        }
    }
    if payload.truncated {
        let total = payload.total_bytes.unwrap_or(payload.size_bytes);
        say!("cut off: the first {} of {total} bytes were kept", payload.size_bytes);
    }
    Ok(Exit::Ok)
}

/// Refuses what a terminal would obey, or cannot show.
fn check(payload: &mut File, id: &str) -> Result<()> {
    let mut reader = Reader::default();
    io::copy(payload, &mut reader)?;
    match reader.is_plain() {
        true => Ok(()),
        false => Err(usage(format!(
            "the payload is not plain text, and a terminal might obey it: write it to a file with `redrive payload show {id} --out FILE`, or to the terminal all the same with --out -"
        ))),
    }
}

/// Reads bytes as text and keeps nothing but whether it is plain.
#[derive(Default)]
struct Reader {
    /// The beginning of a character whose end has not come yet.
    begun: Vec<u8>,
    /// Whether the last character took the terminal back to the beginning of its line, where it would write over it.
    returned: bool,
    refused: bool,
}

impl Reader {
    fn read(&mut self, bytes: &[u8]) {
        self.begun.extend_from_slice(bytes);
        let (text, rest) = match std::str::from_utf8(&self.begun) {
            Ok(text) => (text, 0),
            Err(error) if error.error_len().is_none() => {
                let whole = error.valid_up_to();
                (std::str::from_utf8(&self.begun[..whole]).unwrap_or_default(), self.begun.len() - whole)
            }
            Err(_) => {
                self.refused = true;
                ("", 0)
            }
        };
        for c in text.chars() {
            self.refused |= (self.returned && c != '\n') || (is_hidden(c) && !matches!(c, '\n' | '\t' | '\r'));
            self.returned = c == '\r';
        }
        self.begun.drain(..self.begun.len() - rest);
    }

    fn is_plain(&self) -> bool {
        !self.refused && !self.returned && self.begun.is_empty()
    }
}

impl Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.refused {
            self.read(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_plain(bytes: &[u8], step: usize) -> bool {
        let mut reader = Reader::default();
        bytes.chunks(step).for_each(|chunk| reader.read(chunk));
        reader.is_plain()
    }

    #[test]
    fn text_is_plain_however_it_is_cut() {
        for step in 1..9 {
            assert!(is_plain("<p>zażółć 価格 🦀</p>\r\n\t".as_bytes(), step));
            for hostile in ["a\u{1b}[2J", "\u{9b}2J", "x\u{202e}y", "nul\0", "paid 5\rpaid 9\n", "\r\r\n", "end\r"] {
                assert!(!is_plain(hostile.as_bytes(), step), "{hostile:?}");
            }
            assert!(!is_plain(b"GIF89a\xff\xfe", step));
            assert!(!is_plain("cut off: 価".as_bytes().split_last().expect("bytes").1, step));
        }
    }
}
