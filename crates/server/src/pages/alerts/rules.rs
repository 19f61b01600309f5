//! The rules that are in force, and how often those about shares would have fired.

use maud::{Markup, html};
use redrive_core::alerts::text::{size, span};
use redrive_core::alerts::{Condition, Rules};

use super::super::parts::{column, columns, section_head};
use super::super::problem::Problem;
use super::super::visitor::Visitor;
use super::is_judged;
use crate::app::App;
use crate::look::figures::{count, percent};

/// Rules about shares that are shown, those first that would have fired most often.
const SHOWN: usize = 50;

const NONE: &str = "none";

pub async fn section(app: &App, visitor: &Visitor) -> Result<Markup, Problem> {
    let watching = app.setting().watched_by_server();
    let book = watching.rules();
    let mut unwatched = app.redrive().unwatched(&watching).await?;
    let mut past = app.redrive().past_rules(&watching, &unwatched).await?;
    unwatched.retain(|name| visitor.caller.covers(name));
    past.retain(|rule| visitor.caller.covers(&rule.pipeline));
    past.sort_by_key(|rule| std::cmp::Reverse(rule.times));
    let from = match is_judged(app) {
        true => "from redrive.toml; in 7 days, each hour judged as a whole",
        false => "the defaults, since redrive.toml has no [alerts]; in 7 days, each hour judged as a whole",
    };
    let more = past.len().saturating_sub(SHOWN);
    Ok(html! {
        section aria-labelledby="rules" {
            (section_head("rules", "Rules", from))
            @if past.is_empty() { p.empty { "No pipeline had a task within 7 days that a rule about shares judges." } }
            @else {
                table.bounds role="table" {
                    (columns(&[column("Rule"), column("Alerts above"), column("Would have fired")]))
                    tbody role="rowgroup" {
                        @for rule in past.iter().take(SHOWN) {
                            tr role="row" {
                                th role="rowheader" scope="row" { (rule.pipeline) ": " (rule.condition) }
                                td role="cell" { (threshold(book.of(&rule.pipeline), rule.condition)) }
                                td role="cell" {
                                    @match rule.times {
                                        0 => { span.muted { "never in 7 d" } }
                                        1 => "once in 7 d",
                                        times => { (count(i64::from(times))) " times in 7 d" }
                                    }
                                }
                            }
                        }
                    }
                }
                @if more > 0 { p.table-foot { (count(more as i64)) " more would have fired no more often." } }
            }
            p.fact {
                "Besides, unless a pipeline has its own: " (others(&book.all))
                ". How often these would have fired is not known: no hour of the past tells what they look at."
            }
            @for (pipeline, rules) in book.pipelines.iter().filter(|(name, _)| visitor.caller.covers(name)) {
                @if others(rules) != others(&book.all) {
                    p.fact { (pipeline) " has its own: " (others(rules)) "." }
                }
                @if off(rules) != off(&book.all) { p.fact { "Not watched of " (pipeline) ": " (off(rules)) "." } }
            }
            @if off(&book.all) != NONE { p.fact { "Not watched: " (off(&book.all)) "." } }
            @if !unwatched.is_empty() {
                p.fact {
                    "Pipelines that are not watched from here: "
                    @for (n, name) in unwatched.iter().enumerate() { @if n > 0 { ", " } (name) }
                    @if is_judged(app) { ". Other files define them, and may have rules of their own." }
                    @else { ". This server's redrive.toml has no [alerts]." }
                }
            }
        }
    })
}

/// Above what a rule about shares fires.
fn threshold(rules: &Rules, condition: Condition) -> String {
    let window = format!("in {}, at least {} of them", span(rules.window), rules.died_min);
    match condition {
        Condition::Jump => {
            format!("{} times the usual share of tasks that die {window}", rules.jump.unwrap_or_default())
        }
        _ => {
            let long =
                rules.long_window.map(|long| format!(", or in {}, at least {}", span(long), rules.long_died_min));
            format!("{} of tasks die {window}{}", percent(rules.rate.unwrap_or_default()), long.unwrap_or_default())
        }
    }
}

/// The rules that no hour tells of.
fn others(rules: &Rules) -> String {
    let said = [
        rules.cause_letters.map(|letters| format!("a cause with {letters} letters in two hours")),
        rules.breaker.map(|time| format!("tasks that wait {} for a target", span(time))),
        rules.replay.then(|| "a replay that pauses itself".to_owned()),
        rules.stalled.map(|time| format!("no task ends for {}", span(time))),
        rules.coverage.map(|share| format!("a field found in {} fewer records", percent(share))),
        rules.expiry.map(|time| format!("letters that expire in {}", span(time))),
        rules.disk.map(|free| format!("less than {} free on disk", size(free))),
    ];
    let said: Vec<String> = said.into_iter().flatten().collect();
    if said.is_empty() { NONE.to_owned() } else { said.join(", ") }
}

/// The conditions that are switched off.
fn off(rules: &Rules) -> String {
    let off: Vec<_> = Condition::ALL.iter().filter(|condition| !rules.watch(**condition)).map(|c| c.as_str()).collect();
    if off.is_empty() { NONE.to_owned() } else { off.join(", ") }
}
