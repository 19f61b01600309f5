//! Pipelines: where they stand, what they are, pausing, resuming and forgetting them. A server knows them by its own configuration.

use std::collections::BTreeMap;

use redrive::Error;
use redrive::config::{Explained, Setting};
use redrive::pipelines::{PipelineError, PipelineView};
use redrive_core::actors::Actor;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::pipelines::{Pause, PauseWish};
use serde_json::json;

use crate::desk::Desk;
use crate::page::{Listed, all};

impl Desk {
    /// See [`redrive::Redrive::list_pipelines`].
    pub async fn list_pipelines(&self, setting: &Setting) -> Result<Vec<PipelineView>, Error> {
        match self {
            Self::Here(redrive) => redrive.list_pipelines(setting).await,
            Self::There(server) => all(server, &["pipelines"], Vec::new()).await,
        }
    }

    /// See [`redrive::Redrive::find_pipeline`].
    pub async fn find_pipeline(&self, setting: &Setting, name: &PipelineName) -> Result<PipelineView, Error> {
        match self {
            Self::Here(redrive) => redrive.find_pipeline(setting, name).await,
            Self::There(server) => server.get(&["pipelines", name.as_str()]).read().await,
        }
    }

    /// See [`redrive::Redrive::explain_pipeline`].
    pub async fn explain_pipeline(&self, setting: &Setting, name: &PipelineName) -> Result<Vec<Explained>, Error> {
        match self {
            Self::Here(redrive) => redrive.explain_pipeline(setting, name).await,
            Self::There(server) => {
                let ask = server.get(&["pipelines", name.as_str(), "definition"]);
                Ok(ask.read::<Listed<_>>().await?.items)
            }
        }
    }

    /// See [`redrive::Redrive::pause_pipeline_with`]. A server knows by itself who it is by.
    pub async fn pause_pipeline(&self, name: &PipelineName, wish: PauseWish, by: &Actor) -> Result<Pause, Error> {
        match self {
            Self::Here(redrive) => redrive.pause_pipeline_with(name, wish, by, None).await,
            Self::There(server) => {
                let PauseWish { why, until } = wish;
                // A server of before knows of no end, and is not told of one that there is not.
                let asked = match until {
                    Some(until) => json!({ "why": why, "until": until }),
                    None => json!({ "why": why }),
                };
                server.post(&["pipelines", name.as_str(), "pause"]).body(&asked)?.read().await
            }
        }
    }

    /// See [`redrive::Redrive::resume_pipeline`].
    pub async fn resume_pipeline(&self, name: &PipelineName, by: &Actor) -> Result<Pause, Error> {
        match self {
            Self::Here(redrive) => redrive.resume_pipeline(name, by).await,
            Self::There(server) => server.post(&["pipelines", name.as_str(), "resume"]).read().await,
        }
    }

    /// See [`redrive::Redrive::forget_pipeline`].
    pub async fn forget_pipeline(
        &self,
        setting: &Setting,
        name: &PipelineName,
        by: &Actor,
    ) -> Result<PipelineView, Error> {
        match self {
            Self::Here(redrive) => redrive.forget_pipeline(setting, name, by).await,
            Self::There(server) => server.post(&["pipelines", name.as_str(), "forget"]).read().await,
        }
    }

    /// The pipelines that rest, and why.
    pub async fn pauses(&self) -> Result<BTreeMap<PipelineName, Pause>, Error> {
        match self {
            Self::Here(redrive) => Ok(redrive.store().pauses().await?),
            Self::There(_) => Ok(self.status().await?.pauses),
        }
    }

    /// See [`redrive::Redrive::check_not_paused`].
    pub async fn check_not_paused<'a>(&self, names: impl IntoIterator<Item = &'a PipelineName>) -> Result<(), Error> {
        let pauses = self.pauses().await?;
        match names.into_iter().find_map(|name| pauses.get_key_value(name)) {
            Some((name, pause)) => Err(PipelineError::Paused { name: name.clone(), pause: pause.clone() }.into()),
            None => Ok(()),
        }
    }

    /// The ledgers of all pipelines.
    pub async fn ledgers(&self) -> Result<BTreeMap<PipelineName, Ledger>, Error> {
        match self {
            Self::Here(redrive) => Ok(redrive.store().ledgers().await?),
            Self::There(_) => Ok(self.status().await?.pipelines),
        }
    }

    /// See [`redrive::Redrive::ledger`].
    pub async fn ledger(&self, pipeline: &PipelineName) -> Result<Ledger, Error> {
        Ok(self.ledgers().await?.get(pipeline).copied().unwrap_or_default())
    }
}
