//! What each path answers. Pure, but for the solver's tasks: the answer is a value, and `wire` writes it.

use std::sync::PoisonError;

use serde_json::json;

use super::catalogue::{self, Behaviour, HUGE_PATH};
use super::solver::{create_task, in_res};
use super::wire::{Answer, Request, Response};
use super::{Shared, goods, pages};

/// The answer to a request, which is the `visit`th of its path.
pub(super) fn answer(request: &Request, visit: u32, shared: &Shared) -> Answer {
    let solver = || shared.solver.lock().unwrap_or_else(PoisonError::into_inner);
    let response = match request.path.as_str() {
        "/" => Response::html(200, pages::index()),
        HUGE_PATH => return Answer::EndlessJson,
        "/in.php" => in_res::submit(&mut solver(), request),
        "/res.php" => in_res::poll(&mut solver(), request),
        "/createTask" => create_task::submit(&mut solver(), request),
        "/getTaskResult" => create_task::poll(&mut solver(), request),
        "/counts" => Response::json(200, &json!(*shared.counts())),
        path => return goods_at(path, visit),
    };
    Answer::Whole(response)
}

fn goods_at(path: &str, visit: u32) -> Answer {
    // Only the plain form of a number is an address: `/products/07` is not product 7.
    let numbered = |prefix: &str, suffix: &str| -> Option<u32> {
        let digits = path.strip_prefix(prefix)?.strip_suffix(suffix)?;
        digits.parse().ok().filter(|number: &u32| number.to_string() == digits)
    };
    if let Some(number) = numbered("/products/", "") {
        page(number, visit)
    } else if let Some(number) = numbered("/api/products/", "") {
        document(number)
    } else if let Some(number) = numbered("/images/", ".svg").filter(|number| *number <= catalogue::PRODUCTS) {
        Answer::Whole(Response::new(200, "image/svg+xml", pages::image(number)))
    } else {
        not_found()
    }
}

fn page(number: u32, visit: u32) -> Answer {
    let whole = |status, html| Answer::Whole(Response::html(status, html));
    match catalogue::of_page(number) {
        Behaviour::NotFound => not_found(),
        Behaviour::Forbidden => whole(403, pages::challenge()),
        Behaviour::HiddenChallenge => whole(200, pages::challenge()),
        Behaviour::Hangs => Answer::Silence,
        Behaviour::BreaksOff => Answer::BrokenOff(Response::html(200, pages::product(number))),
        Behaviour::UnavailableTwice if visit <= 2 => {
            whole(503, pages::notice("Back in a moment", "The shop is being restocked. Please try again shortly."))
        }
        Behaviour::RateLimitedOnce if visit == 1 => {
            let notice = pages::notice("Not so fast", "You have looked at many pages in a short time.");
            Answer::Whole(Response::html(429, notice).with_header("Retry-After", "1"))
        }
        _ => whole(200, pages::product(number)),
    }
}

fn document(number: u32) -> Answer {
    let behaviour = catalogue::of_document(number);
    if behaviour == Behaviour::NotFound {
        return Answer::Whole(Response::json(404, &json!({ "error": "no such product" })));
    }
    let mut response = Response::json(200, &goods::document(number));
    if behaviour == Behaviour::TruncatedJson {
        response.body.truncate(response.body.len() / 2);
    }
    Answer::Whole(response)
}

fn not_found() -> Answer {
    Answer::Whole(Response::html(404, pages::notice("Not here", "This article is no longer part of our range.")))
}
