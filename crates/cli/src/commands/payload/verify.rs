//! `redrive payload verify`: reads payloads back and checks their hashes.

use std::io;

use anyhow::Result;

use super::Kept;
use crate::exit::Exit;
use crate::output::print::out;
use crate::output::typed::REDRIVE;

pub async fn run(kept: &Kept, ids: Vec<String>) -> Result<Exit> {
    let mut printed: io::Result<()> = Ok(());
    let broken = |wrong: &str| {
        if printed.is_ok() {
            printed = out!("{wrong}");
        }
    };
    let verified = kept.desk.verify_payloads(kept.vault.as_ref(), &ids, broken).await?;
    printed?;
    out!("{} payloads are whole, {} are not", verified.whole, verified.broken)?;
    if verified.broken > 0 {
        out!(
            "plans leave those out until they are found again; `{REDRIVE} dead list` shows letters, and --refetch of a retry or a replay fetches them again"
        )?;
    }
    if verified.elsewhere > 0 {
        out!("{} are on their way from another machine: check them there", verified.elsewhere)?;
    }
    Ok(if verified.broken > 0 { Exit::NotSound } else { Exit::Ok })
}
