//! Sending one letter again: as it is, or with another input. Another input is shown beside the one that there is before anything
//! happens; the task stays the same, and what it was accepted with is kept.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::ReplayView;
use redrive_core::dead::{DeadLetter, Gate};
use redrive_core::ids::JobRef;
use redrive_core::jobs::Input;
use redrive_core::tokens::Role;
use serde_json::{Value, json};

use super::acts::asked;
use super::fields::{Done, Fields, carried, once};
use super::letters::number_of;
use super::parts::{command, name, quoted, section_head, text};
use super::problem::Problem;
use super::replay_new::excluded;
use super::shell::{self, Page, Place, number_of as number_of_things};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::{Body, Named};
use crate::error::ApiError;
use crate::routes::replays::start;

/// Replays of a letter that are listed, and looked through for edits.
pub const REPLAYS_MAX: u32 = 50;

/// The most of a value that is shown of a change, in characters.
const VALUE: usize = 400;

/// A field that is not as it was.
#[derive(Debug, PartialEq)]
struct Edit {
    field: String,
    before: Option<Value>,
    after: Value,
}

/// The input, to be edited; `wrong` is what is wrong with the text that somebody sent.
pub fn form(visitor: &Visitor, letter: &DeadLetter, wrong: Option<(&str, &str)>) -> Markup {
    let shown = serde_json::to_string_pretty(&letter.input).unwrap_or_default();
    let shown = wrong.map_or(shown, |(text, _)| text.to_owned());
    let lacks = visitor.lacks(Role::Operator);
    html! {
        section aria-labelledby="edit" {
            (section_head("edit", "Input", "edit it, see what changes, then retry: the same task, its original kept"))
            @if let Some(original) = &letter.original {
                details {
                    summary { "As it was accepted" }
                    pre.code { (serde_json::to_string_pretty(original).unwrap_or_default()) }
                }
            }
            form method="post" action={ "/letters/" (letter.id) "/edit" } {
                (carried(visitor))
                @if let Some((_, why)) = wrong { p.headline.bad #wrong role="alert" { (text(why)) } }
                label.vh for="input" { "Input as JSON" }
                textarea #input name="input" rows=(shown.lines().count().clamp(4, 20)) spellcheck="false"
                    aria-describedby=[wrong.map(|_| "wrong")] { (shown) }
                p.actions {
                    button disabled[lacks.is_some()] title=[lacks.as_deref()] { "See what changes…" }
                    @if let Some(lacks) = &lacks { span.fact { (lacks) } }
                }
            }
        }
    }
}

/// What was changed in a letter's input, replay by replay.
pub fn history(letter: &DeadLetter, replays: &[ReplayView]) -> Markup {
    let mut input = letter.original.clone().unwrap_or_else(|| letter.input.clone());
    let edited = replays.iter().rev().filter(|replay| !replay.edits.is_empty());
    let edits: Vec<(&ReplayView, Vec<Edit>)> = edited
        .map(|replay| {
            let edits = differences(&input, &replay.edits);
            input.extend(replay.edits.clone());
            (replay, edits)
        })
        .collect();
    html! {
        @if !edits.is_empty() {
            section aria-labelledby="edits" {
                (section_head("edits", "Edits", &number_of_things(edits.len(), "time", "times")))
                @for (replay, edits) in edits.iter().rev() {
                    p.fact { a href={ "/replays/" (replay.id) } { "by " (name(&replay.actor)) ", replay " (name(&replay.name)) } }
                    (diff(edits))
                }
            }
        }
    }
}

fn diff(edits: &[Edit]) -> Markup {
    let line = |field: &str, value: &Value| crate::look::foreign::cut(&format!("{field}: {value}"), VALUE);
    html! {
        pre.code {
            @for edit in edits {
                @if let Some(before) = &edit.before { del { "- " (line(&edit.field, before)) } }
                ins { "+ " (line(&edit.field, &edit.after)) }
            }
        }
    }
}

/// Shows what would change, and asks.
pub async fn review(
    State(app): State<App>,
    visitor: Visitor,
    Named(named): Named<JobRef>,
    fields: Fields,
) -> Result<Response, Problem> {
    let letter = app.redrive().dead_letter(app.redrive().find_job(&named).await?).await?;
    visitor.caller.check(&letter.pipeline)?;
    let sent = fields.one("input").unwrap_or_default();
    let title = format!("Retry {} with another input?", number_of(&letter));
    let body = match edited(sent, &letter) {
        Err(why) => html! { div.head { h1 { (title) } } (form(&visitor, &letter, Some((sent, &why)))) },
        Ok(changed) if changed.is_empty() => {
            let why = "nothing is different from the input as it is";
            html! { div.head { h1 { (title) } } (form(&visitor, &letter, Some((sent, why)))) }
        }
        Ok(changed) => question(&visitor, &letter, &title, sent, &changed),
    };
    shell::show(&app, &visitor, Page { place: Place::Letters, title: &title, pipeline: Some(&letter.pipeline), body })
        .await
}

fn question(visitor: &Visitor, letter: &DeadLetter, title: &str, sent: &str, changed: &Input) -> Markup {
    let edits = differences(&letter.input, changed);
    let number = number_of_things(edits.len(), "change", "changes");
    html! {
        div.head { h1 { (title) } }
        (diff(&edits))
        p.headline {
            "The same task, " (number_of(letter)) ", goes once more with this input, without steps. What it was accepted with is kept; until it comes to its end nobody else can send it."
        }
        form.ask method="post" action={ "/letters/" (letter.id) "/retry" } {
            (carried(visitor))
            input type="hidden" name="input" value=(sent);
            p.actions {
                button.primary { "Retry with " (number) }
                a.button href={ "/letters/" (letter.id) } { "No, go back" }
            }
        }
        (command(&line(letter, changed)))
    }
}

/// What somebody would type to do the same.
fn line(letter: &DeadLetter, changed: &Input) -> String {
    let id = letter.number.map_or_else(|| letter.id.to_string(), |number| number.to_string());
    let sets: String =
        changed.iter().map(|(field, value)| format!(" --set {}", quoted(&format!("{field}={value}")))).collect();
    format!("redrive replay start {id}{sets}{} --ramp none --refail-max 100% --detach", forced(letter))
}

/// The flags without which a letter that failed permanently is not sent.
pub const fn forced(letter: &DeadLetter) -> &'static str {
    match letter.gate {
        Gate::Never => " --force --why 'retried by hand'",
        _ => "",
    }
}

/// Sends one letter again, as it is or with another input.
pub async fn retry(
    State(app): State<App>,
    visitor: Visitor,
    Named(named): Named<JobRef>,
    fields: Fields,
) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let id = app.redrive().find_job(&named).await?;
        let letter = app.redrive().dead_letter(id).await?;
        visitor.caller.check(&letter.pipeline)?;
        let edits = match fields.one("input") {
            Some(sent) => edited(sent, &letter).map_err(|why| Problem::from(ApiError::invalid("input", why)))?,
            None => Input::new(),
        };
        let mut wanted =
            json!({ "letters": { "ids": [id.to_string()] }, "ramp": [], "refail_max": "100%", "set": edits });
        if let Some(from) = fields.one("from") {
            wanted["from"] = from.into();
        }
        if letter.gate == Gate::Never {
            wanted["force"] = true.into();
            wanted["why"] = "retried by hand".into();
        }
        let asked: start::Asked = asked(wanted)?;
        let (_, Json(started)) = start::run(State(app.clone()), visitor.caller.clone(), Body(asked)).await?;
        match started.id() {
            Some(replay) => Ok(Done::At(format!("/replays/{replay}"))),
            None => {
                let why: Vec<_> = started.plan().excluded.keys().map(|exclusion| excluded(*exclusion)).collect();
                Err(ApiError::senseless(format!("this letter is not sent: {}", why.join(", "))).into())
            }
        }
    })
    .await
}

/// What is different from the input as it is, by what somebody sent; or what is wrong with that.
fn edited(sent: &str, letter: &DeadLetter) -> Result<Input, String> {
    let edited: Value = serde_json::from_str(sent).map_err(|error| format!("this is no JSON: {error}"))?;
    let Value::Object(edited) = edited else { return Err("an input is an object".to_owned()) };
    if let Some(gone) = letter.input.keys().find(|key| !edited.contains_key(*key)) {
        return Err(format!("{gone} is missing: fields can be changed and added, not taken away; null empties one"));
    }
    Ok(edited.into_iter().filter(|(key, value)| letter.input.get(key) != Some(value)).collect())
}

/// The fields that are set to something else than they were.
fn differences(input: &Input, set: &Input) -> Vec<Edit> {
    let edit = |(field, after): (&String, &Value)| Edit {
        field: field.clone(),
        before: input.get(field).cloned(),
        after: after.clone(),
    };
    set.iter().map(edit).filter(|edit| edit.before.as_ref() != Some(&edit.after)).collect()
}
