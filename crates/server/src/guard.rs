//! What is refused of whomever it comes from: names by which this server is not called, pages of other sites, bodies that a browser
//! sends without asking.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::{App, Options};
use crate::error::ApiError;
use crate::once;
use crate::pages::Problem;
use crate::router::BASE;

/// Looks at each request before anything else does.
pub async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = match refuse(app.options(), &request) {
        Ok(()) => next.run(request).await,
        Err(error) if is_looked_at(&request) => Problem::from(error).into_response(),
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        // A proxy that collects what it passes on would keep events back.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    }
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    response
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Whether a request came through a proxy that is trusted.
pub fn is_through_proxy(options: &Options, Peer(peer): Peer) -> bool {
    options.proxies.as_ref().is_some_and(|proxies| proxies.allows(peer))
}

/// Where a request comes from, as far as it can be believed.
pub fn client(options: &Options, request: &Request) -> Option<IpAddr> {
    let peer = *request.extensions().get::<Peer>()?;
    let told = request.headers().get_all("x-forwarded-for").iter().next_back().and_then(|told| told.to_str().ok());
    let last = told.and_then(|told| told.rsplit(',').next()?.trim().parse().ok());
    Some(last.filter(|_| is_through_proxy(options, peer)).unwrap_or(peer.0))
}

/// The longest head of a request: its address and headers, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;

fn refuse(options: &Options, request: &Request) -> Result<(), ApiError> {
    let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let address = request.uri().path_and_query().map_or(0, |address| address.as_str().len());
    if lines.sum::<usize>() + address > HEAD_BYTES_MAX {
        let why = format!("the address and headers of a request have at most {HEAD_BYTES_MAX} bytes");
        return Err(ApiError::head_too_large(why));
    }
    let peer = request.extensions().get::<Peer>().copied();
    if options.proxies.is_some() && peer.is_some_and(|at| !at.0.is_loopback() && !is_through_proxy(options, at)) {
        return Err(ApiError::forbidden("proxy_required", "this server is reached through its proxy only"));
    }
    let host = host_of(request)?;
    if !is_ours(options, name_of(host)) {
        let why = format!(
            "this server is not called {}: ask for it by its address, or start it with `--public-url` and the name that it has",
            name_of(host)
        );
        return Err(ApiError::forbidden("foreign_host", why).at("Host"));
    }
    // Each of them, where there are several: nobody knows which a proxy on the way read.
    for origin in request.headers().get_all(header::ORIGIN) {
        let known = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        if !known.is_some_and(|(_, origin)| is_same(origin, host) || is_public(options, origin)) {
            return Err(ApiError::forbidden("foreign_origin", "this came from a page of another site").at("Origin"));
        }
    }
    // Who reads the first of two and who reads the last do not read the same request.
    for name in [header::AUTHORIZATION, header::CONTENT_TYPE, header::TRANSFER_ENCODING, once::KEY] {
        if request.headers().get_all(&name).iter().nth(1).is_some() {
            return Err(ApiError::senseless("the request has several of them").at(name.as_str()));
        }
    }
    // Who says under which condition something may be changed is not to believe that it was heeded.
    let is_changed = !matches!(*request.method(), Method::GET | Method::HEAD);
    let conditions = [header::IF_MATCH, header::IF_UNMODIFIED_SINCE];
    if let Some(name) = conditions.into_iter().find(|name| is_changed && request.headers().contains_key(name)) {
        return Err(ApiError::condition_unknown(name.as_str()));
    }
    let coded: Vec<_> = request.headers().get_all(header::CONTENT_ENCODING).iter().collect();
    let is_known = |coded: &&HeaderValue| {
        let packed = coded.as_bytes().eq_ignore_ascii_case(b"gzip") && request.method() != Method::PUT;
        packed || coded.as_bytes().eq_ignore_ascii_case(b"identity")
    };
    if coded.len() > 1 || !coded.iter().all(is_known) {
        let why = "a body is taken as it is, or packed once with gzip; the bytes of a payload as they are";
        return Err(
            ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoding_unsupported", why).at("Content-Encoding")
        );
    }
    // Of what changes something, a browser asks before it sends anything but a form or plain text. Forms of pages are told from those
    // of others by what stands in them.
    match *request.method() {
        Method::POST if !is_api(request.uri().path()) && is_form(request.headers()) => Ok(()),
        Method::POST | Method::PATCH if !is_json(request.headers()) => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "json_required",
            "expected `Content-Type: application/json`",
        )
        .at("Content-Type")),
        _ => Ok(()),
    }
}

/// The one name by which a request calls the server. Where it says two things at once, a proxy on the way may have read the other.
fn host_of(request: &Request) -> Result<&str, ApiError> {
    let mut named = request.headers().get_all(header::HOST).iter();
    let told = match (named.next(), named.next()) {
        (_, Some(_)) => return Err(ApiError::senseless("the request has several Hosts").at("Host")),
        (told, None) => told.and_then(|host| host.to_str().ok()),
    };
    let authority = request.uri().authority().map(|authority| authority.as_str());
    match (told, authority) {
        (Some(told), Some(authority)) if !is_same(told, authority) => {
            Err(ApiError::senseless("the request is addressed to another host than it names").at("Host"))
        }
        (told, authority) => {
            told.or(authority).ok_or_else(|| ApiError::senseless("the request has no Host").at("Host"))
        }
    }
}

/// Whether somebody looks at what is answered.
fn is_looked_at(request: &Request) -> bool {
    let wants = request.headers().get(header::ACCEPT).and_then(|wants| wants.to_str().ok());
    !is_api(request.uri().path()) && wants.is_some_and(|wants| wants.contains("text/html"))
}

fn is_api(path: &str) -> bool {
    path.strip_prefix(BASE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_json(headers: &HeaderMap) -> bool {
    is_of_kind(headers, "application/json")
}

fn is_form(headers: &HeaderMap) -> bool {
    is_of_kind(headers, "application/x-www-form-urlencoded")
}

fn is_of_kind(headers: &HeaderMap, wanted: &str) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted))
}

/// The host without its port.
fn name_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Whether a server is reached by a name. A site that has its own name resolve to this machine is not let in by that.
fn is_ours(options: &Options, host: &str) -> bool {
    let listen = options.listen.ip();
    let by_address = host.parse::<IpAddr>().is_ok_and(|ip| {
        ip == listen || ip.is_loopback() && (listen.is_loopback() || listen.is_unspecified()) || listen.is_unspecified()
    });
    let local = host.eq_ignore_ascii_case("localhost") && (listen.is_loopback() || listen.is_unspecified());
    by_address || local || options.public_hosts.iter().any(|public| is_same(name_of(public), host))
}

/// Whether pages of a site, which is named with its port, are this server's own.
fn is_public(options: &Options, site: &str) -> bool {
    options.public_hosts.iter().any(|public| is_same(public, site))
}

const fn is_same(one: &str, another: &str) -> bool {
    one.eq_ignore_ascii_case(another)
}

#[cfg(test)]
mod tests {
    use redrive_core::egress::Egress;

    use super::*;

    #[test]
    fn a_server_knows_its_names() {
        let options = |listen: &str| Options {
            public_hosts: vec!["redrive.example:8443".into()],
            ..Options::listening(listen.parse().expect("an address"))
        };
        let loopback = options("127.0.0.1:7171");
        for (host, ours) in [
            ("127.0.0.1:7171", true),
            ("localhost:7171", true),
            ("[::1]:7171", true),
            ("Redrive.Example", true),
            ("evil.example:7171", false),
            ("10.0.0.5", false),
            ("", false),
        ] {
            assert_eq!(is_ours(&loopback, name_of(host)), ours, "{host:?}");
        }
        assert!(is_ours(&options("0.0.0.0:7171"), "10.0.0.5") && !is_ours(&options("0.0.0.0:7171"), "evil.example"));
        assert!(!is_ours(&options("10.0.0.5:7171"), "127.0.0.1") && is_ours(&options("10.0.0.5:7171"), "10.0.0.5"));
        assert!(is_public(&loopback, "redrive.example:8443") && !is_public(&loopback, "redrive.example"));
    }

    #[test]
    fn who_a_proxy_speaks_for_is_believed_of_a_proxy_that_is_trusted() {
        let proxies = Some(Egress::only(&["10.1.0.0/16"]).expect("a network"));
        let options = Options { proxies, ..Options::listening(([0, 0, 0, 0], 7171).into()) };
        let request = |peer: &str| {
            let request = Request::builder().header("host", "10.1.0.9").header("x-forwarded-for", "1.1.1.1, 2.2.2.2");
            request.extension(Peer(peer.parse().expect("an address"))).body(axum::body::Body::empty()).expect("made")
        };
        let told = |peer: &str| client(&options, &request(peer)).map(|ip| ip.to_string());
        assert_eq!(told("10.1.2.3").as_deref(), Some("2.2.2.2"), "what the proxy itself saw");
        assert_eq!(told("127.0.0.1").as_deref(), Some("127.0.0.1"));
        assert!(refuse(&options, &request("10.1.2.3")).is_ok() && refuse(&options, &request("127.0.0.1")).is_ok());
        assert!(refuse(&options, &request("10.2.0.1")).is_err(), "it came past the proxy");
    }
}
