//! Printing, with colours only where they are seen and nothing else that a terminal would obey. A full disk is an error like
//! any other, and a reader of standard output that went away is one that ends the program quietly.

use std::fmt;
use std::io::{self, Write};

use super::foreign::screen;

/// Prints a line to standard output: `out!("{n} jobs")?`.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::print::line(format_args!($($text)*)) };
}
pub(crate) use out;

/// Prints a line to standard error, for people: `say!("{n} jobs")`.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::print::aside(format_args!($($text)*)) };
}
pub(crate) use say;

/// Prints a line to standard output.
pub fn line(text: fmt::Arguments<'_>) -> io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    write(&mut stdout, text)
}

/// Begins a terminal's page anew.
pub fn clear() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(b"\x1b[H\x1b[2J")?;
    stdout.flush()
}

/// Prints a line to standard error. If that is closed nobody wants to know.
pub fn aside(text: fmt::Arguments<'_>) {
    let _ = write(&mut anstream::stderr().lock(), text);
}

fn write(out: &mut impl Write, text: fmt::Arguments<'_>) -> io::Result<()> {
    out.write_all(screen(&text.to_string()).as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}
