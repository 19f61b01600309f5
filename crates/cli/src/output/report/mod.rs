//! The report as people see it: a page for a browser, lines for a terminal.
//!
//! - `html`: the page; `terminal`: the lines
//! - `headline`: the sentence that says the most important thing
//! - `hours`: which of them share a column
//!
//! How numbers are written, what a colour means and how charts are drawn is the same as on the pages of the server.

pub use redrive_server::look::{charts, different, figures, tone};

mod headline;
mod hours;
pub mod html;
#[cfg(test)]
mod sample;
pub mod terminal;
