//! The request behind a dead letter, as its pipeline would send it, without secrets; and what came back.

use std::collections::HashMap;

use redrive_core::dead::DeadLetter;
use redrive_core::failures::Failure;
use redrive_core::ids::PipelineName;
use redrive_core::payloads::PayloadHash;
use redrive_core::secrets::Secrets;

use crate::config::{ConfigError, Overrides, Setting};
use crate::error::Error;
use crate::export::HttpRequest;
use crate::pipeline::Pipeline;
use crate::vault::{Vault, VaultError};

/// The longest payload that is put into a network log, in bytes.
pub const LOGGED_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Makes requests for letters of any pipeline.
pub struct Requests<'a> {
    setting: &'a Setting,
    pipelines: HashMap<PipelineName, Option<Pipeline>>,
    /// Hears why the request of a pipeline's letters is a guess.
    guessed: Box<dyn FnMut(&ConfigError) + Send + 'a>,
}

impl<'a> Requests<'a> {
    /// Makes requests as the configuration has them. `guessed` hears of each pipeline of it that cannot be set up: the
    /// requests of its letters are guesses.
    pub fn new(setting: &'a Setting, guessed: impl FnMut(&ConfigError) + Send + 'a) -> Self {
        Self { setting, pipelines: HashMap::new(), guessed: Box::new(guessed) }
    }

    /// Returns the last request of a letter.
    pub fn last(&mut self, letter: &DeadLetter) -> Option<HttpRequest> {
        self.of(letter, letter.failures.iter().flatten().last())
    }

    /// Returns the request that a failure of a letter is about: its pipeline's, or else a plain one of its input's address. Without a
    /// failure it is the first that the pipeline sends.
    pub fn of(&mut self, letter: &DeadLetter, failure: Option<&Failure>) -> Option<HttpRequest> {
        let task = failure.and_then(|failure| failure.task_id.as_deref());
        let Self { setting, pipelines, guessed } = self;
        let pipeline = pipelines.entry(letter.pipeline.clone()).or_insert_with(|| {
            let built = setting.pipeline(letter.pipeline.clone(), &Overrides::default());
            // A pipeline that is not, or no longer, in the configuration leaves the plain request.
            if let (Err(error), true) = (&built, setting.config.pipeline.contains_key(&letter.pipeline)) {
                guessed(error);
            }
            built.ok().map(|(pipeline, _)| pipeline)
        });
        pipeline.as_ref().and_then(|pipeline| pipeline.request(&letter.input, task)).or_else(|| plain(letter))
    }
}

fn plain(letter: &DeadLetter) -> Option<HttpRequest> {
    let url = letter.input.get("url")?.as_str().filter(|url| url.contains("://"))?;
    Some(HttpRequest { method: "GET".into(), url: Secrets::default().mask(url), ..HttpRequest::default() })
}

/// The payloads of a letter, as far as they are there and fit a network log.
pub async fn logged_bodies(vault: &Vault, letter: &DeadLetter) -> Result<HashMap<PayloadHash, Vec<u8>>, Error> {
    let mut bodies = HashMap::new();
    let payloads = letter.failures.iter().flatten().filter_map(|failure| failure.payload.as_ref());
    for payload in payloads.filter(|payload| payload.size_bytes <= LOGGED_BYTES_MAX) {
        let mut body = Vec::new();
        match vault.copy(payload.hash, &mut body).await {
            Ok(_) => drop(bodies.insert(payload.hash, body)),
            Err(VaultError::Missing(_) | VaultError::Damaged(_) | VaultError::OnItsWay { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bodies)
}
