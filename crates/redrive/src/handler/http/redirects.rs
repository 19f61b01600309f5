//! Redirects: where an answer sends a request next, and what goes along.
//!
//! Nothing that was configured goes to another origin (another scheme, host or port): no header but those that say what
//! kind of page is wanted, no body. What was taken off stays off, also when the way leads back. No `Referer` is
//! added, so an address with a secret in it stays here.

use redrive_core::failures::{FailureReport, Reason};
use redrive_core::secrets::Secrets;
use reqwest::header::{HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, StatusCode};
use url::Url;

use super::fault;
use super::request::Filled;

/// Headers that go along everywhere, unless a secret is in them: they say what kind of page is wanted.
const HARMLESS: &[&str] = &["accept", "accept-language", "user-agent"];

/// The longest piece of an address that is shown in a message, in characters.
const SHOWN_CHARS_MAX: usize = 200;

/// Where an answer leads, if it is a redirect. One without a `Location` leads nowhere: it is the answer.
pub(super) fn location(status: StatusCode, headers: &HeaderMap) -> Option<HeaderValue> {
    is_redirect(status).then(|| headers.get(LOCATION).cloned()).flatten()
}

/// Whether a status asks for another address.
pub(super) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The request that follows a redirect.
pub(super) fn follow(
    request: Filled,
    status: StatusCode,
    location: &HeaderValue,
    secrets: &Secrets,
) -> Result<Filled, FailureReport> {
    let url = destination(&request.url, location)
        .map_err(|why| refused(Reason::ServerError, "bad_redirect", status, location, &why, secrets))?;
    let stays = url.origin() == request.url.origin();
    let url = if stays { with_user(url, &request.url) } else { url };
    let mut next = Filled { url, ..request };
    if becomes_get(status, &next.method) {
        next.method = Method::GET;
        (next.form, next.body) = (None, None);
        next.headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
    }
    if stays {
        return Ok(next);
    }
    if !next.method.is_safe() || next.form.is_some() || next.body.is_some() {
        let why = format!(
            "a {} with what it carries is not sent to another origin: if that is the right address, put it in `url`",
            next.method
        );
        return Err(refused(Reason::Misconfigured, "RedirectRefused", status, location, &why, secrets));
    }
    next.headers.retain(|(name, value)| {
        HARMLESS.iter().any(|known| name.eq_ignore_ascii_case(known)) && secrets.mask(value) == *value
    });
    Ok(next)
}

/// More redirects than are followed.
pub(super) fn too_many(status: StatusCode, location: &HeaderValue, max: usize, secrets: &Secrets) -> FailureReport {
    let why = format!("at most {max} are followed (`redirects`)");
    refused(Reason::ServerError, "redirect_loop", status, location, &why, secrets)
}

/// As browsers do: a POST becomes a GET when it is moved, and everything does where the answer says "see other".
fn becomes_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        301 | 302 => *method == Method::POST,
        303 => *method != Method::HEAD,
        _ => false,
    }
}

/// The address that a `Location` means, seen from where it was said.
fn destination(from: &Url, location: &HeaderValue) -> Result<Url, String> {
    let text = std::str::from_utf8(location.as_bytes()).map_err(|_| "it is not text".to_owned())?;
    let mut url = from.join(text).map_err(|error| format!("it is not an address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("{:?} is not a scheme that is followed", url.scheme()));
    }
    if url.fragment().is_none() {
        url.set_fragment(from.fragment());
    }
    Ok(url)
}

/// The address with the user and password of where it was said, unless it has its own.
fn with_user(mut url: Url, from: &Url) -> Url {
    if url.username().is_empty() && url.password().is_none() {
        // Fails only without a host, and then there was no user either.
        let _ = url.set_username(from.username()).and_then(|()| url.set_password(from.password()));
    }
    url
}

/// Masked before it is cut: half a secret would not be known as one.
fn refused(
    reason: Reason,
    code: &str,
    status: StatusCode,
    location: &HeaderValue,
    why: &str,
    secrets: &Secrets,
) -> FailureReport {
    let location = secrets.mask(&String::from_utf8_lossy(location.as_bytes()));
    let shown: String = location.chars().take(SHOWN_CHARS_MAX).collect();
    let message = format!("the redirect to {shown:?} was not followed: {why}");
    FailureReport { http_status: Some(status.as_u16()), ..fault::report(reason, code, message, "fetch") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, body: Option<&str>) -> Filled {
        let headers =
            [("X-Api-Key", "k"), ("accept", "text/html"), ("User-Agent", "mine s3cret"), ("Content-Type", "x")];
        Filled {
            method,
            url: Url::parse("https://a.example/dir/page?key=1#part").expect("an address"),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            form: None,
            body: body.map(str::to_owned),
        }
    }

    fn followed(request: Filled, status: u16, location: &str) -> Result<Filled, String> {
        let mut secrets = Secrets::default();
        secrets.add_value("s3cret");
        let status = StatusCode::from_u16(status).expect("a status");
        let location = HeaderValue::from_bytes(location.as_bytes()).expect("a header");
        follow(request, status, &location, &secrets).map_err(|report| report.code.expect("a code"))
    }

    #[test]
    fn another_scheme_host_or_port_is_another_origin() {
        for (location, headers) in [
            ("other", 4),
            ("/x?y", 4),
            ("//a.example/x", 4),
            ("https://A.example:443/", 4),
            ("http://a.example/dir/page", 1),
            ("https://a.example:8443/", 1),
            ("https://a.example.evil.example/", 1),
            ("https://a.example./", 1),
            ("https://a.example@b.example/", 1),
            ("\\\\b.example/x", 1),
        ] {
            let next = followed(request(Method::GET, None), 302, location).expect("followed");
            assert_eq!(next.headers.len(), headers, "{location}: {:?}", next.headers);
        }
    }

    #[test]
    fn what_was_taken_off_stays_off() {
        let away = followed(request(Method::GET, None), 307, "https://b.example/").expect("followed");
        let back = followed(away, 307, "https://a.example/").expect("followed");
        assert_eq!(back.headers, [("accept".to_owned(), "text/html".to_owned())]);
    }

    #[test]
    fn the_user_of_an_address_stays_on_its_origin() {
        let mut sent = request(Method::GET, None);
        sent.url = Url::parse("https://me:p%40ss@a.example/x").expect("an address");
        for (location, expected) in [
            ("/y", "https://me:p%40ss@a.example/y"),
            ("https://a.example/y", "https://me:p%40ss@a.example/y"),
            ("https://you@a.example/y", "https://you@a.example/y"),
            ("https://b.example/y", "https://b.example/y"),
            ("http://a.example/y", "http://a.example/y"),
        ] {
            let next = followed(sent.clone(), 302, location).expect("followed");
            assert_eq!(next.url.as_str(), expected, "{location}");
        }
        let away = followed(sent, 302, "https://b.example/").expect("followed");
        let back = followed(away, 302, "https://a.example/").expect("followed");
        assert_eq!(back.url.as_str(), "https://a.example/", "what was taken off stays off");
    }

    #[test]
    fn a_secret_is_masked_before_the_address_is_cut() {
        let mut secrets = Secrets::default();
        secrets.add_value("s3cret-value-of-some-length");
        for before in 170..SHOWN_CHARS_MAX {
            let location = format!("ftp://b.example/{}s3cret-value-of-some-length", "x".repeat(before - 16));
            let location = HeaderValue::from_str(&location).expect("a header");
            let refused = follow(request(Method::GET, None), StatusCode::FOUND, &location, &secrets);
            let said = refused.expect_err("refused").message;
            assert!(!said.contains("s3"), "{said}");
        }
    }

    #[test]
    fn methods_change_as_in_a_browser_and_bodies_stay_at_home() {
        for (method, status, expected) in [
            ("POST", 301, Ok("GET")),
            ("POST", 302, Ok("GET")),
            ("POST", 303, Ok("GET")),
            ("PUT", 303, Ok("GET")),
            ("POST", 307, Err("RedirectRefused")),
            ("PUT", 301, Err("RedirectRefused")),
            ("POST", 308, Err("RedirectRefused")),
        ] {
            let sent = request(method.parse().expect("a method"), Some("body"));
            let away = followed(sent.clone(), status, "https://b.example/");
            let away = away.map(|next| (next.method.to_string(), next.body));
            let expected_away = expected.map(|method| (method.to_owned(), None)).map_err(str::to_owned);
            assert_eq!(away, expected_away, "{method} {status}");
            let near = followed(sent, status, "/x").expect("followed");
            assert_eq!(near.body.is_some(), expected.is_err(), "{method} {status} on its own origin");
        }
        let head = followed(request(Method::HEAD, None), 303, "https://b.example/").expect("followed");
        assert_eq!(head.method, Method::HEAD);
        assert!(
            followed(request(Method::DELETE, None), 307, "https://b.example/").is_err(),
            "it has no body, but it acts"
        );
    }

    #[test]
    fn what_is_no_address_is_not_followed() {
        for location in
            ["ftp://b.example/", "javascript:alert(1)", "file:///etc/passwd", "data:,x", "http://", "http://[::1"]
        {
            let code = followed(request(Method::GET, None), 302, location).map(|next| next.url.to_string());
            assert_eq!(code, Err("bad_redirect".to_owned()), "{location}");
        }
        let next = followed(request(Method::GET, None), 302, "/x").expect("followed");
        assert_eq!(next.url.as_str(), "https://a.example/x#part");
    }
}
