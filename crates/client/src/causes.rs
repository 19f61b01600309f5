//! Causes: what fails, and what people say about it.

use redrive::Error;
use redrive::causes::{CausesAsked, ExplainedLetter, FoundCauses};
use redrive::compare::Differences;
use redrive::contract::{CauseDetail, CauseView, Page};
use redrive_core::actors::Actor;
use redrive_core::causes::rules::Likeness;
use redrive_core::causes::{CauseChange, CauseId, CauseSort, SplitBy};
use redrive_core::ids::{JobId, PipelineName};
use redrive_core::ledger::dead_letters;
use redrive_core::retrying::RetryingView;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::page::{fields, up_to};

/// What a list of causes says besides.
#[derive(Deserialize)]
struct Retrying {
    #[serde(default)]
    retrying: Vec<RetryingView>,
}

impl Desk {
    /// See [`redrive::Redrive::list_causes`].
    pub async fn list_causes(&self, asked: CausesAsked) -> Result<FoundCauses, Error> {
        let server = match self {
            Self::Here(redrive) => return redrive.list_causes(asked).await,
            Self::There(server) => server,
        };
        let of = asked.pipeline.clone();
        let CausesAsked { pipeline, states, owner, all, sort, limit } = asked;
        // Servers that know no other order than that are asked as before.
        let sort = Some(sort).filter(|sort| *sort != CauseSort::default());
        let asked = json!({ "pipeline": pipeline, "state": states, "owner": owner, "all": all, "sort": sort });
        let Page { items, next } = up_to(limit, server, &["causes"], fields(asked)).await?;
        Ok(FoundCauses { causes: items, more: next.is_some(), dead: dead_letters(&self.ledgers().await?, of.as_ref()) })
    }

    /// Reads the last failures of jobs that wait for another attempt, of each pipeline (or of one) with a target on hold.
    pub async fn retrying(&self, pipeline: Option<&PipelineName>) -> Result<Vec<RetryingView>, Error> {
        match self {
            Self::Here(redrive) => redrive.retrying(|name| pipeline.is_none_or(|only| only == name)).await,
            Self::There(server) => {
                let asked = fields(json!({ "pipeline": pipeline, "limit": 1 }));
                Ok(server.get(&["causes"]).query(asked).read::<Retrying>().await?.retrying)
            }
        }
    }

    /// A cause, and why its letters belong together.
    pub async fn get_cause(&self, id: CauseId) -> Result<CauseDetail, Error> {
        match self {
            Self::Here(redrive) => Ok(redrive.store().get_cause(id, redrive.now()).await?),
            Self::There(server) => server.get(&["causes", id.as_str()]).read().await,
        }
    }

    /// See [`redrive::Redrive::differences`].
    pub async fn differences(&self, cause: &CauseView) -> Result<Differences, Error> {
        match self {
            Self::Here(redrive) => redrive.differences(cause).await,
            Self::There(server) => server.get(&["causes", cause.id.as_str(), "differences"]).read().await,
        }
    }

    /// See [`redrive::Redrive::change_cause`]. A server knows by itself who it is by.
    pub async fn change_cause(&self, id: &CauseId, wanted: &CauseChange, by: &Actor) -> Result<CauseId, Error> {
        match self {
            Self::Here(redrive) => redrive.change_cause(id, wanted, by).await,
            Self::There(server) => {
                let ask = server.post(&["causes", id.as_str(), "changes"]).body(&change(wanted))?;
                Ok(ask.read::<CauseDetail>().await?.cause.id)
            }
        }
    }

    /// See [`redrive::Redrive::explain_letter`].
    pub async fn explain_letter(&self, id: JobId) -> Result<Option<ExplainedLetter>, Error> {
        Ok(ExplainedLetter::of(&self.dead_letter(id).await?))
    }
}

/// A change of a cause, as a server takes it.
fn change(wanted: &CauseChange) -> Value {
    match wanted {
        CauseChange::Assign(owner) => json!({ "verb": "assign", "owner": owner }),
        CauseChange::Note(text) => json!({ "verb": "note", "text": text }),
        CauseChange::Mute(mute) => json!({ "verb": "mute", "until": mute.until, "per_hour": mute.per_hour }),
        CauseChange::Unmute => json!({ "verb": "unmute" }),
        CauseChange::Resolve(why) => json!({ "verb": "resolve", "why": why }),
        CauseChange::Reopen => json!({ "verb": "reopen" }),
        CauseChange::MergeInto(into) => json!({ "verb": "merge", "into": into }),
        CauseChange::Split(SplitBy::Key(key)) => json!({ "verb": "split", "key": key }),
        CauseChange::Split(SplitBy::Like(Likeness::Target(target))) => json!({ "verb": "split", "target": target }),
        CauseChange::Split(SplitBy::Like(Likeness::Text(text))) => json!({ "verb": "split", "text": text }),
    }
}
