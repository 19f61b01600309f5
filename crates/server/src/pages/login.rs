//! `/login` and `/logout`: a token becomes a cookie, and the cookie goes again.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use redrive::sessions::NotSignedIn;
use serde::Deserialize;

use super::fields::{Fields, own_path};
use super::problem::Problem;
use super::shell;
use super::visitor::{Jar, Visitor};
use crate::access::identify_visitor;
use crate::app::App;
use crate::asked::{Query, form};
use crate::error::ApiError;
use crate::local::Local;

/// Headers by which browsers say that nobody opened a page yet.
const PREVIEWS: [&str; 3] = ["sec-purpose", "purpose", "x-moz"];

/// Where one is led after signing in.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// A path of this server.
    to: String,
    /// The secret of a link that signs in who opens it first.
    link: Option<String>,
}

/// Where one signs in to come back to a page.
pub fn address(here: &str) -> String {
    match own_path(here) {
        "/" => "/login".to_owned(),
        here => format!("/login?to={}", form_urlencoded::byte_serialize(here.as_bytes()).collect::<String>()),
    }
}

/// The page on which one signs in; whoever comes by a link that was not opened yet is signed in at once. A preview is refused: it would
/// use the link up before anybody opens it.
pub async fn show(
    State(app): State<App>,
    method: Method,
    headers: HeaderMap,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let to = own_path(&asked.to);
    let Some(link) = &asked.link else { return Ok(page(&app, to, None, None).await.into_response()) };
    if method == Method::HEAD || PREVIEWS.into_iter().any(|name| headers.contains_key(name)) {
        return Ok(StatusCode::SERVICE_UNAVAILABLE.into_response());
    }
    let jar = Jar::of(&app, &headers);
    if let Some(local) = local(&app).await?
        && local.take_link(link, app.redrive().now())
    {
        let cookie = [(header::SET_COOKIE, jar.given(&app.redrive().open_session(local.token()).await?))];
        return Ok((cookie, Redirect::to(to)).into_response());
    }
    if identify_visitor(&app, jar.secret(&headers).as_deref()).await?.is_some() {
        return Ok(Redirect::to(to).into_response());
    }
    let why = "this link was opened before, or is too old";
    Ok((StatusCode::UNAUTHORIZED, page(&app, to, None, Some(why)).await).into_response())
}

/// Clients that are let in without a token, while the store has none.
async fn local(app: &App) -> Result<Option<&Local>, ApiError> {
    Ok(if app.tokens().await?.is_empty() { app.local() } else { None })
}

/// Signs somebody in. What they had filled in before is shown again: it is sent by them, not by signing in.
pub async fn enter(State(app): State<App>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    let (bytes, _room) = form(&app, &headers, body, app.bodies_of_strangers()).await?;
    let fields = Fields::read(&bytes);
    let to = own_path(fields.one("to").unwrap_or("/")).to_owned();
    let kept = fields.one("kept").map(|text| Fields::read(text.as_bytes()));
    let secret = match session_for(&app, fields.one("token").unwrap_or_default()).await? {
        Ok(secret) => secret,
        Err(why) => {
            let page = page(&app, &to, kept.as_ref(), Some(&why.to_string())).await;
            return Ok((StatusCode::UNAUTHORIZED, page).into_response());
        }
    };
    let jar = Jar::of(&app, &headers);
    if let Some(before) = jar.secret(&headers) {
        app.redrive().sign_out(&before).await?;
    }
    let cookie = [(header::SET_COOKIE, jar.given(&secret))];
    Ok(match kept {
        None => (cookie, Redirect::to(&to)).into_response(),
        Some(kept) => (cookie, again(&to, &kept, &Visitor::form_token_of(&secret))).into_response(),
    })
}

/// Opens a session for who has a token, or that of the token file; says why not.
async fn session_for(app: &App, token: &str) -> Result<Result<String, NotSignedIn>, Problem> {
    if let Some(local) = local(app).await? {
        return Ok(match local.is(token) {
            true => Ok(app.redrive().open_session(local.token()).await?),
            false => Err(NotSignedIn::Unknown),
        });
    }
    let signed_in = app.redrive().sign_in(token).await?;
    Ok(signed_in.map(|signed_in| {
        app.note_used(&signed_in.token.name);
        signed_in.secret
    }))
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
pub async fn page(app: &App, to: &str, kept: Option<&Fields>, wrong: Option<&str>) -> Markup {
    let is_local = local(app).await.is_ok_and(|local| local.is_some());
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
            @if is_local {
                p.fact {
                    "The store has no token yet. Open the link that " code { "redrive serve" } " printed when it began, or enter what is in "
                    "the token file that it named."
                }
            } @else {
                p.fact { "Tokens are made with " code { "redrive token create" } ", or under Settings by an admin." }
            }
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
