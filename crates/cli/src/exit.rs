//! Exit codes, and how an error ends the program.

use std::io;
use std::process::ExitCode;

use crate::output::foreign::harmless;
use crate::output::print::say;
use crate::output::problem;
use anstyle::{AnsiColor, Style};
use redrive::dead::DeadError;
use redrive::vault::VaultError;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All went well.
    Ok,
    /// Something is wrong: with the store, the disk, the network.
    Failed,
    /// The command line or the configuration is wrong.
    Usage,
    /// `run`: at least one of the tasks is dead, or more of them than may be.
    Dead,
    /// `alert check`: something fires.
    Firing,
    /// `run`, `push`, `import`: at least one line of the input was refused.
    LinesRefused,
    /// `audit`: something does not add up. `payload verify`: a payload is not what it was.
    NotSound,
    /// `replay`: too many letters failed again, and it paused itself. `run`: tasks of its file are in a replay.
    Paused,
    /// `run`, `work --drain`: nothing moved for as long as was to be waited; what is left is queued. `replay`: what is left
    /// waits for workers that know its pipelines.
    Waited,
    /// Interrupted; what is left is queued.
    Interrupted,
}

impl Exit {
    /// The code it ends with.
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Dead | Self::Firing => 3,
            Self::LinesRefused => 4,
            Self::NotSound => 5,
            Self::Paused => 6,
            Self::Waited => 7,
            Self::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The user asked for something that cannot be: a mistake in the command line or the configuration.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Shorthand for a [`UsageError`].
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// Prints what is wrong with the command line, or the help that was asked for, and gives its exit code.
pub fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    match harmless(&text) == text {
        true => drop(error.print()),
        // It quotes what was typed, or pasted.
        false => say!("{}", harmless(&text).trim_end()),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code()))
}

/// Prints an error and gives its exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    // Whoever read our output has seen enough; but results that nobody took are jobs that are not done.
    let broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    let closed = match error.chain().find_map(|cause| cause.downcast_ref::<redrive::Error>()) {
        Some(redrive::Error::Dead(DeadError::Unwritten(error))) => broken(error),
        Some(redrive::Error::Vault(vault)) => matches!(&**vault, VaultError::Io { source, .. } if broken(source)),
        Some(_) => false,
        None => error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken)),
    };
    if closed {
        return Exit::Ok.into();
    }
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let (text, mistaken) = problem::explain(error);
    say!("{red}error:{red:#} {}", harmless(&text));
    let exit = if mistaken || error.is::<UsageError>() { Exit::Usage } else { Exit::Failed };
    exit.into()
}
