//! The request that led to a dead letter, and how its parts are made harmless where they become lines or arguments.

use std::time::Duration;

use redrive_core::failures::Failure;
use redrive_core::time::Timestamp;
use url::Url;

/// A request, with its secrets masked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpRequest {
    /// GET, POST and so on.
    pub method: String,
    /// The address.
    pub url: String,
    /// The headers, in their order.
    pub headers: Vec<(String, String)>,
    /// What is sent, if anything.
    pub body: Option<Vec<u8>>,
}

/// When the attempt that failed began.
pub(super) fn began_at(failure: &Failure) -> Timestamp {
    failure.at - Duration::from_millis(failure.duration_ms.unwrap_or(0))
}

/// The address, if it is one that HTTP can reach; without its fragment, which is never sent.
pub(super) fn web_address(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    url.set_fragment(None);
    Some(url)
}

/// The value of the first header of that name.
pub(super) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// A header's name or a method, with `_` for what may not be part of one.
pub(super) fn token(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if text.is_empty() { "_".to_owned() } else { text.chars().map(|c| if fits(c) { c } else { '_' }).collect() }
}

/// The text on one line: control characters become spaces.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_breaks_out_of_its_line() {
        assert_eq!(one_line(" a\r\nX-Evil: 1\0\u{85}\tü "), "a  X-Evil: 1  \tü");
        assert_eq!(token("X-Evil: 1\r\nübel"), "X-Evil__1___bel");
        assert_eq!(token(""), "_");
    }

    #[test]
    fn only_the_web_has_web_addresses() {
        let address = |text| web_address(text).map(String::from);
        assert_eq!(
            address("https://ü.example/a b?q=ü#part").as_deref(),
            Some("https://xn--tda.example/a%20b?q=%C3%BC")
        );
        assert_eq!(address("https://***@h.example/?key=***").as_deref(), Some("https://***@h.example/?key=***"));
        assert_eq!(address("ftp://h/"), None);
        assert_eq!(address("/a"), None);
    }
}
