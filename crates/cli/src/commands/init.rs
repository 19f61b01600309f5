//! `redrive init`: writes a commented `redrive.toml`.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};
use redrive::config::{FILE_NAME, TEMPLATE};

use crate::args::InitArgs;
use crate::exit::{Exit, usage};
use crate::output::print::out;

pub fn run(args: &InitArgs) -> Result<Exit> {
    let mut options = OpenOptions::new();
    options.write(true).create(args.force).truncate(args.force).create_new(!args.force);
    let mut file = match options.open(FILE_NAME) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(usage(format!("{FILE_NAME} is already there: edit it, or write over it with --force")));
        }
        opened => opened.with_context(|| format!("cannot write {FILE_NAME}"))?,
    };
    file.write_all(TEMPLATE.as_bytes()).with_context(|| format!("cannot write {FILE_NAME}"))?;
    out!("wrote {FILE_NAME}: set the command of its pipeline, then `redrive run tasks.jsonl`")?;
    Ok(Exit::Ok)
}
