//! `redrive dead export`: dead letters with all their failures, as JSON Lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use redrive_store::contract::ListDead;

use super::super::filter;
use crate::args::ExportArgs;
use crate::exit::Exit;
use crate::setting::Setting;

const PAGE: u32 = 500;

pub async fn run(setting: &Setting, args: ExportArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing()?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let to_stdout = args.file == Path::new("-");
    let place = args.file.display().to_string();
    let mut out: Box<dyn Write> = match to_stdout {
        true => Box::new(BufWriter::new(std::io::stdout())),
        false => Box::new(BufWriter::new(File::create(&args.file).with_context(|| format!("cannot write {place}"))?)),
    };
    let (mut exported, mut cursor) = (0, None);
    loop {
        let params = ListDead { filter: filter.clone(), limit: PAGE, cursor, with_failures: true };
        let page = redrive.store().list_dead(params).await?;
        for letter in &page.items {
            serde_json::to_writer(&mut out, letter)
                .map_err(std::io::Error::from)
                .with_context(|| format!("cannot write {place}"))?;
            out.write_all(b"\n").with_context(|| format!("cannot write {place}"))?;
        }
        exported += page.items.len();
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    out.flush().with_context(|| format!("cannot write {place}"))?;
    if !to_stdout {
        File::open(&args.file).and_then(|file| file.sync_all()).with_context(|| format!("cannot write {place}"))?;
    }
    eprintln!("{exported} dead letters exported");
    Ok(Exit::Ok)
}
