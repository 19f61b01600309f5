//! Pages that worked: the last one of each shape of addresses is kept, so that a page that broke can be put beside it.

use std::collections::HashMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::payloads::Payload;
use crate::time::Timestamp;

/// How many shapes of one target have a page.
pub const SHAPES_MAX: u32 = 20;

/// How many pages of one pipeline are kept.
pub const PAGES_MAX: u32 = 1_000;

/// How old a page is before a newer one takes its place.
pub const REFRESH: Duration = Duration::from_secs(600);

/// How long after its last letter a cause keeps the page that it holds on to.
pub const PIN_LASTS: Duration = Duration::from_secs(86_400);

/// The longest shape, in bytes.
const SHAPE_BYTES_MAX: usize = 200;

/// A page that worked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoodPage {
    /// The target that it came from; empty if its job had none.
    pub target: String,
    /// The shape of its address.
    pub shape: String,
    /// Its address, without secrets.
    pub url: String,
    /// The page.
    pub payload: Payload,
    /// When it worked.
    pub at: Timestamp,
    /// The version of the definition by which it worked, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
}

/// The shape of an address: its path, where whatever looks like an id is masked. Nothing for what is no address of a page.
pub fn url_shape(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let path = rest[..end].find('/').map_or("/", |slash| &rest[slash..end]);
    let mut shape: String = path.split('/').map(masked).collect::<Vec<_>>().join("/");
    while shape.len() > SHAPE_BYTES_MAX {
        shape.pop();
    }
    Some(shape)
}

/// A part of a path without what varies: digits, and words that only a machine would write.
fn masked(part: &str) -> String {
    if part.len() >= 24 && part.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        return "*".to_owned();
    }
    let is_extension = |text: &str| (1..=5).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphabetic());
    let (name, extension) = match part.rsplit_once('.').filter(|(_, extension)| is_extension(extension)) {
        Some((name, extension)) => (name, format!(".{extension}")),
        None => (part, String::new()),
    };
    let words: Vec<String> = name.split_inclusive(['-', '_', '.', '~', ',', ':']).map(masked_word).collect();
    // `red-shoes-of-leather-12` and `blue-hat-7` are names of things of one kind.
    let names = words.iter().filter(|word| word.starts_with(|c: char| c.is_alphabetic())).count();
    let is_name = names > 1 && words.iter().any(|word| word.starts_with('*'));
    if is_name { format!("*{extension}") } else { words.concat() + &extension }
}

fn masked_word(word: &str) -> String {
    let (text, mark) = match word.char_indices().next_back() {
        Some((at, mark)) if !mark.is_alphanumeric() && "-_.~,:".contains(mark) => (&word[..at], &word[at..]),
        _ => (word, ""),
    };
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let is_version = digits == 1 && text.len() == 2 && text.starts_with('v');
    let is_id = digits > 0 && !is_version || text.len() >= 24 || text.contains('%');
    if is_id { format!("*{mark}") } else { format!("{text}{mark}") }
}

/// Why a page that worked is put beside one that broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// It is the same address, as it was.
    SameAddress,
    /// Its address has the same shape.
    SameShape,
}

/// The page that is put beside one that broke: that of the same address, else one of the same shape; of several the newest from before
/// it broke, or else the newest.
pub fn pair<'a>(url: &str, broke_at: Timestamp, pages: &'a [GoodPage]) -> Option<(Pairing, &'a GoodPage)> {
    let shape = url_shape(url)?;
    let best = |pages: &mut dyn Iterator<Item = &'a GoodPage>| pages.max_by_key(|page| (page.at <= broke_at, page.at));
    let same = best(&mut pages.iter().filter(|page| page.url == url));
    let alike = || best(&mut pages.iter().filter(|page| page.shape == shape));
    same.map(|page| (Pairing::SameAddress, page)).or_else(|| alike().map(|page| (Pairing::SameShape, page)))
}

/// Which pages a worker has kept lately, so that most successes cost nothing.
#[derive(Debug, Default)]
pub struct GoodKeeper(HashMap<String, HashMap<String, Timestamp>>);

impl GoodKeeper {
    /// Whether the page of a job that begins now is to be kept if it succeeds. Who is told so has to say if nothing came of it.
    pub fn claim(&mut self, target: &str, shape: &str, now: Timestamp) -> bool {
        // Whoever comes back to a target after a while begins anew.
        if self.0.len() >= PAGES_MAX as usize && !self.0.contains_key(target) {
            self.0.retain(|_, shapes| shapes.values().any(|at| now < *at + REFRESH));
            if self.0.len() >= PAGES_MAX as usize {
                return false;
            }
        }
        let shapes = self.0.entry(target.to_owned()).or_default();
        // A clock that was set back is no reason to wait for hours.
        let is_fresh = |at: &Timestamp| *at <= now && now < *at + REFRESH;
        if shapes.get(shape).is_some_and(is_fresh) {
            return false;
        }
        if shapes.len() >= SHAPES_MAX as usize && !shapes.contains_key(shape) {
            shapes.retain(|_, at| is_fresh(at));
            if shapes.len() >= SHAPES_MAX as usize {
                return false;
            }
        }
        shapes.insert(shape.to_owned(), now);
        true
    }

    /// Nothing came of it: the next one is to be kept.
    pub fn give_back(&mut self, target: &str, shape: &str) {
        if let Some(shapes) = self.0.get_mut(target) {
            shapes.remove(shape);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payloads::PayloadHash;

    const fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1_000)
    }

    fn page(url: &str, secs: i64) -> GoodPage {
        let payload = Payload::bare(PayloadHash::from_bytes([0; 32]), 1);
        let shape = url_shape(url).expect("a shape");
        GoodPage { target: "shop.example".into(), shape, url: url.into(), payload, at: at(secs), rules: None }
    }

    #[test]
    fn ids_in_paths_are_masked_and_words_stay() {
        for (url, shape) in [
            ("https://shop.example", "/"),
            ("https://shop.example/?page=2", "/"),
            ("https://shop.example/p/1042", "/p/*"),
            ("http://127.0.0.1:8080/p/1042?x=1#y", "/p/*"),
            ("https://shop.example/product-1042.html", "/product-*.html"),
            ("https://shop.example/red-shoes-of-leather-12.html", "/*.html"),
            ("https://shop.example/api/v2/items/3f1c9a77e0", "/api/v2/items/*"),
            ("https://shop.example/i/01890a5d-ac96-774b-bcce-b302099a8057/x", "/i/*/x"),
            ("https://shop.example/about/team", "/about/team"),
            ("https://shop.example/%E2%98%83/x", "/*/x"),
        ] {
            assert_eq!(url_shape(url).as_deref(), Some(shape), "{url}");
        }
        assert_eq!(url_shape("no address"), None);
        assert!(
            url_shape(&format!("https://a.example/{}", "é/".repeat(5_000))).is_some_and(|shape| shape.len() <= 200)
        );
    }

    #[test]
    fn a_page_is_paired_with_itself_before_one_of_its_shape() {
        let pages = [
            page("https://shop.example/p/1", 10),
            page("https://shop.example/p/2", 50),
            page("https://shop.example/", 60),
        ];
        let paired = |url: &str, secs| pair(url, at(secs), &pages).map(|(why, page)| (why, page.at));
        assert_eq!(paired("https://shop.example/p/1", 70), Some((Pairing::SameAddress, at(10))));
        assert_eq!(paired("https://shop.example/p/3", 70), Some((Pairing::SameShape, at(50))));
        assert_eq!(paired("https://shop.example/p/3", 20), Some((Pairing::SameShape, at(10))), "as it was before");
        assert_eq!(paired("https://shop.example/p/3", 5), Some((Pairing::SameShape, at(50))), "better than none");
        assert_eq!(paired("https://shop.example/about", 70), None);
    }

    #[test]
    fn a_page_is_kept_every_ten_minutes_and_of_twenty_shapes() {
        let mut keeper = GoodKeeper::default();
        assert!(keeper.claim("a", "/p/*", at(0)));
        assert!(!keeper.claim("a", "/p/*", at(599)));
        assert!(keeper.claim("a", "/p/*", at(600)));
        keeper.give_back("a", "/p/*");
        assert!(keeper.claim("a", "/p/*", at(601)), "nothing came of the one before");
        assert!(keeper.claim("a", "/p/*", at(-9_000)), "the clock was set back");
        let kept = (0..100).filter(|n| keeper.claim("b", &format!("/{n}"), at(0))).count();
        assert_eq!(kept, 20);
        assert!(keeper.claim("b", "/new", at(700)), "those are old by now");
    }

    #[test]
    fn what_is_remembered_of_targets_has_a_bound() {
        let mut keeper = GoodKeeper::default();
        let kept = (0..5_000).filter(|n| keeper.claim(&format!("t{n}"), "/", at(0))).count();
        assert_eq!(kept, 1_000);
        assert!(keeper.claim("another", "/", at(601)));
    }
}
