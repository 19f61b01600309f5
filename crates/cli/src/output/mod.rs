//! What people see: tables, progress, colours, the log.

pub mod bars;
pub mod csv;
pub mod log;
pub mod paint;
pub mod print;
pub mod progress;
pub mod report;
pub mod table;
