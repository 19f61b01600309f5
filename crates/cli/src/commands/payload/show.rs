//! `redrive payload show`: the exact bytes, or what came with them.

use anyhow::Result;
use redrive::Redrive;
use redrive::vault::Vault;

use crate::args::PayloadShowArgs;
use crate::exit::Exit;
use crate::output::print::out;

pub async fn run(redrive: &Redrive, vault: &Vault, args: PayloadShowArgs) -> Result<Exit> {
    let payload = super::find(redrive, &args.id).await?;
    if args.meta {
        out!("{}", serde_json::to_string_pretty(&payload)?)?;
        return Ok(Exit::Ok);
    }
    vault.copy(payload.hash, &mut tokio::io::stdout()).await?;
    if payload.truncated {
        let total = payload.total_bytes.unwrap_or(payload.size_bytes);
        eprintln!("cut off: the first {} of {total} bytes were kept", payload.size_bytes);
    }
    Ok(Exit::Ok)
}
