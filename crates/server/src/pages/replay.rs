//! `/replays/{id}`: is the fix holding?

mod letters;
mod steps;

use std::collections::BTreeSet;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{CauseView, ListCauses, ListReplayLetters, ReplayLetter, ReplayView};
use redrive::replays::{ReplayRef, ready_in};
use redrive_core::causes::{CauseId, CauseSort};
use redrive_core::replays::{LetterState, ReplayMode, ReplayState, paused_itself};
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;
use serde_json::Value;

pub use self::steps::small_bar;
use super::acts::{asked, filled};
use super::confirm::{self, Question, entry_as};
use super::fields::{Done, Fields, once, with_said};
use super::part::{self, part};
use super::parts::{
    Button, button, commands, instant, length, length_of, link, name, replay_state, section_head, text, without_cursor,
};
use super::problem::Problem;
use super::replay_new::excluded;
use super::replays::pipelines_of;
use super::shell::{self, Page, Place, number_of};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::{Body, Named};
use crate::error::ApiError;
use crate::look::figures::{count, part_of, percent, share};
use crate::look::tone::Tone;
use crate::routes::replays::change;

/// Letters on a page.
const LIMIT: u32 = 50;

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
    let outcome = query.one("outcome").map(|text| text.parse::<LetterState>().map_err(wrong)).transpose()?;
    let cursor = query.one("cursor").map(str::to_owned);
    let asked = ListReplayLetters { id: replay.id, state: outcome, limit: LIMIT, cursor };
    let (now, here) = (redrive.now(), without_cursor(&visitor.here));
    let (letters, steps) = tokio::join!(
        part::read(async { Ok(redrive.store().list_replay_letters(asked).await?) }),
        part::read(async { Ok(redrive.replay_steps(&replay).await?) }),
    );
    let (letters, lines) = (letters?, steps?);
    let step = lines.as_deref().ok().and_then(|lines| {
        let at = lines.iter().position(|step| step.running + step.pending > 0)?;
        Some((at + 1, lines.len()))
    });
    let found = letters.as_ref().map_or(&[][..], |page| &page.items);
    let judged = async {
        let joined = redrive.store().joined_since(replay.id).await?;
        Ok(steps::outcomes(&here, &replay, joined, &other_causes(&app, &visitor, found).await?))
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
                Some("pause") => div.said role="status" { "Paused: nothing more is sent." },
                Some("resume") => div.said role="status" { "It goes on." },
                Some("rate") => div.said role="status" { "From now on: " (pace(replay)) "." },
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
            (commands(&commands_of(replay)))
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
        "cancel" => matches!(state, ReplayState::Cancelling | ReplayState::Cancelled),
        _ => !state.is_over(),
    }
}

/// What somebody would type to do what can be done now.
fn commands_of(replay: &ReplayView) -> Vec<(&'static str, String)> {
    let line = |verb: &str, flags: &str| format!("redrive replay {verb} {}{flags}", replay.id);
    let mut lines = vec![("Look", line("show", ""))];
    if replay.state == ReplayState::Running {
        lines.push(("Pause", line("pause", "")));
    }
    if replay.state == ReplayState::Paused {
        lines.push(("Resume", line("resume", " --detach")));
    }
    if !replay.state.is_over() && replay.state != ReplayState::Cancelling {
        lines.push(("Change rate", line("rate", &format!(" {}", rate_of(replay)))));
        lines.push(("Cancel", line("cancel", "")));
    }
    lines
}

/// The causes that letters of a page failed for, and had not died of.
async fn other_causes(app: &App, visitor: &Visitor, letters: &[ReplayLetter]) -> Result<Vec<CauseView>, Problem> {
    let others = letters.iter().filter(|letter| letter.cause_after != letter.cause);
    let ids: BTreeSet<CauseId> = others.filter_map(|letter| letter.cause_after.clone()).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let params = ListCauses {
        ids: ids.into_iter().collect(),
        pipelines: Vec::new(),
        states: Vec::new(),
        owner: None,
        with_empty: true,
        needy: false,
        sort: CauseSort::Dead,
        limit: OTHERS,
        now: app.redrive().now(),
    };
    let mut causes = app.redrive().store().list_causes(params).await?;
    causes.retain(|cause| visitor.caller.covers(&cause.pipeline));
    Ok(causes)
}

/// What a replay waits for, if it does.
async fn waits(app: &App, replay: &ReplayView) -> Result<Markup, Problem> {
    let unattended = app.redrive().unattended(replay).await?;
    let is_awaiting = !app.redrive().awaited_by(replay).await?.is_empty();
    Ok(html! {
        div #waits {
            @if !unattended.is_empty() {
                p.fact {
                    "No worker is there for "
                    @for (at, name) in unattended.iter().enumerate() { @if at > 0 { ", " } (name) }
                    ": letters wait until one is."
                }
            }
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
                    Value::Array(ids) => format!("{} letters", ids.len()),
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
        Some(rate) => format!("{steps}; at most {rate} a second"),
        None => steps,
    }
}

/// Its rate as it is written.
fn rate_of(replay: &ReplayView) -> String {
    replay.pacing.per_second.map_or_else(|| "none".to_owned(), |rate| format!("{rate}/s"))
}

/// Asks before a replay goes on, or is given up, or how fast it is to go.
pub async fn ask(
    State(app): State<App>,
    visitor: Visitor,
    Named(which): Named<ReplayRef>,
) -> Result<Response, Problem> {
    let replay = app.redrive().find_replay(which).await?;
    visitor.caller.check_each(&replay.pipelines)?;
    let (query, p) = (visitor.query(), &replay.progress);
    let left = count((p.pending + p.running) as i64);
    let (verb, title, effect, yes) = match query.one("verb") {
        Some("resume") => (
            "resume",
            "Resume this replay?",
            html! { (left) " letters are sent from here on, beginning with a step of its size. The " (count(p.failed as i64)) " that failed so far are forgiven: only what fails from now on counts." },
            "Resume".to_owned(),
        ),
        Some("cancel") => (
            "cancel",
            "Cancel this replay?",
            html! { (left) " letters are not sent, or taken back if nobody began them: they stay dead as they were, and so do the " (count(p.failed as i64)) " that failed again. " (count(p.recovered as i64)) " that recovered stay done." },
            format!("Cancel, and leave {} dead", count((p.pending + p.running + p.failed) as i64)),
        ),
        Some("rate") => (
            "rate",
            "Change the rate of this replay?",
            html! { (left) " letters are left; now: " (pace(&replay)) ". The ramp and the limit of failures stay." },
            "Change the rate".to_owned(),
        ),
        _ => return Err(ApiError::invalid("verb", "expected resume, cancel or rate").into()),
    };
    let asks_rate = verb == "rate";
    let (action, back) = (format!("/replays/{}/change", replay.id), format!("/replays/{}", replay.id));
    let fields = html! {
        input type="hidden" name="verb" value=(verb);
        @if asks_rate {
            input type="hidden" name="was" value=(rate_of(&replay));
            (entry_as("rate", "Letters in a time: 5/s, 100/m or 500/h; none for as fast as they are worked on", &rate_of(&replay), true, Some("")))
        }
    };
    let command = format!("redrive replay {verb} {}{}", replay.id, if verb == "resume" { " --detach" } else { "" });
    let filled = if asks_rate { format!(" {}", rate_of(&replay)) } else { String::new() };
    let question = Question { title, effect, action: &action, fields, yes: &yes, command, filled, back: &back };
    let body = confirm::page(&visitor, &question);
    shell::show(&app, &visitor, Page { place: Place::Replays, title, pipeline: None, body }).await
}

/// Pauses, resumes or cancels a replay, or changes its rate.
pub async fn change(
    State(app): State<App>,
    visitor: Visitor,
    Named(which): Named<ReplayRef>,
    fields: Fields,
) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let verb = fields.one("verb").unwrap_or_default();
        let (state, caller) = (State(app.clone()), visitor.caller.clone());
        let changed = match verb {
            "pause" => change::pause(state, caller, Named(which)).await?,
            "resume" => change::resume(state, caller, Named(which), Body(Default::default())).await?,
            "cancel" => change::cancel(state, caller, Named(which)).await?,
            "rate" => {
                let asked = asked(Value::Object(filled(&fields, &["rate", "was"])))?;
                change::rate(state, caller, Named(which), Body(asked)).await?
            }
            _ => return Err(ApiError::invalid("verb", "expected pause, resume, cancel or rate").into()),
        };
        Ok(Done::At(with_said(&format!("/replays/{}", changed.0.id), &[("said", verb)])))
    })
    .await
}
