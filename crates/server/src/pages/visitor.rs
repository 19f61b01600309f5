//! Who looks at pages: by a cookie that signing in gives. Forms carry a token that is made of the cookie's secret, so that no other
//! site can make one.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use redrive_core::tokens::Role;

use super::fields::Fields;
use super::live::{self, PARTS};
use super::problem::{self, Problem};
use super::{login, settings};
use crate::access::{Caller, admit, identify_visitor, is_local_session};
use crate::app::{App, Options};
use crate::asked::form;
use crate::error::ApiError;
use crate::held::Held;
use crate::look::foreign::quoted;
use crate::once::uncancelled;
use crate::prefix::{self, host_of};

/// What the secret is turned into a form's token with.
const FORMS: &str = "redrive 2026-11 tokens of forms";

/// Somebody who looks at a page.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// Who they are, and what they may.
    pub caller: Caller,
    /// The path and the query of the page.
    pub here: Arc<str>,
    /// Whether they sent a form: what they see then cannot be asked for again.
    pub is_form: bool,
    /// Beginning of the commands on this page: `redrive`, and where it finds the store.
    redrive: Arc<str>,
    /// The parts that a script asks for, where it is one; else all are wanted.
    parts: Option<Arc<str>>,
    secret: Arc<str>,
}

impl Visitor {
    /// What a form of theirs carries.
    pub fn form_token(&self) -> String {
        form_token(&self.secret)
    }

    /// What a form carries of who has this secret.
    pub fn form_token_of(secret: &str) -> String {
        form_token(secret)
    }

    /// A command that does from their shell what this page does. One that is known to is left alone.
    pub fn command(&self, line: &str) -> String {
        let is_done = line.strip_prefix(&*self.redrive).is_some_and(|rest| rest.starts_with(' '));
        match line.strip_prefix("redrive ").filter(|_| !is_done) {
            Some(rest) => format!("{} {rest}", self.redrive),
            None => line.to_owned(),
        }
    }

    /// Whether a part that may fail by itself is wanted: all are, unless a script asks for some.
    pub fn wants(&self, part: &str) -> bool {
        self.parts.as_ref().is_none_or(|parts| live::asks_for(parts, part))
    }

    /// Refuses what needs a larger role.
    pub fn needs(&self, role: Role) -> Result<(), Problem> {
        match self.caller.has(role) {
            true => Ok(()),
            false => Err(ApiError::needs_role(role, self.caller.role()).into()),
        }
    }

    /// Whether they would be let in now: who follows something may have been let in long ago.
    pub async fn is_let_in(&self, app: &App) -> bool {
        let Ok(known) = app.tokens().await else { return false };
        if self.caller.is_local() {
            return known.is_empty() && is_local_session(app, &self.secret).await.is_ok_and(|is| is);
        }
        app.redrive().find_session(&self.secret, &known).await.is_ok_and(|token| token.is_some())
    }

    /// What keeps them from doing what a role may, in words.
    pub fn lacks(&self, role: Role) -> Option<String> {
        (!self.caller.has(role)).then(|| format!("needs {role}; you are {}", self.caller.role()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let known = parts.extensions.get::<Self>().cloned();
        known.ok_or_else(|| ApiError::unknown_caller("nobody is known to look").into())
    }
}

/// Returns true if browsers reach a server over TLS. A proxy beside it speaks that for it, by its public name.
fn is_secure(options: &Options, host: &str) -> bool {
    let is_https = options.secure_hosts.iter().any(|secure| secure.eq_ignore_ascii_case(host));
    options.tls.is_some() || options.proxies.is_some() || is_https
}

/// Returns the beginning of commands for a reader who calls the server by this name: on another machine the store is not there.
fn typed_by(options: &Options, host: &str) -> String {
    let is_local = |name: &str| {
        let ip = name.trim_matches(['[', ']']).parse::<IpAddr>();
        name.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
    };
    let is_public = options.public_hosts.iter().any(|public| public.eq_ignore_ascii_case(host));
    match host.parse::<Authority>() {
        Ok(name) if is_public || !is_local(name.host()) => {
            let scheme = if is_secure(options, host) { "https" } else { "http" };
            let port = name.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
            format!(
                "redrive --server {}",
                quoted(&format!("{scheme}://{}{port}{}", name.host(), prefix::of(options, host)))
            )
        }
        _ => format!("redrive{}", options.place),
    }
}

fn form_token(secret: &str) -> String {
    blake3::Hash::from(blake3::derive_key(FORMS, secret.as_bytes())).to_hex().to_string()
}

/// Lets in who is signed in and may do what a page does; others are led to where they can sign in, with what they filled in.
pub async fn let_in(State((app, role)): State<(App, Role)>, mut request: Request, next: Next) -> Response {
    let jar = Jar::of(&app, request.headers());
    let secret = jar.secret(request.headers());
    let caller = match identify_visitor(&app, secret.as_deref()).await {
        Ok(caller) => caller,
        Err(error) => return Problem::from(error).into_response(),
    };
    let here: Arc<str> = request.uri().path_and_query().map_or("/", |all| all.as_str()).into();
    let (Some(caller), Some(secret)) = (caller, secret.as_deref()) else {
        return sign_in(&app, secret.as_deref(), &here, request).await;
    };
    let held = match admit(&app, &caller, &mut request) {
        Ok(held) => held,
        Err(error) => return Problem::from(error).into_response(),
    };
    let is_form = request.method() == Method::POST;
    let parts = request.headers().get(PARTS).filter(|_| !is_form).and_then(|parts| parts.to_str().ok()).map(Arc::from);
    let redrive = typed_by(app.options(), host_of(request.headers())).into();
    let visitor = Visitor { caller, here, is_form, redrive, parts, secret: secret.into() };
    let response = match checked(&app, visitor.clone(), (role, &held), request).await {
        // A disconnect does not cancel a form.
        Ok(request) if is_form => match uncancelled(held.clone(), next.run(request)).await {
            Ok(response) => response,
            Err(error) => Problem::from(error).into_response(),
        },
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    problem::framed(&app, &visitor, response).await
}

/// The request with who looks and, of a form, what was filled in.
async fn checked(
    app: &App,
    visitor: Visitor,
    (role, held): (Role, &Held),
    mut request: Request,
) -> Result<Request, Problem> {
    visitor.needs(role).map_err(|problem| problem.seen_by(&visitor))?;
    if request.method() == Method::POST {
        let (mut parts, body) = request.into_parts();
        let (bytes, room) = form(app, &parts.headers, body, app.bodies()).await?;
        held.keep(room);
        let fields = Fields::read(&bytes);
        if fields.one("form") != Some(visitor.form_token().as_str()) {
            let why = "this form was made for somebody else, or before you signed in: go back, load the page again, and send it then";
            return Err(Problem::from(ApiError::forbidden("foreign_form", why)).seen_by(&visitor));
        }
        parts.extensions.insert(fields);
        request = Request::from_parts(parts, Body::empty());
    }
    request.extensions_mut().insert(visitor);
    Ok(request)
}

/// Leads to where one can sign in. A form that was sent is kept in the page, and sent again from there.
async fn sign_in(app: &App, secret: Option<&str>, here: &str, request: Request) -> Response {
    if request.method() != Method::POST {
        return Redirect::to(&login::address(here)).into_response();
    }
    let (parts, body) = request.into_parts();
    let (bytes, _room) = match form(app, &parts.headers, body, app.bodies_of_strangers()).await {
        Ok(read) => read,
        Err(error) => return Problem::from(error).into_response(),
    };
    let fields = Fields::read(&bytes);
    match settings::made_before(app, secret, &fields).await {
        Some(page) => page.into_response(),
        None => (StatusCode::UNAUTHORIZED, login::page(app, here, Some(&fields), None).await).into_response(),
    }
}

/// The cookie of a server.
pub struct Jar {
    name: String,
    path: String,
    is_secure: bool,
}

impl Jar {
    /// The cookie of the server that a request is for. Where it is reached by a port, the port is part of its name: browsers send
    /// cookies to every port of a host.
    pub fn of(app: &App, headers: &HeaderMap) -> Self {
        let options = app.options();
        let host = host_of(headers);
        let is_secure = is_secure(options, host);
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| port.bytes().all(|b| b.is_ascii_digit()));
        let port = port.map(|port| format!("-{port}")).unwrap_or_default();
        // Other servers of the same host have other paths.
        let below = prefix::of(options, host);
        let kind = match (is_secure, below) {
            (true, "") => "__Host-",
            (true, _) => "__Secure-",
            (false, _) => "",
        };
        let path = if below.is_empty() { "/" } else { below };
        Self { name: format!("{kind}redrive{port}"), path: path.to_owned(), is_secure }
    }

    /// The secret that a browser sent.
    pub fn secret(&self, headers: &HeaderMap) -> Option<String> {
        let sent = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs = sent.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let found = pairs.find(|(name, _)| *name == self.name).map(|(_, value)| value.to_owned());
        found.filter(|value| !value.is_empty() && value.len() <= 200)
    }

    /// Gives a browser a secret. It is the server that forgets it in time.
    pub fn given(&self, secret: &str) -> HeaderValue {
        self.header(&format!("{secret}; Max-Age={}", redrive::sessions::SESSION_HOLDS.as_secs()))
    }

    /// Takes it away again.
    pub fn taken(&self) -> HeaderValue {
        self.header("; Max-Age=0")
    }

    fn header(&self, value: &str) -> HeaderValue {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let text = format!("{}={value}; Path={}; HttpOnly; SameSite=Lax{secure}", self.name, self.path);
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_a_form_says_nothing_of_the_secret() {
        let token = form_token("rds_abc");
        assert_eq!(token, form_token("rds_abc"));
        assert!(token != form_token("rds_abd") && !token.contains("rds_") && token.len() == 64);
    }

    #[test]
    fn commands_go_where_their_reader_finds_the_server() {
        let options = Options {
            public_hosts: vec!["redrive.example".into(), "localhost:8443".into()],
            secure_hosts: vec!["redrive.example".into()],
            prefixes: vec![("below.example".into(), "/redrive".into())],
            place: " --store sqlite:a.db".into(),
            ..Options::listening(([0, 0, 0, 0], 7171).into())
        };
        for (host, typed) in [
            ("127.0.0.1:7171", "redrive --store sqlite:a.db"),
            ("LOCALHOST", "redrive --store sqlite:a.db"),
            ("[::1]:7171", "redrive --store sqlite:a.db"),
            ("[::ffff:127.0.0.1]:7171", "redrive --store sqlite:a.db"),
            ("localhost:8443", "redrive --server http://localhost:8443"),
            ("redrive.example", "redrive --server https://redrive.example"),
            ("below.example", "redrive --server http://below.example/redrive"),
            ("10.1.2.3:7171", "redrive --server http://10.1.2.3:7171"),
            ("10.1.2.3:7;rm -rf", "redrive --store sqlite:a.db"),
            ("10.1.2.3:$(x)", "redrive --server http://10.1.2.3"),
        ] {
            assert_eq!(typed_by(&options, host), typed, "{host}");
        }
    }

    #[test]
    fn a_cookie_is_for_this_server_alone() {
        let jar = Jar { name: "__Host-redrive".into(), path: "/".into(), is_secure: true };
        let given = jar.given("rds_x");
        let given = given.to_str().expect("text");
        for part in ["__Host-redrive=rds_x", "HttpOnly", "SameSite=Lax", "Secure", "Path=/", "Max-Age=43200"] {
            assert!(given.contains(part), "{given}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_static("a=b; __Host-redrive=rds_x; redrive=other"));
        assert_eq!(jar.secret(&headers).as_deref(), Some("rds_x"));
    }
}
