//! The log, on standard error. `REDRIVE_LOG` sets it finely, `-v` coarsely.

use std::io::{self, Write};

use tracing_subscriber::EnvFilter;

use super::foreign::{harmless, screen};

/// Starts the log.
pub fn start(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_env("REDRIVE_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let colours = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Screened { colours })
        .with_ansi(colours)
        .with_target(false)
        .init();
}

/// Standard error, with nothing of what is logged obeyed but our own colours.
struct Screened {
    colours: bool,
}

impl Write for Screened {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let safe = if self.colours { screen(&text) } else { harmless(&text).into() };
        io::stderr().lock().write_all(safe.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
