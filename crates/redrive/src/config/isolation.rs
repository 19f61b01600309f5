//! How a built-in handler comes into being in another process: its section of the configuration and what that took from
//! outside go there by a pipe.

use std::path::Path;
use std::sync::Arc;

use crate::Handler;
use crate::handler::Elsewhere;
use crate::handler::exec::Command;
use crate::handler::isolated::MEMORY_BYTES_MAX;
use redrive_core::ids::PipelineName;
use redrive_core::secrets::Secrets;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::outside::{self, Values};
use super::{Config, HandlerKind, PipelineConfig, http};

/// What a handler is made of.
#[derive(Debug, Serialize, Deserialize)]
struct Definition {
    /// The pipeline's section, as TOML.
    section: String,
    outside: Values,
}

/// This very program with other arguments: a command that serves isolated jobs, if what it does with them is
/// [`serve`](crate::handler::isolated::serve) with [`build`].
pub fn this_program(args: &[&str]) -> Command {
    // The file that this process was started from, even if another was put in its place since.
    let running = Path::new("/proc/self/exe");
    let program = if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() };
    Command {
        program: program.map_or_else(|_| "redrive".into(), Into::into),
        args: args.iter().map(Into::into).collect(),
        env: Vec::new(),
        folder: None,
        memory_bytes_max: Some(MEMORY_BYTES_MAX),
        secrets: Secrets::default(),
        pure: false,
    }
}

/// What the handler of a pipeline is made of, for another process.
pub(super) fn definition(config: &Config, name: &PipelineName, outside: Values) -> Option<Value> {
    let file: toml::Table = toml::from_str(&config.text).ok()?;
    let section = toml::to_string(file.get("pipeline")?.get(name.as_str())?).ok()?;
    serde_json::to_value(Definition { section, outside }).ok()
}

/// Makes the handler of a definition, in a process that does nothing else.
pub fn build(definition: Value) -> Result<Arc<dyn Handler>, String> {
    let Definition { section, outside } = serde_json::from_value(definition).map_err(|error| error.to_string())?;
    outside::give(outside);
    let config: PipelineConfig = toml::from_str(&section).map_err(|error| error.to_string())?;
    handler(&config)?.ok_or_else(|| "a command has a process of its own anyway".to_owned())
}

/// The built-in handler of a pipeline; none if it runs a command.
pub(crate) fn handler(config: &PipelineConfig) -> Result<Option<Arc<dyn Handler>>, String> {
    Ok(match config.handler {
        HandlerKind::Http => Some(Arc::new(http::http(config)?)),
        HandlerKind::SubmitPoll => Some(Arc::new(http::submit_poll(config)?)),
        HandlerKind::Remote => Some(Arc::new(Elsewhere::masking(config.secrets()))),
        HandlerKind::Exec => None,
    })
}
