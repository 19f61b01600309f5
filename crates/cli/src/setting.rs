//! The configuration, as the global arguments name it.

use redrive::config::{ConfigError, RanCommands, Setting, isolation};

use crate::args::Global;

/// The command that runs one job in a process of its own.
pub const ISOLATED_JOB: &str = "isolated-job";

/// Reads the configuration; the command line comes before it.
pub fn load(global: &Global) -> Result<Setting, ConfigError> {
    let setting = Setting::load(global.config.as_deref(), global.store.as_deref())?;
    Ok(setting.isolated_by(isolation::this_program(&[ISOLATED_JOB])).remembering(RanCommands::of_this_user()))
}
