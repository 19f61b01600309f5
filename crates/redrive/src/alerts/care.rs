//! What people do about alerts, for who holds a [`Redrive`]: acknowledging, snoozing and assigning them, and how often rules would have
//! fired.

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_core::actors::Actor;
use redrive_core::alerts::past::would_have_fired;
use redrive_core::alerts::{AlertKey, CareChange, CareRefusal, Condition, RuleBook};
use redrive_core::ids::PipelineName;
use redrive_store::contract::{AlertChange, AlertView, CareForAlert, CountEvents, Span};
use serde::{Deserialize, Serialize};

use super::{Watching, gather};
use crate::engine::Redrive;
use crate::error::{Error, ErrorKind};

/// Most times that a change is decided again, because others changed the same.
const TRIES_MAX: u32 = 50;

/// How far back it is told how often a rule would have fired.
pub const PAST: Duration = Duration::from_secs(7 * 86_400);

/// How far back before that it is looked for what was usual then.
const USUAL_FOR: Duration = Duration::from_secs(32 * 3_600);

/// Why something cannot be done about an alert.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlertError {
    /// There is none of this name.
    #[error("no alert {0}: `redrive alert list --all` has those that there are")]
    Unknown(String),
    /// It cannot be done to this one.
    #[error("alert {key}: {why}")]
    Refused {
        /// Which.
        key: String,
        /// Why not.
        why: CareRefusal,
    },
    /// Others changed the same again and again meanwhile.
    #[error("alert {0} was changed by others meanwhile: try again")]
    ChangedMeanwhile(String),
    /// Others said something about it since it was seen.
    #[error("alert {0} was changed by others since you looked: look again")]
    SeenOtherwise(String),
}

impl AlertError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown(_) => ErrorKind::Missing,
            Self::Refused { why: CareRefusal::Past(_), .. } => ErrorKind::Invalid,
            Self::Refused { .. } | Self::SeenOtherwise(_) => ErrorKind::Refused,
            Self::ChangedMeanwhile(_) => ErrorKind::Failed,
        }
    }
}

/// A rule about the share of tasks that die, and what it would have done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRule {
    /// The pipeline that is judged by it.
    pub pipeline: PipelineName,
    /// What it is about.
    pub condition: Condition,
    /// How often it would have fired in the last seven days, each hour judged as a whole.
    pub times: u32,
}

impl Redrive {
    /// The alert of a key.
    pub async fn find_alert(&self, key: &str) -> Result<AlertView, Error> {
        let found = self.store.list_alerts().await?.into_iter().find(|view| view.alert.key.as_str() == key);
        found.ok_or_else(|| AlertError::Unknown(key.to_owned()).into())
    }

    /// Does about an alert what somebody asked for; gives it as it is then. If a version of what was said about it was `seen`, only if
    /// that is still the one.
    pub async fn care_for_alert(
        &self,
        key: &AlertKey,
        change: &CareChange,
        by: &Actor,
        seen: Option<u64>,
    ) -> Result<AlertView, Error> {
        let named = || key.as_str().to_owned();
        for _ in 0..TRIES_MAX {
            let (view, now) = (self.find_alert(key.as_str()).await?, self.now());
            if seen.is_some_and(|seen| seen != view.care_version) {
                return Err(AlertError::SeenOtherwise(named()).into());
            }
            let next = view.care.changed(change, &view.alert, by, now);
            let care = next.map_err(|why| AlertError::Refused { key: named(), why })?;
            if care == view.care {
                return Ok(view);
            }
            let (pipeline, was) = (view.alert.pipeline.clone(), view.care_version);
            let (key, change, by) = (key.clone(), change.clone(), by.clone());
            let said = CareForAlert { key, pipeline, was, care: care.clone(), change, by, now };
            if self.store.care_for_alert(said).await? {
                return Ok(AlertView { care, care_version: was + 1, ..view });
            }
        }
        Err(AlertError::ChangedMeanwhile(named()).into())
    }

    /// Alerts whose snooze is over: who was told of them before is told again.
    pub(super) async fn wake_alerts(&self, alerts: &mut [AlertView]) -> Result<(), Error> {
        let now = self.now();
        for view in alerts {
            let Some((care, alert)) = view.care.woken(&view.alert, view.was_told(), now) else { continue };
            let care_was = view.care_version;
            let woken =
                AlertView { alert, version: view.version + 1, care, care_version: care_was + 1, ..view.clone() };
            let (alert, care) = (woken.alert.clone(), Some((care_was, woken.care.clone())));
            let change = AlertChange { was: Some(view.version), alert, care };
            // Who was faster did the same, or something that counts instead.
            if self.store.change_alerts(vec![change]).await? == [true] {
                *view = woken;
            }
        }
        Ok(())
    }

    /// Counts how often the rules about shares would have fired in the last seven days, for pipelines that are watched.
    pub async fn past_rules(
        &self,
        watching: &Watching,
        unwatched: &BTreeSet<PipelineName>,
    ) -> Result<Vec<PastRule>, Error> {
        let now = self.now();
        let counts = self.store.counts(CountEvents::since(now - PAST - USUAL_FOR, Span::Hour)).await?;
        let hours = gather::by_time(&counts, now).into_iter().map(|(name, hours)| (name.clone(), hours));
        let hours = hours.filter(|(name, _)| !unwatched.contains(name)).collect();
        let rules = RuleBook { judged: None, ..watching.rules().clone() };
        let times = would_have_fired(&rules, &hours, now - PAST, now);
        Ok(times.into_iter().map(|((pipeline, condition), times)| PastRule { pipeline, condition, times }).collect())
    }
}
