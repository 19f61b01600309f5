//! `redrive completions`: a completion script for a shell.

use std::io::Write;

use anyhow::Result;
use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Exit;

pub fn run(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "redrive", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Exit::Ok)
}
