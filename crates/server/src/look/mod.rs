//! How things look, the same on the pages of the dashboard, in the HTML report and, as far as it can be, in a terminal.
//!
//! - [`figures`]: how numbers and times are written
//! - [`tone`]: what a colour means
//! - [`charts`]: pictures, SVG made from numbers
//! - [`foreign`]: text of unknown origin

pub mod charts;
pub mod figures;
pub mod foreign;
pub mod tone;

/// The colours and fonts of every page, light and dark.
pub const PALETTE: &str = include_str!("palette.css");
