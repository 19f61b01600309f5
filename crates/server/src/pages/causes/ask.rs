//! What is asked before something costly is done to several causes: one by one, each with its numbers. A replay is of one cause, so
//! that what fails again stops that one alone.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use redrive::contract::CauseView;

use super::super::confirm::{self, Question};
use super::super::fields::Fields;
use super::super::parts::{cause_state, link, quoted, text};
use super::super::problem::Problem;
use super::super::shell::{self, Page, Place};
use super::super::visitor::Visitor;
use super::read;
use crate::app::App;
use crate::error::ApiError;
use crate::look::figures::count;
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
    match (verb.as_str(), &causes[..]) {
        (_, []) => Err(ApiError::senseless("no cause is ticked").into()),
        ("replay" | "discard", [one]) => Ok(Redirect::to(&place(one)).into_response()),
        ("replay", all) => {
            shown(&app, &visitor, "Try or replay which?", each(&visitor, all, Role::Operator, &place)).await
        }
        ("discard", all) => {
            shown(&app, &visitor, "Discard the letters of which?", each(&visitor, all, Role::Admin, &place)).await
        }
        ("merge", [_]) => Err(ApiError::senseless("one cause alone cannot be merged: tick another").into()),
        ("merge", all) => shown(&app, &visitor, "Merge these causes?", merge(&visitor, all)).await,
        _ => Err(ApiError::invalid("verb", "expected replay, discard or merge").into()),
    }
}

async fn shown(app: &App, visitor: &Visitor, title: &str, body: Markup) -> Result<Response, Problem> {
    shell::show(app, visitor, Page { place: Place::Causes, title, pipeline: None, body }).await
}

/// The causes, each with where it goes on.
fn each(visitor: &Visitor, causes: &[CauseView], role: Role, place: &impl Fn(&CauseView) -> String) -> Markup {
    let letters: u64 = causes.iter().map(|cause| cause.dead).sum();
    html! {
        div.head { h1 { (count(letters as i64)) " letters of " (causes.len()) " causes" } }
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

fn merge(visitor: &Visitor, causes: &[CauseView]) -> Markup {
    let Some((into, others)) = causes.split_first() else { return html! {} };
    let letters: u64 = others.iter().map(|cause| cause.dead).sum();
    let effect = html! {
        (count(letters as i64)) " letters of " (others.len()) " causes, and those to come, belong to “" (text(&into.title))
        "” from then on. Splitting takes it back."
    };
    let fields = html! {
        input type="hidden" name="verb" value="merge";
        input type="hidden" name="back" value={ "/causes/" (into.id) };
        @for cause in causes { input type="hidden" name="id" value=(cause.id); }
    };
    let line =
        |cause: &CauseView| format!("redrive cause merge {} {}", quoted(cause.id.as_str()), quoted(into.id.as_str()));
    let command = others.iter().map(line).collect::<Vec<_>>().join(" && ");
    let (title, yes) = (format!("Merge {} causes?", causes.len()), format!("Merge {} causes", causes.len()));
    let question = Question {
        title: &title,
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
