//! `/login` and `/logout`: a token becomes a cookie, and the cookie goes again.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::fields::{Fields, own_path};
use super::problem::Problem;
use super::shell;
use super::visitor::{Jar, Visitor};
use crate::app::App;
use crate::asked::{Query, form};

/// Where one is led after signing in.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// A path of this server.
    to: String,
}

/// Where one signs in to come back to a page.
pub fn address(here: &str) -> String {
    match own_path(here) {
        "/" => "/login".to_owned(),
        here => format!("/login?to={}", form_urlencoded::byte_serialize(here.as_bytes()).collect::<String>()),
    }
}

/// The page on which one signs in.
pub async fn show(State(app): State<App>, Query(asked): Query<Asked>) -> Result<Response, Problem> {
    let to = own_path(&asked.to);
    match app.tokens().await?.is_empty() {
        // Nobody signs in while there is no token.
        true => Ok(Redirect::to(to).into_response()),
        false => Ok(page(to, None, None).into_response()),
    }
}

/// Signs somebody in. What they had filled in before is shown again: it is sent by them, not by signing in.
pub async fn enter(State(app): State<App>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let (bytes, _room) = form(&app, &headers, body, app.bodies_of_strangers()).await?;
    let fields = Fields::read(&bytes);
    let to = own_path(fields.one("to").unwrap_or("/")).to_owned();
    let kept = fields.one("kept").map(|text| Fields::read(text.as_bytes()));
    let signed_in = match app.redrive().sign_in(fields.one("token").unwrap_or_default()).await? {
        Ok(signed_in) => signed_in,
        Err(why) => {
            let page = page(&to, kept.as_ref(), Some(&why.to_string()));
            return Ok((StatusCode::UNAUTHORIZED, page).into_response());
        }
    };
    app.note_used(&signed_in.token.name);
    let jar = Jar::of(&app, &headers);
    if let Some(before) = jar.secret(&headers) {
        app.redrive().sign_out(&before).await?;
    }
    let cookie = [(header::SET_COOKIE, jar.given(&signed_in.secret))];
    Ok(match kept {
        None => (cookie, Redirect::to(&to)).into_response(),
        Some(kept) => (cookie, again(&to, &kept, &Visitor::form_token_of(&signed_in.secret))).into_response(),
    })
}

/// Signs somebody out.
pub async fn leave(State(app): State<App>, headers: HeaderMap) -> Result<Response, Problem> {
    let jar = Jar::of(&app, &headers);
    if let Some(secret) = jar.secret(&headers) {
        app.redrive().sign_out(&secret).await?;
    }
    Ok(([(header::SET_COOKIE, jar.taken())], Redirect::to("/login")).into_response())
}

/// The form for a token; `kept` is what had been filled in when it was found that nobody is signed in.
pub fn page(to: &str, kept: Option<&Fields>, wrong: Option<&str>) -> Markup {
    let body = html! {
        div.head { h1 { "Sign in" } }
        @if kept.is_some() {
            p.headline.warn {
                "You are no longer signed in. Nothing was done; what you filled in is kept in this page."
            }
        }
        @if let Some(wrong) = wrong { p.headline.bad role="alert" { "Not signed in: " (wrong) "." } }
        form.sign-in method="post" action="/login" {
            input type="hidden" name="to" value=(to);
            @if let Some(kept) = kept { input type="hidden" name="kept" value=(kept.to_text()); }
            p.entry {
                label for="token" { "Token" }
                input #token type="password" name="token" required autocomplete="current-password" autofocus
                    spellcheck="false" placeholder="rdr_…";
            }
            p.actions { button.primary { "Sign in" } }
            p.fact { "Tokens are made with " code { "redrive token create" } ", or under Settings by an admin." }
        }
    };
    shell::bare("Sign in", None, &body)
}

/// What had been filled in, to be sent again.
fn again(to: &str, kept: &Fields, form_token: &str) -> Markup {
    let body = html! {
        div.head { h1 { "Signed in again" } }
        p.headline { "Nothing was done yet. Send what you had filled in?" }
        form method="post" action=(to) {
            input type="hidden" name="form" value=(form_token);
            @for (name, value) in kept.kept() { input type="hidden" name=(name) value=(value); }
            p.actions { button.primary { "Send it now" } a.button href="/" { "Overview" } }
        }
    };
    shell::bare("Signed in again", None, &body)
}
