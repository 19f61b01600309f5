//! The report as people see it: a page for a browser, lines for a terminal.
//!
//! - `html`: the page; `charts`: its pictures, SVG made here; `terminal`: the lines
//! - `headline`: the sentence that says the most important thing
//! - `figures`: how numbers are written; `hours`: which of them share a column; `tone`: what a colour means

pub mod charts;
pub mod figures;
mod headline;
mod hours;
pub mod html;
#[cfg(test)]
mod sample;
pub mod terminal;
pub mod tone;
