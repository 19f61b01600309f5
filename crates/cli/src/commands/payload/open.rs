//! `redrive payload open`: writes a payload to a temporary file and says where.

use anyhow::{Context, Result};
use redrive::payloads::extension;

use super::Kept;
use crate::exit::Exit;
use crate::output::print::out;

pub async fn run(kept: &Kept, id: &str) -> Result<Exit> {
    let payload = kept.desk.find_payload(id).await?;
    let name = format!("redrive-{}", &payload.hash.to_string()[..12]);
    let file = tempfile::Builder::new()
        .prefix(&name)
        .suffix(extension(&payload))
        .tempfile()
        .context("cannot make a temporary file")?;
    let (file, path) = file.keep().context("cannot keep the temporary file")?;
    kept.write(id, &payload, file).await?;
    out!("{}", path.display())?;
    Ok(Exit::Ok)
}
