//! Turning the breakers of targets: one task goes to see, all go on, or all wait.

mod ask;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive::api::breakers::{CloseBreaker, HoldBreaker, ProbeBreaker};
use redrive_core::breakers::BreakerView;
use redrive_core::tokens::Role;

pub use self::ask::ask;
use super::fields::{Done, Fields, once, own_path, with_said};
use super::parts::{Button, about, button, flag, link, name, with_query};
use super::problem::Problem;
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;
use crate::look::foreign::cut;
use crate::operations::run_form;

/// What can be done about a target that is waited for.
pub fn actions(visitor: &Visitor, view: &BreakerView) -> Markup {
    let (pipeline, back) = (view.pipeline.as_str(), without_said(&visitor.here));
    let of = |verb: &str| address(visitor, verb, pipeline, &view.target);
    let fields = [("verb", "probe"), ("target", view.target.as_str()), ("pipeline", pipeline), ("back", back.as_str())];
    html! {
        (button(visitor, &Button { action: "/breakers/turn", label: "Probe", role: Role::Operator, fields: &fields, class: "small plainly", key: None }))
        (link(visitor, Role::Operator, &of("close"), "Close…", "small plainly", None))
        (link(visitor, Role::Operator, &of("hold"), "Hold…", "small plainly", None))
    }
}

/// Where it is asked before a target is let go or held; it leads back to where somebody is.
pub fn address(visitor: &Visitor, verb: &str, pipeline: &str, target: &str) -> String {
    let mut query = form_urlencoded::Serializer::new("/breakers/turn?".to_owned());
    query.append_pair("verb", verb).append_pair("target", target).append_pair("pipeline", pipeline);
    query.append_pair("back", &without_said(&visitor.here)).finish()
}

/// What was just done, with a way to take that back; nothing where it no longer holds.
pub fn said(visitor: &Visitor, held: &[BreakerView]) -> Markup {
    let query = visitor.query();
    let Some((target, pipeline)) = query.one("about").zip(query.one("of")) else { return html! {} };
    let view = held.iter().find(|view| view.target == target && view.pipeline.as_str() == pipeline);
    let is_held = view.is_some_and(|view| view.breaker.held_by.is_some());
    let what = match query.one("said") {
        Some("probe") if view.is_some() => "one task goes now, to see.",
        Some("probe") => "one task went to see, and it is well: all go on.",
        Some("close") if view.is_none() => "its tasks go on.",
        Some("hold") if is_held => "its tasks wait.",
        _ => return html! {},
    };
    // A target that failed before is not believed to be well because nobody holds it any more.
    let undo = if query.one("was") == Some("closed") { "close" } else { "probe" };
    let back = without_said(&visitor.here);
    let fields = [("verb", undo), ("target", target), ("pipeline", pipeline), ("back", back.as_str())];
    html! {
        div.said role="status" {
            (name(target)) " in " (name(pipeline)) ": " (what)
            @if query.one("said") == Some("hold") {
                " "
                (button(visitor, &Button { action: "/breakers/turn", label: "Undo", role: Role::Operator, fields: &fields, class: "small plainly", key: None }))
            }
        }
    }
}

/// An address without what was done there.
fn without_said(here: &str) -> String {
    ["said", "about", "of", "was"].iter().fold(here.to_owned(), |here, name| with_query(&here, name, None))
}

/// Columns of a target in what a command is for.
const LABEL_WIDTH: usize = 60;

/// What somebody would type to do that.
pub fn commands_of(view: &BreakerView) -> Vec<(String, String)> {
    let flags = flag("pipeline", view.pipeline.as_str());
    let line = |verb: &str| about(&format!("redrive breaker {verb}"), &view.target, &flags);
    [("Probe", "probe"), ("Close", "close"), ("Hold", "hold")]
        .map(|(label, verb)| (format!("{label} {}", cut(&view.target, LABEL_WIDTH)), line(verb)))
        .into()
}

/// Turns a breaker.
pub async fn turn(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        if let Some(page) = ask::drifted(&app, &visitor, &fields).await? {
            return Ok(Done::Asks(page));
        }
        let (target, pipeline) = (fields.one("target").unwrap_or_default(), fields.one("pipeline").unwrap_or_default());
        let (caller, form) = (&visitor.caller, fields.kept());
        let (back, verb) = (own_path(fields.one("back").unwrap_or("/")), fields.one("verb").unwrap_or_default());
        let turned = match verb {
            "probe" => run_form::<ProbeBreaker>(&app, caller, form).await.map(|_| true),
            "close" => run_form::<CloseBreaker>(&app, caller, form).await.map(|_| true),
            "hold" => run_form::<HoldBreaker>(&app, caller, form).await.map(|held| held.opened.is_empty()),
            _ => return Err(ApiError::invalid("verb", "expected probe, close or hold").into()),
        };
        let was_open = match turned {
            // It closed meanwhile.
            Err(error) if error.code() == "breaker_closed" => return Ok(Done::At(back.to_owned())),
            turned => turned?,
        };
        let was = if was_open { "open" } else { "closed" };
        Ok(Done::At(with_said(back, &[("said", verb), ("about", target), ("of", pipeline), ("was", was)])))
    })
    .await
}
