//! `/replays/{id}`: is the fix holding?

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::{ListReplayLetters, Page as Listed, ReplayLetter, ReplayView};
use redrive::replays::ReplayRef;
use redrive_core::replays::{LetterState, ReplayState, paused_itself};
use redrive_core::time::Timestamp;
use redrive_core::tokens::Role;

use super::confirm::{self, Question};
use super::fields::{Done, Fields, once, with_said};
use super::parts::{
    Button, Glyph, button, command, further, instant, length, link, name, replay_state, section_head, state, text,
    views, with_query, without_cursor,
};
use super::problem::Problem;
use super::replay_new::excluded;
use super::replays::{bar, pipelines_of};
use super::shell::{self, Page, Place, number_of};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;
use crate::look::figures::{count, part_of, percent, share};
use crate::look::tone::Tone;
use crate::routes::replays::change;

/// Letters on a page.
const LIMIT: u32 = 50;

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
    let letters = ListReplayLetters { id: replay.id, state: outcome, limit: LIMIT, cursor };
    let letters = redrive.store().list_replay_letters(letters).await?;
    let joined = redrive.store().joined_since(replay.id).await?;
    let awaited = redrive.awaited_by(&replay).await?;
    let unattended = redrive.unattended(&replay).await?;
    let now = redrive.now();
    let body = html! {
        (head(&visitor, &replay, now))
        (verdict(&replay, &unattended.iter().map(ToString::to_string).collect::<Vec<_>>(), !awaited.is_empty()))
        (ramp(&replay))
        div.halves { (outcomes(&replay, joined)) (choice(&replay)) }
        (letter_list(&visitor, &letters, outcome, now))
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
            h1 { (replay_state(replay.state)) (name(&replay.name)) }
            ul.facts {
                li { (pipelines_of(replay)) } li { "from " (replay.mode) ": " (count(replay.saved as i64)) " saved" }
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
            @match said {
                Some("pause") => div.said role="status" { "Paused: nothing more is sent." },
                Some("resume") => div.said role="status" { "It goes on." },
                Some("cancel") => div.said role="status" { "Cancelled: what was not begun stays dead as it was." },
                _ => {}
            }
        }
        div.actions.page-actions #actions {
            @if matches!(replay.state, ReplayState::Running | ReplayState::Preparing) {
                (button(visitor, &Button { action: &action, label: "Pause", role: Role::Operator, fields: &[("verb", "pause")], class: "", key: None }))
            }
            @if replay.state == ReplayState::Paused {
                (link(visitor, Role::Operator, &format!("{action}?verb=resume"), "Resume…", "primary", None))
            }
            @if !replay.state.is_over() && replay.state != ReplayState::Cancelling {
                (link(visitor, Role::Operator, &format!("{action}?verb=cancel"), "Cancel…", "", None))
            }
            (command(&format!("redrive replay show {}", replay.id)))
        }
    }
}

/// Whether it holds, in a sentence.
fn verdict(replay: &ReplayView, unattended: &[String], awaits: bool) -> Markup {
    let p = &replay.progress;
    let settled = (p.recovered + p.failed) as i64;
    let tone = match () {
        () if paused_itself(replay.state, replay.why.as_deref()) => Tone::Bad,
        () if p.failed == 0 && p.recovered > 0 => Tone::Good,
        () if p.failed > 0 => Tone::Warn,
        () => Tone::Plain,
    };
    html! {
        section.hold aria-label="Progress" {
            p #verdict class={ "headline " (tone.class()) } {
                @if settled == 0 { "Nothing has come to its end yet." }
                @else {
                    b {
                        (part_of(p.recovered as i64, settled)) " recovered ("
                        (percent(share(p.recovered as i64, settled))) ")"
                    }
                    ", " (count(p.failed as i64)) " failed again."
                }
                @if let Some(why) = &replay.why { " " (text(why)) "." }
                @if !unattended.is_empty() {
                    span.fact { "No worker is there for " (unattended.join(", ")) ": letters wait until one is." }
                }
                @if awaits { span.fact { "It waits for workers that have the rules it was planned with." } }
            }
            div.overall #bar { (bar(replay)) }
        }
    }
}

fn ramp(replay: &ReplayView) -> Markup {
    let steps = replay.pacing.ramp.len();
    let current = replay.progress.step.number as usize;
    let sizes = replay.pacing.ramp.iter().map(|size| count(i64::from(*size))).chain(["the rest".to_owned()]);
    html! {
        section aria-labelledby="ramp" {
            (section_head("ramp", "Steps", &format!("each waits for the one before; it pauses when more than {} of a step, and two, fail again", percent(replay.pacing.refail_max))))
            table.ramp role="table" {
                thead role="rowgroup" {
                    tr role="row" {
                        th role="columnheader" scope="col" { "Step" }
                        th role="columnheader" scope="col" { "Letters" }
                        th role="columnheader" scope="col" { "State" }
                        th.num role="columnheader" scope="col" { "Sent" }
                        th.num role="columnheader" scope="col" { "Settled" }
                        th.num role="columnheader" scope="col" { "Failed" }
                    }
                }
                tbody role="rowgroup" #steps {
                    @for (at, size) in sizes.enumerate() {
                        @let is_current = at == current.min(steps) && !replay.state.is_over();
                        tr role="row" id={ "step-" (at) } aria-current=[is_current.then_some("step")] {
                            th role="rowheader" scope="row" { (at + 1) " of " (steps + 1) } td role="cell" { (size) }
                            @if is_current {
                                td role="cell" { (state("now", Glyph::Half, Tone::Plain)) }
                                td.num role="cell" { (count(replay.progress.step.sent as i64)) }
                                td.num role="cell" { (count(replay.progress.step.settled as i64)) }
                                td.num role="cell" { (count(replay.progress.step.failed as i64)) }
                            } @else if at < current || replay.state == ReplayState::Done {
                                td role="cell" { (state("through", Glyph::Check, Tone::Good)) }
                                td role="cell" {}
                                td role="cell" {}
                                td role="cell" {}
                            } @else {
                                td role="cell" { span.muted { "waits" } }
                                td role="cell" {}
                                td role="cell" {}
                                td role="cell" {}
                            }
                        }
                    }
                }
            }
        }
    }
}

fn outcomes(replay: &ReplayView, joined: u64) -> Markup {
    let p = &replay.progress;
    let rows = [
        ("recovered", p.recovered, "recovered"),
        ("failed of the same cause", p.same_cause, "failed"),
        ("failed of another", p.failed.saturating_sub(p.same_cause), "failed"),
        ("gone meanwhile", p.gone, "gone"),
        ("under way", p.running, "running"),
        ("not sent yet", p.pending, "pending"),
    ];
    html! {
        section aria-labelledby="verdicts" {
            (section_head("verdicts", "What became of them", ""))
            table role="table" { tbody role="rowgroup" #outcomes {
                @for (label, letters, outcome) in rows {
                    tr role="row" {
                        th role="rowheader" scope="row" { a href={ "?outcome=" (outcome) } { (label) } }
                        td.num role="cell" { (part_of(letters as i64, p.total as i64)) }
                    }
                }
                @if joined > 0 {
                    tr role="row" {
                        th role="rowheader" scope="row" { "died like that since, not part of it" }
                        td.num role="cell" { (count(joined as i64)) }
                    }
                }
            } }
        }
    }
}

fn choice(replay: &ReplayView) -> Markup {
    let chosen = serde_json::to_value(&replay.selection).unwrap_or_default();
    let chosen: Vec<(String, String)> = chosen
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| {
            (
                key.clone(),
                match value {
                    serde_json::Value::String(text) => text.clone(),
                    serde_json::Value::Array(ids) => format!("{} letters", ids.len()),
                    other => other.to_string(),
                },
            )
        })
        .collect();
    html! {
        section aria-labelledby="choice" {
            (section_head("choice", "What was chosen", ""))
            dl.keys {
                @for (key, value) in &chosen { dt { (key) } dd { (text(value)) } }
                @for (exclusion, letters) in &replay.excluded {
                    dt { "left out" }
                    dd { (count(*letters as i64)) ": " (excluded(*exclusion)) }
                }
                @if !replay.edits.is_empty() {
                    dt { "changed in each" }
                    dd { code { (serde_json::to_string(&replay.edits).unwrap_or_default()) } }
                }
                @if let Some(rate) = replay.pacing.per_second { dt { "at most" } dd { (rate) " a second" } }
                @for (pipeline, version) in &replay.pins {
                    dt { "rules" }
                    dd { (pipeline) " " code { (version.as_str()) } }
                }
            }
        }
    }
}

fn letter_list(
    visitor: &Visitor,
    letters: &Listed<ReplayLetter>,
    outcome: Option<LetterState>,
    now: Timestamp,
) -> Markup {
    let here = without_cursor(&with_query(&visitor.here, "said", None));
    let all = [
        None,
        Some(LetterState::Failed),
        Some(LetterState::Recovered),
        Some(LetterState::Running),
        Some(LetterState::Pending),
        Some(LetterState::Gone),
    ];
    let tabs = all.map(|each| {
        let title = each.map_or("all", LetterState::as_str);
        (with_query(&here, "outcome", each.map(LetterState::as_str)), html! { (title) }, each == outcome)
    });
    html! {
        section aria-labelledby="letters" {
            (section_head("letters", "Letters", ""))
            (views("Which letters", tabs))
            @if letters.items.is_empty() { p.empty { "No letter of it is like that." } }
            @else {
                table.outcomes role="table" {
                    thead role="rowgroup" {
                        tr role="row" {
                            th role="columnheader" scope="col" { "Letter" }
                            th role="columnheader" scope="col" { "Outcome" }
                            th role="columnheader" scope="col" { "Cause" }
                            th role="columnheader" scope="col" { "From" }
                            th role="columnheader" scope="col" { "Ended" }
                        }
                    }
                    tbody role="rowgroup" #replay-letters data-rows="" {
                        @for letter in &letters.items {
                            tr role="row" id={ "letter-" (letter.id) } data-href={ "/letters/" (letter.id) } {
                                th role="rowheader" scope="row" {
                                    a.name href={ "/letters/" (letter.id) } {
                                        @match letter.number {
                                            Some(number) => { "#" (number) } None => { (letter.id) }
                                        }
                                    }
                                }
                                td role="cell" { (outcome_of(letter.state)) }
                                td role="cell" {
                                    @if let Some(cause) = &letter.cause {
                                        a href={ "/causes/" (cause) } { code { (cause) } }
                                    }
                                    @if let Some(after) = letter.cause_after.as_ref().filter(|after| letter.cause.as_ref() != Some(*after)) {
                                        " then " a href={ "/causes/" (after) } { code { (after) } }
                                    }
                                }
                                td role="cell" { @if letter.saved { "saved" } @else { "anew" } }
                                td role="cell" { @if let Some(ended) = letter.ended_at { (instant(ended, now)) } }
                            }
                        }
                    }
                }
                (further(&here, letters.next.as_deref()))
            }
        }
    }
}

fn outcome_of(outcome: LetterState) -> Markup {
    let (picture, tone) = match outcome {
        LetterState::Recovered => (Glyph::Check, Tone::Good),
        LetterState::Failed => (Glyph::Cross, Tone::Bad),
        LetterState::Running => (Glyph::Half, Tone::Plain),
        LetterState::Pending | LetterState::Gone | LetterState::Cancelled => (Glyph::Muted, Tone::Quiet),
    };
    state(outcome.as_str(), picture, tone)
}

/// Asks before a replay goes on, or is given up.
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
            html! { (left) " letters are not sent, or taken back if nobody began them: they stay dead as they were. " (count(p.recovered as i64)) " that recovered stay done." },
            format!("Cancel, and leave {left} dead"),
        ),
        _ => return Err(ApiError::invalid("verb", "expected resume or cancel").into()),
    };
    let (action, back) = (format!("/replays/{}/change", replay.id), format!("/replays/{}", replay.id));
    let fields = html! { input type="hidden" name="verb" value=(verb); };
    let command = format!("redrive replay {verb} {}{}", replay.id, if verb == "resume" { " --detach" } else { "" });
    let question = Question { title, effect, action: &action, fields, yes: &yes, command, back: &back };
    let body = confirm::page(&visitor, &question);
    shell::show(&app, &visitor, Page { place: Place::Replays, title, pipeline: None, body }).await
}

/// Pauses, resumes or cancels a replay.
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
            "resume" => change::resume(state, caller, Named(which)).await?,
            "cancel" => change::cancel(state, caller, Named(which)).await?,
            _ => return Err(ApiError::invalid("verb", "expected pause, resume or cancel").into()),
        };
        Ok(Done::At(with_said(&format!("/replays/{}", changed.0.id), &[("said", verb)])))
    })
    .await
}
