//! Alerts: what fires, what sinks are to be told of it, and how the sinks fare. What that is is decided by `redrive_core::alerts`.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use redrive_core::actors::Actor;
use redrive_core::alerts::{Alert, AlertCare, AlertKey, AlertStanding, CareChange, Notice};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Alerts and their notices.
#[async_trait]
pub trait AlertStore {
    /// The alerts that are kept, those that fire first, with what each sink was told of their present incident.
    async fn list_alerts(&self) -> Result<Vec<AlertView>>;

    /// Writes alerts, each if it is still of the version that it was judged on; says of each whether it was.
    async fn change_alerts(&self, changes: Vec<AlertChange>) -> Result<Vec<bool>>;

    /// Writes what people say about an alert, with a record, if it is still of the version that it was decided on; says whether it was.
    async fn care_for_alert(&self, params: CareForAlert) -> Result<bool>;

    /// Posts what sinks are to be told; what was posted before is not posted again, nor that an alert fires that is snoozed. Says how
    /// many were new.
    async fn post_notices(&self, params: PostNotices) -> Result<u64>;

    /// Takes the next notice of a sink: nobody else has it for a while. Of one alert they come in their order, none while the sink is
    /// to be left alone, and none of an alert that is snoozed, but that it is over: that does not wait for those.
    async fn take_notice(&self, params: TakeNotice) -> Result<Option<TakenNotice>>;

    /// Notes what became of a notice that was taken, and how its sink fares by that. Says no, and writes nothing, if somebody else
    /// took it since. Once it has ended, those before it that were snoozed have, too.
    async fn settle_notice(&self, params: SettleNotice) -> Result<bool>;

    /// The sinks that were told something, or are to be, and how they fare.
    async fn list_sinks(&self) -> Result<Vec<SinkView>>;

    /// What alerts are judged by and nothing else tells: read from indexes, up to a limit.
    async fn watch(&self, params: Watch) -> Result<Watched>;

    /// Forgets alerts that were over before a time, and notices and sinks of which nothing was heard since; says whether there are more.
    async fn forget_alerts(&self, params: ForgetAlerts) -> Result<bool>;
}

/// An alert with its version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlertView {
    /// The alert.
    #[serde(flatten)]
    pub alert: Alert,
    /// Counts the changes of it.
    #[serde(skip)]
    pub version: u64,
    /// What people said about it.
    #[serde(default, skip_serializing_if = "AlertCare::is_empty")]
    pub care: AlertCare,
    /// Counts the changes of that; 0 if nothing was ever said. It is the version that people see, and may ask for a change of.
    #[serde(default, rename = "version")]
    pub care_version: u64,
    /// What each sink was told last of this incident, or is to be told.
    #[serde(default, rename = "told", skip_serializing_if = "BTreeMap::is_empty")]
    pub posted: BTreeMap<String, Posted>,
}

impl AlertView {
    /// An alert that nobody said anything about and nobody was told of.
    pub fn new(alert: Alert, version: u64) -> Self {
        Self { alert, version, care: AlertCare::default(), care_version: 0, posted: BTreeMap::new() }
    }

    /// Whether it fires and nobody has it rest.
    pub fn needs_somebody(&self, now: Timestamp) -> bool {
        self.alert.is_firing() && self.care.snoozed_at(now).is_none()
    }

    /// Where it stands, as people see it.
    pub fn standing(&self, now: Timestamp) -> AlertStanding {
        AlertStanding::of(&self.alert, &self.care, now)
    }

    /// Whether it is among those that are asked for: what fires, or all, or what stands somewhere.
    pub fn is_meant(&self, all: bool, state: Option<AlertStanding>, now: Timestamp) -> bool {
        match state {
            Some(state) => self.standing(now) == state,
            None => all || self.alert.is_firing(),
        }
    }

    /// Whether a sink was told of the alert as it is, or could not be: what it is still to be told need not be told again.
    pub fn was_told(&self) -> bool {
        self.posted.values().any(|posted| posted.number >= self.alert.tellings && posted.ended_at.is_some())
    }
}

/// The last notice of an incident that was posted for a sink, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// The how manyth of its incident it is.
    pub number: u32,
    /// When it was posted.
    pub posted_at: Timestamp,
    /// How often it was tried to tell it.
    pub tries: u32,
    /// When it was told, or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// What went wrong when it was last tried; nothing if it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Says something about an alert.
#[derive(Clone, Debug)]
pub struct CareForAlert {
    /// Which.
    pub key: AlertKey,
    /// Its pipeline, for the record.
    pub pipeline: Option<PipelineName>,
    /// The version that it was decided on; 0 if nothing had been said.
    pub was: u64,
    /// What is to be said from then on.
    pub care: AlertCare,
    /// What somebody did by that, for the record.
    pub change: CareChange,
    /// Who.
    pub by: Actor,
    /// The time.
    pub now: Timestamp,
}

impl CareForAlert {
    /// What the record says it was about.
    pub(crate) fn object(&self) -> String {
        format!("alert {}", self.key.as_str())
    }

    /// What the record says besides.
    pub(crate) fn detail(&self) -> serde_json::Value {
        let mut detail = serde_json::json!({});
        if let Some(pipeline) = &self.pipeline {
            detail["pipelines"] = serde_json::json!([pipeline]);
        }
        match &self.change {
            CareChange::Snooze { until, why } => {
                detail["until"] = serde_json::json!(until);
                if let Some(why) = why {
                    detail["why"] = serde_json::json!(why);
                }
            }
            CareChange::Assign(owner) => detail["owner"] = serde_json::json!(owner),
            CareChange::Acknowledge | CareChange::Unacknowledge | CareChange::Wake => {}
        }
        detail
    }
}

/// A change of an alert.
#[derive(Clone, Debug)]
pub struct AlertChange {
    /// The version that it was judged on; nothing if there was none.
    pub was: Option<u64>,
    /// What it is now.
    pub alert: Alert,
    /// What is said about it from then on, and the version of that on which it was judged: where that is another, nothing is written.
    pub care: Option<(u64, AlertCare)>,
}

/// Posts what sinks are to be told.
#[derive(Clone, Debug)]
pub struct PostNotices {
    /// Which sink is to be told what.
    pub notices: Vec<(String, Notice)>,
    /// The time.
    pub now: Timestamp,
}

/// Takes a notice.
#[derive(Clone, Debug)]
pub struct TakeNotice {
    /// Of this sink.
    pub sink: String,
    /// Until when nobody else has it.
    pub until: Timestamp,
    /// What is later than this was written by a wrong clock, and holds nobody up.
    pub believed_until: Timestamp,
    /// The time.
    pub now: Timestamp,
}

/// A notice that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenNotice {
    /// Which.
    pub id: i64,
    /// What is to be told.
    pub notice: Notice,
    /// When it was posted.
    pub posted_at: Timestamp,
    /// How often it was taken, this time included.
    pub tries: u32,
    /// How often its sink failed in a row before.
    pub failures: u32,
}

/// Says what became of a notice.
#[derive(Clone, Debug)]
pub struct SettleNotice {
    /// Which.
    pub id: i64,
    /// How often it was taken, this time included.
    pub tries: u32,
    /// What became of it.
    pub outcome: Told,
    /// The time.
    pub now: Timestamp,
}

/// What became of a notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The sink took it.
    Yes,
    /// It did not.
    No {
        /// What went wrong, without secrets.
        error: String,
        /// When the sink is tried again.
        next_try: Timestamp,
        /// Whether this notice is not tried again.
        give_up: bool,
    },
}

impl Told {
    /// What went wrong, if something did.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Yes => None,
            Self::No { error, .. } => Some(error),
        }
    }
}

/// How a sink fares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinkView {
    /// What the local file calls it.
    pub name: String,
    /// Notices that it is still to be told.
    pub waiting: u64,
    /// When it was last told something.
    pub told_at: Option<Timestamp>,
    /// Since when it fails; nothing if it does not.
    pub failing_since: Option<Timestamp>,
    /// How often it failed in a row.
    pub failures: u32,
    /// What went wrong last, while it fails.
    pub error: Option<String>,
    /// When it is tried again, while it fails.
    pub next_try: Option<Timestamp>,
    /// Notices that it was never told.
    pub given_up: u64,
}

/// Asks for what alerts are judged by.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Letters of these pipelines that were kept since before a time will soon be too old.
    pub expiring: Vec<(PipelineName, Timestamp)>,
    /// At most so many letters are looked at, of each.
    pub limit: u32,
    /// The time.
    pub now: Timestamp,
}

/// What alerts are judged by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Bytes that are free on the disk of the store, where that can be told.
    pub free_bytes: Option<u64>,
    /// Since when the first job of each queue is due, of queues that have one.
    pub due_since: BTreeMap<PipelineName, Timestamp>,
    /// Letters of causes that are not resolved and will soon be too old.
    pub expiring: BTreeMap<PipelineName, ExpiringLetters>,
    /// Pipelines that a worker ever had a definition of: from a file, or of a command.
    pub defined: BTreeSet<PipelineName>,
}

/// Letters that will soon be too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpiringLetters {
    /// How many, of those that were looked at.
    pub letters: u64,
    /// Whether not all were looked at.
    pub more: bool,
    /// Since when the oldest is kept.
    pub oldest: Timestamp,
}

/// Asks for what is over to be forgotten.
#[derive(Clone, Copy, Debug)]
pub struct ForgetAlerts {
    /// What was over before this.
    pub before: Timestamp,
    /// At most so many rows of each kind.
    pub limit: u32,
}
