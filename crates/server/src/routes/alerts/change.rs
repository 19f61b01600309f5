//! `POST /alerts/changes`

use axum::Json;
use axum::extract::State;
use redrive::contract::AlertView;
use redrive_core::alerts::{CareChange, Condition};
use redrive_core::time::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::app::App;
use crate::asked::{Body, called, future, said};
use crate::error::ApiError;
use crate::page::Listed;

/// The most alerts that are changed at once.
const KEYS_MAX: usize = 100;

/// What is done about an alert.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AlertVerb)]
pub enum Verb {
    /// Says that it was seen, until it doubles or fires anew.
    Acknowledge,
    /// Takes that back.
    Unacknowledge,
    /// Has nobody told that it fires, `until` a time; `why`, if that is to be said.
    Snooze,
    /// Has people told of it again.
    Wake,
    /// Says who looks after it: `owner`, or nobody.
    Assign,
}

/// A change of what is said about alerts. Fields that the verb does not take are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChangeAlerts)]
pub struct Asked {
    /// Which, by their keys; all of them are looked at before anything is done to one.
    keys: Vec<String>,
    /// What is done.
    verb: Verb,
    /// For `snooze`: `2h` (from now), a day or a time.
    until: Option<String>,
    /// For `snooze`: why.
    #[serde(default, deserialize_with = "said")]
    why: Option<String>,
    /// For `assign`: who.
    #[serde(default, deserialize_with = "called")]
    owner: Option<String>,
    /// `version` of the alert as it was seen, if there is one key: if others changed it since, nothing is done.
    version: Option<u64>,
}

impl Asked {
    fn change(self, now: Timestamp) -> Result<CareChange, ApiError> {
        let given = [("until", self.until.is_some()), ("why", self.why.is_some()), ("owner", self.owner.is_some())];
        let taken: &[&str] = match self.verb {
            Verb::Snooze => &["until", "why"],
            Verb::Assign => &["owner"],
            Verb::Acknowledge | Verb::Unacknowledge | Verb::Wake => &[],
        };
        if let Some((field, _)) = given.iter().find(|(field, is_given)| *is_given && !taken.contains(field)) {
            return Err(ApiError::invalid(*field, format!("this verb takes no {field}")));
        }
        let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        Ok(match self.verb {
            Verb::Acknowledge => CareChange::Acknowledge,
            Verb::Unacknowledge => CareChange::Unacknowledge,
            Verb::Wake => CareChange::Wake,
            Verb::Assign => CareChange::Assign(said(self.owner)),
            Verb::Snooze => {
                let until = future("until", self.until.as_deref(), now)?;
                let until = until.ok_or_else(|| ApiError::invalid("until", "until is missing"))?;
                CareChange::Snooze { until, why: said(self.why) }
            }
        })
    }
}

pub async fn run(
    State(app): State<App>,
    caller: Caller,
    Body(mut asked): Body<Asked>,
) -> Result<Json<Listed<AlertView>>, ApiError> {
    let keys = std::mem::take(&mut asked.keys);
    if !(1..=KEYS_MAX).contains(&keys.len()) {
        return Err(ApiError::invalid("keys", format!("expected 1 to {KEYS_MAX} of them")));
    }
    let seen = asked.version;
    if seen.is_some() && keys.len() > 1 {
        return Err(ApiError::invalid("version", "a version is that of one alert: say one key"));
    }
    let (redrive, change) = (app.redrive(), asked.change(app.redrive().asked_at())?);
    let mut found = Vec::new();
    for key in &keys {
        let view = redrive.find_alert(key).await?;
        check(&app, &caller, &view).await?;
        found.push(view.alert.key);
    }
    let mut changed = Vec::new();
    for key in &found {
        changed.push(redrive.care_for_alert(key, &change, &caller.actor(), seen).await?);
    }
    Ok(Json(Listed::whole(changed)))
}

/// Refuses who may not change what is said about an alert: one of a replay is for who covers all of its pipelines.
async fn check(app: &App, caller: &Caller, view: &AlertView) -> Result<(), ApiError> {
    if let Some(pipeline) = &view.alert.pipeline {
        return caller.check(pipeline);
    }
    let replay = Some(view.alert.key.as_str()).filter(|_| view.alert.condition == Condition::Replay);
    let replay = replay.and_then(|key| key.rsplit('/').next()?.parse().ok());
    match replay {
        Some(id) => match app.redrive().store().get_replay(id).await? {
            Some(replay) => caller.check_each(&replay.pipelines),
            None => caller.check_all(None),
        },
        None => caller.check_all(None),
    }
}
