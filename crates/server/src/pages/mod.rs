//! The dashboard: what is broken, why, and is it fixed. Pages arrive whole and work without scripts; what changes is brought up to date
//! in place where scripts run. They contain no rule of their own: what they show and do are operations of the engine, and what
//! somebody may is what the API lets them.
//!
//! - `visitor`: who looks, by a cookie; [`login`]: getting one; `fields`: what was filled into a form; `mended`: a form with a mistake comes back
//! - `about`: what a question is about
//! - `shell`: what is around every page; `parts`: what pages are made of; `part`: one that may fail by itself; `filter`: which letters, in addresses and forms
//! - `problem`: what went wrong, as a page; `assets`: the style and the scripts
//! - `events`: hints of what changed; `live`: the parts of a page that did
//! - one file or folder per page

mod about;
mod activity;
mod acts;
mod alerts;
mod assets;
mod breakers;
mod cause;
mod causes;
mod compare;
mod confirm;
mod different;
mod events;
mod fields;
mod filter;
mod letter;
mod letter_edit;
mod letters;
mod live;
mod login;
mod mended;
mod overview;
mod part;
mod parts;
mod pipelines;
mod problem;
mod replay;
mod replay_new;
mod replay_try;
mod replays;
mod search;
mod settings;
mod shell;
mod visitor;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::{HeaderValue, Method, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use redrive_core::tokens::Role;

pub use self::problem::Problem;
use crate::app::App;
use crate::error::ApiError;

/// What pages may load and do: nothing that is not this server's own.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A page, or where a form is sent to.
struct Page {
    path: &'static str,
    /// The least role that may.
    role: Role,
    run: MethodRouter<App>,
}

const fn page(path: &'static str, run: MethodRouter<App>) -> Page {
    Page { path, role: Role::Viewer, run }
}

const fn act(path: &'static str, role: Role, run: MethodRouter<App>) -> Page {
    Page { path, role, run }
}

/// All of them.
fn all() -> Vec<Page> {
    vec![
        page("/", get(overview::show)),
        page("/activity", get(activity::show)),
        page("/alerts", get(alerts::show)),
        act("/alerts/change", Role::Operator, get(alerts::ask).post(alerts::change)),
        act("/alerts/test", Role::Operator, get(alerts::tested).post(alerts::test)),
        act("/breakers/turn", Role::Operator, get(breakers::ask).post(breakers::turn)),
        page("/causes", get(causes::show)),
        act("/causes/ask", Role::Operator, post(causes::ask)),
        act("/causes/change", Role::Operator, post(causes::change)),
        page("/causes/{id}", get(cause::show)),
        act("/causes/{id}/change", Role::Operator, get(cause::ask).post(cause::change)),
        page("/events", get(events::follow)),
        page("/letters", get(letters::show)),
        act("/letters/discard", Role::Admin, get(letters::ask_discard).post(letters::discard)),
        page("/letters/{id}", get(letter::show)),
        page("/letters/{id}/har", get(letter::tools::log)),
        act("/letters/{id}/edit", Role::Operator, post(letter_edit::review)),
        act("/letters/{id}/retry", Role::Operator, get(letter::retry::ask).post(letter::retry::retry)),
        act("/logout", Role::Viewer, post(login::leave)),
        page("/payloads/{hash}/rendered", get(compare::rendered)),
        page("/pipelines", get(pipelines::list)),
        page("/pipelines/{name}", get(pipelines::show)),
        act("/pipelines/{name}/pause", Role::Operator, get(pipelines::ask).post(pipelines::pause)),
        act("/pipelines/{name}/resume", Role::Operator, post(pipelines::resume)),
        act("/pipelines/{name}/forget", Role::Operator, post(pipelines::forget)),
        page("/replays", get(replays::show)),
        act("/replays/start", Role::Operator, post(replay_new::start)),
        act("/replays/try", Role::Operator, post(replay_try::run)),
        act("/replays/try/stop", Role::Operator, post(replay_try::stop)),
        act("/replays/new", Role::Viewer, get(replay_new::show)),
        page("/replays/{id}", get(replay::show)),
        act("/replays/{id}/change", Role::Operator, get(replay::ask).post(replay::change)),
        page("/search", get(search::show)),
        act("/settings/tokens", Role::Viewer, get(settings::show)),
        act("/settings/tokens/create", Role::Admin, post(settings::create)),
        act("/settings/tokens/{name}/revoke", Role::Admin, get(settings::ask).post(settings::revoke)),
    ]
}

/// What answers requests for pages.
pub fn router(app: &App) -> Router<App> {
    let mut router = Router::new();
    for Page { path, role, run } in all() {
        router = router.route(path, run.layer(from_fn_with_state((app.clone(), role), visitor::let_in)));
    }
    router
        .route("/login", get(login::show).post(login::enter))
        .route("/assets/{name}", get(assets::give))
        .layer(from_fn(live::parts))
        .layer(from_fn(policy))
}

async fn policy(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Says that there is no such page: to who is known with what is around every page, to others only where they can sign in.
pub async fn nothing_here(app: App, request: Request) -> Response {
    let nothing = || async { Problem::from(ApiError::missing("there is no such page")) };
    match *request.method() {
        Method::GET | Method::HEAD => {
            let guarded = nothing.layer(from_fn_with_state((app.clone(), Role::Viewer), visitor::let_in));
            guarded.call(request, app).await
        }
        _ => nothing().await.into_response(),
    }
}
