//! `/`: what do I open first?

mod headline;
mod held;
mod needs;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::ReplayView;
use redrive::overview::{Look, PipelineLine};
use redrive_core::ids::PipelineName;
use redrive_core::pipelines::Standing;
use redrive_core::time::Timestamp;

pub use self::held::held;
pub use self::needs::fires;
use super::fields::Fields;
use super::part::part;
use super::parts::{
    column, column_num, columns, further, number, pipeline_state, section_head, share, spark, with_query,
    without_cursor,
};
use super::problem::Problem;
use super::shell::{self, Page, Place};
use super::visitor::Visitor;
use super::{alerts, breakers, pipelines, replays};
use crate::app::App;
use crate::error::ApiError;
use crate::look::figures::{count, counted};
use crate::look::tone::Tone;
use crate::page::List;

/// Pipelines on a page.
const PIPELINES_SHOWN: u32 = 100;

/// Shows the page.
pub async fn show(State(app): State<App>, visitor: Visitor) -> Result<Response, Problem> {
    let (pipeline, setting) = (pipeline_of(&visitor)?, app.setting());
    let covers = |name: &PipelineName| visitor.caller.covers(name) && pipeline.as_ref().is_none_or(|only| only == name);
    let look = app.redrive().look(&setting, covers, visitor.caller.covers_all());
    let body = body(&visitor, &look, pipeline.as_ref()).await;
    let page = Page { place: Place::Overview, title: "Overview", pipeline: pipeline.as_ref(), body };
    match pipeline {
        Some(_) => shell::show(&app, &visitor, page).await,
        None => shell::show_with(&app, &visitor, page, &look).await,
    }
}

/// The pipeline that a page is to be about, if who looks may see it.
pub fn pipeline_of(visitor: &Visitor) -> Result<Option<PipelineName>, Problem> {
    let Some(text) = visitor.query().one("pipeline").map(str::to_owned) else { return Ok(None) };
    let wrong = |error: redrive_core::ids::InvalidName| Problem::from(ApiError::invalid("pipeline", error.to_string()));
    let name: PipelineName = text.parse().map_err(wrong)?;
    visitor.caller.check_named([&name])?;
    Ok(Some(name))
}

/// An address of a page that is about the same pipeline as this one.
fn about(path: &str, pipeline: Option<&PipelineName>) -> String {
    with_query(path, "pipeline", pipeline.map(PipelineName::as_str))
}

async fn body<C>(visitor: &Visitor, look: &Look<'_, C>, pipeline: Option<&PipelineName>) -> Markup
where
    C: Fn(&PipelineName) -> bool,
{
    let now = look.now;
    let stand = async {
        let lines = look.pipelines().await?;
        Ok(match (pipeline, lines) {
            (Some(name), []) => unknown(name),
            _ => pipeline_table(visitor, Some("Pipelines"), lines, now)?,
        })
    };
    let wait = async { Ok(held(visitor, look.held().await?, &look.retrying().await?, now)) };
    let run = async { Ok(running(&look.replays().await?, now)) };
    // All at once: each has the same time for what it reads.
    let (headline, needs, stand, wait, run) = tokio::join!(
        part(visitor, ("lately", "Lately"), headline::headline(look, pipeline)),
        part(visitor, ("needs", "Needs you"), needs::needs(visitor, look, pipeline)),
        part(visitor, ("pl", "Pipelines"), stand),
        part(visitor, ("held", "Held targets"), wait),
        part(visitor, ("rr", "Open replays"), run),
    );
    let held = look.held().await.unwrap_or_default();
    html! {
        h1.vh { "Overview" }
        (alerts::said(visitor))
        (breakers::said(visitor, held))
        (headline) (needs) (stand) (wait) (run)
    }
}

/// What is said of a pipeline that nobody has heard of.
fn unknown(name: &PipelineName) -> Markup {
    html! {
        section aria-label="Pipelines" {
            (section_head("pl", "Pipelines", ""))
            p.empty { "No pipeline is called " (name) ". " a href="/" { "All pipelines" } }
        }
    }
}

/// A page of pipelines as a table, under a heading where the page is about more than them.
pub fn pipeline_table(
    visitor: &Visitor,
    heading: Option<&str>,
    lines: &[PipelineLine],
    now: Timestamp,
) -> Result<Markup, ApiError> {
    let fact = "Died: last hour, and the same hour last week";
    let cursor = visitor.query().one("cursor").map(str::to_owned);
    let page = List { asked: (), limit: PIPELINES_SHOWN, cursor }.cut(lines.iter().collect())?;
    let here = without_cursor(&visitor.here);
    Ok(html! {
        section.first[heading.is_none()] aria-label="Pipelines" {
            @match heading { Some(heading) => (section_head("pl", heading, fact)), None => p.fact.table-head { (fact) } }
            @if lines.is_empty() {
                p.empty { "No pipeline yet. " code { "redrive run" } " and " code { "redrive push" } " make one." }
            }
            @else {
                @if page.items.len() < lines.len() {
                    p.fact { (count(page.items.len() as i64)) " of " (counted(lines.len() as i64, "pipeline", "pipelines")) ". "
                        @if visitor.query().one("cursor").is_some() { a href=(here) { "First page" } }
                    }
                }
                table.pipelines role="table" {
                    (columns(&[
                        column("Pipeline"), column("State"), column("Done per hour, 24 h, peak"),
                        column_num("Died, 1 h"), column_num("Last week"), column_num("Queued"),
                        column_num("Oldest due"), column_num("Running"), column_num("Retrying"), column_num("Dead"),
                        column_num("Workers"),
                    ]))
                    tbody role="rowgroup" #pipelines data-rows="" { @for line in &page.items { (pipeline(line, now)) } }
                }
                (further(&here, page.next.as_deref()))
            }
        }
    })
}

fn pipeline(line: &PipelineLine, now: Timestamp) -> Markup {
    let (failing, address) = (line.standing == Standing::Failing, pipelines::address(line.name.as_str()));
    html! {
        tr role="row" id={ "pipeline-" (line.name) } data-href=(address) {
            th role="rowheader" scope="row" { a.name.cut href=(address) title=(line.name) { (line.name) } }
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

fn running(running: &[&ReplayView], now: Timestamp) -> Markup {
    html! {
        @if !running.is_empty() {
            section aria-labelledby="rr" {
                (section_head("rr", "Open replays", "")) (replays::table(running.iter().copied(), now, |_| html! {}))
            }
        }
    }
}

impl Visitor {
    /// What stands after the question mark of the address.
    pub fn query(&self) -> Fields {
        Fields::read(self.here.split_once('?').map_or("", |(_, query)| query).as_bytes())
    }
}
