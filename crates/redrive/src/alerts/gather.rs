//! The numbers that alerts are judged by. All are kept as things happen: nothing is counted here, however much there is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use redrive_core::alerts::facts::{
    BreakerFacts, CauseFacts, Expiring, Facts, FieldFacts, PipelineFacts, ReplayFacts, UntakenReplay,
};
use redrive_core::alerts::judge::Alerts as Judged;
use redrive_core::alerts::{Alert, Condition, Rules, Share};
use redrive_core::breakers::{BreakerState, BreakerView};
use redrive_core::causes::CauseId;
use redrive_core::counts::Event;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::pipelines::Pause;
use redrive_core::replays::{ReplayState, paused_itself};
use redrive_core::time::Timestamp;
use redrive_store::contract::{
    BusiestCauses, CauseHour, CauseView, CountEvents, CoverageCount, EventCount, ListCauses, ListReplays, ReplayView,
    Span, Watch, Watched,
};

use super::Watching;
use crate::engine::Redrive;
use crate::error::Error;

const MINUTE: Duration = Duration::from_secs(60);

const HOUR: Duration = Duration::from_secs(3_600);

/// How far back it is looked for what is usual, with the window before it and the hours at both ends.
const USUAL_FOR: Duration = Duration::from_secs(32 * 3_600);

/// Letters that are looked at, of each pipeline, for how many expire.
const EXPIRING_MAX: u32 = 1_000;

/// Causes that are looked at beside those whose alerts fire, and replays that are read at once.
const LISTED: u32 = 50;

/// Everything that is judged.
pub(super) async fn facts(
    redrive: &Redrive,
    watching: &Watching,
    known: &Judged,
    now: Timestamp,
) -> Result<Facts, Error> {
    let store = &redrive.store;
    let mut ledgers = store.ledgers().await?;
    let expiring = expiry_times(watching, &ledgers, now);
    let mut watched = store.watch(Watch { expiring, limit: EXPIRING_MAX, now }).await?;
    let is_undefined = |name: &&PipelineName| !watched.defined.contains(*name) && !watching.defines(name);
    let undefined: BTreeSet<_> = ledgers.keys().filter(is_undefined).cloned().collect();
    ledgers.retain(|name, _| watching.rules().judges(name) || undefined.contains(name));
    // What people paused is not expected to move.
    let paused = store.pauses().await?;
    watched.due_since.retain(|name, _| !paused.contains_key(name));
    let open = open_replays(redrive).await?;
    let minutes = store.counts(CountEvents::since(now - minutes_back(watching, known), Span::Minute)).await?;
    let hours = store.counts(CountEvents::since(now - hours_back(watching), Span::Hour)).await?;
    let free_bytes = watched.free_bytes;
    let pipelines = pipelines(watching, &ledgers, &watched, &minutes, &hours, now);
    Ok(Facts {
        pipelines,
        undefined,
        causes: causes(redrive, &firing_causes(known), &hours, now).await?,
        breakers: store.list_breakers().await?.into_iter().filter_map(|view| breaker(view, now)).collect(),
        untaken: untaken(redrive, &open, &paused).await?,
        replays: open.into_iter().filter_map(replay).collect(),
        fields: fields(store.coverage(None, now - USUAL_FOR).await?, now),
        free_bytes,
    })
}

/// How far back minutes are read: as far as a window or a standstill goes, or as far as there are any while the share of a pipeline
/// fires, which may have fallen silent since.
fn minutes_back(watching: &Watching, known: &Judged) -> Duration {
    let is_share = |alert: &Alert| matches!(alert.condition, Condition::Rate | Condition::Jump);
    if known.values().any(|alert| alert.is_firing() && is_share(alert)) {
        return 6 * HOUR;
    }
    let longest = watching.rules().longest(|rules: &Rules| rules.window.max(rules.stalled.unwrap_or_default()));
    (longest + HOUR / 12).min(6 * HOUR)
}

/// How far back hours are read: as far as the long window goes, and what is usual.
fn hours_back(watching: &Watching) -> Duration {
    USUAL_FOR.max(watching.rules().longest(|rules: &Rules| rules.long_window.unwrap_or_default()) + HOUR)
}

/// The times before which letters of each pipeline were kept that will soon be too old: within a quarter of how long they are kept.
fn expiry_times(
    watching: &Watching,
    ledgers: &BTreeMap<PipelineName, Ledger>,
    now: Timestamp,
) -> Vec<(PipelineName, Timestamp)> {
    let with_dead = ledgers.iter().filter(|(_, ledger)| ledger.dead > 0);
    let time = |(name, _): (&PipelineName, &Ledger)| {
        let kept = watching.policy(name).retention?;
        let ahead = watching.rules().of(name).expiry?.min(kept / 4);
        Some((name.clone(), now - kept + ahead))
    };
    with_dead.filter_map(time).collect()
}

/// Of the jobs that came to their end, those that died. What recovers came to its end before.
#[derive(Clone, Copy, Default)]
struct Ended {
    died: i64,
    done: i64,
}

impl Ended {
    fn add(&mut self, count: &EventCount) {
        match count.event {
            Event::Buried => self.died += count.count,
            Event::Done => self.done += count.count,
            Event::Recovered => self.done -= count.count,
            _ => {}
        }
    }

    fn share(self) -> Share {
        let [died, done] = [self.died, self.done].map(|count| u64::try_from(count).unwrap_or(0));
        Share::new(died, died + done)
    }
}

/// The counts of each pipeline, by their time. What a clock that was ahead counted in the future is left out.
pub(super) fn by_time(counts: &[EventCount], now: Timestamp) -> BTreeMap<&PipelineName, Vec<(Timestamp, Share)>> {
    let mut sums = BTreeMap::<&PipelineName, BTreeMap<Timestamp, Ended>>::new();
    for count in counts.iter().filter(|count| count.at <= now + MINUTE) {
        sums.entry(&count.pipeline).or_default().entry(count.at).or_default().add(count);
    }
    let shares = |times: BTreeMap<Timestamp, Ended>| times.into_iter().map(|(at, ended)| (at, ended.share())).collect();
    sums.into_iter().map(|(name, times)| (name, shares(times))).collect()
}

fn pipelines(
    watching: &Watching,
    ledgers: &BTreeMap<PipelineName, Ledger>,
    watched: &Watched,
    minutes: &[EventCount],
    hours: &[EventCount],
    now: Timestamp,
) -> BTreeMap<PipelineName, PipelineFacts> {
    let (mut minutes, mut hours) = (by_time(minutes, now), by_time(hours, now));
    let last = |times: &[(Timestamp, Share)]| times.iter().rev().find(|(_, share)| share.whole > 0).map(|(at, _)| *at);
    let of = |(name, ledger): (&PipelineName, &Ledger)| {
        let (minutes, hours) = (minutes.remove(name).unwrap_or_default(), hours.remove(name).unwrap_or_default());
        let policy = watching.policy(name);
        let expiring = watched.expiring.get(name).zip(policy.retention).map(|(found, kept)| Expiring {
            letters: found.letters,
            more: found.more,
            first: found.oldest + kept,
        });
        let facts = PipelineFacts {
            ended_at: last(&minutes).or_else(|| last(&hours)),
            minutes,
            hours,
            due_since: watched.due_since.get(name).copied(),
            queued: u64::try_from(ledger.queued).unwrap_or(0),
            deadline: policy.deadline,
            expiring,
            letters: u64::try_from(ledger.dead).unwrap_or(0),
            letters_max: policy.letters_max,
        };
        (name.clone(), facts)
    };
    ledgers.iter().map(of).collect()
}

/// The causes that killed most in this hour and the one before, and those whose alerts fire. What was imported did not die here.
async fn causes(
    redrive: &Redrive,
    firing: &[CauseId],
    hours: &[EventCount],
    now: Timestamp,
) -> Result<Vec<CauseFacts>, Error> {
    let (store, since) = (&redrive.store, now - HOUR);
    let mut ids = store.busiest_causes(BusiestCauses { pipeline: None, since, limit: LISTED }).await?;
    let quieter: Vec<_> = firing.iter().filter(|id| !ids.contains(id)).cloned().collect();
    ids.extend(quieter);
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut letters = BTreeMap::<CauseId, i64>::new();
    for CauseHour { cause, count, imported, .. } in store.cause_hours(ids.clone(), since).await? {
        *letters.entry(cause).or_default() += count - imported;
    }
    let params = ListCauses::these(ids, now);
    let died = |name: &PipelineName| {
        let lately = hours.iter().filter(|count| count.at.hour() >= since.hour() && count.pipeline == *name);
        // A task counts once: one that fails again in a replay is not another that died.
        lately.filter(|count| count.event == Event::Buried).map(|count| count.count).sum::<i64>()
    };
    let facts = |cause: CauseView| CauseFacts {
        letters: letters.get(&cause.id).map_or(0, |count| u64::try_from(*count).unwrap_or(0)),
        died: u64::try_from(died(&cause.pipeline)).unwrap_or(0),
        id: cause.id,
        pipeline: cause.pipeline,
        state: cause.state,
        title: cause.title,
    };
    Ok(store.list_causes(params).await?.into_iter().map(facts).collect())
}

/// The causes whose alerts fire.
fn firing_causes(known: &Judged) -> Vec<CauseId> {
    let firing = known.values().filter(|alert| alert.is_firing() && alert.condition == Condition::Cause);
    firing.filter_map(|alert| alert.finding.numbers.get("cause")?.as_str()?.parse().ok()).collect()
}

/// All replays that have not come to their end.
async fn open_replays(redrive: &Redrive) -> Result<Vec<ReplayView>, Error> {
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let params = ListReplays { cursor, ..ListReplays::open(LISTED) };
        let page = redrive.store.list_replays(params).await?;
        found.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}

/// Replays with letters that no worker takes: none is there for their pipelines, or none has the version that they wait for. What
/// people paused is not expected to move.
async fn untaken(
    redrive: &Redrive,
    open: &[ReplayView],
    paused: &BTreeMap<PipelineName, Pause>,
) -> Result<Vec<UntakenReplay>, Error> {
    let mut found = Vec::new();
    for replay in open.iter().filter(|view| matches!(view.state, ReplayState::Preparing | ReplayState::Running)) {
        let mut pipelines = redrive.unattended(replay).await?;
        pipelines.extend(redrive.awaited_by(replay).await?.into_keys());
        pipelines.retain(|name| !paused.contains_key(name));
        if !pipelines.is_empty() {
            let (since, left) = (replay.moved_at, replay.progress.pending + replay.progress.running);
            found.push(UntakenReplay { id: replay.id, name: replay.name.clone(), pipelines, since, left });
        }
    }
    Ok(found)
}

/// A target that fails; one that a person holds does not.
fn breaker(view: BreakerView, now: Timestamp) -> Option<BreakerFacts> {
    let BreakerView { pipeline, target, held, breaker, .. } = view;
    let since = breaker.opened_at.unwrap_or(breaker.since);
    let why = breaker.opened_by.or(breaker.last).map(|failure| failure.to_string());
    let is_held = breaker.held_by.is_some_and(|held| held.until.is_none_or(|until| now < until));
    let fails = breaker.state != BreakerState::Closed && !is_held;
    fails.then_some(BreakerFacts { pipeline, target, since, held, why })
}

fn replay(view: ReplayView) -> Option<ReplayFacts> {
    let itself = paused_itself(view.state, view.why.as_deref());
    let ReplayView { id, name, why, progress, .. } = view;
    itself.then(|| ReplayFacts { id, name, why: why.unwrap_or_default(), failed: progress.failed })
}

/// How often fields were found, lately and in the day before.
fn fields(counts: Vec<CoverageCount>, now: Timestamp) -> Vec<FieldFacts> {
    let mut fields = BTreeMap::<(PipelineName, String), (Share, Share)>::new();
    for count in counts.into_iter().filter(|count| count.hour.hour() <= now.hour()) {
        let [found, missing] = [count.found, count.missing].map(|count| u64::try_from(count).unwrap_or(0));
        let (recent, earlier) = fields.entry((count.pipeline, count.field)).or_default();
        let side = if count.hour.hour() >= now.hour() - 1 { recent } else { earlier };
        *side = *side + Share::new(found, found + missing);
    }
    let facts = |((pipeline, field), (recent, earlier))| FieldFacts { pipeline, field, recent, earlier };
    fields.into_iter().map(facts).collect()
}
