//! `redrive isolated-job`: what `redrive` starts itself as, for a job that a worker died with.

use anyhow::Result;
use redrive::config::isolation;
use redrive::handler::isolated;

use crate::exit::{Exit, usage};

pub async fn run() -> Result<Exit> {
    Err(usage(isolated::serve(isolation::build).await))
}
