//! Another input for a letter: it is shown beside the one that there is before anything happens; the task stays the same, and what it
//! was accepted with is kept.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::contract::ReplayView;
use redrive_core::dead::DeadLetter;
use redrive_core::ids::JobRef;
use redrive_core::jobs::Input;
use redrive_core::tokens::Role;
use serde_json::Value;

use super::about;
use super::fields::{Fields, carried};
use super::letter::ways::lost;
use super::letter::{retry, task};
use super::letters::number_of;
use super::parts::{command_of_form, flag, name, section_head, text};
use super::problem::Problem;
use super::shell::{self, Page, Place, number_of as number_of_things};
use super::visitor::Visitor;
use crate::app::App;
use crate::asked::Named;

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

/// The input, to be edited, unless another replay has the letter; `wrong` is what is wrong with the text that somebody sent.
pub fn form(visitor: &Visitor, letter: &DeadLetter, is_taken: bool, wrong: Option<(&str, &str)>) -> Markup {
    let shown = serde_json::to_string_pretty(&letter.input).unwrap_or_default();
    let shown = wrong.map_or(shown, |(text, _)| text.to_owned());
    let lacks = visitor.lacks(Role::Operator).or_else(|| is_taken.then(|| "another replay has it".to_owned()));
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
                input type="hidden" name="seen" value=(as_seen(&letter.input));
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
pub fn history(visitor: &Visitor, letter: &DeadLetter, replays: &[ReplayView]) -> Markup {
    let mut input = letter.original.clone().unwrap_or_else(|| letter.input.clone());
    let edited = replays.iter().rev().filter(|replay| !replay.edits.is_empty());
    let edits = edited.map(|replay| {
        let edits = differences(&input, &replay.edits);
        input.extend(replay.edits.clone());
        (replay, edits)
    });
    // A replay that also had letters of other pipelines is not for everybody's eyes.
    let edits: Vec<(&ReplayView, Vec<Edit>)> = edits.filter(|(replay, _)| task::is_seen_by(visitor, replay)).collect();
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
    let (sent, seen) = (fields.one("input").unwrap_or_default(), fields.one("seen"));
    let title = format!("Retry {} with another input?", number_of(&letter));
    let body = match edited(sent, &letter, seen) {
        Err(why) => html! { div.head { h1 { (title) } } (form(&visitor, &letter, false, Some((sent, &why)))) },
        Ok(changed) if changed.is_empty() => {
            let why = "nothing is different from the input as it is";
            html! { div.head { h1 { (title) } } (form(&visitor, &letter, false, Some((sent, why)))) }
        }
        Ok(changed) => question(&visitor, &letter, (&title, about::of_letter(&app, &letter).await?), sent, &changed),
    };
    shell::show(&app, &visitor, Page { place: Place::Letters, title: &title, pipeline: Some(&letter.pipeline), body })
        .await
}

fn question(
    visitor: &Visitor,
    letter: &DeadLetter,
    (title, about): (&str, Markup),
    sent: &str,
    changed: &Input,
) -> Markup {
    let edits = differences(&letter.input, changed);
    let number = number_of_things(edits.len(), "change", "changes");
    html! {
        div.head { h1 { (title) } ul.facts #about { (about) } }
        (diff(&edits))
        p.headline {
            "The same task, " (number_of(letter)) ", goes once more with this input, without steps. What it was accepted with is kept; until it comes to its end nobody else can send it."
        }
        form.ask method="post" action={ "/letters/" (letter.id) "/retry" } {
            (carried(visitor))
            input type="hidden" name="input" value=(sent);
            input type="hidden" name="seen" value=(as_seen(&letter.input));
            (retry::why(letter))
            p.actions {
                button.primary { "Retry with " (number) }
                a.button href={ "/letters/" (letter.id) } { "No, go back" }
            }
        }
        (command_of_form(visitor, &line(letter, changed), &retry::forced(letter, " --why 'the reason'").replacen(" --force", "", 1)))
    }
}

/// What somebody would type to do the same, but for why.
fn line(letter: &DeadLetter, changed: &Input) -> String {
    let sets: String = changed.iter().map(|(field, value)| flag("set", &format!("{field}={value}"))).collect();
    let (id, forced) = (called(letter), retry::forced(letter, ""));
    format!("redrive retry {id}{sets}{forced} --detach")
}

/// What commands call a letter.
pub fn called(letter: &DeadLetter) -> String {
    letter.number.map_or_else(|| letter.id.to_string(), |number| number.to_string())
}

/// An input as somebody saw it, in few letters: what they send is for that and no other.
fn as_seen(input: &Input) -> String {
    let text = serde_json::to_string(input).unwrap_or_default();
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// What is different from the input as it is, by what somebody sent who saw it as `seen`; or what is wrong with that.
pub fn edited(sent: &str, letter: &DeadLetter, seen: Option<&str>) -> Result<Input, String> {
    if seen.is_some_and(|seen| seen != as_seen(&letter.input)) {
        return Err("somebody else changed the input meanwhile: what is sent here would undo that".to_owned());
    }
    let edited: Value = serde_json::from_str(sent).map_err(|error| format!("this is no JSON: {error}"))?;
    let Value::Object(edited) = edited else { return Err("an input is an object".to_owned()) };
    if let Some(gone) = letter.input.keys().find(|key| !edited.contains_key(*key)) {
        return Err(format!("{gone} is missing: fields can be changed and added, not taken away; null empties one"));
    }
    if let Some(lacking) = lost(letter).iter().find(|lost| at(&edited, lost) == at(&letter.input, lost)) {
        return Err(format!("{lacking} is masked: its value was never kept, so fill it in"));
    }
    Ok(edited.into_iter().filter(|(key, value)| letter.input.get(key) != Some(value)).collect())
}

/// What stands in a field that is named as [`Origin::lost`](redrive_core::jobs::Origin::lost) has it.
fn at<'a>(input: &'a Input, named: &str) -> Option<&'a Value> {
    let Some(pointer) = named.strip_prefix('/') else { return input.get(named) };
    let first = pointer.split('/').next().unwrap_or_default();
    input.get(&first.replace("~1", "/").replace("~0", "~"))?.pointer(&pointer[first.len()..])
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
