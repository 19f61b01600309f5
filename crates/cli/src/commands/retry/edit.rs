//! An input in a person's own editor. What was typed is never lost: a file that cannot be taken stays where it is.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use redrive_core::jobs::Input;
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::exit::usage;
use crate::output::json;

/// The editor of those who named none.
const EDITOR: &str = "vi";

/// Opens an input in the editor; gives it as it is then, or nothing if it was left as it was.
pub fn edit(input: &Input) -> Result<Option<Input>> {
    let file = tempfile::Builder::new().prefix("redrive-input-").suffix(".json").tempfile();
    let mut file = file.context("cannot make a temporary file")?;
    let written = format!("{}\n", json::pretty(input)?);
    file.write_all(written.as_bytes()).context("cannot write a temporary file")?;
    let named = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    if let Err(why) = open(&named.unwrap_or_else(|| EDITOR.to_owned()), file.path()) {
        return Err(keep_typed(file, &written, why));
    }
    match read(file.path()) {
        Ok(changed) => Ok(Some(changed).filter(|changed| changed != input)),
        Err(why) => {
            let (_, path) = file.keep().context("cannot keep what you typed")?;
            Err(usage(format!("{}: {why:#}; nothing is retried, and the file stays there", path.display())))
        }
    }
}

/// Why the editor failed. What was typed before it did stays in its file.
fn keep_typed(file: NamedTempFile, written: &str, why: anyhow::Error) -> anyhow::Error {
    // An editor may have put another file in its place, or taken it away.
    let is_as_written = |text: Vec<u8>| text == written.as_bytes();
    match std::fs::read(file.path()).map(is_as_written) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => why,
        Ok(true) => why,
        Ok(false) | Err(_) => match file.keep() {
            Ok((_, path)) => why.context(format!("what you typed stays in {}", path.display())),
            Err(error) => why.context(format!("what you typed cannot be kept: {error}")),
        },
    }
}

/// Runs the editor, which may be a command with arguments.
fn open(editor: &str, path: &Path) -> Result<()> {
    let status = Command::new("sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(path).status();
    match status.with_context(|| format!("cannot start {editor}"))? {
        status if status.success() => Ok(()),
        status => bail!("{editor} ended with {status}: nothing is retried; EDITOR names another"),
    }
}

fn read(path: &Path) -> Result<Input> {
    let text = std::fs::read_to_string(path)?;
    match serde_json::from_str(&text)? {
        Value::Object(input) => Ok(input),
        _ => Err(anyhow!("an input is a JSON object")),
    }
}
