//! What is asked before something costly is done to several causes: one by one, each with its numbers. A replay is of one cause, so
//! that what fails again stops that one alone.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use redrive::contract::CauseView;

use super::super::about;
use super::super::confirm::{self, Question, entry_as};
use super::super::fields::{Fields, own_path, with_said};
use super::super::parts::{cause_state, link, quoted, text};
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place, number_of};
use super::super::visitor::Visitor;
use super::did::without_told;
use super::read;
use crate::app::App;
use crate::error::ApiError;
use crate::look::figures::{count, counted};
use redrive_core::tokens::Role;

/// Shows what is meant.
pub async fn ask(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    let verb = fields.one("verb").unwrap_or_default().to_owned();
    let mut causes = Vec::new();
    for id in fields.all("id") {
        let found = app.redrive().store().get_cause(read(id)?, app.redrive().now()).await?;
        visitor.caller.check(&found.cause.pipeline)?;
        causes.push(found.cause);
    }
    let place = |cause: &CauseView| match verb.as_str() {
        "discard" => format!("/letters/discard?cause={}", cause.id),
        _ => format!("/replays/new?cause={}", cause.id),
    };
    let back = without_told(own_path(fields.one("back").unwrap_or("/causes")));
    match (verb.as_str(), &causes[..]) {
        (_, []) => Ok(Redirect::to(&with_said(&back, &[("said", "none")])).into_response()),
        ("mute", all) => shown(&app, &visitor, "Mute these causes?", mute(&visitor, all, &back)).await,
        ("replay" | "discard", [one]) => Ok(Redirect::to(&place(one)).into_response()),
        ("replay", all) => {
            shown(&app, &visitor, "Try or replay which?", each(&visitor, all, Role::Operator, &place)).await
        }
        ("discard", all) => {
            shown(&app, &visitor, "Discard the letters of which?", each(&visitor, all, Role::Admin, &place)).await
        }
        // Into which is asked there.
        ("merge", [one]) => Ok(Redirect::to(&format!("/causes/{}/change?verb=merge", one.id)).into_response()),
        ("merge", [first, others @ ..]) if others.iter().any(|other| other.pipeline != first.pipeline) => {
            shown(&app, &visitor, "Not of one pipeline", apart(&causes, &back)).await
        }
        ("merge", all) => shown(&app, &visitor, "Merge these causes?", merge(&visitor, all)).await,
        _ => Err(ApiError::invalid("verb", "expected mute, replay, discard or merge").into()),
    }
}

async fn shown(app: &App, visitor: &Visitor, title: &str, body: Markup) -> Result<Response, Problem> {
    shell::show(app, visitor, Page { place: Place::Causes, title, pipeline: None, body }).await
}

/// The causes, each with where it goes on.
fn each(visitor: &Visitor, causes: &[CauseView], role: Role, place: &impl Fn(&CauseView) -> String) -> Markup {
    let letters: u64 = causes.iter().map(|cause| cause.dead).sum();
    html! {
        div.head { h1 { (counted(letters as i64, "letter", "letters")) " of " (number_of(causes.len(), "cause", "causes")) } }
        p.headline { "Each cause is done by itself: if one fails again, it stops, and the others go on." }
        ul.todo {
            @for cause in causes {
                li {
                    (cause_state(cause.state))
                    div.what { a.cut.name href={ "/causes/" (cause.id) } { (text(&cause.title)) } span.fact { (cause.pipeline) } }
                    span.fact.when { (count(cause.dead as i64)) " dead" }
                    (link(visitor, role, &place(cause), "Go on…", "small", None))
                }
            }
        }
        p.actions { a.button href="/causes" { "Back to the causes" } }
    }
}

/// What is said of causes that cannot be merged.
fn apart(causes: &[CauseView], back: &str) -> Markup {
    html! {
        div.head { h1 { "These causes are not of one pipeline" } ul.facts #about { (of_each(causes)) } }
        p.headline { "Causes are merged within a pipeline. Tick those of one." }
        p.actions { a.button.primary href=(back) { "Back to the causes" } }
    }
}

fn merge(visitor: &Visitor, causes: &[CauseView]) -> Markup {
    let Some((into, others)) = causes.split_first() else { return html! {} };
    let letters: u64 = others.iter().map(|cause| cause.dead).sum();
    let effect = html! {
        (counted(letters as i64, "letter", "letters")) " of " (number_of(others.len(), "cause", "causes"))
        ", and those to come, belong to “" (text(&into.title))
        "” from then on. On its page each of them can be split off again."
    };
    let fields = html! {
        input type="hidden" name="verb" value="merge";
        input type="hidden" name="back" value={ "/causes/" (into.id) };
        @for cause in causes { input type="hidden" name="id" value=(cause.id); }
    };
    let line = |cause: &CauseView| {
        visitor.command(&format!("redrive cause merge {} {}", quoted(cause.id.as_str()), quoted(into.id.as_str())))
    };
    let command = others.iter().map(line).collect::<Vec<_>>().join(" && ");
    let (title, yes) = (format!("Merge {} causes?", causes.len()), format!("Merge {} causes", causes.len()));
    let question = Question {
        title: &title,
        about: of_each(causes),
        effect,
        action: "/causes/change",
        fields,
        yes: &yes,
        command,
        filled: String::new(),
        back: "/causes",
    };
    confirm::page(visitor, &question)
}

/// The causes, each with its pipeline and its letters.
fn of_each(causes: &[CauseView]) -> Markup {
    html! { @for cause in causes { li { ul.facts { (about::of_cause(cause)) } } } }
}

/// Until when, or until what rate, nothing more is heard of them.
fn mute(visitor: &Visitor, causes: &[CauseView], back: &str) -> Markup {
    let number = number_of(causes.len(), "cause", "causes");
    let effect = html! {
        "Nothing more is heard of " (number) ": no alert, and they are not listed under Needs you. Their letters stay as they are."
    };
    let fields = html! {
        input type="hidden" name="verb" value="mute";
        input type="hidden" name="back" value=(back);
        @for cause in causes { input type="hidden" name="id" value=(cause.id); }
        (mute_fields())
    };
    let ids: String = causes.iter().map(|cause| format!(" {}", quoted(cause.id.as_str()))).collect();
    let (title, yes) = (format!("Mute {number}?"), format!("Mute {number}"));
    let (command, filled) = (format!("redrive cause mute{ids}"), " --until 24h".to_owned());
    let action = "/causes/change";
    let about = of_each(causes);
    confirm::page(visitor, &Question { title: &title, about, effect, action, fields, yes: &yes, command, filled, back })
}

/// What is filled in to mute causes.
pub fn mute_fields() -> Markup {
    html! {
        (entry_as("until", "Until when: 7d (from now), a day or a time; empty means until somebody unmutes it", "24h", false, Some("--until")))
        (entry_as("per_hour", "Or until it kills so many tasks in an hour", "", false, Some("--per-hour")))
    }
}
