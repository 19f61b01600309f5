//! `POST /causes/{id}/changes`

use axum::Json;
use axum::extract::State;
use redrive_core::causes::{CauseChange, CauseId, Likeness, Mute, SplitBy};
use redrive_core::time::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use super::show::{Shown, look};
use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, Named, called, future, said};
use crate::error::ApiError;

/// What is done to a cause.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = CauseVerb)]
pub enum Verb {
    /// Says who looks after it: `owner`, or nobody.
    Assign,
    /// Writes something down: `text`.
    Note,
    /// Hears no more of it, `until` a time or until it kills so many jobs `per_hour`.
    Mute,
    /// Hears of it again.
    Unmute,
    /// Says that it is over, and `why`.
    Resolve,
    /// Says that it is not over.
    Reopen,
    /// Says that it is the same as another: `into`.
    Merge,
    /// Says that a part of it is something else: of a `key`, of a `target`, or with a `text` in the message.
    Split,
}

/// A change of a cause. Fields that the verb does not take are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeCause)]
pub struct Asked {
    /// What is done.
    verb: Verb,
    /// `version` of the cause as it was seen: if others changed it since, nothing is done.
    version: Option<u64>,
    /// For `assign`: who.
    #[serde(default, deserialize_with = "called")]
    owner: Option<String>,
    /// For `note`: what; for `split`: what stands in the messages.
    #[serde(default, deserialize_with = "said")]
    text: Option<String>,
    /// For `mute`: `7d` (from now), a day or a time.
    until: Option<String>,
    /// For `mute`: jobs in an hour.
    per_hour: Option<u32>,
    /// For `resolve`: why.
    #[serde(default, deserialize_with = "said")]
    why: Option<String>,
    /// For `merge`: the cause that it becomes part of.
    #[schema(value_type = Option<String>)]
    into: Option<CauseId>,
    /// For `split`: one of its keys.
    #[serde(default, deserialize_with = "called")]
    key: Option<String>,
    /// For `split`: the target.
    #[serde(default, deserialize_with = "called")]
    target: Option<String>,
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<CauseId>,
    Body(asked): Body<Asked>,
) -> Result<Json<Shown>, ApiError> {
    let (redrive, now) = (app.redrive(), app.redrive().asked_at());
    let before = redrive.store().get_cause(id, now).await?;
    caller.check(&before.cause.pipeline)?;
    let seen = asked.version;
    let change = asked.change(now)?;
    if let CauseChange::MergeInto(into) = &change {
        caller.check(&redrive.store().get_cause(into.clone(), now).await?.cause.pipeline)?;
    }
    let about = redrive.change_cause_as_seen(&before.cause.id, &change, &caller.actor(), seen).await?;
    Ok(Json(look(&app, about).await?))
}

impl Asked {
    fn change(self, now: Timestamp) -> Result<CauseChange, ApiError> {
        self.check()?;
        let missing = |field: &'static str| ApiError::invalid(field, format!("{field} is missing"));
        let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        Ok(match self.verb {
            Verb::Assign => CauseChange::Assign(said(self.owner)),
            Verb::Note => CauseChange::Note(said(self.text).ok_or_else(|| missing("text"))?),
            Verb::Mute => {
                let until = future("until", self.until.as_deref(), now)?;
                CauseChange::Mute(Mute { until, per_hour: self.per_hour.filter(|n| *n > 0) })
            }
            Verb::Unmute => CauseChange::Unmute,
            Verb::Resolve => CauseChange::Resolve(said(self.why)),
            Verb::Reopen => CauseChange::Reopen,
            Verb::Merge => CauseChange::MergeInto(self.into.ok_or_else(|| missing("into"))?),
            Verb::Split => CauseChange::Split(match (self.key, self.target, said(self.text)) {
                (Some(key), None, None) => SplitBy::Key(key),
                (None, Some(target), None) => SplitBy::Like(Likeness::Target(target)),
                (None, None, Some(text)) => SplitBy::Like(Likeness::Text(text)),
                _ => return Err(ApiError::invalid("key", "say what to split off: one of key, target and text")),
            }),
        })
    }

    /// Refuses what would be passed over.
    fn check(&self) -> Result<(), ApiError> {
        let given = [
            ("owner", self.owner.is_some()),
            ("text", self.text.is_some()),
            ("until", self.until.is_some()),
            ("per_hour", self.per_hour.is_some()),
            ("why", self.why.is_some()),
            ("into", self.into.is_some()),
            ("key", self.key.is_some()),
            ("target", self.target.is_some()),
        ];
        let taken: &[&str] = match self.verb {
            Verb::Assign => &["owner"],
            Verb::Note => &["text"],
            Verb::Mute => &["until", "per_hour"],
            Verb::Unmute | Verb::Reopen => &[],
            Verb::Resolve => &["why"],
            Verb::Merge => &["into"],
            Verb::Split => &["key", "target", "text"],
        };
        match given.iter().find(|(field, is_given)| *is_given && !taken.contains(field)) {
            Some((field, _)) => Err(ApiError::invalid(*field, format!("this verb takes no {field}"))),
            None => Ok(()),
        }
    }
}
