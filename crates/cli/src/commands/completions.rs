//! `redrive completions`: a completion script for a shell.

use anyhow::Result;
use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::Exit;

pub fn run(shell: clap_complete::Shell) -> Result<Exit> {
    clap_complete::generate(shell, &mut Cli::command(), "redrive", &mut std::io::stdout());
    Ok(Exit::Ok)
}
