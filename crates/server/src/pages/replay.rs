//! `/replays/{id}`: is the fix holding?

mod change;
mod letters;
mod steps;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::config::units::written_rate;
use redrive::contract::{CauseView, ListCauses, ReplayView, RunningLetter};
use redrive::replays::{ReplayRef, ready_in};
use redrive_core::causes::CauseId;
use redrive_core::replays::{ReplayMode, ReplayState, paused_itself, throughput};
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::Value;

pub use self::change::{ask, change};
use self::letters::Outcome;
pub use self::steps::small_bar;
use super::part::{self, part};
use super::parts::{
    Button, ago, button, commands, instant, length, length_of, link, name, replay_state, section_head, text,
    without_cursor,
};
use super::problem::Problem;
use super::replay_new::excluded;
use super::replays::pipelines_of;
use super::shell::{self, Page, Place, number_of};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;
use crate::look::figures::{count, part_of, percent, share};
use crate::look::tone::Tone;

/// Causes that letters failed for then that are named.
const OTHERS: u32 = 5;

/// Shows the page.
pub async fn show(
    State(app): State<App>,
    visitor: Visitor,
    Named(which): Named<ReplayRef>,
) -> Result<Response, Problem> {
    let redrive = app.redrive();
    let replay = redrive.find_replay(which).await?;
    visitor.caller.check_each(&replay.pipelines)?;
    let query = visitor.query();
    let wrong = |why: String| Problem::from(ApiError::invalid("outcome", why));
    let outcome = query.one("outcome").map(|text| text.parse::<Outcome>().map_err(wrong)).transpose()?;
    let cursor = query.one("cursor").map(str::to_owned);
    let (now, here) = (redrive.now(), without_cursor(&visitor.here));
    let (letters, steps) = tokio::join!(
        part::read(letters::read(&app, replay.id, (outcome, cursor))),
        part::read(async { Ok(redrive.replay_steps(&replay).await?) }),
    );
    let (letters, lines) = (letters?, steps?);
    let step = lines.as_deref().ok().and_then(|lines| {
        let at = lines.iter().position(|step| step.running + step.pending > 0)?;
        Some((at + 1, lines.len()))
    });
    let judged = async {
        let joined = redrive.store().joined_since(replay.id).await?;
        Ok(steps::outcomes(&here, &replay, joined, &other_causes(&app, &visitor, &replay).await?))
    };
    let waits = part(&visitor, ("awaited", "What it waits for"), waits(&app, &replay)).await;
    let judged = part(&visitor, ("verdicts", "Verdicts"), judged).await;
    let body = html! {
        (head(&visitor, &replay, now))
        (verdict(&replay, step, now))
        (waits)
        (part(&visitor, ("ramp", "Steps"), async { Ok(steps::ramp(&replay, &lines?)) }).await)
        div.halves { (judged) (choice(&replay, now)) }
        (part(&visitor, ("letters", "Letters"), async {
            Ok(letters::list(&visitor, &replay, (&letters?, outcome), now))
        }).await)
    };
    let title = crate::look::foreign::cut(&replay.name, 60);
    shell::show(&app, &visitor, Page { place: Place::Replays, title: &title, pipeline: None, body }).await
}

fn head(visitor: &Visitor, replay: &ReplayView, now: Timestamp) -> Markup {
    let action = format!("/replays/{}/change", replay.id);
    let query = visitor.query();
    let (said, newer) = (query.one("said"), query.one("newer").and_then(|newer| newer.parse::<usize>().ok()));
    html! {
        div.crumbs { span { a href="/replays" { "Replays" } " / " code { (replay.id) } } }
        div.head #head {
            h1 { (replay_state(replay)) (name(&replay.name)) }
            ul.facts {
                li { (pipelines_of(replay)) }
                li { @if replay.automatic { "automatic" } @else { "by " (name(&replay.actor)) } }
                li { "began " (instant(replay.created_at, now)) }
                @match replay.finished_at {
                    Some(end) => li { "took " (length(replay.created_at, end)) },
                    None => li { "for " (length(replay.created_at, now)) }
                }
            }
            @if let Some(newer) = newer {
                div.said role="status" {
                    (number_of(newer, "letter that died meanwhile was", "letters that died meanwhile were"))
                    " left out."
                }
            }
            // What was said once is not true for ever: the page lives on.
            @match said.filter(|said| still_holds(said, replay.state)) {
                // Who pauses is in a hurry, and nothing is lost by it: it is done at once, and taken back here.
                Some("pause") => div.said role="status" {
                    "Paused: nothing more is sent."
                    @if replay.progress.running > 0 { " " (count(replay.progress.running as i64)) " under way may come to their end." }
                    " "
                    (button(visitor, &Button { action: &action, label: "Undo", role: Role::Operator, fields: &[("verb", "resume")], class: "small", key: None }))
                },
                Some("resume") => div.said role="status" { "It goes on." },
                Some("rate") => div.said role="status" { "From now on: " (pace(replay)) "." },
                Some("changed") => div.said role="status" { "It changed meanwhile: nothing was done." },
                Some("cancel") => div.said role="status" { "Cancelled: what was not begun stays dead as it was." },
                _ => {}
            }
        }
        div.actions.page-actions #actions {
            @if replay.state == ReplayState::Running {
                (button(visitor, &Button { action: &action, label: "Pause", role: Role::Operator, fields: &[("verb", "pause")], class: "", key: None }))
            }
            @if replay.state == ReplayState::Paused {
                (link(visitor, Role::Operator, &format!("{action}?verb=resume"), "Resume…", "primary", None))
            }
            @if !replay.state.is_over() && replay.state != ReplayState::Cancelling {
                (link(visitor, Role::Operator, &format!("{action}?verb=rate"), "Change rate…", "", None))
                (link(visitor, Role::Operator, &format!("{action}?verb=cancel"), "Cancel…", "", None))
            }
            @if replay.state.is_over() && replay.progress.failed > 0 {
                @if let Some(cause) = cause_of(replay) {
                    (link(visitor, Role::Operator, &format!("/replays/new?cause={cause}"), "Try another fix", "primary", None))
                }
                a.button href={ "/replays/" (replay.id) "?outcome=failed#letters" } { "See what failed" }
            }
            (commands(visitor, &change::commands_of(replay)))
        }
    }
}

/// The cause whose letters were chosen, if it was one.
fn cause_of(replay: &ReplayView) -> Option<String> {
    let chosen = serde_json::to_value(&replay.selection).ok()?;
    chosen.get("cause")?.as_str().map(str::to_owned)
}

/// Whether what was done to a replay is what it is in by now.
fn still_holds(said: &str, state: ReplayState) -> bool {
    match said {
        "pause" => state == ReplayState::Paused,
        "resume" => state == ReplayState::Running,
        "changed" => true,
        "cancel" => matches!(state, ReplayState::Cancelling | ReplayState::Cancelled),
        _ => !state.is_over(),
    }
}

/// The causes that letters failed for, and had not died of, with how many did.
async fn other_causes(app: &App, visitor: &Visitor, replay: &ReplayView) -> Result<Vec<(CauseView, u64)>, Problem> {
    let store = app.redrive().store();
    let counted = match replay.progress.failed > replay.progress.same_cause {
        true => store.other_causes(replay.id, OTHERS).await?,
        false => Vec::new(),
    };
    if counted.is_empty() {
        return Ok(Vec::new());
    }
    let params = ListCauses::these(counted.iter().map(|(id, _)| id.clone()).collect(), app.redrive().now());
    let mut causes = store.list_causes(params).await?;
    causes.retain(|cause| visitor.caller.covers(&cause.pipeline));
    let found = |(id, letters): (CauseId, u64)| Some((causes.iter().find(|cause| cause.id == id)?.clone(), letters));
    Ok(counted.into_iter().filter_map(found).collect())
}

/// What a replay waits for, if it does.
async fn waits(app: &App, replay: &ReplayView) -> Result<Markup, Problem> {
    let (store, now) = (app.redrive().store(), app.redrive().now());
    let oldest = match replay.progress.running > 0 {
        true => store.oldest_running(replay.id).await?,
        false => None,
    };
    let unattended = app.redrive().unattended(replay).await?;
    let is_awaiting = !app.redrive().awaited_by(replay).await?.is_empty();
    Ok(html! {
        div #waits {
            @if !unattended.is_empty() {
                p.fact {
                    "No worker takes letters of "
                    @for (at, name) in unattended.iter().enumerate() { @if at > 0 { ", " } (name) }
                    ": they wait until one does."
                }
            }
            @if let Some(RunningLetter { id, number, since }) = oldest {
                p.fact { "Under way, oldest: " a href={ "/letters/" (id) } { "#" (number) } ", for " (length(since, now)) "." }
            }
            @if let Some(oldest) = replay.oldest { p.fact { "The oldest letter that is left died " (ago(oldest, now)) "." } }
            @if is_awaiting { p.fact { "It waits for workers that have the rules it was planned with." } }
        }
    })
}

/// Whether it holds, in a sentence; `step` is the step that it is in, of how many.
fn verdict(replay: &ReplayView, step: Option<(usize, usize)>, now: Timestamp) -> Markup {
    let p = &replay.progress;
    let settled = (p.recovered + p.failed) as i64;
    let tone = match () {
        () if paused_itself(replay.state, replay.why.as_deref()) || (p.failed > 0 && p.recovered == 0) => Tone::Bad,
        () if p.failed == 0 && p.recovered > 0 => Tone::Good,
        () if p.failed > 0 => Tone::Warn,
        () => Tone::Plain,
    };
    let is_open = !replay.state.is_over();
    html! {
        section.hold aria-label="Progress" {
            p #verdict class={ "headline " (tone.class()) } {
                @if settled == 0 { "Nothing has come to its end yet." }
                @else {
                    b { (part_of(p.recovered as i64, p.total as i64)) " recovered" }
                    ", " (part_of(p.failed as i64, settled)) " failed again ("
                    (percent(share(p.failed as i64, settled)))
                    @if is_open { ", pauses above " (percent(replay.pacing.refail_max)) }
                    ")."
                }
                @if let Some((step, steps)) = step.filter(|_| is_open) {
                    " Step " (step) " of " (steps)
                    @if let Some(left) = ready_in(replay, now) { "; ready in about " (length_of(left)) }
                    "."
                }
                @if let Some(per_minute) = replay.per_minute(now) { " " (throughput(per_minute)) "." }
                @if let Some(why) = &replay.why { " " (text(&sentence(replay.state, why))) }
            }
            (steps::overall(replay))
        }
    }
}

/// Why something is as it is, as a sentence of its own.
fn sentence(state: ReplayState, why: &str) -> String {
    // Who did it is no sentence without what they did.
    let by_somebody = why.starts_with("by ").then(|| format!("{state} {why}"));
    let mut letters = by_somebody.as_deref().unwrap_or(why).trim_end_matches('.').chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

fn choice(replay: &ReplayView, now: Timestamp) -> Markup {
    let chosen = serde_json::to_value(&replay.selection).unwrap_or_default();
    let chosen: Vec<(String, String)> = chosen
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| {
            (
                key.clone(),
                match value {
                    Value::String(text) => text.clone(),
                    Value::Array(ids) => number_of(ids.len(), "letter", "letters"),
                    other => other.to_string(),
                },
            )
        })
        .collect();
    html! {
        section aria-labelledby="choice" {
            (section_head("choice", "Choice", ""))
            dl.keys {
                @for (key, value) in &chosen {
                    dt { (key) }
                    dd { @if key == "cause" { a href={ "/causes/" (value) } { (name(value)) } } @else { (text(value)) } }
                }
                dt { "as of" }
                dd { (instant(replay.created_at, now)) }
                dt { "from" }
                dd { (from(replay)) }
                dt { "pace" }
                dd { (pace(replay)) }
                @for (exclusion, letters) in &replay.excluded {
                    dt { "left out" }
                    dd { (count(*letters as i64)) ": " (excluded(*exclusion)) }
                }
                @if !replay.edits.is_empty() {
                    dt { "changed in each" }
                    dd { code { (serde_json::to_string(&replay.edits).unwrap_or_default()) } }
                }
                @for (pipeline, version) in &replay.pins {
                    dt { "rules" }
                    dd { (pipeline) " " code { (version.as_str()) } }
                }
            }
        }
    }
}

/// What its letters are worked on from.
fn from(replay: &ReplayView) -> String {
    let saved = count(replay.saved as i64);
    match replay.mode {
        ReplayMode::Saved => format!("saved pages only: {saved}"),
        ReplayMode::Refetch => format!("anew: {}", count(replay.progress.total as i64)),
        ReplayMode::Suited => {
            let anew = replay.progress.total.saturating_sub(replay.saved);
            format!("what suits each: {saved} saved, {} anew", count(anew as i64))
        }
    }
}

/// In which steps it goes, and how fast.
fn pace(replay: &ReplayView) -> String {
    let steps: Vec<String> = replay.pacing.ramp.iter().map(|step| count(i64::from(*step))).collect();
    let steps =
        if steps.is_empty() { "all at once".to_owned() } else { format!("{}, then the rest", steps.join(", ")) };
    match replay.pacing.per_second {
        Some(rate) => format!("{steps}; at most {}", written_rate(rate)),
        None => steps,
    }
}
