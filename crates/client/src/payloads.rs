//! Payloads: the raw responses that were kept. Their bytes pass through as they come.

use std::collections::HashMap;
use std::time::Duration;

use redrive::contract::{ListPayloads, Page, PayloadView};
use redrive::dead::{DeadError, LOGGED_BYTES_MAX, logged_bodies};
use redrive::payloads::{Cleared, Verified, clear};
use redrive::vault::{Vault, VaultError};
use redrive::{Error, ErrorKind};
use redrive_core::actors::Actor;
use redrive_core::dead::DeadLetter;
use redrive_core::payloads::{Payload, PayloadHash};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::ask::LONG;
use crate::desk::Desk;
use crate::page::{fields, page};

/// Payloads that are named at once.
const NAMED_AT_ONCE: usize = 1_000;

/// How many payloads are whole, and what is wrong with others.
#[derive(Deserialize)]
struct Checked {
    #[serde(flatten)]
    verified: Verified,
    wrong: Vec<String>,
}

fn no_vault() -> Error {
    Error::Internal("there is no vault".to_owned())
}

impl Desk {
    /// A page of payloads, by hash.
    pub async fn list_payloads(&self, params: ListPayloads) -> Result<Page<PayloadView>, Error> {
        let server = match self {
            Self::Here(redrive) => return Ok(redrive.store().list_payloads(params).await?),
            Self::There(server) => server,
        };
        let ListPayloads { prefix, limit, cursor } = params;
        page(limit, cursor, async |limit, cursor| {
            let asked = fields(json!({ "prefix": prefix, "limit": limit, "cursor": cursor }));
            server.get(&["payloads"]).query(asked).read().await
        })
        .await
    }

    /// See [`redrive::Redrive::find_payload`].
    pub async fn find_payload(&self, name: &str) -> Result<Payload, Error> {
        match self {
            Self::Here(redrive) => redrive.find_payload(name).await,
            Self::There(server) => server.get(&["payloads", name]).read().await,
        }
    }

    /// See [`redrive::Redrive::verify_payloads`]. `broken` hears what is wrong with each that is not whole.
    pub async fn verify_payloads(
        &self,
        vault: Option<&Vault>,
        names: &[String],
        mut broken: impl FnMut(&str),
    ) -> Result<Verified, Error> {
        let server = match (self, vault) {
            (Self::There(server), _) => server,
            (Self::Here(redrive), Some(vault)) => {
                return redrive.verify_payloads(vault, names, |error| broken(&error.to_string())).await;
            }
            (Self::Here(_), None) => return Err(no_vault()),
        };
        let mut all = Verified::default();
        // No names at all mean all payloads.
        let pieces: Vec<&[String]> = if names.is_empty() { vec![names] } else { names.chunks(NAMED_AT_ONCE).collect() };
        for some in pieces {
            let ask = server.post(&["payloads", "verify"]).body(&json!({ "ids": some }))?.within(Some(LONG));
            let Checked { verified, wrong } = ask.read().await?;
            wrong.iter().for_each(|wrong| broken(wrong));
            all.whole += verified.whole;
            all.broken += verified.broken;
            all.elsewhere += verified.elsewhere;
        }
        Ok(all)
    }

    /// See [`redrive::payloads::clear`]. A server knows by itself who it is by.
    pub async fn clear_payloads(
        &self,
        vault: Option<&Vault>,
        (grace, adopt): (Duration, bool),
        by: &Actor,
    ) -> Result<Cleared, Error> {
        match (self, vault) {
            (Self::There(server), _) => {
                let asked = json!({ "grace": format!("{}ms", grace.as_millis()), "adopt": adopt });
                server.post(&["payloads", "gc"]).body(&asked)?.within(Some(LONG)).read().await
            }
            (Self::Here(_), Some(vault)) => clear(vault, grace, adopt, by).await,
            (Self::Here(_), None) => Err(no_vault()),
        }
    }

    /// See [`redrive::dead::logged_bodies`]; nothing where there is no vault.
    pub async fn logged_bodies(
        &self,
        vault: Option<&Vault>,
        letter: &DeadLetter,
    ) -> Result<HashMap<PayloadHash, Vec<u8>>, Error> {
        match (self, vault) {
            (Self::Here(_), Some(vault)) => return logged_bodies(vault, letter).await,
            (Self::Here(_), None) => return Ok(HashMap::new()),
            (Self::There(_), _) => {}
        }
        let payloads = letter.failures.iter().flatten().filter_map(|failure| failure.payload.as_ref());
        let mut bodies = HashMap::new();
        for payload in payloads.filter(|payload| payload.size_bytes <= LOGGED_BYTES_MAX) {
            let mut body = Vec::new();
            match self.copy_payload(None, (&payload.hash.to_string(), payload.hash), &mut body).await {
                Ok(_) => drop(bodies.insert(payload.hash, body)),
                Err(error) if error.kind() == ErrorKind::Missing => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bodies)
    }

    /// Writes the bytes of a payload of a job, if a server still has them; says whether it has.
    pub(crate) async fn has_copied(
        &self,
        (job, payload): (&str, &Payload),
        out: &mut (impl AsyncWrite + Unpin),
    ) -> Result<bool, Error> {
        let hash = payload.hash;
        let mut copied = self.copy_payload(None, (&hash.to_string(), hash), out).await;
        // Who is let near some pipelines only names a job of theirs, and gets its newest.
        if matches!(&copied, Err(Error::Server { code, .. }) if code == "pipeline_required") {
            copied = self.copy_payload(None, (job, hash), out).await;
        }
        match copied {
            Ok(_) => Ok(true),
            Err(Error::Vault(error)) if matches!(*error, VaultError::Damaged(_)) => Ok(false),
            Err(error) if error.kind() == ErrorKind::Missing => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes the bytes of a payload that was found by a name, and says how many they are: of the vault, or of the server's.
    pub async fn copy_payload(
        &self,
        vault: Option<&Vault>,
        (name, hash): (&str, PayloadHash),
        out: &mut (impl AsyncWrite + Unpin),
    ) -> Result<u64, Error> {
        let server = match (self, vault) {
            (Self::There(server), _) => server,
            (Self::Here(_), Some(vault)) => return Ok(vault.copy(hash, out).await?),
            (Self::Here(_), None) => return Err(no_vault()),
        };
        let failed = |message: String| Error::Server {
            kind: ErrorKind::Failed,
            code: "cut_off".to_owned(),
            message: format!("payload {hash} could not be read whole: {message}"),
        };
        let mut answer = server.get(&["payloads", name, "bytes"]).within(None).stream().await?;
        let (mut hasher, mut copied) = (blake3::Hasher::new(), 0);
        while let Some(chunk) = answer.chunk().await.map_err(|error| failed(error.without_url().to_string()))? {
            out.write_all(&chunk).await.map_err(DeadError::Unwritten)?;
            hasher.update(&chunk);
            copied += chunk.len() as u64;
        }
        out.flush().await.map_err(DeadError::Unwritten)?;
        match hasher.finalize().as_bytes() == hash.as_bytes() {
            true => Ok(copied),
            false => Err(VaultError::Damaged(hash.to_string()).into()),
        }
    }
}
