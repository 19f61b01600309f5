//! Commands that are printed to be typed. Each works as it is printed: it goes to the store or the server that this command was given on
//! its command line. What stands in variables the shell has anyway.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use redrive::Location;
use redrive_core::secrets::MASK;

use super::foreign::quoted;
use crate::args::Global;

/// The name of the program with the arguments that say where: `format!("{REDRIVE} retry 7")`.
pub const REDRIVE: Redrive = Redrive;

/// What commands begin with.
#[derive(Clone, Copy, Debug)]
pub struct Redrive;

/// The arguments of this command that say where, each after a space.
static WHERE: OnceLock<String> = OnceLock::new();

/// Commands that know of no place, or are typed where the store is.
const ELSEWHERE: [&str; 5] = ["init", "demo", "store copy", "token create", "restore"];

impl fmt::Display for Redrive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "redrive{}", place())
    }
}

/// Remembers where this command was told to look.
pub fn remember(global: &Global) {
    let said = where_of(global, |name| std::env::var_os(name));
    WHERE.get_or_init(|| said);
}

/// Returns the arguments by which this command was told where to look, each after a space.
pub fn place() -> &'static str {
    WHERE.get().map_or("", String::as_str)
}

/// Returns a text of ours whose commands, in backticks, go where this command went.
pub fn in_text(text: &str) -> Cow<'_, str> {
    match place() {
        "" => Cow::Borrowed(text),
        said => Cow::Owned(with(text, said)),
    }
}

/// Returns a command of ours that goes where this command went.
pub fn command(line: &str) -> String {
    match line.strip_prefix("redrive ") {
        Some(rest) => format!("{REDRIVE} {rest}"),
        None => line.to_owned(),
    }
}

fn with(text: &str, said: &str) -> String {
    let mut parts = text.split("`redrive ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, rest| match ELSEWHERE.iter().any(|verb| rest.starts_with(verb)) {
        true => format!("{before}`redrive {rest}"),
        false => format!("{before}`redrive{said} {rest}"),
    })
}

fn where_of<V: AsRef<OsStr>>(global: &Global, variable: impl Fn(&str) -> Option<V>) -> String {
    let path = |path: &Option<std::path::PathBuf>| path.as_deref().map(Path::as_os_str).map(ToOwned::to_owned);
    let text = |text: &Option<String>| text.as_deref().map(Into::into);
    let given = [
        ("--config", "REDRIVE_CONFIG", path(&global.config)),
        ("--store", "REDRIVE_STORE", text(&global.store)),
        ("--server", "REDRIVE_SERVER", text(&global.server)),
        ("--token-file", "REDRIVE_TOKEN_FILE", path(&global.token_file)),
    ];
    let said = given.into_iter().filter_map(|(flag, name, value)| {
        let value = value.filter(|value| variable(name).is_none_or(|set| set.as_ref() != value))?;
        let value = value.into_string().ok().filter(|value| !value.is_empty())?;
        Some(format!(" {flag} {}", quoted(&if flag == "--store" { without_password(&value) } else { value })))
    });
    said.collect()
}

/// An address of a store as it may be seen. Who types it has the password in a variable or a file.
fn without_password(store: &str) -> String {
    let shown = store.parse::<Location>().map_or_else(|_| store.to_owned(), |location| location.to_string());
    shown.replacen(&format!(":{MASK}@"), "@", 1)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    fn said(words: &[&str], set: &[(&str, &str)]) -> String {
        let cli = Cli::try_parse_from([&["redrive", "status"], words].concat()).expect("a command line");
        where_of(&cli.global, |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| *value))
    }

    #[test]
    fn commands_go_where_the_command_line_said_and_not_where_the_shell_goes_anyway() {
        let server = ["--server", "http://127.0.0.1:7171"];
        assert_eq!(said(&[], &[]), "");
        assert_eq!(said(&server, &[]), " --server http://127.0.0.1:7171");
        assert_eq!(said(&server, &[("REDRIVE_SERVER", "http://127.0.0.1:7171")]), "", "the shell has it");
        assert_eq!(said(&server, &[("REDRIVE_SERVER", "http://127.0.0.1:1")]), " --server http://127.0.0.1:7171");
        let words = ["--store", "sqlite:my jobs.db", "--config", "a.toml", "--token-file", "-t"];
        assert_eq!(said(&words[..4], &[]), " --config a.toml --store 'sqlite:my jobs.db'");
    }

    #[test]
    fn a_password_is_not_printed() {
        let shown = |store| said(&["--store", store], &[]);
        assert_eq!(shown("postgres://me:hunter2@db/jobs"), " --store postgres://me@db/jobs");
        assert!(!shown("postgres://me@db/jobs?password=hunter2").contains("hunter2"));
    }

    #[test]
    fn commands_in_a_text_go_there_too_but_for_those_of_another_place() {
        let text = "no cause: `redrive cause list` shows them, `redrive token create` makes one, redrive is it";
        let there =
            "no cause: `redrive --server S cause list` shows them, `redrive token create` makes one, redrive is it";
        assert_eq!(with(text, " --server S"), there);
        assert_eq!((in_text(text), command("redrive status")), (text.into(), "redrive status".to_owned()));
    }
}
