//! Alerts, and the sinks that are told of them. A server has both in its own configuration.

use redrive::Error;
use redrive::alerts::{AlertList, Tested, Watching};
use redrive::contract::AlertView;
use redrive_core::actors::Actor;
use redrive_core::alerts::{Alert, AlertKey, AlertStanding, CareChange};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ask::LONG;
use crate::desk::Desk;
use crate::page::{Listed, fields, left};

/// A piece of the alerts, with all the sinks.
#[derive(Deserialize)]
struct Piece {
    #[serde(flatten)]
    list: AlertList,
    #[serde(default)]
    next: Option<String>,
}

impl Desk {
    /// See [`redrive::Redrive::list_alerts`]: those that fire, or also those that are over, or those that stand somewhere.
    pub async fn list_alerts(
        &self,
        watching: &Watching,
        all: bool,
        state: Option<AlertStanding>,
    ) -> Result<AlertList, Error> {
        let server = match self {
            Self::Here(redrive) => {
                let mut list = redrive.list_alerts(watching).await?;
                list.alerts.retain(|view| view.is_meant(all, state, redrive.now()));
                return Ok(list);
            }
            Self::There(server) => server,
        };
        let (mut alerts, mut cursor) = (Vec::new(), None);
        loop {
            let state = state.map(AlertStanding::as_str);
            let limit = left(u32::MAX, alerts.len());
            let asked = fields(json!({ "all": all, "state": state, "limit": limit, "cursor": cursor }));
            let Piece { mut list, next } = server.get(&["alerts"]).query(asked).read().await?;
            alerts.append(&mut list.alerts);
            cursor = next;
            if cursor.is_none() {
                return Ok(AlertList { alerts, ..list });
            }
        }
    }

    /// See [`redrive::Redrive::test_sinks`].
    pub async fn test_sinks(&self, watching: &Watching, named: &[String]) -> Result<Vec<Tested>, Error> {
        match self {
            Self::Here(redrive) => redrive.test_sinks(watching, named).await,
            Self::There(server) => {
                let ask = server.post(&["alerts", "test"]).body(&json!({ "sinks": named }))?.within(Some(LONG));
                Ok(ask.read::<Listed<_>>().await?.items)
            }
        }
    }

    /// See [`redrive::Redrive::preview_alerts`].
    pub async fn preview_alerts(&self, watching: &Watching) -> Result<Vec<Alert>, Error> {
        match self {
            Self::Here(redrive) => redrive.preview_alerts(watching).await,
            Self::There(server) => {
                Ok(server.get(&["alerts", "preview"]).within(Some(LONG)).read::<Listed<_>>().await?.items)
            }
        }
    }

    /// See [`redrive::Redrive::care_for_alert`], for each of these. A server knows by itself who it is by.
    pub async fn care_for_alerts(
        &self,
        keys: &[AlertKey],
        change: &CareChange,
        by: &Actor,
    ) -> Result<Vec<AlertView>, Error> {
        let redrive = match self {
            Self::Here(redrive) => redrive,
            Self::There(server) => {
                let ask = server.post(&["alerts", "changes"]).body(&asked(keys, change))?;
                return Ok(ask.read::<Listed<_>>().await?.items);
            }
        };
        // Nothing is done to any if one of them is none.
        for key in keys {
            redrive.find_alert(key.as_str()).await?;
        }
        let mut changed = Vec::new();
        for key in keys {
            changed.push(redrive.care_for_alert(key, change, by, None).await?);
        }
        Ok(changed)
    }

    /// See [`redrive::Redrive::check_alerts`].
    pub async fn check_alerts(&self, watching: &Watching) -> Result<AlertList, Error> {
        match self {
            Self::Here(redrive) => redrive.check_alerts(watching).await,
            Self::There(server) => server.post(&["alerts", "check"]).within(Some(LONG)).read().await,
        }
    }
}

/// A change of what is said about alerts, as a server takes it.
fn asked(keys: &[AlertKey], change: &CareChange) -> Value {
    let mut asked = json!({ "keys": keys, "verb": change.verb() });
    match change {
        CareChange::Snooze { until, why } => {
            asked["until"] = json!(until);
            asked["why"] = json!(why);
        }
        CareChange::Assign(owner) => asked["owner"] = json!(owner),
        CareChange::Acknowledge | CareChange::Unacknowledge | CareChange::Wake => {}
    }
    asked
}
