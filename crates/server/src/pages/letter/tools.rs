//! A letter for other tools: as a command line, and as a browser's network log.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use redrive::config::Setting;
use redrive::dead::{Requests, logged_bodies};
use redrive::export::{curl, har};
use redrive_core::dead::DeadLetter;
use redrive_core::ids::JobRef;

use super::super::parts::section_head;
use super::super::problem::Problem;
use super::super::visitor::Visitor;
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;
use crate::look::foreign::harmless;

/// Draws the section.
pub fn section(app: &App, visitor: &Visitor, letter: &DeadLetter) -> Markup {
    let may_not = visitor.caller.check_payloads().err();
    let number = letter.number.map_or_else(|| letter.id.to_string(), |number| number.to_string());
    html! {
        section aria-labelledby="elsewhere" {
            (section_head("elsewhere", "For other tools", ""))
            @match requests(&app.setting()).last(letter) {
                Some(request) => {
                    details {
                        summary { "curl" }
                        pre.code tabindex="0" { (harmless(&curl(&request))) }
                        p.fact { "Secrets are masked: put them in before you run it." }
                    }
                }
                None => p.fact { "What it asked for is not known: its pipeline sends no request, and its input has no url." }
            }
            p.fact {
                @match &may_not {
                    None => a href={ "/letters/" (letter.id) "/har" } { "Network log (HAR)" },
                    Some(why) => { button.small disabled { "Network log (HAR)" } " (" (why.message()) ")" }
                }
                ", all attempts with what they brought. "
                code { (visitor.command(&format!("redrive dead show {number} --curl"))) } ", " code { "--har" } " and " code { "--json" }
                " print the same."
            }
        }
    }
}

/// Gives the network log of a letter, to be kept as a file.
pub async fn log(State(app): State<App>, visitor: Visitor, Named(named): Named<JobRef>) -> Result<Response, Problem> {
    let letter = app.redrive().dead_letter(app.redrive().find_job(&named).await?).await?;
    visitor.caller.check(&letter.pipeline)?;
    visitor.caller.check_payloads()?;
    let vault = app.vault().ok_or_else(|| ApiError::senseless("this server has no vault"))?;
    let sizes = letter.failures.iter().flatten().filter_map(|failure| failure.payload.as_ref());
    let _room = app.bodies().take(sizes.map(|payload| payload.size_bytes).sum())?;
    let bodies = logged_bodies(vault, &letter).await?;
    let setting = app.setting();
    let mut requests = requests(&setting);
    let log = har(&letter, |failure| requests.of(&letter, Some(failure)), &bodies);
    let kept_as = format!("attachment; filename=\"letter-{}.har\"", letter.id);
    Ok(([(header::CONTENT_DISPOSITION, kept_as)], Json(log)).into_response())
}

fn requests(setting: &Setting) -> Requests<'_> {
    Requests::new(setting, |error| tracing::debug!(%error, "the request of a letter is a guess"))
}
