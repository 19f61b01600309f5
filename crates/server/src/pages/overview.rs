//! `/`: what do I open first?

mod headline;

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{BreakerView, CauseView, ReplayView};
use redrive::overview::{Need, Overview, PipelineLine};
use redrive_core::alerts::Condition;
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::Standing;
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use super::breakers;
use super::fields::Fields;
use super::parts::{
    Button, Glyph, ago, ahead, button, cause_state, clock, column, column_num, column_unseen, columns, commands, name,
    number, pipeline_state, section_head, share, spark, state, text,
};
use super::problem::Problem;
use super::replays;
use super::shell::{self, Page, Place, number_of};
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;
use crate::look::figures::count;
use crate::look::tone::Tone;

/// Held targets whose commands are written out.
const HELD_SPELT: usize = 10;

/// A target that is held for longer is held until somebody lets it go.
const FOR_GOOD: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let pipeline = pipeline_of(&visitor)?;
    let covers = |name: &PipelineName| visitor.caller.covers(name) && pipeline.as_ref().is_none_or(|only| only == name);
    let overview = app.redrive().overview(&app.setting(), covers).await?;
    let body = body(&visitor, &overview);
    shell::show(&app, &visitor, Page { place: Place::Overview, title: "Overview", pipeline: pipeline.as_ref(), body })
        .await
}

/// The pipeline that a page is to be about, if who looks may see it.
pub fn pipeline_of(visitor: &Visitor) -> Result<Option<PipelineName>, Problem> {
    let Some(text) = visitor.query().one("pipeline").map(str::to_owned) else { return Ok(None) };
    let wrong = |error: redrive_core::ids::InvalidName| Problem::from(ApiError::invalid("pipeline", error.to_string()));
    let name: PipelineName = text.parse().map_err(wrong)?;
    visitor.caller.check(&name)?;
    Ok(Some(name))
}

fn body(visitor: &Visitor, overview: &Overview) -> Markup {
    html! {
        h1.vh { "Overview" }
        (headline::headline(overview))
        (needs(visitor, overview))
        (pipelines(Some("Pipelines"), &overview.pipelines, overview.now))
        @if !overview.held.is_empty() { (held(visitor, &overview.held, overview.now)) }
        @if !overview.replays.is_empty() { (running(&overview.replays, overview.now)) }
    }
}

fn needs(visitor: &Visitor, overview: &Overview) -> Markup {
    // One thing is what most people want to do next.
    let is_fixable = |need: &Need| matches!(need, Need::Cause(cause) if cause.dead > 0);
    let first = overview.needs.iter().position(is_fixable).filter(|_| visitor.caller.has(Role::Operator));
    let dead: i64 = overview.pipelines.iter().map(|line| line.ledger.dead).sum();
    let done: i64 = overview.pipelines.iter().flat_map(|line| &line.done).sum();
    html! {
        section aria-labelledby="needs" {
            (section_head("needs", "Needs you", &match overview.needs.len() {
                0 => String::new(),
                n => format!("{}, most urgent first", number_of(n, "thing", "things")),
            }))
            @if overview.needs.is_empty() {
                p.empty {
                    @if dead == 0 { "No dead letters; " (count(done)) " tasks done in 24 h." }
                    @else {
                        "Nothing new. " a href="/letters" { (count(dead)) " dead letters" } " are kept; "
                        (count(done)) " tasks done in 24 h."
                    }
                }
            } @else {
                ul.todo #todo data-rows="" {
                    @for (at, need) in overview.needs.iter().enumerate() {
                        (self::need(visitor, need, first == Some(at), overview.now))
                    }
                }
                @if overview.other_causes > 0 {
                    p.table-foot {
                        span {
                            a href="/causes" { (number_of(overview.other_causes, "more cause", "more causes")) }
                            " that need somebody"
                        }
                    }
                }
            }
        }
    }
}

fn need(visitor: &Visitor, need: &Need, is_first: bool, now: Timestamp) -> Markup {
    match need {
        Need::Alert(view) => {
            let alert = &view.alert;
            html! {
                li id={ "alert-" (alert.since.as_millis()) "-" (alert.condition) } {
                    (state("firing", Glyph::Triangle, Tone::Bad))
                    div.what {
                        a.cut.name href="/alerts" {
                            @if let Some(name) = &alert.pipeline { (name) ": " }
                            (fires(alert.condition))
                        }
                        span.fact.cut { (text(without_name(&alert.finding.summary, alert.pipeline.as_ref()))) }
                        @if let Some(seen) = view.care.acknowledged_of(alert) {
                            span.fact { "Acknowledged by " (name(&seen.by.name)) }
                        }
                    }
                    span.fact.when { (ago(alert.since, now)) }
                    @if view.care.acknowledged_of(alert).is_none() && visitor.caller.has(Role::Operator) {
                        (button(visitor, &Button { action: "/alerts/change", label: "Acknowledge", role: Role::Operator, fields: &[("verb", "acknowledge"), ("alert", alert.key.as_str())], class: "small", key: None }))
                    } @else { a.button.small href="/alerts" { "See why" } }
                }
            }
        }
        Need::Cause(cause) => need_cause(cause, is_first, now),
        Need::Replay(replay) => html! {
            li id={ "replay-" (replay.id) } {
                (state("paused", Glyph::Bars, Tone::Warn))
                div.what {
                    a.cut.name href={ "/replays/" (replay.id) } { "Replay “" (name(&replay.name)) "” paused itself" }
                    span.fact.cut {
                        (replays::pipelines_of(replay)) " · " (text(replay.why.as_deref().unwrap_or_default())) " · "
                        (count((replay.progress.pending + replay.progress.running) as i64)) " of "
                        (count(replay.progress.total as i64)) " left"
                    }
                }
                span.fact.when { (ago(replay.created_at, now)) }
                a.button.small href={ "/replays/" (replay.id) } { "See why" }
            }
        },
        Need::Expiring { pipeline, letters, more, first } => html! {
            li id={ "expiring-" (pipeline) } {
                (state("expires", Glyph::Half, Tone::Warn))
                div.what {
                    a.cut.name href={ "/letters?pipeline=" (pipeline) } {
                        (count(*letters as i64))
                        @if *more { "+" }
                        " letters are soon discarded for their age"
                    }
                    span.fact.cut { (pipeline) " · of causes that are not resolved" }
                }
                span.fact.when { (ahead(*first, now)) }
                a.button.small href={ "/letters?pipeline=" (pipeline) } { "See letters" }
            }
        },
    }
}

/// What fires, in words.
pub const fn fires(condition: Condition) -> &'static str {
    match condition {
        Condition::Rate => "too many tasks die",
        Condition::Jump => "more tasks die than usual",
        Condition::Cause => "many tasks die of one cause",
        Condition::Breaker => "a target is waited for",
        Condition::Replay => "a replay paused itself",
        Condition::Stalled => "nothing comes to its end",
        Condition::Coverage => "a field is found less often",
        Condition::Expiry => "letters are soon discarded for their age",
        Condition::Disk => "the disk fills up",
    }
}

/// What an alert says, without the pipeline that stands above it.
fn without_name<'a>(summary: &'a str, pipeline: Option<&PipelineName>) -> &'a str {
    pipeline.and_then(|name| summary.strip_prefix(name.as_str())?.strip_prefix(": ")).unwrap_or(summary)
}

fn need_cause(cause: &CauseView, is_first: bool, now: Timestamp) -> Markup {
    html! {
        li id={ "cause-" (cause.id) } data-href={ "/causes/" (cause.id) } {
            (cause_state(cause.state))
            div.what {
                a.cut.name href={ "/causes/" (cause.id) } { (text(&cause.title)) }
                span.fact.cut {
                    (cause.pipeline)
                    @if let Some(target) = cause.targets.first() {
                        " · " (name(target))
                        @if cause.targets_count > 1 { " and " (cause.targets_count - 1) " more" }
                    }
                    " · " (count(cause.dead as i64)) " dead, " (count(cause.saved as i64)) " replayable from saved · "
                    @match &cause.owner { Some(owner) => { "owner " (name(owner)) } None => { "no owner" } }
                }
            }
            span.fact.when { (ago(cause.last_seen, now)) }
            @if is_first { a.button.small.primary href={ "/replays/new?cause=" (cause.id) } { "Try a fix" } }
            @else { a.button.small href={ "/causes/" (cause.id) } { "Open cause" } }
        }
    }
}

/// Pipelines as a table, under a heading where the page is about more than them.
pub fn pipelines(heading: Option<&str>, lines: &[PipelineLine], now: Timestamp) -> Markup {
    let fact = "Died: last hour, and the same hour last week";
    html! {
        section.first[heading.is_none()] aria-label="Pipelines" {
            @match heading { Some(heading) => (section_head("pl", heading, fact)), None => p.fact { (fact) } }
            @if lines.is_empty() {
                p.empty { "No pipeline yet. " code { "redrive run" } " and " code { "redrive push" } " make one." }
            }
            @else {
                table.pipelines role="table" {
                    (columns(&[
                        column("Pipeline"), column("State"), column("Done per hour, 24 h, peak"),
                        column_num("Died, 1 h"), column_num("Last week"), column_num("Queued"),
                        column_num("Oldest due"), column_num("Running"), column_num("Retrying"), column_num("Dead"),
                        column_num("Workers"),
                    ]))
                    tbody role="rowgroup" #pipelines data-rows="" { @for line in lines { (pipeline(line, now)) } }
                }
            }
        }
    }
}

fn pipeline(line: &PipelineLine, now: Timestamp) -> Markup {
    let failing = line.standing == Standing::Failing;
    html! {
        tr role="row" id={ "pipeline-" (line.name) } data-href={ "/pipelines/" (line.name) } {
            th role="rowheader" scope="row" { a.name.cut href={ "/pipelines/" (line.name) } title=(line.name) { (line.name) } }
            td.p-state role="cell" { (pipeline_state(line.standing)) }
            td.p-spark role="cell" { (spark("Done per hour", &line.done, Tone::Plain)) }
            td.num.p-died role="cell" data-l="died" { span.bad-text[failing] { (share(line.died)) } }
            td.num.muted.p-last role="cell" data-l="last week" { (share(line.last_week)) }
            td.num role="cell" data-l="queued" { (number(line.ledger.queued)) }
            td.num.muted.p-old role="cell" data-l="oldest" {
                @match line.due_since { Some(due) => { (super::parts::length(due, now)) } None => { "none" } }
            }
            td.num role="cell" data-l="running" { (number(line.ledger.leased)) }
            td.num role="cell" data-l="retrying" { (number(line.ledger.retrying)) }
            td.num role="cell" data-l="dead" {
                @if line.ledger.dead > 0 {
                    a href={ "/letters?pipeline=" (line.name) } { (number(line.ledger.dead)) }
                } @else {
                    (number(0))
                }
            }
            td.num role="cell" data-l="workers" {
                (number(line.workers as i64))
                @if line.held_workers > 0 { span.warn-text { " (" (line.held_workers) " held)" } }
            }
        }
    }
}

/// Targets that are waited for, as a table.
pub fn held(visitor: &Visitor, held: &[BreakerView], now: Timestamp) -> Markup {
    html! {
        section aria-labelledby="held" {
            (section_head("held", "Held targets", "Their tasks wait and lose no attempts"))
            table.held role="table" {
                (columns(&[
                    column("Target"), column("Pipeline"), column("Why"), column("Since"), column("Next probe"),
                    column_num("Waiting"), column_unseen("Actions"),
                ]))
                tbody role="rowgroup" #held-rows data-rows="" { @for view in held { (held_row(visitor, view, now)) } }
            }
            (commands(&held.iter().take(HELD_SPELT).flat_map(breakers::commands_of).collect::<Vec<_>>()))
        }
    }
}

fn held_row(visitor: &Visitor, view: &BreakerView, now: Timestamp) -> Markup {
    let breaker = &view.breaker;
    let why = breaker.held_by.as_ref().map(|held| {
        format!("held by {}{}", held.by.name, held.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())
    });
    let why = why.or_else(|| breaker.opened_by.as_ref().map(ToString::to_string)).or_else(|| breaker.why.clone());
    let since = breaker.opened_at.unwrap_or(breaker.since);
    html! {
        tr role="row" id={ "held-" (view.pipeline) "-" (view.target) } {
            th role="rowheader" scope="row" {
                a.name.cut href={ "/letters?" (form_urlencoded::Serializer::new(String::new()).append_pair("target", &view.target).finish()) } {
                    (name(&view.target))
                }
            }
            td.muted role="cell" { span.cut title=(view.pipeline) { (view.pipeline) } }
            td role="cell" {
                span.cut title=[why.as_deref()] { (text(why.as_deref().unwrap_or("it failed too often"))) }
            }
            td.nowrap role="cell" { (clock(since)) }
            td.nowrap role="cell" {
                @if breaker.open_until.since(now) > FOR_GOOD { span.muted { "by hand only" } } @else { (ahead(breaker.open_until, now)) }
            }
            td.num role="cell" { (count(view.held as i64)) }
            td.num.acts role="cell" { (breakers::actions(visitor, view)) }
        }
    }
}

fn running(running: &[ReplayView], now: Timestamp) -> Markup {
    html! {
        section aria-labelledby="rr" { (section_head("rr", "Open replays", "")) (replays::table(running, now)) }
    }
}

impl Visitor {
    /// What stands after the question mark of the address.
    pub fn query(&self) -> Fields {
        Fields::read(self.here.split_once('?').map_or("", |(_, query)| query).as_bytes())
    }
}
