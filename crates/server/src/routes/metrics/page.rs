//! What stands on the page, family by family.

use std::collections::BTreeMap;

use redrive::contract::EventTotal;
use redrive::numbers::Numbers;
use redrive_core::breakers::BreakerState;
use redrive_core::counts::Event;
use redrive_core::ids::PipelineName;
use redrive_core::ledger::Ledger;
use redrive_core::time::Timestamp;

use super::families::*;
use super::text::{Family, Text};
use crate::measured::Measured;

/// The page. Without what is measured of the server it is that of some pipelines, and has nothing that is about all of them.
pub fn page(numbers: &Numbers, measured: Option<&Measured>, left_out: usize) -> String {
    let mut text = Text::default();
    text.family(BUILD);
    text.sample(BUILD.0, &[("version", env!("CARGO_PKG_VERSION"))], 1);
    events(&mut text, numbers);
    ledgers(&mut text, &numbers.status.pipelines);
    ages(&mut text, numbers);
    waiting(&mut text, numbers);
    status(&mut text, numbers, left_out);
    if let Some(measured) = measured {
        text.one(SINKS, numbers.status.failing_sinks.len());
        store(&mut text, numbers);
        vault(&mut text, numbers);
        http(&mut text, measured);
    }
    text.finish()
}

/// Writes what has happened to jobs. A pipeline to which something never happened has a series all the same: rates begin at nothing. What is
/// reported long after it happened is no part of a rate of now: an import of history would look like an outage.
fn events(text: &mut Text, numbers: &Numbers) {
    let by_reason = [
        (Event::Buried, DIED),
        (Event::Retried, RETRIED),
        (Event::Crashed, CRASHED),
        (Event::Discarded, DISCARDED),
        (Event::Replayed, REPLAYED),
        (Event::Refailed, REFAILED),
    ];
    for (event, family) in by_reason {
        text.family(family);
        for total in numbers.totals.iter().filter(|total| total.event == event) {
            let reason = total.reason.map_or("none", |reason| reason.as_str());
            let labels = [("pipeline", total.pipeline.as_str()), ("reason", reason)];
            let late = event.late().map_or(0, |late| {
                counted(numbers, late, |of| of.pipeline == total.pipeline && of.reason == total.reason)
            });
            text.sample(family.0, &labels, total.count - late);
        }
    }
    let of_each = |event: Event, name: &PipelineName| counted(numbers, event, |of| of.pipeline == *name);
    let plain =
        [(Event::Accepted, ACCEPTED), (Event::Done, DONE), (Event::Recovered, RECOVERED), (Event::Imported, IMPORTED)];
    for (event, family) in plain {
        text.family(family);
        for name in numbers.status.pipelines.keys() {
            let late = event.late().map_or(0, |late| of_each(late, name));
            text.sample(family.0, &[("pipeline", name.as_str())], of_each(event, name) - late);
        }
    }
    text.family(LATE);
    for (event, of) in [(Event::BuriedLate, "died"), (Event::RefailedLate, "refailed"), (Event::DoneLate, "done")] {
        for name in numbers.status.pipelines.keys() {
            text.sample(LATE.0, &[("pipeline", name.as_str()), ("event", of)], of_each(event, name));
        }
    }
}

fn counted(numbers: &Numbers, event: Event, is_meant: impl Fn(&EventTotal) -> bool) -> i64 {
    numbers.totals.iter().filter(|total| total.event == event && is_meant(total)).map(|total| total.count).sum()
}

fn ledgers(text: &mut Text, ledgers: &BTreeMap<PipelineName, Ledger>) {
    text.family(JOBS);
    for (name, ledger) in ledgers {
        let states = [
            ("queued", ledger.queued),
            ("leased", ledger.leased),
            ("done", ledger.done),
            ("dead", ledger.dead),
            ("discarded", ledger.discarded),
        ];
        for (state, count) in states {
            text.sample(JOBS.0, &[("pipeline", name.as_str()), ("state", state)], count);
        }
    }
    let mut of_each = |family: Family, value: fn(&Ledger) -> i64| {
        text.family(family);
        for (name, ledger) in ledgers {
            text.sample(family.0, &[("pipeline", name.as_str())], value(ledger));
        }
    };
    of_each(RETRYING, |ledger| ledger.retrying);
    of_each(REPLAYING, |ledger| ledger.replaying);
    of_each(BALANCED, |ledger| i64::from(ledger.balances()));
}

fn ages(text: &mut Text, numbers: &Numbers) {
    let age = |at: &Timestamp| numbers.now.since(*at).as_secs_f64();
    text.family(DEAD_AGE);
    for (name, at) in &numbers.oldest_dead {
        text.sample(DEAD_AGE.0, &[("pipeline", name.as_str())], age(at));
    }
    text.family(QUEUE_AGE);
    for (name, at) in &numbers.due_since {
        text.sample(QUEUE_AGE.0, &[("pipeline", name.as_str())], age(at));
    }
}

/// What waits for targets and for people.
fn waiting(text: &mut Text, numbers: &Numbers) {
    let (mut breakers, mut held) = (BTreeMap::<_, u64>::new(), BTreeMap::<_, u64>::new());
    for view in &numbers.status.breakers {
        let state = match view.breaker.state {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half_open",
        };
        *breakers.entry((view.pipeline.as_str(), state)).or_default() += 1;
        *held.entry(view.pipeline.as_str()).or_default() += view.held;
    }
    text.family(BREAKERS);
    for ((pipeline, state), count) in breakers {
        text.sample(BREAKERS.0, &[("pipeline", pipeline), ("state", state)], count);
    }
    text.family(HELD);
    for (pipeline, count) in held {
        text.sample(HELD.0, &[("pipeline", pipeline)], count);
    }
    text.family(PAUSED);
    for name in numbers.status.pauses.keys() {
        text.sample(PAUSED.0, &[("pipeline", name.as_str())], 1);
    }
}

fn status(text: &mut Text, numbers: &Numbers, left_out: usize) {
    let status = &numbers.status;
    let mut states = BTreeMap::<_, u64>::new();
    for replay in &status.replays {
        *states.entry(replay.state.as_str()).or_default() += 1;
    }
    text.family(REPLAYS);
    for (state, count) in states {
        text.sample(REPLAYS.0, &[("state", state)], count);
    }
    text.family(REPLAY_LETTERS);
    let sum =
        |of: fn(&redrive_core::replays::Progress) -> u64| status.replays.iter().map(|r| of(&r.progress)).sum::<u64>();
    text.sample(REPLAY_LETTERS.0, &[("state", "pending")], sum(|progress| progress.pending));
    text.sample(REPLAY_LETTERS.0, &[("state", "running")], sum(|progress| progress.running));
    text.family(WORKERS);
    for (kind, remote) in [("local", false), ("remote", true)] {
        let there = status.workers.iter().filter(|worker| worker.worker.alive && worker.worker.remote == remote);
        text.sample(WORKERS.0, &[("kind", kind)], there.count());
    }
    text.one(ALERTS, status.alerts.len());
    text.one(LEFT_OUT, left_out);
}

fn store(text: &mut Text, numbers: &Numbers) {
    if let Some(bytes) = numbers.free_bytes {
        text.one(FREE, bytes);
    }
    text.family(STORE_TIMES);
    for (verb, durations) in &numbers.store_times {
        text.durations(STORE_TIMES.0, &[("call", verb)], durations);
    }
    text.family(STORE_FAILED);
    for (verb, durations) in &numbers.store_times {
        text.sample(STORE_FAILED.0, &[("call", verb)], durations.failed);
    }
    if let Some(server) = &numbers.server {
        text.one(DEAD_ROWS, server.dead_rows);
        text.one(HORIZON, server.holders.iter().filter_map(|holder| holder.held_secs).max().unwrap_or(0));
        text.one(CONNECTIONS, server.connections);
    }
}

fn vault(text: &mut Text, numbers: &Numbers) {
    if let Some(counts) = &numbers.vault {
        text.family(VAULT_READS);
        for (result, count) in [("found", counts.found), ("missing", counts.missing), ("failed", counts.unread)] {
            text.sample(VAULT_READS.0, &[("result", result)], count);
        }
        text.family(VAULT_SAVES);
        let saves =
            [("saved", counts.saved), ("known", counts.known), ("spooled", counts.spooled), ("failed", counts.unsaved)];
        for (result, count) in saves {
            text.sample(VAULT_SAVES.0, &[("result", result)], count);
        }
    }
    if let Some(spooled) = &numbers.spooled {
        text.one(SPOOL, spooled.payloads);
        text.one(SPOOL_BYTES, spooled.bytes);
    }
}

fn http(text: &mut Text, measured: &Measured) {
    let times = measured.times();
    text.family(HTTP);
    for ((route, method, class), durations) in &times {
        text.sample(HTTP.0, &[("route", route), ("method", method), ("status", class)], durations.count);
    }
    text.family(HTTP_TIMES);
    for ((route, method, class), durations) in &times {
        text.durations(HTTP_TIMES.0, &[("route", route), ("method", method), ("status", class)], durations);
    }
    text.one(HTTP_OPEN, measured.in_flight());
    text.one(LOG_LOST, measured.log_lost());
}
