//! Alerts as rows: what fires, since when, who was told with what result, who looks after it, and what can be done about it.

use std::time::Duration;

use maud::{Markup, html};
use redrive::contract::{AlertView, Posted};
use redrive_core::alerts::{Alert, AlertPage, Condition};
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::Value;

use super::super::overview::fires;
use super::super::parts::{
    Button, Glyph, ago, button, column, columns, commands, flag, instant, length_of, link, name, quoted, state, text,
};
use super::super::pipelines;
use super::super::visitor::Visitor;
use crate::look::figures::{count, percent};
use crate::look::tone::Tone;

pub fn table(visitor: &Visitor, alerts: &[&AlertView], now: Timestamp) -> Markup {
    html! {
        table.alerts.two role="table" {
            (columns(&[
                column("State"), column("What"), column("Since"), column("Delivered to"), column("Owner"),
            ]))
            tbody role="rowgroup" #alerts data-rows="" { @for view in alerts { (row(visitor, view, now)) } }
        }
    }
}

/// What the row of an alert is called: keys have characters that addresses have not.
pub fn row_id(alert: &Alert) -> String {
    format!("alert-{}", &blake3::hash(alert.key.as_str().as_bytes()).to_hex()[..12])
}

fn row(visitor: &Visitor, view: &AlertView, now: Timestamp) -> Markup {
    let (alert, care) = (&view.alert, &view.care);
    html! {
        tr role="row" id=(row_id(alert)) data-href=(alert.page().path()) {
            td role="cell" {
                @if care.snoozed_at(now).is_some() {
                    (state("snoozed", Glyph::Muted, Tone::Quiet))
                } @else if alert.is_firing() {
                    (state("firing", Glyph::Triangle, Tone::Bad))
                } @else {
                    (state("over", Glyph::Check, Tone::Good))
                }
            }
            th role="rowheader" scope="row" {
                span.name {
                    @if let Some(name) = &alert.pipeline { a href=(pipelines::address(name.as_str())) { (name) } ": " }
                    (fires(alert.condition))
                }
                span.fact {
                    "At " (instant(alert.seen_at, now)) ": "
                    @match equation(alert) {
                        Some(sum) => {
                            (sum)
                            @if let Some(at) = alert.finding.nothing_since() { "; nothing has finished since " (instant(at, now)) }
                        }
                        None => (text(&alert.finding.summary)),
                    }
                }
                @if let Some(over) = alert.over_at {
                    span.fact {
                        "Over since " (instant(over, now))
                        @if let Some(why) = &alert.why_over { ": " (text(why)) }
                    }
                }
                @if let Some(snoozed) = care.snoozed_at(now) {
                    span.fact {
                        "Muted by " (name(&snoozed.by.name)) " until " (instant(snoozed.until, now))
                        @if let Some(why) = &snoozed.why { ": " (text(why)) }
                    }
                }
                @if let Some(seen) = care.acknowledged_of(alert) {
                    span.fact { "Acknowledged by " (name(&seen.by.name)) " " (ago(seen.at, now)) }
                } @else if let Some(seen) = care.acknowledged.as_ref().filter(|seen| seen.since == alert.since) {
                    span.fact { "Acknowledged by " (name(&seen.by.name)) " before it doubled" }
                }
                (about(alert))
                (actions(visitor, view, now))
            }
            td role="cell" data-l="since" { (instant(alert.since, now)) span.fact { (ago(alert.since, now)) } }
            td role="cell" data-l="told" {
                @if view.posted.is_empty() { span.muted { "nobody" } }
                @else {
                    @for (sink, posted) in &view.posted { span.fact { (name(sink)) ": " (result(posted, now)) } }
                    span.fact {
                        (alert.tellings)
                        @if alert.tellings == 1 { " time" } @else { " times" }
                        @if alert.is_firing() { "; again when it has doubled" }
                    }
                }
            }
            td role="cell" data-l="owner" {
                @match &care.owner { Some(owner) => (name(owner)), None => { span.muted { "nobody" } } }
            }
        }
    }
}

/// What a rule about shares found, as a sum: `66 of 121 = 54.5 % > 5 % in 10 min, min 5`.
fn equation(alert: &Alert) -> Option<String> {
    let number = |name: &str| alert.finding.numbers.get(name).and_then(Value::as_f64);
    let whole = |name: &str| alert.finding.numbers.get(name).and_then(Value::as_i64);
    if !matches!(alert.condition, Condition::Rate | Condition::Jump) {
        return None;
    }
    let window = length_of(Duration::from_secs(whole("window_secs")?.unsigned_abs()));
    let (died, ended) = (count(whole("died")?), count(whole("ended")?));
    let (share, limit) = (percent(number("share")?), percent(number("threshold")?));
    // Alerts that older programs judged do not say it.
    let least = whole("died_min").map(|least| format!(", min {least}")).unwrap_or_default();
    Some(format!("{died} of {ended} = {share} > {limit} in {window}{least}"))
}

/// What became of what a sink was told last.
fn result(posted: &Posted, now: Timestamp) -> Markup {
    let tries = |posted: &Posted| if posted.tries == 1 { "once".to_owned() } else { format!("{} times", posted.tries) };
    html! {
        @match (posted.ended_at, &posted.error) {
            (Some(at), None) => { span.good-text { "told" } " " (instant(at, now)) },
            (Some(_), Some(error)) => { span.bad-text { "given up" } ", tried " (tries(posted)) ": " (text(error)) },
            (None, Some(error)) => { span.warn-text { "not yet" } ", tried " (tries(posted)) ": " (text(error)) },
            (None, None) => { "is to be told since " (instant(posted.posted_at, now)) },
        }
    }
}

/// The page of what an alert is about, if there is one.
pub fn about_of(alert: &Alert) -> Option<String> {
    let page = alert.page();
    matches!(page, AlertPage::Cause(_) | AlertPage::Replay(_)).then(|| page.path())
}

/// Where to look.
fn about(alert: &Alert) -> Markup {
    let label = if alert.condition == Condition::Replay { "Open the replay" } else { "Open the cause" };
    html! {
        span.fact {
            @if let Some(place) = about_of(alert) { a href=(place) { (label) } " · " }
            code { (text(&alert.finding.look)) }
        }
    }
}

/// What can be done about it now, and how that is typed.
fn actions(visitor: &Visitor, view: &AlertView, now: Timestamp) -> Markup {
    let (alert, care, me) = (&view.alert, &view.care, visitor.caller.name());
    let key = alert.key.as_str();
    let is_snoozed = care.snoozed_at(now).is_some();
    let to_see = alert.is_firing() && care.acknowledged_of(alert).is_none();
    let snooze = {
        let mut query = form_urlencoded::Serializer::new(String::new());
        format!("/alerts/change?{}", query.append_pair("verb", "snooze").append_pair("alert", key).finish())
    };
    let press = |label: &str, fields: &[(&str, &str)], key: Option<&str>| {
        let (action, class) = ("/alerts/change", "small");
        button(visitor, &Button { action, label, role: Role::Operator, fields, class, key })
    };
    let line = |verb: &str, flags: &str| format!("redrive alert {verb} {}{flags}", quoted(key));
    let mut lines = Vec::new();
    if to_see {
        lines.push(("Acknowledge", line("ack", "")));
    }
    if is_snoozed {
        lines.push(("Wake", line("wake", "")));
    } else if alert.is_firing() {
        lines.push(("Snooze", line("snooze", " --until 2h")));
    }
    lines.push(("Assign me", line("assign", &flag("to", me))));
    html! {
        div.actions {
            @if to_see { (press("Acknowledge", &[("verb", "acknowledge"), ("alert", key)], None)) }
            @if is_snoozed { (press("Wake", &[("verb", "wake"), ("alert", key)], Some("m"))) }
            @else if alert.is_firing() { (link(visitor, Role::Operator, &snooze, "Snooze…", "small", Some("m"))) }
            @if care.owner.as_deref() != Some(me) {
                (press("Assign me", &[("verb", "assign"), ("alert", key), ("owner", me)], Some("a")))
            }
            (commands(visitor, &lines))
        }
    }
}
