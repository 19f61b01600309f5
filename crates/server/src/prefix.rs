//! A server that browsers reach below a path, as `--public-url https://example.org/redrive` says. The proxy takes the path off what is
//! asked; here it is put before what is answered: links and forms of pages, and where answers lead to.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::{App, Options};
use crate::error::ApiError;

/// Attributes of pages that begin with an address of this server. Texts have no quotes that are not escaped.
const ATTRIBUTES: [&str; 5] = [" href=\"/", " action=\"/", " formaction=\"/", " src=\"/", " data-href=\"/"];

/// Returns the host that a request was sent to.
pub fn host_of(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

/// Returns the path below which the server is reached by a host; nothing if it is reached at its root.
pub fn of<'a>(options: &'a Options, host: &str) -> &'a str {
    let found = options.prefixes.iter().find(|(public, _)| public.eq_ignore_ascii_case(host));
    found.map_or("", |(_, prefix)| prefix)
}

/// Puts the path before what is answered.
pub async fn add(State(app): State<App>, request: Request, next: Next) -> Response {
    let prefix = of(app.options(), host_of(request.headers())).to_owned();
    let mut response = next.run(request).await;
    if prefix.is_empty() {
        return response;
    }
    let own = |to: &HeaderValue| to.to_str().ok().filter(|to| to.starts_with('/')).map(|to| format!("{prefix}{to}"));
    if let Some(to) = response.headers().get(header::LOCATION).and_then(own)
        && let Ok(to) = HeaderValue::from_str(&to)
    {
        response.headers_mut().insert(header::LOCATION, to);
    }
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // It was made in memory: there is nothing to wait for, and no more than there was.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the answer was lost").into_response();
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(below(&prefix, &String::from_utf8_lossy(&bytes))))
}

/// A page whose addresses are below a path.
fn below(prefix: &str, page: &str) -> String {
    ATTRIBUTES.iter().fold(page.to_owned(), |page, attribute| {
        page.replace(attribute, &format!("{}{prefix}/", attribute.strip_suffix('/').unwrap_or(attribute)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_page_are_below_the_path() {
        let page =
            r#"<a href="/letters?x=1" data-href="/">/letters</a><form action="/login"><a href="https://a.example/">"#;
        let told = r#"<a href="/r/letters?x=1" data-href="/r/">/letters</a><form action="/r/login"><a href="https://a.example/">"#;
        assert_eq!(below("/r", page), told);
    }
}
