//! An input in a person's own editor. What was typed is never lost: a file that cannot be taken stays where it is.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use redrive_core::jobs::Input;
use serde_json::Value;

use crate::exit::usage;
use crate::output::json;

/// The editor of those who named none.
const EDITOR: &str = "vi";

/// Opens an input in the editor; gives it as it is then, or nothing if it was left as it was.
pub fn edit(input: &Input) -> Result<Option<Input>> {
    let file = tempfile::Builder::new().prefix("redrive-input-").suffix(".json").tempfile();
    let mut file = file.context("cannot make a temporary file")?;
    writeln!(file, "{}", json::pretty(input)?).context("cannot write a temporary file")?;
    let named = ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    open(&named.unwrap_or_else(|| EDITOR.to_owned()), file.path())?;
    match read(file.path()) {
        Ok(changed) => Ok(Some(changed).filter(|changed| changed != input)),
        Err(why) => {
            let (_, path) = file.keep().context("cannot keep what you typed")?;
            Err(usage(format!("{}: {why:#}; nothing is retried, and the file stays there", path.display())))
        }
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
