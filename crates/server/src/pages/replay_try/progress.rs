//! How far a try is, and what came of it: how many would recover, for what the others would still fail, what would come of one of them.

use maud::{Markup, html};
use redrive::replays::{Remaining, Tried, TriedRecord};
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Miss;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::Value;

use super::{Newest, draft};
use crate::look::charts::bars::bar;
use crate::look::figures::{count, part_of};
use crate::look::tone::Tone;
use crate::pages::parts::{Glyph, ago, column, column_num, columns, length, name, state, text};
use crate::pages::visitor::Visitor;

/// Causes of what would still fail that are named.
const LEFTOVERS: usize = 8;

/// The part of the page that changes while a try runs; `here` is the address of the page.
pub fn part(
    visitor: &Visitor,
    newest: &Newest,
    example: Option<&DeadLetter>,
    (here, now): (&str, Timestamp),
) -> Markup {
    html! {
        div.result #try-result data-live data-busy=[newest.is_under_way().then_some("load")] {
            @if newest.is_under_way() { (under_way(visitor, newest, (here, now))) } @else { (ended(newest, now)) }
            (leftovers(&newest.tried))
            @if !newest.is_under_way() {
                div.halves.compact {
                    (record(newest.tried.record.as_ref(), example))
                    (draft::outcome(newest))
                }
            }
        }
    }
}

fn under_way(visitor: &Visitor, newest: &Newest, (here, now): (&str, Timestamp)) -> Markup {
    let Tried { tried, recovered, of, .. } = newest.tried;
    let sum = |of: fn(&redrive::contract::TriedCount) -> u64| newest.groups.iter().map(of).sum::<u64>();
    let (waiting, leased) = (sum(|group| group.waiting), sum(|group| group.leased));
    let is_elsewhere = waiting + leased > 0;
    let all = of.max(tried);
    html! {
        p.headline role="status" {
            b { (part_of(recovered as i64, tried as i64)) " would recover" } ", " (count((all - tried) as i64)) " to go"
            span.fact {
                (part_of(tried as i64, all as i64)) " tried in " (length(newest.kept.created_at, now))
                @if is_elsewhere { ", by workers that live elsewhere: " (count(leased as i64)) " in their hands, " (count(waiting as i64)) " wait for one" }
                @else if !newest.is_here { ". It runs in another process; if that stopped, this is noticed within a minute" }
                "."
            }
        }
        @if !newest.unattended.is_empty() {
            p.warn-text {
                "No worker that lives elsewhere is there for "
                (newest.unattended.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
                ": the try waits until one comes. Stop ends it with what was tried by then."
            }
        }
        (bar(if all == 0 { 0.0 } else { tried as f64 / all as f64 }, None, Tone::Plain))
        p.actions {
            @if let Some(lacks) = visitor.lacks(Role::Operator) { button disabled title=(lacks) { "Stop" } }
            @else { button formaction="/replays/try/stop" formnovalidate name="try" value=(newest.kept.id) { "Stop" } }
            a href=(here) { "Look again" }
        }
    }
}

fn ended(newest: &Newest, now: Timestamp) -> Markup {
    let Tried { tried, recovered, of, stopped, why, unknown, .. } = &newest.tried;
    let (good, all) = (*recovered as i64, *tried as i64);
    let tone = match good {
        0 => Tone::Bad,
        _ if good == all => Tone::Good,
        _ => Tone::Warn,
    };
    let took = newest.kept.finished_at.map(|at| length(newest.kept.created_at, at)).unwrap_or_default();
    html! {
        p class={ "headline " (tone.class()) } {
            b { (part_of(good, all)) " would recover" }
            span.fact {
                (part_of(all, (*of).max(*tried) as i64)) " tried in " (took) ", " (ago(newest.kept.created_at, now)) ", "
                @if newest.is_draft() { "by this draft" } @else { "by the rules of redrive.toml as they were then" } "."
                @if *unknown > 0 { " Of " (count(*unknown as i64)) " it cannot be told from what is saved." }
                @match why {
                    Some(why) => { " It was cut short: " (text(why)) "." }
                    None if *stopped => { " It was stopped before all were tried." }
                    None => {}
                }
            }
        }
    }
}

fn leftovers(tried: &Tried) -> Markup {
    let left = &tried.remaining;
    let more = left.len().saturating_sub(LEFTOVERS) as i64;
    html! {
        @if !left.is_empty() {
            table.left role="table" {
                (columns(&[column("Would still fail"), column_num("Letters")]))
                tbody role="rowgroup" { @for one in left.iter().take(LEFTOVERS) { (leftover(one, tried.tried as i64)) } }
            }
            @if more > 0 { p.table-foot { "And " (count(more)) @if more == 1 { " other cause." } @else { " other causes." } } }
        }
    }
}

fn leftover(one: &Remaining, tried: i64) -> Markup {
    html! {
        tr role="row" {
            th role="rowheader" scope="row" {
                (state(one.reason.as_str(), Glyph::Cross, Tone::Bad)) " "
                @match &one.cause {
                    Some(cause) => { a href={ "/causes/" (cause) } { (text(&one.title)) } }
                    None => { span.muted { "new " } (text(&one.title)) }
                }
                span.fact {
                    a href={ "/letters/" (one.example) } { "an example" }
                    @if one.message != one.title { " " (text(&one.message)) }
                }
            }
            td.num role="cell" { (part_of(one.letters as i64, tried)) }
        }
    }
}

/// What would come of one of the letters, beside what it died of.
fn record(record: Option<&TriedRecord>, letter: Option<&DeadLetter>) -> Markup {
    let (Some(record), Some(letter)) = (record, letter) else { return html! {} };
    let failure = letter.failures.iter().flatten().last();
    let misses = failure.map(|failure| failure.misses.as_slice()).unwrap_or_default();
    let number = letter.number.map_or_else(|| letter.id.to_string(), |number| format!("#{number}"));
    html! {
        div {
            h3 { "Record of letter " a href={ "/letters/" (letter.id) } { (number) } }
            dl.keys.rec {
                @match &record.record {
                    Value::Object(fields) => { @for (field, value) in fields { dt { (name(field)) } dd { (value_of(field, value, misses)) } } }
                    other => { dt { "result" } dd { (text(&written(other))) } }
                }
            }
            @if let Some(failure) = failure.filter(|_| misses.is_empty()) {
                p.fact { "It died of: " (text(&failure.message)) }
            }
        }
    }
}

fn value_of(field: &str, value: &Value, misses: &[Miss]) -> Markup {
    let was_missed = misses.iter().any(|miss| miss.field == field);
    html! {
        @if was_missed { span.bad-text { "missed" } " → " b.good-text { (text(&written(value))) } }
        @else { (text(&written(value))) }
    }
}

/// A value as a person reads it.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        Value::Array(all) if all.iter().all(|one| !one.is_object() && !one.is_array()) => {
            all.iter().map(written).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
