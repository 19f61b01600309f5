//! `redrive dead top`: dead letters by whatever they have in common, with the denominator where there is one.

use std::collections::HashMap;

use anyhow::Result;
use redrive::Redrive;
use redrive::config::Setting;
use redrive_core::failures::Reason;
use redrive_core::time::Timestamp;
use redrive_store::contract::{CountDead, CountTraffic, DeadBy, DeadCount, DeadFilter, ListTracked, TrafficBy};
use serde::Serialize;

use super::super::filter;
use crate::args::{TopArgs, TopBy};
use crate::exit::Exit;
use crate::output::bars::{Row, rows};
use crate::output::csv;
use crate::output::foreign::harmless;
use crate::output::json;
use crate::output::print::out;
use crate::output::report::figures::{count, counted, part_of, percent, share};
use crate::output::report::tone::Tone;
use crate::output::table;

/// A row of the answer.
#[derive(Debug, Serialize)]
struct Line {
    /// What the letters have in common.
    value: Option<String>,
    /// The reason, where it is counted apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    /// Dead letters.
    dead: i64,
    /// Their share of all that were counted.
    share: f64,
    /// How it went with everything that has this in common, dead or not, where that is known.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

/// What went well and what not: attempts by proxy; jobs, each once, by target, hour and fields that are kept count of.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Outcome {
    /// What went well.
    ok: i64,
    /// What did not: for the reason of the row, if it has one.
    failed: i64,
    /// All of it.
    of: i64,
}

/// All that has one value in common: what went well, and what did not by reason where that is known.
#[derive(Debug, Default)]
struct Ends {
    ok: i64,
    failed: HashMap<Option<Reason>, i64>,
}

impl Ends {
    fn add(&mut self, reason: Option<Reason>, count: i64) {
        match reason {
            None => self.ok += count,
            reason => *self.failed.entry(reason).or_default() += count,
        }
    }

    /// What a row for a reason, or for all, says of it; nothing if nothing was counted.
    fn outcome(&self, reason: Option<Reason>) -> Option<Outcome> {
        let all: i64 = self.failed.values().sum();
        let failed = if reason.is_some() { self.failed.get(&reason).copied().unwrap_or_default() } else { all };
        (self.ok + all > 0).then_some(Outcome { ok: self.ok, failed, of: self.ok + all })
    }
}

pub async fn run(setting: &Setting, args: TopArgs) -> Result<Exit> {
    let redrive = setting.redrive_existing().await?;
    let filter = filter::of_dead(args.filter, redrive.now())?;
    let limit = if args.by.0 == DeadBy::Hour { u32::MAX } else { args.limit };
    let params = CountDead { filter: filter.clone(), by: args.by.0.clone(), limit };
    let counts = redrive.store().count_dead(params).await?;
    let outcomes = outcomes(&redrive, &args.by, &filter).await?;
    let (shown, all) =
        (counts.iter().map(|count| count.count).sum::<i64>(), counts.first().map_or(0, |count| count.of));
    let lines = lines(counts, &outcomes);
    if args.json {
        for line in &lines {
            json::line(line)?;
        }
    } else if args.csv {
        print_csv(&lines)?;
    } else {
        print(&lines, &args.by)?;
        if shown < all {
            out!("and {} with other values: --limit shows them", counted(all - shown, "letter", "letters"))?;
        }
    }
    Ok(Exit::Ok)
}

fn lines(counts: Vec<DeadCount>, outcomes: &HashMap<String, Ends>) -> Vec<Line> {
    let line = |count: DeadCount| Line {
        outcome: count.value.as_ref().and_then(|value| outcomes.get(value)?.outcome(count.reason)),
        share: share(count.count, count.of),
        value: count.value,
        reason: count.reason,
        dead: count.count,
    };
    counts.into_iter().map(line).collect()
}

/// How it went with everything, by the same thing, where that is counted.
async fn outcomes(redrive: &Redrive, by: &TopBy, filter: &DeadFilter) -> Result<HashMap<String, Ends>> {
    let mut outcomes: HashMap<String, Ends> = HashMap::new();
    if let DeadBy::Input(field) = &by.0 {
        let params = ListTracked { pipeline: filter.pipeline.clone(), field: field.clone(), limit: u32::MAX };
        for tracked in redrive.store().tracked(params).await? {
            let ends = outcomes.entry(tracked.value).or_default();
            ends.ok += tracked.ok;
            *ends.failed.entry(None).or_default() += tracked.failed;
        }
        return Ok(outcomes);
    }
    let by = match by.0 {
        DeadBy::Target => TrafficBy::Target,
        DeadBy::Proxy => TrafficBy::Proxy,
        DeadBy::Hour => TrafficBy::Hour,
        _ => return Ok(outcomes),
    };
    let since = filter.since.unwrap_or(Timestamp::from_millis(0));
    let params = CountTraffic { pipeline: filter.pipeline.clone(), since, by };
    for attempts in redrive.store().traffic(params).await? {
        let count = if by == TrafficBy::Proxy { attempts.count } else { attempts.ended };
        outcomes.entry(attempts.value).or_default().add(attempts.reason, count);
    }
    Ok(outcomes)
}

fn print(lines: &[Line], by: &TopBy) -> Result<()> {
    if lines.is_empty() {
        out!("no dead letters")?;
        return Ok(());
    }
    let names: Vec<String> = lines
        .iter()
        .map(|line| {
            let value = line.value.as_deref().map_or_else(|| "(none)".to_owned(), harmless);
            line.reason.map_or_else(|| value.clone(), |reason| format!("{value}h  {reason}"))
        })
        .collect();
    let what = if by.0 == DeadBy::Proxy { "attempts failed" } else { "jobs died" };
    let mut table: Vec<Row<'_>> = Vec::new();
    for (line, name) in lines.iter().zip(&names) {
        let (value, remark) = (count(line.dead), remark(line, what));
        table.push(Row { name, share: line.share, tone: Tone::Bad, value, remark });
    }
    for line in rows(&table, table::line_width()) {
        out!("{line}")?;
    }
    Ok(())
}

fn remark(line: &Line, what: &str) -> String {
    let mut remark = percent(line.share);
    if let Some(Outcome { ok, failed, of }) = line.outcome {
        let always = if ok == 0 && failed > 1 { ", always" } else { "" };
        remark += &format!("   {} {what} ({}{always})", part_of(failed, of), percent(share(failed, of)));
    }
    remark
}

fn print_csv(lines: &[Line]) -> Result<()> {
    out!("value,reason,dead,share,ok,failed,of")?;
    for line in lines {
        let number = |of: fn(Outcome) -> i64| line.outcome.map_or(String::new(), |outcome| of(outcome).to_string());
        let fields = [
            line.value.as_deref().unwrap_or_default(),
            line.reason.map_or("", Reason::as_str),
            &line.dead.to_string(),
            &format!("{:.6}", line.share),
            &number(|outcome| outcome.ok),
            &number(|outcome| outcome.failed),
            &number(|outcome| outcome.of),
        ];
        out!("{}", csv::line(&fields))?;
    }
    Ok(())
}
