//! Filling a report in from a store: everything comes from roll-ups, so it costs the same however many letters are dead.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use redrive_core::causes::CauseId;
use redrive_core::counts::Event;
use redrive_core::failures::Reason;
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use redrive_store::contract::{
    BusiestCauses, CauseView, CountDead, CountEvents, CountTraffic, CoverageCount, DeadBy, DeadFilter, EventCount,
    ListCauses, Span, TrafficBy, TrafficCount,
};

use super::{CauseLine, ClockCell, CodeCount, FieldCoverage, HourReport, PipelineReport, Rate, ReasonCount, Report};
use crate::engine::Redrive;
use crate::error::Error;

/// Entries of each list.
const ENTRIES: usize = 20;

/// Causes that are looked at: those with the most letters, and those that killed most in the window.
const LISTED: u32 = 20;

/// Parts of the window that the trend of a cause shows.
const TREND_PARTS: usize = 24;

/// The last part of the window, which fields are compared with the rest of.
const RECENT: Duration = Duration::from_secs(3 * 3_600);

const HOUR: Duration = Duration::from_secs(3_600);

impl Redrive {
    /// What happened since a time, in one pipeline or all.
    pub async fn report(&self, since: Timestamp, pipeline: Option<&PipelineName>) -> Result<Report, Error> {
        let (store, now) = (&self.store, self.now());
        let mine = |name: &PipelineName| pipeline.is_none_or(|wanted| wanted == name);
        let hourly = CountEvents { pipeline: pipeline.cloned(), ..CountEvents::since(since, Span::Hour) };
        let hourly = store.counts(hourly).await?;
        let attempts = async |by| {
            store.traffic(CountTraffic { pipeline: pipeline.cloned(), since, by }).await.map(|counts| rates(&counts))
        };
        let coverage = store.coverage(pipeline.cloned(), since).await?;
        let filter = DeadFilter { pipeline: pipeline.cloned(), ..DeadFilter::default() };
        let by_code = CountDead { filter, by: DeadBy::Code, limit: u32::try_from(ENTRIES + 1).unwrap_or(u32::MAX) };
        let codes = store.count_dead(by_code).await?;
        Ok(Report {
            made_at: now,
            since,
            until: now,
            pipelines: self.pipelines(&hourly, mine).await?,
            hours: hours(&hourly, since, now),
            reasons: reasons(&hourly),
            codes: codes
                .into_iter()
                .filter_map(|count| Some(CodeCount { code: count.value?, count: count.count }))
                .take(ENTRIES)
                .collect(),
            clock: clock(&hourly),
            targets: attempts(TrafficBy::Target).await?,
            proxies: attempts(TrafficBy::Proxy).await?,
            causes: self.causes(since, now, pipeline).await?,
            fields: fields(&coverage, now - RECENT),
        })
    }

    async fn pipelines(
        &self,
        hourly: &[EventCount],
        mine: impl Fn(&PipelineName) -> bool,
    ) -> Result<Vec<PipelineReport>, Error> {
        let oldest: HashMap<_, _> = self.store.oldest_dead().await?.into_iter().collect();
        let sum = |name: &PipelineName, event: Event| {
            hourly.iter().filter(|hour| hour.pipeline == *name && hour.event == event).map(|hour| hour.count).sum()
        };
        let ledgers = self.store.ledgers().await?;
        let mut pipelines: Vec<PipelineReport> = ledgers
            .into_iter()
            .filter(|(name, _)| mine(name))
            .map(|(name, ledger)| PipelineReport {
                ledger,
                done: sum(&name, Event::Done),
                buried: sum(&name, Event::Buried),
                retried: sum(&name, Event::Retried),
                recovered: sum(&name, Event::Recovered),
                refailed: sum(&name, Event::Refailed),
                imported: sum(&name, Event::Imported),
                main_reason: main_reason(hourly, &name),
                oldest_dead: oldest.get(&name).copied(),
                pipeline: name,
            })
            .collect();
        pipelines.sort_by_key(|pipeline| (-pipeline.buried, -pipeline.ledger.dead));
        Ok(pipelines)
    }

    async fn causes(
        &self,
        since: Timestamp,
        now: Timestamp,
        pipeline: Option<&PipelineName>,
    ) -> Result<Vec<CauseLine>, Error> {
        let list = async |ids: Vec<CauseId>| {
            let params = ListCauses {
                ids,
                pipelines: pipeline.cloned().into_iter().collect(),
                // What was brought back meanwhile killed in the window all the same: causes without a dead letter are meant, too.
                ..ListCauses::all(LISTED, now)
            };
            self.store.list_causes(params).await
        };
        let busiest = BusiestCauses { pipeline: pipeline.cloned(), since, limit: LISTED };
        let busiest = self.store.busiest_causes(busiest).await?;
        let mut causes = list(Vec::new()).await?;
        if !busiest.is_empty() {
            causes.extend(list(busiest).await?);
        }
        causes.sort_by(|a, b| a.id.cmp(&b.id));
        causes.dedup_by(|a, b| a.id == b.id);
        let ids = causes.iter().map(|cause| cause.id.clone()).collect();
        let mut trends: HashMap<_, _> = HashMap::new();
        for hour in self.store.cause_hours(ids, since).await? {
            let trend = trends.entry(hour.cause).or_insert_with(|| vec![0; TREND_PARTS]);
            trend[part_of_window(hour.hour, since, now)] += hour.count - hour.imported;
        }
        let line = |cause: CauseView| {
            let trend = trends.remove(&cause.id).unwrap_or_else(|| vec![0; TREND_PARTS]);
            CauseLine {
                id: cause.id.to_string(),
                state: cause.state.to_string(),
                pipeline: cause.pipeline,
                reason: cause.reason,
                title: cause.title,
                dead: i64::try_from(cause.dead).unwrap_or(i64::MAX),
                buried: trend.iter().sum(),
                trend,
                first_seen: cause.first_seen,
                last_seen: cause.last_seen,
                owner: cause.owner,
                targets: cause.targets,
            }
        };
        let mut lines: Vec<CauseLine> = causes.into_iter().map(line).collect();
        lines.retain(|line| line.buried > 0 || line.dead > 0);
        lines.sort_by_key(|line| std::cmp::Reverse((line.buried, line.dead)));
        lines.truncate(ENTRIES);
        Ok(lines)
    }
}

/// Which of the equal parts of the window an instant is in.
fn part_of_window(at: Timestamp, since: Timestamp, now: Timestamp) -> usize {
    let whole = now.since(since).as_secs_f64().max(1.0);
    let part = at.since(since).as_secs_f64() / whole * TREND_PARTS as f64;
    (part as usize).min(TREND_PARTS - 1)
}

/// Every hour of the window, also the empty ones.
fn hours(hourly: &[EventCount], since: Timestamp, now: Timestamp) -> Vec<HourReport> {
    let first = since.hour();
    let empty = |n: i64| HourReport {
        hour: Timestamp::from_millis(0) + HOUR * u32::try_from(first + n).unwrap_or(0),
        done: 0,
        buried: 0,
        recovered: 0,
    };
    let mut hours: Vec<HourReport> = (0..=now.hour() - first).map(empty).collect();
    for count in hourly {
        let Some(hour) = usize::try_from(count.at.hour() - first).ok().and_then(|at| hours.get_mut(at)) else {
            continue;
        };
        match count.event {
            Event::Done => hour.done += count.count,
            Event::Buried => hour.buried += count.count,
            Event::Recovered => hour.recovered += count.count,
            _ => {}
        }
    }
    hours
}

/// Jobs that were buried, with why and when.
fn buried(hourly: &[EventCount]) -> impl Iterator<Item = (Reason, Timestamp, i64)> {
    let buried = hourly.iter().filter(|count| count.event == Event::Buried);
    buried.filter_map(|count| Some((count.reason?, count.at, count.count)))
}

/// Why most jobs of a pipeline died, and how many of them.
fn main_reason(hourly: &[EventCount], pipeline: &PipelineName) -> Option<ReasonCount> {
    let own: Vec<EventCount> = hourly.iter().filter(|count| count.pipeline == *pipeline).cloned().collect();
    reasons(&own).into_iter().next()
}

fn reasons(hourly: &[EventCount]) -> Vec<ReasonCount> {
    let mut counts: BTreeMap<Reason, i64> = BTreeMap::new();
    buried(hourly).for_each(|(reason, _, count)| *counts.entry(reason).or_default() += count);
    let mut counts: Vec<_> = counts.into_iter().map(|(reason, count)| ReasonCount { reason, count }).collect();
    counts.sort_by_key(|count| -count.count);
    counts
}

fn clock(hourly: &[EventCount]) -> Vec<ClockCell> {
    let mut cells: BTreeMap<(u8, Reason), i64> = BTreeMap::new();
    for (reason, at, count) in buried(hourly) {
        let hour = u8::try_from(at.hour().rem_euclid(24)).unwrap_or(0);
        *cells.entry((hour, reason)).or_default() += count;
    }
    cells.into_iter().map(|((hour, reason), count)| ClockCell { hour, reason, count }).collect()
}

/// Attempts by what they have in common, those that fail most often first.
fn rates(traffic: &[TrafficCount]) -> Vec<Rate> {
    let mut found: HashMap<&str, (i64, BTreeMap<Reason, i64>)> = HashMap::new();
    for count in traffic {
        let (ok, reasons) = found.entry(&count.value).or_default();
        match count.reason {
            None => *ok += count.count,
            Some(reason) => *reasons.entry(reason).or_default() += count.count,
        }
    }
    let rate = |(name, (ok, reasons)): (&str, (i64, BTreeMap<Reason, i64>))| Rate {
        name: name.to_owned(),
        ok,
        failed: reasons.values().sum(),
        top_reason: reasons.iter().max_by_key(|(_, count)| **count).map(|(reason, _)| *reason),
    };
    let mut rates: Vec<Rate> = found.into_iter().map(rate).collect();
    rates.sort_by(|a, b| {
        b.failed_share().total_cmp(&a.failed_share()).then(b.failed.cmp(&a.failed)).then_with(|| a.name.cmp(&b.name))
    });
    rates.truncate(ENTRIES);
    rates
}

fn fields(coverage: &[CoverageCount], recent: Timestamp) -> Vec<FieldCoverage> {
    let mut fields: BTreeMap<(&PipelineName, &str, &str), FieldCoverage> = BTreeMap::new();
    for count in coverage {
        let field = fields.entry((&count.pipeline, &count.version, &count.field)).or_insert_with(|| FieldCoverage {
            pipeline: count.pipeline.clone(),
            version: count.version.clone(),
            field: count.field.clone(),
            records: 0,
            filled: 0,
            recent_records: 0,
            recent_filled: 0,
        });
        field.records += count.found + count.missing;
        field.filled += count.found;
        if count.hour + HOUR > recent {
            field.recent_records += count.found + count.missing;
            field.recent_filled += count.found;
        }
    }
    fields.into_values().collect()
}
