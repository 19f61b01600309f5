//! What people see: tables, progress, colours, the log. All of it goes out through `print`, and text of unknown origin
//! through `foreign`.

pub mod bar;
pub mod bars;
pub mod csv;
pub mod foreign;
pub mod json;
pub mod log;
pub mod page;
pub mod paint;
pub mod print;
pub mod problem;
pub mod progress;
pub mod report;
pub mod retrying;
pub mod shown;
pub mod table;
pub mod times;
pub mod typed;
pub mod words;
