//! Both pages as they look, without anything that could do something: written anew by a list of what may stay, in frames that may do
//! nothing, under a policy that lets nothing be loaded. Each of the three would be enough; browsers have holes.

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};
use maud::{Markup, html};
use redrive::compare::{ComparedPage, Comparing, Comparison};
use redrive_core::dead::DeadLetter;
use redrive_core::ids::JobRef;
use redrive_core::payloads::PayloadHash;

use super::{caption, none_kept};
use crate::app::App;
use crate::asked::Named;
use crate::error::ApiError;
use crate::pages::problem::Problem;
use crate::pages::visitor::Visitor;

/// What a rendered payload may do: nothing, and load nothing.
const POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'";

/// Both pages in frames.
pub fn both(letter: &DeadLetter, comparison: &Comparison) -> Markup {
    html! {
        p.fact { "Without scripts, styles and images of others; what the rules find is outlined in red." }
        div.frames {
            (frame(("f-broke", "Page that broke"), letter, (comparison, comparison.broke.as_ref())))
            (frame(("f-worked", "Last page that worked"), letter, (comparison, comparison.worked.as_ref())))
        }
    }
}

/// One of the pages. Its frame says itself why it cannot be shown, if it cannot.
fn frame(
    (side, title): (&str, &str),
    letter: &DeadLetter,
    (comparison, page): (&Comparison, Option<&ComparedPage>),
) -> Markup {
    html! {
        figure class={ "framed " (side) } {
            figcaption { strong { (title) } " " span.fact { @if let Some(page) = page { (caption(page)) } @else { (none_kept(comparison)) } } }
            @if let Some(page) = page {
                iframe sandbox="" referrerpolicy="no-referrer" loading="lazy" title=(title)
                    src={ "/payloads/" (page.payload.hash) "/rendered?letter=" (letter.id) } {}
            }
        }
    }
}

/// `/payloads/{hash}/rendered?letter=`: one of the two pages of a letter, harmless.
pub async fn rendered(
    State(app): State<App>,
    visitor: Visitor,
    Named(hash): Named<PayloadHash>,
) -> Result<Response, Problem> {
    visitor.caller.check_payloads()?;
    let query = visitor.query();
    let named: JobRef = query
        .one("letter")
        .and_then(|letter| letter.parse().ok())
        .ok_or_else(|| ApiError::invalid("letter", "expected the letter whose page it is"))?;
    let id = app.redrive().find_job(&named).await?;
    let letter =
        app.redrive().store().get_dead(id).await?.ok_or_else(|| ApiError::missing("there is no such letter"))?;
    visitor.caller.check(&letter.pipeline)?;
    let setting = app.setting();
    let with = Comparing { setting: &setting, vault: app.vault() };
    let page = app.redrive().render_page(&with, &letter, hash).await?;
    let page = page.ok_or_else(|| ApiError::missing("it is no page of this letter"))?;
    let headers = [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, Html(page)).into_response())
}
