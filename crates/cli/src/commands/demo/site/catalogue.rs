//! What each product does when it is asked for: the demo's script.
//!
//! The task file is written from this list and the routes are answered from it, so the two cannot drift apart.

/// How many products the shop has.
pub const PRODUCTS: u32 = 120;

/// The last product in the old layout.
const OLD_LAYOUT_LAST: u32 = PRODUCTS / 2;

/// A JSON document that never ends: the poison pill.
pub const HUGE_PATH: &str = "/huge";

/// A product and what asking for it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Product {
    /// From 1 on.
    pub number: u32,
    /// Where it is found.
    pub path: String,
    /// What is found there.
    pub behaviour: Behaviour,
}

/// What a product's address answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Behaviour {
    /// A page with the price in `.price-tag-main`.
    OldLayout,
    /// A page with the price in `.price data`.
    NewLayout,
    /// A page in the new layout without any price, which stays broken when the selector is corrected.
    PriceOnRequest,
    /// 403 and a challenge page.
    Forbidden,
    /// 200 and a challenge page.
    HiddenChallenge,
    /// No answer at all, for as long as the client waits.
    Hangs,
    /// Half of the page that was announced.
    BreaksOff,
    /// 503 twice, then the page.
    UnavailableTwice,
    /// 429 with `Retry-After: 1` once, then the page.
    RateLimitedOnce,
    /// 404.
    NotFound,
    /// A JSON document.
    Json,
    /// Half a JSON document, whole as far as HTTP is concerned.
    TruncatedJson,
}

impl Behaviour {
    /// Whether the site refuses the client here, which holds the whole target.
    ///
    /// The demo gives these products a `target` of their own, lest all the others wait behind them.
    pub const fn is_closed_door(self) -> bool {
        matches!(self, Self::Forbidden | Self::HiddenChallenge)
    }

    /// In words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::OldLayout => "page in the old layout",
            Self::NewLayout => "page in the new layout",
            Self::PriceOnRequest => "page in the new layout, without a price",
            Self::Forbidden => "403 with a challenge page",
            Self::HiddenChallenge => "200 with a challenge page",
            Self::Hangs => "never answers",
            Self::BreaksOff => "breaks off in the middle",
            Self::UnavailableTwice => "503 twice, then the page",
            Self::RateLimitedOnce => "429 once, then the page",
            Self::NotFound => "404",
            Self::Json => "JSON document",
            Self::TruncatedJson => "half a JSON document",
        }
    }
}

/// All product pages, in order.
pub fn catalogue() -> Vec<Product> {
    let page = |number| Product { number, path: format!("/products/{number}"), behaviour: of_page(number) };
    (1..=PRODUCTS).map(page).collect()
}

/// The same products as JSON documents, in order.
#[cfg(test)]
pub fn api_catalogue() -> Vec<Product> {
    let document = |number| Product { number, path: format!("/api/products/{number}"), behaviour: of_document(number) };
    (1..=PRODUCTS).map(document).collect()
}

/// What the page of a product does.
pub(super) const fn of_page(number: u32) -> Behaviour {
    match number {
        9 => Behaviour::UnavailableTwice,
        14 => Behaviour::RateLimitedOnce,
        23 => Behaviour::NotFound,
        31 => Behaviour::Forbidden,
        37 => Behaviour::HiddenChallenge,
        42 => Behaviour::Hangs,
        48 => Behaviour::BreaksOff,
        88 | 101 | 115 => Behaviour::PriceOnRequest,
        1..=OLD_LAYOUT_LAST => Behaviour::OldLayout,
        ..=PRODUCTS if number > 0 => Behaviour::NewLayout,
        _ => Behaviour::NotFound,
    }
}

/// What the JSON document of a product does.
pub(super) const fn of_document(number: u32) -> Behaviour {
    match number {
        52 => Behaviour::TruncatedJson,
        1..=PRODUCTS => Behaviour::Json,
        _ => Behaviour::NotFound,
    }
}
