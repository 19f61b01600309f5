//! `redrive payload verify`: reads payloads back and checks their hashes.

use anyhow::Result;
use redrive::Redrive;
use redrive::vault::{Vault, VaultError};
use redrive_core::payloads::PayloadHash;
use redrive_store::contract::ListPayloads;

use crate::exit::Exit;
use crate::output::print::out;

pub async fn run(redrive: &Redrive, vault: &Vault, ids: Vec<String>) -> Result<Exit> {
    let mut tally = Tally::default();
    for id in &ids {
        tally.check(vault, super::find(redrive, id).await?.hash).await?;
    }
    let mut cursor = None;
    while ids.is_empty() {
        let page = redrive.store().list_payloads(ListPayloads { prefix: None, limit: 500, cursor }).await?;
        for payload in &page.items {
            tally.check(vault, payload.hash).await?;
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    out!("{} payloads are whole, {} are not", tally.whole, tally.broken)?;
    if tally.elsewhere > 0 {
        out!("{} are on their way from another machine: check them there", tally.elsewhere)?;
    }
    Ok(if tally.broken > 0 { Exit::NotSound } else { Exit::Ok })
}

#[derive(Default)]
struct Tally {
    whole: u64,
    broken: u64,
    elsewhere: u64,
}

impl Tally {
    async fn check(&mut self, vault: &Vault, hash: PayloadHash) -> Result<()> {
        match vault.verify(hash).await {
            Ok(()) => self.whole += 1,
            Err(error @ (VaultError::Missing(_) | VaultError::Damaged(_))) => {
                self.broken += 1;
                out!("{error}")?;
            }
            Err(VaultError::OnItsWay { .. }) => self.elsewhere += 1,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
