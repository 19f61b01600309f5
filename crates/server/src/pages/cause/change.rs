//! What people do to a cause, by forms.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use redrive::causes::CausesAsked;
use redrive::contract::{CauseDetail, CauseView};
use redrive_core::causes::CauseId;
use serde_json::{Value, json};

use super::super::about;
use super::super::acts::filled;
use super::super::causes::did::{one, told_at};
use super::super::causes::{mute_fields, per_hour};
use super::super::confirm::{self, Question, entry_as};
use super::super::fields::{Done, Fields, once, with_said};
use super::super::parts::{flag, name, quoted};
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place};
use super::super::visitor::Visitor;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;
use crate::look::figures::counted;
use crate::look::foreign::cut;

/// The most causes that are offered to merge one into.
const OTHERS_MAX: u32 = 100;

/// Asks for what a change needs to know.
pub async fn ask(State(app): State<App>, visitor: Visitor, Named(id): Named<CauseId>) -> Result<Response, Problem> {
    let version = app.redrive().cause_version(&id).await?;
    let detail = app.redrive().store().get_cause(id, app.redrive().now()).await?;
    let cause = &detail.cause;
    visitor.caller.check(&cause.pipeline)?;
    let query = visitor.query();
    let verb = query.one("verb").unwrap_or_default();
    let known = query.one(if verb == "split" { "target" } else { "into" }).unwrap_or_default();
    let others = if verb == "merge" { others(&app, cause).await? } else { Vec::new() };
    if verb == "merge" && others.is_empty() {
        return alone(&app, &visitor, cause).await;
    }
    let (title, yes, effect, fields) = match (verb, query.one("of")) {
        ("split", Some(key)) => of_key(&detail, key)?,
        _ => question(verb, cause, known)?,
    };
    let (action, back) = (format!("/causes/{}/change", cause.id), format!("/causes/{}", cause.id));
    let fields = html! {
        input type="hidden" name="verb" value=(verb);
        input type="hidden" name="version" value=(version);
        (fields)
        datalist #causes-of {
            @for other in &others {
                option value=(other.id) { (cut(&other.title, 120)) ", " (counted(other.dead as i64, "letter", "letters")) }
            }
        }
    };
    let split_key = query.one("of").filter(|_| verb == "split").map(|key| flag("key", key));
    let command =
        format!("redrive cause {verb} {}{}", quoted(cause.id.as_str()), split_key.as_deref().unwrap_or_default());
    let filled = match (verb, query.one("into")) {
        ("mute", _) => " --until 24h".to_owned(),
        ("merge", Some(into)) => format!(" {}", quoted(into)),
        ("merge", None) => " CAUSE".to_owned(),
        ("note", _) => " 'what is to be said'".to_owned(),
        ("split", _) if split_key.is_some() => String::new(),
        ("split", _) if known.is_empty() => " --text TEXT".to_owned(),
        ("split", _) => flag("target", known),
        _ => String::new(),
    };
    let effect = html! { @if query.one("said") == Some("none") { "None of its letters is like that: nothing was done. " } (effect) };
    let about = about::of_cause(cause);
    let question = Question { title, about, effect, action: &action, fields, yes, command, filled, back: &back };
    let body = confirm::page(&visitor, &question);
    let page = Page { place: Place::Causes, title, pipeline: Some(&cause.pipeline), body };
    shell::show(&app, &visitor, page).await
}

/// The other causes of the same pipeline, for who types the id of one: into no other it can be merged.
async fn others(app: &App, cause: &CauseView) -> Result<Vec<CauseView>, Problem> {
    let asked =
        CausesAsked { pipeline: Some(cause.pipeline.clone()), all: true, limit: OTHERS_MAX, ..CausesAsked::default() };
    let (mut others, _) = app.redrive().list_causes_of(|name| *name == cause.pipeline, asked, false).await?;
    others.retain(|other| other.id != cause.id);
    Ok(others)
}

/// Says that there is nothing to merge a cause into.
async fn alone(app: &App, visitor: &Visitor, cause: &CauseView) -> Result<Response, Problem> {
    let title = "No cause to merge it into";
    let body = html! {
        div.head { h1 { (title) } ul.facts #about { (about::of_cause(cause)) } }
        p.headline { "Pipeline " (cause.pipeline) " has no other cause." }
        p.actions { a.button.primary href={ "/causes/" (cause.id) } { "Back to the cause" } }
    };
    shell::show(app, visitor, Page { place: Place::Causes, title, pipeline: Some(&cause.pipeline), body }).await
}

/// What is asked; `known` is what was said before of the other cause, or the target.
fn question(
    verb: &str,
    cause: &CauseView,
    known: &str,
) -> Result<(&'static str, &'static str, Markup, Markup), Problem> {
    let title = crate::look::foreign::cut(&cause.title, 120);
    Ok(match verb {
        "mute" => (
            "Mute this cause?",
            "Mute",
            html! { "Nothing more is heard of “" (title) "”: no alert, and it is not listed under Needs you. Its letters stay as they are." },
            mute_fields(),
        ),
        "note" => (
            "Add a note",
            "Note",
            html! { "Everybody who looks at “" (title) "” sees it." },
            entry_as("text", "What is to be said", "", true, Some("")),
        ),
        "merge" => (
            "Merge this cause into another?",
            "Merge",
            html! { (counted(cause.dead as i64, "letter", "letters")) " of “" (title) "”, and those to come, belong to the other cause from then on. On its page they can be split off again." },
            html! {
                p.entry {
                    label for="into" { "Into which cause of " (cause.pipeline) ": its id" }
                    input #into type="text" name="into" value=(known) required list="causes-of" autocomplete="off" data-flag="";
                }
            },
        ),
        "split" => (
            "Split this cause?",
            "Split",
            html! { "Letters like that, and those to come, are a cause of their own from then on." },
            html! {
                @if known.is_empty() { (entry_as("text", "Those with this text in their message", "", true, Some("--text"))) }
                @else { (entry_as("target", "Those of this target", known, true, Some("--target"))) }
                @if known.is_empty() && cause.targets_count > 1 {
                    p.fact {
                        "Or those of a target:"
                        @for target in &cause.targets { " " a href={ "?" (split_by(target)) } { (name(target)) } }
                    }
                }
            },
        ),
        _ => return Err(ApiError::invalid("verb", "expected mute, note, merge or split").into()),
    })
}

/// The query of the question whether to split off the letters of a target.
fn split_by(target: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair("verb", "split").append_pair("target", target).finish()
}

/// Asks before one of its keys, which became part of it by a merge, is a cause of its own again.
fn of_key(detail: &CauseDetail, key: &str) -> Result<(&'static str, &'static str, Markup, Markup), Problem> {
    let found = detail.keys.iter().find(|known| known.key == key);
    let found = found.ok_or_else(|| ApiError::invalid("of", "it has no such key"))?;
    let effect = html! {
        (counted(found.dead as i64, "letter", "letters")) " with messages like “"
        (crate::look::foreign::cut(&found.sample, 120)) "”, and those to come, are a cause of their own from then on."
    };
    Ok(("Split this cause?", "Split", effect, html! { input type="hidden" name="of" value=(key); }))
}

/// Changes a cause.
pub async fn change(
    State(app): State<App>,
    visitor: Visitor,
    Named(id): Named<CauseId>,
    fields: Fields,
) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let verb = fields.one("verb").unwrap_or_default();
        let names: &[&str] = match verb {
            "assign" => &["owner"],
            "note" => &["text"],
            "mute" => &["until"],
            "resolve" => &["why"],
            "merge" => &["into"],
            "split" => &["target", "text"],
            _ => &[],
        };
        let mut said = filled(&fields, names);
        said.insert("verb".to_owned(), json!(verb));
        // `key` is what a form is known by, here as everywhere.
        said.extend(fields.one("of").filter(|_| verb == "split").map(|key| ("key".to_owned(), json!(key))));
        if verb == "mute" {
            said.extend(per_hour(&fields)?.map(|rate| ("per_hour".to_owned(), json!(rate))));
        }
        let seen = fields.one("version").and_then(|version| version.parse::<u64>().ok());
        said.extend(seen.map(|version| ("version".to_owned(), json!(version))));
        match one(&app, &visitor, &id, Value::Object(said)).await {
            Ok((did, part)) => {
                // What became part of another is seen there.
                let told = told_at(&format!("/causes/{}", did.id), verb, std::slice::from_ref(&did));
                let part = if verb == "split" { part.to_string() } else { String::new() };
                Ok(Done::At(with_said(&told, &[("part", &part)])))
            }
            Err(problem)
                if verb == "split" && problem.status() == StatusCode::CONFLICT && !problem.is_changed_meanwhile() =>
            {
                let asked = format!("/causes/{id}/change?verb=split");
                Ok(Done::At(with_said(
                    &asked,
                    &[("said", "none"), ("target", fields.one("target").unwrap_or_default())],
                )))
            }
            Err(problem) if problem.is_changed_meanwhile() => {
                Ok(Done::At(with_said(&format!("/causes/{id}"), &[("said", "changed")])))
            }
            Err(problem) => Err(problem),
        }
    })
    .await
}
