//! The `redrive` command: reads arguments, calls the engine, prints.
//!
//! - `args`: what can be typed
//! - `setting`: the configuration that the arguments name
//! - `handle`: the engine or a server, which answer the same requests
//! - `commands`: one file per command
//! - `output`: tables, progress, colours
//! - `exit`: exit codes and how errors end the program; `advice`: the way out of an error of the store

mod advice;
mod args;
mod commands;
mod exit;
mod handle;
mod output;
mod setting;

use std::time::Duration;

use clap::Parser;

/// Returns memory to the system once a burst is over.
#[cfg(all(target_os = "linux", feature = "jemalloc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How long the process waits for threads that are still busy when its work is over.
const LAST_MOMENT: Duration = Duration::from_secs(1);

fn main() -> std::process::ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::refuse(&error),
    };
    output::typed::remember(&cli.global);
    if let Err(error) = output::log::start(&cli.global) {
        return exit::report(&error);
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return exit::report(&anyhow::Error::new(error).context("cannot start")),
    };
    let ended = runtime.block_on(commands::run(cli));
    output::bar::gone();
    let ended = match ended {
        Ok(exit) => exit.into(),
        Err(error) => exit::report(&error),
    };
    output::log::finish();
    // What was begun is done or given back. A thread that is still busy (with a pipe that nobody writes to, say) would
    // keep the process for ever otherwise.
    runtime.shutdown_timeout(LAST_MOMENT);
    ended
}
