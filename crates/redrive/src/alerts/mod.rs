//! Alerts without a server: judged by workers and by who asks, told to the sinks of the local file.
//!
//! Judging writes alerts, and posts what each sink is to be told; delivering takes what was posted. A kill in between loses nothing:
//! what is to be told follows from the alerts that were written. A notice is delivered at least once; who gets one twice sees that
//! by its dedup key and number.
//!
//! - `watching`: what is watched, and who is told
//! - `gather`: the numbers that are judged; `deliver`: telling sinks
//! - `care`: what people do about alerts
//! - [`dashboard`]: where what is told leads
//! - [`sinks`]: webhooks, commands, the log

mod care;
pub mod dashboard;
mod deliver;
mod gather;
pub mod sinks;
mod watching;

use std::collections::BTreeSet;
use std::time::Duration;

use redrive_core::alerts::judge::Alerts as Judged;
use redrive_core::alerts::{Alert, Notice, due_notice, judge};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use redrive_store::contract::{AlertChange, AlertView, ForgetAlerts, PostNotices, SinkView, Watch};
use serde::{Deserialize, Serialize};

pub use self::care::{AlertError, PAST, PastRule};
pub use self::dashboard::Dashboard;
pub(crate) use self::deliver::Ending;
pub use self::watching::{Alerts, Watching};
use crate::engine::Redrive;
use crate::error::Error;
use crate::events::Happening;

/// How long alerts that are over are kept.
const KEPT: Duration = Duration::from_secs(7 * 86_400);

/// How long after its end an alert is told to be over.
const OVER_TOLD_FOR: Duration = Duration::from_secs(86_400);

/// How long a check begins to tell sinks something.
const CHECKED_WITHIN: Duration = Duration::from_secs(30);

/// Rows that are forgotten in one transaction.
const PIECE: u32 = 500;

/// The alerts and the sinks, as people see them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AlertList {
    /// The alerts, those that fire first.
    pub alerts: Vec<AlertView>,
    /// The sinks, and how they fare.
    pub sinks: Vec<SinkState>,
    /// Pipelines that are not judged by the local file: another has them, or it has no `[alerts]`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub unwatched: BTreeSet<PipelineName>,
}

/// A sink, and how it fares.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SinkState {
    /// What is known of it.
    #[serde(flatten)]
    pub view: SinkView,
    /// What it is: nothing if the local file does not have it.
    pub kind: Option<String>,
    /// Why it cannot be told anything, if that is known before it is tried.
    pub broken: Option<String>,
}

impl SinkState {
    /// What is wrong with it.
    pub fn trouble(&self) -> Option<&str> {
        self.broken.as_deref().or(self.view.error.as_deref())
    }
}

/// What came of telling a sink that nothing is wrong.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tested {
    /// The sink.
    pub sink: String,
    /// What it is.
    pub kind: String,
    /// What went wrong.
    pub error: Option<String>,
}

impl Redrive {
    /// Judges all conditions now, writes what changed and posts what the sinks are to be told. What somebody else judged meanwhile
    /// stays as it is.
    pub async fn judge_alerts(&self, watching: &Watching) -> Result<(), Error> {
        // What was written and not posted is posted before it can change.
        let mut before = self.store.list_alerts().await?;
        self.wake_alerts(&mut before).await?;
        self.post(watching, &before).await?;
        let now = self.now();
        let known: Judged = before.iter().map(|view| (view.alert.key.clone(), view.alert.clone())).collect();
        let facts = gather::facts(self, watching, &known, now).await?;
        let changed = judge(watching.rules(), &facts, &known, now);
        if changed.is_empty() {
            return Ok(());
        }
        let version = |alert: &Alert| before.iter().find(|view| view.alert.key == alert.key).map(|view| view.version);
        let changes = changed.iter().map(|alert| AlertChange { was: version(alert), alert: alert.clone(), care: None });
        let changes = changes.collect();
        let heard = self.store.change_alerts(changes).await?;
        for (alert, _) in changed.iter().zip(heard).filter(|(_, heard)| *heard) {
            self.tell_change(known.get(&alert.key), alert, now);
        }
        let after = self.store.list_alerts().await?;
        self.post(watching, &after).await
    }

    /// The alerts that would fire, or would be over, if they were judged now. Nothing is written and nobody is told.
    pub async fn preview_alerts(&self, watching: &Watching) -> Result<Vec<Alert>, Error> {
        let now = self.now();
        let mut alerts: Judged =
            self.store.list_alerts().await?.into_iter().map(|view| (view.alert.key.clone(), view.alert)).collect();
        let facts = gather::facts(self, watching, &alerts, now).await?;
        for alert in judge(watching.rules(), &facts, &alerts, now) {
            alerts.insert(alert.key.clone(), alert);
        }
        Ok(alerts.into_values().filter(Alert::is_firing).collect())
    }

    /// Posts what the sinks are to be told of alerts.
    async fn post(&self, watching: &Watching, alerts: &[AlertView]) -> Result<(), Error> {
        let now = self.now();
        let file = &watching.rules().file;
        // What only the rules of other files see is for the sinks of those.
        let is_ours = |alert: &Alert| match alert.over_at {
            None => alert.is_seen_by(file),
            Some(over_at) => now.since(over_at) < OVER_TOLD_FOR,
        };
        let mut notices: Vec<(String, Notice)> = Vec::new();
        // Nobody is told that something fires that is snoozed; that it is over is told.
        let is_told = |view: &AlertView| !view.alert.is_firing() || view.care.snoozed_at(now).is_none();
        for view in alerts.iter().filter(|view| is_ours(&view.alert) && is_told(view)) {
            for sink in watching.sinks() {
                let told = view.posted.get(sink.name()).map(|posted| posted.number);
                notices.extend(due_notice(&view.alert, told).map(|notice| (sink.name().to_owned(), notice)));
            }
        }
        if !notices.is_empty() {
            self.store.post_notices(PostNotices { notices, now }).await?;
        }
        Ok(())
    }

    fn tell_change(&self, before: Option<&Alert>, alert: &Alert, now: Timestamp) {
        let (key, summary) = (alert.key.as_str().to_owned(), alert.finding.summary.clone());
        let told = before.filter(|alert| alert.is_firing()).map_or(0, |alert| alert.tellings);
        if !alert.is_firing() {
            self.events.tell(now, None, Happening::AlertOver { key, why: alert.why_over.clone().unwrap_or_default() });
        } else if alert.tellings > told {
            self.events.tell(now, None, Happening::AlertFired { key, summary });
        }
    }

    /// Posts what the sinks were not told yet of the alerts there are, and tells them, each as far as it can be told now.
    pub async fn tell_sinks(&self, watching: &Watching) -> Result<(), Error> {
        self.tell_sinks_until(watching, &Ending::default()).await
    }

    /// The same, for who is to end meanwhile.
    pub(crate) async fn tell_sinks_until(&self, watching: &Watching, ending: &Ending) -> Result<(), Error> {
        if watching.sinks().is_empty() {
            return Ok(());
        }
        self.post(watching, &self.store.list_alerts().await?).await?;
        deliver::deliver(self, watching, ending).await
    }

    /// Posts what the sinks were not told yet, and gives those that something waits for.
    pub(crate) async fn sinks_to_tell(&self, watching: &Watching) -> Result<Vec<sinks::Sink>, Error> {
        if watching.sinks().is_empty() {
            return Ok(Vec::new());
        }
        self.post(watching, &self.store.list_alerts().await?).await?;
        deliver::waited_for(self, watching).await
    }

    /// Tells a sink what was posted for it.
    pub(crate) async fn tell_sink(&self, sink: &sinks::Sink, ending: &Ending) -> Result<(), Error> {
        deliver::tell_all(self, sink, ending).await
    }

    /// Judges, tells the sinks, and gives what fires then.
    pub async fn check_alerts(&self, watching: &Watching) -> Result<AlertList, Error> {
        self.check_alerts_within(watching, CHECKED_WITHIN).await
    }

    /// The same, beginning nothing new to tell after some time. What was not told waits for whoever comes next.
    pub async fn check_alerts_within(&self, watching: &Watching, time: Duration) -> Result<AlertList, Error> {
        if watching.looks_on() {
            let firing = self.preview_alerts(watching).await?;
            let AlertList { sinks, alerts: known, unwatched } = self.list_alerts(watching).await?;
            let view = |alert: Alert| {
                let known = known.iter().find(|view| view.alert.key == alert.key).cloned();
                known
                    .map_or_else(|| AlertView::new(alert.clone(), 0), |view| AlertView { alert: alert.clone(), ..view })
            };
            return Ok(AlertList { alerts: firing.into_iter().map(view).collect(), sinks, unwatched });
        }
        self.judge_alerts(watching).await?;
        let ending = Ending::default();
        let telling = deliver::deliver(self, watching, &ending);
        tokio::pin!(telling);
        tokio::select! {
            biased;
            told = &mut telling => told?,
            () = tokio::time::sleep(time) => {
                ending.enough.cancel();
                telling.await?;
            }
        }
        self.list_alerts(watching).await
    }

    /// The alerts that are kept, and the sinks: those of the local file, and those that others are to tell something.
    pub async fn list_alerts(&self, watching: &Watching) -> Result<AlertList, Error> {
        let (alerts, sinks) = (self.store.list_alerts().await?, self.list_sinks(watching).await?);
        Ok(AlertList { alerts, sinks, unwatched: self.unwatched(watching).await? })
    }

    /// Pipelines that are not judged by these rules. What no file defines is judged by those of every file.
    pub async fn unwatched(&self, watching: &Watching) -> Result<BTreeSet<PipelineName>, Error> {
        let mut names: BTreeSet<_> = self.store.ledgers().await?.into_keys().collect();
        let watched = self.store.watch(Watch { expiring: Vec::new(), limit: 1, now: self.now() }).await?;
        let is_defined = |name: &PipelineName| watching.defines(name) || watched.defined.contains(name);
        names.retain(|name| !watching.rules().judges(name) && is_defined(name));
        Ok(names)
    }

    /// The sinks of the local file, and those that others are to tell something, with how they fare.
    pub async fn list_sinks(&self, watching: &Watching) -> Result<Vec<SinkState>, Error> {
        let mut views = self.store.list_sinks().await?;
        for sink in watching.sinks() {
            if !views.iter().any(|view| view.name == sink.name()) {
                views.push(SinkView { name: sink.name().to_owned(), ..SinkView::default() });
            }
        }
        views.sort_by(|a, b| a.name.cmp(&b.name));
        let state = |view: SinkView| {
            let local = watching.sinks().iter().find(|sink| sink.name() == view.name);
            let broken = local.and_then(|sink| sink.broken()).map(str::to_owned);
            SinkState { kind: local.map(|sink| sink.kind().to_owned()), broken, view }
        };
        Ok(views.into_iter().map(state).collect())
    }

    /// Tells sinks that nothing is wrong, to see whether that arrives: all of them, or those that are named.
    pub async fn test_sinks(&self, watching: &Watching, named: &[String]) -> Result<Vec<Tested>, Error> {
        if let Some(unknown) = named.iter().find(|name| !watching.sinks().iter().any(|sink| sink.name() == *name)) {
            let known = watching.sinks().iter().map(|sink| sink.name().to_owned()).collect();
            return Err(Error::NoSink { name: unknown.clone(), known });
        }
        let notice = Notice::test(self.now());
        let wanted = watching.sinks().iter().filter(|sink| named.is_empty() || named.iter().any(|n| n == sink.name()));
        let test = |sink: &sinks::Sink| {
            let (sink, notice) = (sink.clone(), notice.clone());
            async move {
                let error = sink.send(&notice).await.err().map(|refusal| refusal.why);
                Tested { sink: sink.name().to_owned(), kind: sink.kind().to_owned(), error }
            }
        };
        Ok(futures_util::future::join_all(wanted.map(test)).await)
    }

    /// Forgets a piece of what is over for long; says whether there is more.
    pub(crate) async fn forget_alerts(&self) -> Result<bool, Error> {
        let before = self.now() - KEPT;
        Ok(self.store.forget_alerts(ForgetAlerts { before, limit: PIECE }).await?)
    }
}
