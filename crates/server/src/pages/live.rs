//! Parts of pages, for scripts that bring them up to date: who names the parts that they have, with a tag each, is given those
//! that are different by now, and nothing else.

use std::fmt::Write as _;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::Problem;
use crate::error::ApiError;

/// The header with the parts that somebody has: `headline:3f9a1c2e,pipelines`, each with its tag if it is known.
pub const PARTS: HeaderName = HeaderName::from_static("x-parts");

/// The most parts that are looked for.
const PARTS_MAX: usize = 100;

/// Gives the parts that were asked for, where any were; else the page.
pub async fn parts(request: Request, next: Next) -> Response {
    let is_read = request.method() == Method::GET;
    let wanted = request.headers().get(PARTS).and_then(|wanted| wanted.to_str().ok()).map(str::to_owned);
    let response = next.run(request).await;
    let Some(wanted) = wanted.filter(|_| is_read && response.status() == StatusCode::OK && is_page(&response)) else {
        return response;
    };
    let (mut head, body) = response.into_parts();
    // It was made in memory: there is nothing to wait for, and no more than there was.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        let lost = ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the answer was lost");
        return Problem::from(lost).into_response();
    };
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.insert(header::VARY, HeaderValue::from_static("x-parts"));
    head.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let changed = changed(&String::from_utf8_lossy(&bytes), &wanted);
    if changed.is_empty() {
        head.status = StatusCode::NOT_MODIFIED;
        head.headers.remove(header::CONTENT_TYPE);
    }
    Response::from_parts(head, Body::from(changed))
}

fn is_page(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/html"))
}

/// The parts of a page that are not as somebody has them, each in a template that has its name and its tag. A part that is no
/// longer there comes without anything in it.
fn changed(page: &str, wanted: &str) -> String {
    let mut all = String::new();
    for one in wanted.split(',').take(PARTS_MAX) {
        let (id, had) = one.rsplit_once(':').unwrap_or((one, ""));
        if id.is_empty() || !id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
            continue;
        }
        let part = element(page, id).unwrap_or_default();
        let tag = tag(part);
        if tag != had {
            // Writing to a text does not fail.
            let _ = write!(all, "<template data-part=\"{id}\" data-tag=\"{tag}\">{part}</template>");
        }
    }
    all
}

/// A short name of what a part says. Keys of its forms are others each time, and say nothing.
fn tag(part: &str) -> String {
    const KEY: &str = "name=\"key\" value=\"";
    let mut hasher = blake3::Hasher::new();
    let mut rest = part;
    while let Some(at) = rest.find(KEY) {
        hasher.update(&rest.as_bytes()[..at]);
        rest = &rest[at + KEY.len()..];
        rest = rest.find('"').map_or("", |end| &rest[end..]);
    }
    hasher.update(rest.as_bytes());
    hasher.finalize().to_hex()[..12].to_owned()
}

/// Whether who names these parts asks for one that may fail by itself: they name `failed-NAME` for each of those that has something in it which
/// they bring up to date. The others need not be made.
pub fn asks_for(wanted: &str, part: &str) -> bool {
    let ids = wanted.split(',').map(|one| one.rsplit_once(':').map_or(one, |(id, _)| id));
    ids.filter_map(|id| id.strip_prefix("failed-")).any(|name| name == part)
}

/// The element with an id. Pages are made by `maud`, which escapes all text: a `<` begins a tag, and what is opened is closed.
fn element<'a>(page: &'a str, id: &str) -> Option<&'a str> {
    let at = page.find(&format!(" id=\"{id}\""))?;
    let begin = page[..at].rfind('<')?;
    let rest = &page[begin..];
    let name = rest[1..].split([' ', '>', '/']).next()?;
    let (opened, closed) = (format!("<{name}"), format!("</{name}>"));
    let (mut depth, mut from) = (0_usize, 0);
    loop {
        let end = from + rest[from..].find(&closed)?;
        let openings = rest[from..end].match_indices(&opened);
        let is_tag = |(at, _): &(usize, &str)| rest[from + at + opened.len()..].starts_with([' ', '>']);
        depth += openings.filter(is_tag).count();
        depth = depth.checked_sub(1)?;
        from = end + closed.len();
        if depth == 0 {
            return Some(&rest[..from]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<main id=\"main\"><div id=\"a\"><div>1</div><divider></divider></div><p class=\"x\" id=\"b\">2 &lt;p&gt;</p>\
                        <form id=\"f\"><input name=\"key\" value=\"k1\"></form></main>";

    #[test]
    fn a_part_is_all_of_its_element() {
        assert_eq!(element(PAGE, "a"), Some("<div id=\"a\"><div>1</div><divider></divider></div>"));
        assert_eq!(element(PAGE, "b"), Some("<p class=\"x\" id=\"b\">2 &lt;p&gt;</p>"));
        assert_eq!(element(PAGE, "main"), Some(PAGE));
        assert_eq!(element(PAGE, "c"), None);
        assert_eq!(element("<p id=\"a\">never closed", "a"), None);
    }

    #[test]
    fn only_what_changed_is_given() {
        let all = changed(PAGE, "a,b,gone");
        assert_eq!(all.matches("<template").count(), 3, "{all}");
        let tag_of = |id: &str| {
            let from = all.find(&format!("data-part=\"{id}\" data-tag=\"")).expect("a part");
            all[from..].split('"').nth(3).expect("a tag").to_owned()
        };
        let had = format!("a:{},b:{},gone:{}", tag_of("a"), tag_of("b"), tag_of("gone"));
        assert_eq!(changed(PAGE, &had), "");
        let later = changed(&PAGE.replace('2', "3"), &had);
        assert!(later.starts_with("<template data-part=\"b\"") && later.matches("<template").count() == 1, "{later}");
        assert_eq!(changed(PAGE, "<script>:1,,\"x"), "", "names that are none are passed over");
    }

    #[test]
    fn parts_that_nobody_asks_for_need_not_be_made() {
        let wanted = "headline:3f9a1c2e,hours-chart,failed-hours:12ab,failed-when";
        assert!(asks_for(wanted, "hours") && asks_for(wanted, "when"));
        assert!(!asks_for(wanted, "policy") && !asks_for(wanted, "hours-chart") && !asks_for("", "hours"));
    }

    #[test]
    fn keys_of_forms_are_no_change() {
        assert_eq!(tag(PAGE), tag(&PAGE.replace("k1", "k2")));
        assert_ne!(tag(PAGE), tag(&PAGE.replace(">1<", ">9<")));
    }
}
