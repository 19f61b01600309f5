//! `redrive payload open`: writes a payload to a temporary file and says where.

use anyhow::{Context, Result};
use redrive::Redrive;
use redrive::vault::Vault;
use redrive_core::payloads::Payload;

use crate::exit::Exit;
use crate::output::print::out;

pub async fn run(redrive: &Redrive, vault: &Vault, id: &str) -> Result<Exit> {
    let payload = super::find(redrive, id).await?;
    let name = format!("redrive-{}", &payload.hash.to_string()[..12]);
    let file = tempfile::Builder::new()
        .prefix(&name)
        .suffix(extension(&payload))
        .tempfile()
        .context("cannot make a temporary file")?;
    let (file, path) = file.keep().context("cannot keep the temporary file")?;
    super::write(vault, &payload, file).await?;
    out!("{}", path.display())?;
    Ok(Exit::Ok)
}

/// An ending by which other programs know what it is.
fn extension(payload: &Payload) -> &'static str {
    let header = payload.response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    match header.map(|(_, value)| value.split(';').next().unwrap_or_default().trim()) {
        Some("text/html" | "application/xhtml+xml") => ".html",
        Some("application/json") => ".json",
        Some("text/xml" | "application/xml") => ".xml",
        Some("text/plain") => ".txt",
        _ => ".payload",
    }
}
