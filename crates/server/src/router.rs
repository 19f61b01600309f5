//! The list of routes, and the layers around them.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;
use crate::error::ApiError;
use crate::route::Route;
use crate::routes;
use crate::{access, answer, guard, measured, once, pages, prefix, read_on};

/// Where the API begins.
pub const BASE: &str = "/api/v1";

/// Every route of the API.
pub fn all() -> Vec<Route> {
    let nouns = [
        routes::activity::routes(),
        routes::alerts::routes(),
        routes::breakers::routes(),
        routes::causes::routes(),
        routes::events::routes(),
        routes::jobs::routes(),
        routes::leases::routes(),
        routes::letters::routes(),
        routes::outcomes::routes(),
        routes::payloads::routes(),
        routes::pipelines::routes(),
        routes::replays::routes(),
        routes::reports::routes(),
        routes::results::routes(),
        routes::rounds::routes(),
        routes::status::routes(),
        routes::tokens::routes(),
        routes::tries::routes(),
        routes::workers::routes(),
    ];
    nouns.into_iter().flatten().collect()
}

/// What answers requests.
pub fn router(app: App) -> Router {
    let mut api = Router::new();
    for route in all() {
        let inside = match route.is_kept {
            true => route.run.layer(from_fn_with_state(app.clone(), once::once)),
            false => route.run,
        };
        let guarded = inside.layer(from_fn_with_state((app.clone(), route.role), access::let_in));
        api = api.route(route.path, guarded);
    }
    let open = Router::new()
        .route("/healthz", get(routes::status::health::alive))
        .route("/readyz", get(routes::status::health::ready))
        .nest(BASE, api)
        .merge(pages::router(&app))
        .route("/metrics", metrics(&app))
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_so);
    open.layer(from_fn(answer::tag))
        .layer(from_fn_with_state(app.clone(), prefix::add))
        .layer(from_fn_with_state(app.clone(), guard::check))
        .layer(from_fn_with_state(app.clone(), measured::measure))
        .layer(from_fn(answer::name_version))
        .layer(from_fn_with_state(app.clone(), read_on::read_on))
        .with_state(app)
}

fn metrics(app: &App) -> axum::routing::MethodRouter<App> {
    let state = (app.clone(), redrive_core::tokens::Role::Viewer);
    get(routes::metrics::run).layer(from_fn_with_state(state, access::let_in))
}

async fn nothing_here(State(app): State<App>, request: Request) -> Response {
    match request.uri().path().starts_with("/api") {
        true => ApiError::missing(format!("nothing is here: {BASE}/openapi.json lists what there is")).into_response(),
        false => pages::nothing_here(app, request).await,
    }
}

async fn not_so(State(app): State<App>, request: Request) -> Response {
    // Whoever loads again what answered a form, or types its address, is a person.
    if request.method() == Method::GET && !request.uri().path().starts_with("/api") {
        return pages::nothing_here(app, request).await;
    }
    let why = format!("{} is nothing that can be done here", request.method());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", why).into_response()
}
