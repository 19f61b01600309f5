//! Filling an overview in from a store.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::alerts::Share;
use redrive_core::causes::CauseState;
use redrive_core::counts::Event;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::{StandingFacts, standing};
use redrive_core::replays::paused_itself;
use redrive_core::time::Timestamp;
use redrive_store::contract::{
    BreakerView, BusiestCauses, CauseView, CountEvents, EventCount, ListCauses, ListReplays, ReplayView, Span, Watch,
    Watched, WorkerView,
};

use super::{EXPIRY_AHEAD, Glance, LATELY, Need, Overview, PipelineLine, Worst};
use crate::config::Setting;
use crate::engine::Redrive;
use crate::error::Error;

const HOUR: Duration = Duration::from_secs(3_600);
const WEEK: Duration = Duration::from_secs(7 * 86_400);

/// Hours that are drawn.
const HOURS: usize = 24;

/// Causes that are counted for the head of a page, and those among them that are named.
const CAUSES_MAX: u32 = 100;
const CAUSES_NAMED: usize = 5;

/// Open replays that are read.
const REPLAYS_MAX: u32 = 50;

/// Letters that are looked at, of each pipeline, for how many expire.
const EXPIRING_MAX: u32 = 1_000;

/// The states in which a cause may need somebody.
const NEEDY: [CauseState; 4] = [CauseState::New, CauseState::Ongoing, CauseState::Escalating, CauseState::Regressed];

impl Redrive {
    /// What stands in the head of every page, of the pipelines that somebody may see.
    pub async fn glance(&self, covers: impl Fn(&PipelineName) -> bool) -> Result<Glance, Error> {
        let mut ledgers = self.store.ledgers().await?;
        ledgers.retain(|name, _| covers(name));
        let needy = self.needy_causes(None, &covers, CAUSES_MAX).await?;
        let alerts = self.store.list_alerts().await?;
        let is_theirs = |name: Option<&PipelineName>| name.is_none_or(&covers);
        let (pauses, now) = (self.store.pauses().await?, self.now());
        Ok(Glance {
            causes: needy.len(),
            more_causes: needy.len() >= CAUSES_MAX as usize,
            replays: self.open_replays(&covers).await?.len(),
            alerts: alerts.iter().filter(|v| v.needs_somebody(now) && is_theirs(v.alert.pipeline.as_ref())).count(),
            unbalanced: ledgers.iter().filter(|(_, l)| !l.balances()).map(|(name, _)| name.clone()).collect(),
            paused: pauses.into_iter().filter(|(name, _)| covers(name)).collect(),
            pipelines: ledgers.into_keys().collect(),
        })
    }

    /// What to look at first, of one pipeline or of all that somebody may see.
    pub async fn overview(&self, setting: &Setting, covers: impl Fn(&PipelineName) -> bool) -> Result<Overview, Error> {
        let now = self.now();
        let minutes = self.counts_of(now - HOUR, Span::Minute, &covers).await?;
        let lately = ended(&minutes, now - LATELY);
        let watched = self.watch_pipelines(setting, &covers, now).await?;
        let mut held = self.store.list_breakers().await?;
        held.retain(|view| covers(&view.pipeline));
        let (replays, paused): (Vec<_>, Vec<_>) = self
            .open_replays(&covers)
            .await?
            .into_iter()
            .partition(|replay| !paused_itself(replay.state, replay.why.as_deref()));
        let causes = self.needy_causes(None, &covers, CAUSES_MAX).await?;
        let other_causes = causes.len().saturating_sub(CAUSES_NAMED);
        Ok(Overview {
            worst: self.worst(&lately, &minutes, now).await?,
            lately: sum(lately.values()),
            needs: self.needs(causes, paused, &watched, setting, &covers).await?,
            other_causes,
            pipelines: self.pipeline_lines(setting, &covers, &minutes, &watched, &held).await?,
            held,
            replays,
            now,
        })
    }

    /// Where each pipeline stands, of those that somebody may see.
    pub async fn pipeline_overview(
        &self,
        setting: &Setting,
        covers: impl Fn(&PipelineName) -> bool,
    ) -> Result<Vec<PipelineLine>, Error> {
        let now = self.now();
        let minutes = self.counts_of(now - HOUR, Span::Minute, &covers).await?;
        let watched = self.watch_pipelines(setting, &covers, now).await?;
        let held = self.store.list_breakers().await?;
        self.pipeline_lines(setting, &covers, &minutes, &watched, &held).await
    }

    /// Causes that need somebody, those with the most dead letters first, of so many that may.
    pub async fn needy_causes(
        &self,
        pipeline: Option<&PipelineName>,
        covers: &impl Fn(&PipelineName) -> bool,
        limit: u32,
    ) -> Result<Vec<CauseView>, Error> {
        let params = ListCauses {
            ids: Vec::new(),
            pipeline: pipeline.cloned(),
            states: NEEDY.to_vec(),
            owner: None,
            with_empty: false,
            limit,
            now: self.now(),
        };
        let mut causes = self.store.list_causes(params).await?;
        causes.retain(|cause| covers(&cause.pipeline) && cause.state.needs_somebody(cause.owner.is_some()));
        Ok(causes)
    }

    async fn open_replays(&self, covers: &impl Fn(&PipelineName) -> bool) -> Result<Vec<ReplayView>, Error> {
        let open = ListReplays { open_only: true, limit: REPLAYS_MAX, cursor: None };
        let mut replays = self.store.list_replays(open).await?.items;
        replays.retain(|replay| replay.pipelines.iter().all(covers));
        Ok(replays)
    }

    async fn counts_of(
        &self,
        since: Timestamp,
        by: Span,
        covers: &impl Fn(&PipelineName) -> bool,
    ) -> Result<Vec<EventCount>, Error> {
        let mut counts = self.store.counts(CountEvents { since, by }).await?;
        counts.retain(|count| covers(&count.pipeline));
        Ok(counts)
    }

    async fn watch_pipelines(
        &self,
        setting: &Setting,
        covers: &impl Fn(&PipelineName) -> bool,
        now: Timestamp,
    ) -> Result<Watched, Error> {
        let ledgers = self.store.ledgers().await?;
        let with_dead = ledgers.iter().filter(|(name, ledger)| covers(name) && ledger.dead > 0);
        let time = |(name, _): (&PipelineName, _)| {
            let kept = setting.policy(name).retention?;
            Some((name.clone(), now - kept + EXPIRY_AHEAD.min(kept / 4)))
        };
        let expiring = with_dead.filter_map(time).collect();
        Ok(self.store.watch(Watch { expiring, limit: EXPIRING_MAX, now }).await?)
    }

    /// The pipeline of which most tasks died lately, and what most of its tasks died of in this hour.
    async fn worst(
        &self,
        lately: &BTreeMap<PipelineName, Share>,
        minutes: &[EventCount],
        now: Timestamp,
    ) -> Result<Option<Worst>, Error> {
        let worst = lately.iter().filter(|(_, died)| died.part > 0).max_by_key(|(_, died)| died.part);
        let Some((pipeline, died)) = worst else { return Ok(None) };
        let since = now - LATELY;
        let busiest = BusiestCauses { pipeline: Some(pipeline.clone()), since, limit: 1 };
        let ids = self.store.busiest_causes(busiest).await?;
        let hours = self.store.cause_hours(ids.clone(), since).await?;
        let count = hours.iter().map(|hour| hour.count - hour.imported).sum();
        let cause = match ids.is_empty() {
            true => None,
            false => {
                let (states, owner) = (Vec::new(), None);
                let params = ListCauses { ids, pipeline: None, states, owner, with_empty: true, limit: 1, now };
                self.store.list_causes(params).await?.pop().map(|cause| (cause, count))
            }
        };
        let is_recovery =
            |count: &&EventCount| count.event == Event::Recovered && count.at >= since && count.pipeline == *pipeline;
        let recovered: i64 = minutes.iter().filter(is_recovery).map(|count| count.count).sum();
        let recovered = u64::try_from(recovered).unwrap_or(0);
        Ok(Some(Worst { pipeline: pipeline.clone(), died: *died, recovered, cause }))
    }

    async fn needs(
        &self,
        causes: Vec<CauseView>,
        paused: Vec<ReplayView>,
        watched: &Watched,
        setting: &Setting,
        covers: &impl Fn(&PipelineName) -> bool,
    ) -> Result<Vec<Need>, Error> {
        let is_theirs = |name: Option<&PipelineName>| name.is_none_or(covers);
        let (alerts, now) = (self.store.list_alerts().await?.into_iter(), self.now());
        let firing = alerts.filter(|view| view.needs_somebody(now) && is_theirs(view.alert.pipeline.as_ref()));
        let expiring = watched.expiring.iter().filter(|(name, found)| covers(name) && found.letters > 0);
        let expiring = expiring.filter_map(|(name, found)| {
            let first = found.oldest + setting.policy(name).retention?;
            Some(Need::Expiring { pipeline: name.clone(), letters: found.letters, more: found.more, first })
        });
        Ok(firing
            .map(|view| Need::Alert(Box::new(view)))
            .chain(causes.into_iter().take(CAUSES_NAMED).map(|cause| Need::Cause(Box::new(cause))))
            .chain(paused.into_iter().map(|replay| Need::Replay(Box::new(replay))))
            .chain(expiring)
            .collect())
    }

    async fn pipeline_lines(
        &self,
        setting: &Setting,
        covers: &impl Fn(&PipelineName) -> bool,
        minutes: &[EventCount],
        watched: &Watched,
        breakers: &[BreakerView],
    ) -> Result<Vec<PipelineLine>, Error> {
        let (ledgers, mut pauses, now) = (self.store.ledgers().await?, self.store.pauses().await?, self.now());
        let hours = self.counts_of(now - WEEK, Span::Hour, covers).await?;
        let workers = self.store.list_workers().await?;
        let alive: Vec<_> = workers.iter().filter(|worker| worker.is_at_work(now)).collect();
        let (last_hour, last_week) = (ended(minutes, now - HOUR), ended_in(&hours, (now - WEEK).hour()));
        let names: BTreeSet<_> = ledgers.keys().chain(setting.config.pipeline.keys()).cloned().collect();
        let line = |name: PipelineName| {
            let ledger = ledgers.get(&name).copied().unwrap_or_default();
            let pause = pauses.remove(&name);
            let died = last_hour.get(&name).copied().unwrap_or_default();
            let (workers, held_workers) = attending(&alive, &name);
            let waits = breakers.iter().any(|view| view.pipeline == name && view.held > 0);
            let facts = StandingFacts {
                is_paused: pause.is_some(),
                died,
                is_held: waits || held_workers > 0,
                queued: u64::try_from(ledger.queued).unwrap_or(0),
                workers,
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
        Ok(names.into_iter().filter(covers).map(line).collect())
    }
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

/// The same in one hour.
fn ended_in(counts: &[EventCount], hour: i64) -> BTreeMap<PipelineName, Share> {
    shares(counts.iter().filter(|count| count.at.hour() == hour))
}

fn shares<'a>(counts: impl Iterator<Item = &'a EventCount>) -> BTreeMap<PipelineName, Share> {
    let mut sums = BTreeMap::<PipelineName, (i64, i64)>::new();
    for count in counts {
        let (died, done) = sums.entry(count.pipeline.clone()).or_default();
        match count.event {
            Event::Buried => *died += count.count,
            Event::Done => *done += count.count,
            Event::Recovered => *done -= count.count,
            _ => {}
        }
    }
    let whole = |n: i64| u64::try_from(n).unwrap_or(0);
    sums.into_iter().map(|(name, (died, done))| (name, Share::new(whole(died), whole(died) + whole(done)))).collect()
}

fn sum<'a>(shares: impl Iterator<Item = &'a Share>) -> Share {
    shares.fold(Share::default(), |all, one| Share::new(all.part + one.part, all.whole + one.whole))
}

/// Tasks of a pipeline that were done in each of the last hours, the present one last.
fn done_hours(hours: &[EventCount], name: &PipelineName, now: Timestamp) -> Vec<i64> {
    let mut done = vec![0; HOURS];
    let own = hours.iter().filter(|count| count.pipeline == *name && count.event == Event::Done);
    for count in own {
        let ago = usize::try_from(now.hour() - count.at.hour()).unwrap_or(usize::MAX);
        if let Some(slot) = HOURS.checked_sub(ago.saturating_add(1)).and_then(|at| done.get_mut(at)) {
            *slot += count.count;
        }
    }
    done
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
        let counts = [count(100 * 60, Event::Done, 5), count(77 * 60, Event::Done, 2), count(76 * 60, Event::Done, 9)];
        let done = done_hours(&counts, &"shop".parse().expect("a name"), now);
        assert_eq!((done.len(), done[23], done[0], done.iter().sum::<i64>()), (24, 5, 2, 7));
    }
}
