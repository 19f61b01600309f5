//! An overview that is being made, part by part.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::alerts::{AlertKey, Condition, Share};
use redrive_core::breakers::{BreakerState, BreakerView};
use redrive_core::causes::CauseState;
use redrive_core::counts::Event;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::pipelines::{Pause, StandingFacts, is_failing, standing};
use redrive_core::replays::paused_itself;
use redrive_core::retrying::RetryingView;
use redrive_core::time::Timestamp;
use redrive_store::contract::{
    AlertView, BusiestCauses, CauseView, CountEvents, EventCount, ListCauses, ReplayView, Span, Watch, Watched,
    WorkerView,
};
use tokio::sync::OnceCell;

use super::{EXPIRY_AHEAD, Glance, LATELY, Lately, MainCause, Need, Needs, PipelineLine, Worst};
use crate::config::Setting;
use crate::engine::Redrive;
use crate::error::Error;

const HOUR: Duration = Duration::from_secs(3_600);
const HOUR_MS: i64 = 3_600_000;
const WEEK: Duration = Duration::from_secs(7 * 86_400);

/// Hours that are drawn, the present one included, and how long ago the first of them was.
const HOURS: usize = 24;
const DRAWN: Duration = Duration::from_secs(23 * 3_600);

/// Causes that need somebody, of those that are counted.
const CAUSES_MAX: u32 = 100;

/// Causes that are named among what needs somebody.
const CAUSES_NAMED: usize = 5;

/// Letters that are looked at, of each pipeline, for how many expire.
const EXPIRING_MAX: u32 = 1_000;

/// An overview that is being made. Its parts are read one by one, so that one that cannot be read leaves the others as they are; what
/// several of them need is read once.
pub struct Look<'a, C> {
    redrive: &'a Redrive,
    setting: &'a Setting,
    covers: C,
    sees_all: bool,
    /// The time as of which it is.
    pub now: Timestamp,
    cells: Cells,
}

/// What was read for an overview.
#[derive(Debug, Default)]
struct Cells {
    ledgers: OnceCell<BTreeMap<PipelineName, Ledger>>,
    pauses: OnceCell<BTreeMap<PipelineName, Pause>>,
    alerts: OnceCell<Vec<AlertView>>,
    needy: OnceCell<(Vec<CauseView>, bool)>,
    minutes: OnceCell<Vec<EventCount>>,
    watched: OnceCell<Watched>,
    held: OnceCell<Vec<BreakerView>>,
    open: OnceCell<Vec<ReplayView>>,
    needs: OnceCell<Needs>,
    pipelines: OnceCell<Vec<PipelineLine>>,
}

impl<'a, C: Fn(&PipelineName) -> bool> Look<'a, C> {
    pub(super) fn new(redrive: &'a Redrive, setting: &'a Setting, covers: C, sees_all: bool) -> Self {
        Self { redrive, setting, covers, sees_all, now: redrive.now(), cells: Cells::default() }
    }

    /// What stands in the head of every page. What belongs to no pipeline is for who sees all.
    pub async fn glance(&self) -> Result<Glance, Error> {
        let own: Vec<_> = self.ledgers().await?.iter().filter(|(name, _)| (self.covers)(name)).collect();
        let (needy, more_causes) = self.needy().await?;
        let paused = self.pauses().await?.iter().filter(|(name, _)| (self.covers)(name));
        Ok(Glance {
            causes: needy.len(),
            more_causes: *more_causes,
            replays: self.open().await?.len(),
            alerts: self.firing().await?.len(),
            unbalanced: own.iter().filter(|(_, l)| !l.balances()).map(|(name, _)| (*name).clone()).collect(),
            paused: paused.map(|(name, pause)| (name.clone(), pause.clone())).collect(),
            pipelines: own.into_iter().map(|(name, _)| name.clone()).collect(),
        })
    }

    /// What died lately, and what most of it died of.
    pub async fn lately(&self) -> Result<Lately, Error> {
        let minutes = self.minutes().await?;
        let lately = ended(minutes, self.now - LATELY);
        let recovered = recovered(minutes, self.now - LATELY, |_| true);
        Ok(Lately { died: sum(lately.values()), recovered, worst: self.worst(&lately, minutes).await? })
    }

    /// What needs somebody, the most urgent first.
    pub async fn needs(&self) -> Result<&Needs, Error> {
        self.cells.needs.get_or_try_init(|| self.read_needs()).await
    }

    /// Where each pipeline stands.
    pub async fn pipelines(&self) -> Result<&[PipelineLine], Error> {
        Ok(self.cells.pipelines.get_or_try_init(|| self.read_pipelines()).await?)
    }

    /// Targets whose tasks wait for them. What waits beside a closed breaker, for a replay that is paused, does not wait for its target.
    pub async fn held(&self) -> Result<&[BreakerView], Error> {
        let read = async || {
            let mut held = self.redrive.store.list_breakers().await?;
            held.retain(|view| (self.covers)(&view.pipeline) && view.breaker.state != BreakerState::Closed);
            Ok::<_, Error>(held)
        };
        Ok(self.cells.held.get_or_try_init(read).await?)
    }

    /// Last failures of jobs that wait for another attempt, of pipelines with a target on hold.
    pub async fn retrying(&self) -> Result<Vec<RetryingView>, Error> {
        self.redrive.retrying_behind(self.held().await?).await
    }

    /// Replays that run, or are being made ready, or that somebody paused.
    pub async fn replays(&self) -> Result<Vec<&ReplayView>, Error> {
        Ok(self.open().await?.iter().filter(|replay| !is_self_paused(replay)).collect())
    }

    async fn ledgers(&self) -> Result<&BTreeMap<PipelineName, Ledger>, Error> {
        Ok(self.cells.ledgers.get_or_try_init(|| self.redrive.store.ledgers()).await?)
    }

    async fn pauses(&self) -> Result<&BTreeMap<PipelineName, Pause>, Error> {
        Ok(self.cells.pauses.get_or_try_init(|| self.redrive.store.pauses()).await?)
    }

    async fn alerts(&self) -> Result<&[AlertView], Error> {
        Ok(self.cells.alerts.get_or_try_init(|| self.redrive.store.list_alerts()).await?)
    }

    /// Alerts that nobody has seen to.
    async fn firing(&self) -> Result<Vec<&AlertView>, Error> {
        let alerts = self.alerts().await?;
        let is_theirs = |name: Option<&PipelineName>| name.map_or(self.sees_all, &self.covers);
        let firing = |view: &&AlertView| view.needs_somebody(self.now) && is_theirs(view.alert.pipeline.as_ref());
        Ok(alerts.iter().filter(firing).collect())
    }

    /// Causes that need somebody, those with the most dead letters first, and whether there are more.
    async fn needy(&self) -> Result<&(Vec<CauseView>, bool), Error> {
        let read = || self.redrive.needy_causes(&self.covers, &[], CAUSES_MAX);
        self.cells.needy.get_or_try_init(read).await
    }

    async fn open(&self) -> Result<&[ReplayView], Error> {
        Ok(self.cells.open.get_or_try_init(|| self.redrive.open_replays(&self.covers)).await?)
    }

    async fn minutes(&self) -> Result<&[EventCount], Error> {
        Ok(self
            .cells
            .minutes
            .get_or_try_init(|| self.counts(CountEvents::since(self.now - HOUR, Span::Minute)))
            .await?)
    }

    async fn counts(&self, params: CountEvents) -> Result<Vec<EventCount>, Error> {
        let mut counts = self.redrive.store.counts(params).await?;
        counts.retain(|count| (self.covers)(&count.pipeline));
        Ok(counts)
    }

    async fn watched(&self) -> Result<&Watched, Error> {
        self.cells.watched.get_or_try_init(|| self.watch()).await
    }

    async fn watch(&self) -> Result<Watched, Error> {
        let (store, now) = (&self.redrive.store, self.now);
        let with_dead = self.ledgers().await?.iter().filter(|(name, ledger)| (self.covers)(name) && ledger.dead > 0);
        let expiring = with_dead.filter_map(|(name, _)| Some((name.clone(), self.expires_before(name)?))).collect();
        Ok(store.watch(Watch { expiring, limit: EXPIRING_MAX, now }).await?)
    }

    /// Letters of a pipeline that were kept since before this will soon be discarded for their age.
    fn expires_before(&self, name: &PipelineName) -> Option<Timestamp> {
        let kept = self.setting.policy(name).retention?;
        Some((self.now - kept + EXPIRY_AHEAD).min(self.now))
    }

    /// The pipeline of which most tasks died lately, one that fails before one that lost as many of millions, and what most of its tasks died of in this hour.
    async fn worst(
        &self,
        lately: &BTreeMap<PipelineName, Share>,
        minutes: &[EventCount],
    ) -> Result<Option<Worst>, Error> {
        let now = self.now;
        let worst =
            lately.iter().filter(|(_, died)| died.part > 0).max_by_key(|(_, died)| (is_failing(**died), died.part));
        let Some((pipeline, died)) = worst else { return Ok(None) };
        let recovered = recovered(minutes, now - LATELY, |count| count.pipeline == *pipeline);
        let cause = self.main_cause(pipeline).await?;
        Ok(Some(Worst { pipeline: pipeline.clone(), died: *died, recovered, cause }))
    }

    /// The cause that killed most tasks of a pipeline lately, in whole hours. One that began in these hours is counted since its first
    /// death.
    async fn main_cause(&self, pipeline: &PipelineName) -> Result<Option<MainCause>, Error> {
        let (store, since) = (&self.redrive.store, self.now - LATELY);
        let busiest = BusiestCauses { pipeline: Some(pipeline.clone()), since, limit: 1 };
        let ids = store.busiest_causes(busiest).await?;
        if ids.is_empty() {
            return Ok(None);
        }
        let hours = store.cause_hours(ids.clone(), since).await?;
        let of_it: i64 = hours.iter().map(|hour| hour.count - hour.imported).sum();
        let Some(cause) = store.list_causes(ListCauses::these(ids, self.now)).await?.pop() else { return Ok(None) };
        let hour = Timestamp::from_millis(since.hour() * HOUR_MS);
        let (since, by) = if cause.first_seen < hour { (hour, Span::Hour) } else { (cause.first_seen, Span::Minute) };
        let all = self.counts(CountEvents::since(since, by).of(pipeline.clone())).await?;
        let all = all.iter().map(EventCount::died_once).sum::<i64>().max(of_it);
        let died = Share::new(u64::try_from(of_it).unwrap_or(0), u64::try_from(all).unwrap_or(0));
        Ok(Some(MainCause { cause, died, since }))
    }

    async fn read_needs(&self) -> Result<Needs, Error> {
        let covers = &self.covers;
        let (all, more_causes) = self.needy().await?;
        let causes = self.most_urgent(all).await?;
        let other_causes = all.len().saturating_sub(causes.len());
        let paused = self.open().await?.iter().filter(|replay| is_self_paused(replay)).cloned();
        let firing = self.firing().await?;
        // One whose alert fires is there already, with what to do.
        let is_told = |replay: &ReplayView| {
            let key = AlertKey::new(Condition::Replay, None, Some(&replay.id.to_string()));
            firing.iter().any(|view| view.alert.key == key)
        };
        let paused: Vec<_> = paused.filter(|replay| !is_told(replay)).collect();
        let expiring = self.watched().await?.expiring.iter().filter(|(name, found)| covers(name) && found.letters > 0);
        let expiring = expiring.filter_map(|(name, found)| {
            let (first, before) = (found.oldest + self.setting.policy(name).retention?, self.expires_before(name)?);
            Some(Need::Expiring { pipeline: name.clone(), letters: found.letters, more: found.more, first, before })
        });
        let needs = firing
            .into_iter()
            .map(|view| Need::Alert(Box::new(view.clone())))
            .chain(causes.into_iter().map(|cause| Need::Cause(Box::new(cause))))
            .chain(paused.into_iter().map(|replay| Need::Replay(Box::new(replay))))
            .chain(expiring)
            .collect();
        Ok(Needs { needs, other_causes, more_causes: *more_causes })
    }

    /// The causes that are named, of those that need somebody: what is not as usual comes first, then what has most dead letters.
    async fn most_urgent(&self, needy: &[CauseView]) -> Result<Vec<CauseView>, Error> {
        let named = u32::try_from(CAUSES_NAMED).unwrap_or(u32::MAX);
        let (mut causes, _) = self.redrive.needy_causes(&self.covers, &CauseState::UNUSUAL, named).await?;
        let usual = needy.iter().filter(|cause| !CauseState::UNUSUAL.contains(&cause.state));
        causes.extend(usual.take(CAUSES_NAMED - causes.len()).cloned());
        Ok(causes)
    }

    async fn read_pipelines(&self) -> Result<Vec<PipelineLine>, Error> {
        let (store, now) = (&self.redrive.store, self.now);
        let (ledgers, pauses) = (self.ledgers().await?, self.pauses().await?);
        let (watched, breakers, minutes) = (self.watched().await?, self.held().await?, self.minutes().await?);
        // Where alerts cannot be read, what needs somebody says so.
        let alerts = self.alerts().await.unwrap_or_default();
        let firing: Vec<_> = alerts.iter().filter(|view| view.alert.is_firing()).collect();
        // Of the days between nothing is shown.
        let week_ago = CountEvents { until: Some(now - WEEK + HOUR), ..CountEvents::since(now - WEEK, Span::Hour) };
        let week_ago = self.counts(week_ago).await?;
        let hours = self.counts(CountEvents::since(now - DRAWN, Span::Hour)).await?;
        let workers = store.list_workers().await?;
        let alive: Vec<_> = workers.iter().filter(|worker| worker.is_at_work(now)).collect();
        let (last_hour, last_week) = (ended(minutes, now - HOUR), shares(week_ago.iter()));
        let names: BTreeSet<_> = ledgers.keys().chain(self.setting.config.pipeline.keys()).cloned().collect();
        let line = |name: PipelineName| {
            let ledger = ledgers.get(&name).copied().unwrap_or_default();
            let pause = pauses.get(&name).cloned();
            let died = last_hour.get(&name).copied().unwrap_or_default();
            let (workers, held_workers) = attending(&alive, &name);
            let waits = breakers.iter().any(|view| view.pipeline == name && view.held > 0);
            let facts = StandingFacts {
                is_paused: pause.is_some(),
                died,
                is_held: waits || held_workers > 0,
                queued: u64::try_from(ledger.queued).unwrap_or(0),
                workers,
                alerts: firing.iter().filter(|view| view.alert.pipeline.as_ref() == Some(&name)).count(),
            };
            PipelineLine {
                standing: standing(&facts),
                done: done_hours(&hours, &name, now),
                died,
                last_week: last_week.get(&name).copied().unwrap_or_default(),
                ledger,
                due_since: watched.due_since.get(&name).copied(),
                workers,
                held_workers,
                pause,
                name,
            }
        };
        Ok(names.into_iter().filter(&self.covers).map(line).collect())
    }
}

fn is_self_paused(replay: &ReplayView) -> bool {
    paused_itself(replay.state, replay.why.as_deref())
}

/// Workers that are there for a pipeline, and those among them that cannot work on it.
fn attending(alive: &[&WorkerView], name: &PipelineName) -> (usize, usize) {
    let there = alive.iter().filter(|worker| worker.runs.iter().any(|runs| runs.pipeline == *name));
    let held = alive.iter().filter(|worker| worker.holds.iter().any(|hold| hold.pipeline == *name));
    (there.count(), held.count())
}

/// Of the tasks of each pipeline that came to their end since a time, those that died. What recovers came to its end before.
fn ended(counts: &[EventCount], since: Timestamp) -> BTreeMap<PipelineName, Share> {
    shares(counts.iter().filter(|count| count.at >= since))
}

/// Letters that recovered since a time.
fn recovered(counts: &[EventCount], since: Timestamp, is_meant: impl Fn(&EventCount) -> bool) -> u64 {
    let meant = counts.iter().filter(|count| count.event == Event::Recovered && count.at >= since && is_meant(count));
    u64::try_from(meant.map(|count| count.count).sum::<i64>()).unwrap_or(0)
}

fn shares<'a>(counts: impl Iterator<Item = &'a EventCount>) -> BTreeMap<PipelineName, Share> {
    let mut sums = BTreeMap::<PipelineName, (i64, i64)>::new();
    for count in counts {
        let (died, done) = sums.entry(count.pipeline.clone()).or_default();
        *died += count.died_once();
        *done += count.done_once();
    }
    let whole = |n: i64| u64::try_from(n).unwrap_or(0);
    sums.into_iter().map(|(name, (died, done))| (name, Share::new(whole(died), whole(died) + whole(done)))).collect()
}

fn sum<'a>(shares: impl Iterator<Item = &'a Share>) -> Share {
    shares.fold(Share::default(), |all, one| Share::new(all.part + one.part, all.whole + one.whole))
}

/// Tasks of a pipeline that were done in each of the last hours, the present one last. What recovered came to its end before.
fn done_hours(hours: &[EventCount], name: &PipelineName, now: Timestamp) -> Vec<i64> {
    let mut done = vec![0; HOURS];
    for count in hours.iter().filter(|count| count.pipeline == *name) {
        let ago = usize::try_from(now.hour() - count.at.hour()).unwrap_or(usize::MAX);
        if let Some(slot) = HOURS.checked_sub(ago.saturating_add(1)).and_then(|at| done.get_mut(at)) {
            *slot += count.done_once();
        }
    }
    done.into_iter().map(|hour: i64| hour.max(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(minute: i64, event: Event, count: i64) -> EventCount {
        let pipeline = "shop".parse().expect("a name");
        EventCount { at: Timestamp::from_millis(minute * 60_000), pipeline, event, reason: None, count }
    }

    #[test]
    fn a_task_counts_once_and_what_recovers_not_again() {
        let counts = [
            count(1, Event::Buried, 7),
            count(5, Event::Done, 10),
            count(5, Event::Recovered, 4),
            count(6, Event::Buried, 3),
            count(6, Event::Refailed, 9),
        ];
        let died = ended(&counts, Timestamp::from_millis(5 * 60_000));
        assert_eq!(died.values().copied().collect::<Vec<_>>(), [Share::new(3, 9)]);
    }

    #[test]
    fn hours_are_drawn_up_to_the_present_one() {
        let now = Timestamp::from_millis(100 * 3_600_000 + 5);
        let counts = [
            count(100 * 60, Event::Done, 5),
            count(100 * 60, Event::Recovered, 3),
            count(77 * 60, Event::Done, 2),
            count(76 * 60, Event::Done, 9),
        ];
        let done = done_hours(&counts, &"shop".parse().expect("a name"), now);
        assert_eq!((done.len(), done[23], done[0], done.iter().sum::<i64>()), (24, 2, 2, 4));
    }
}
