//! Printing, with colours only where they are seen and nothing else that a terminal would obey. A full disk is an error like
//! any other, and a reader of standard output that went away is one that ends the program quietly.

use std::fmt;
use std::io::{self, Write};

use super::bar::beside;
use super::foreign::screen;
use super::page;

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
    match page::is_begun() {
        true => page::add(&screen(&text.to_string())),
        false => beside(|| write(&mut anstream::stdout().lock(), text))?,
    }
    Ok(())
}

/// Prints a line to standard error. If that is closed nobody wants to know.
pub fn aside(text: fmt::Arguments<'_>) {
    let _ = beside(|| write(&mut anstream::stderr().lock(), text));
}

fn write(out: &mut impl Write, text: fmt::Arguments<'_>) -> io::Result<()> {
    out.write_all(screen(&text.to_string()).as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}
