//! What can be typed with every command.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Clone, Debug, Args)]
pub struct Global {
    /// Where the tasks are kept: sqlite:PATH, postgres://USER@HOST/DATABASE or memory:
    #[arg(long, global = true, env = "REDRIVE_STORE", value_name = "STORE", help_heading = "Global options")]
    pub store: Option<String>,
    /// Ask a server instead of a store: https://HOST, or http://127.0.0.1:PORT. The token is in REDRIVE_TOKEN
    #[arg(long, global = true, env = "REDRIVE_SERVER", value_name = "URL", help_heading = "Global options")]
    pub server: Option<String>,
    /// The file with the token for the server, instead of REDRIVE_TOKEN
    #[arg(long, global = true, env = "REDRIVE_TOKEN_FILE", value_name = "FILE", help_heading = "Global options")]
    pub token_file: Option<PathBuf>,
    /// The configuration file [default: redrive.toml, if it is in the current folder]
    #[arg(long, global = true, env = "REDRIVE_CONFIG", value_name = "FILE", help_heading = "Global options")]
    pub config: Option<PathBuf>,
    /// Say more: every attempt that fails, on one line; twice for even more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    pub verbose: u8,
    /// Append the log to a file instead of printing it to standard error; every attempt that fails is in it
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub log: Option<PathBuf>,
    /// How the log is written
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "text",
        value_name = "FORMAT",
        help_heading = "Global options"
    )]
    pub log_format: LogFormat,
}

/// What completion scripts ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Known {
    Pipelines,
    Causes,
    Rounds,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// A JSON object per line
    Json,
}
