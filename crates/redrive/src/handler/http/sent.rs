//! Which secrets a request carries: what it says literally under a secret name, and credentials in addresses. They are
//! learned once, when a handler is set up, so that they are masked when a server gives them back.

use redrive_core::secrets::Secrets;
use serde_json::Value;
use url::form_urlencoded;

use super::Transport;
use super::request::{Body, FIELD, Request, Template};

/// Adds what the requests and proxies carry to the secrets of their transport.
pub(crate) fn learn(transport: &mut Transport, requests: &[&Request]) {
    let secrets = &mut transport.secrets;
    transport.proxies.iter().for_each(|proxy| of_user(&proxy.url, secrets));
    for request in requests {
        let address = request.url.outline();
        of_user(&address, secrets);
        of_query(address.split_once('?').map_or("", |(_, query)| query), secrets);
        let fields = request.headers.iter().chain(&request.query);
        fields.for_each(|(name, value)| of_field(name, value, secrets));
        of_body(&request.body, secrets);
    }
}

/// The host that a request goes to, as far as it does not depend on the job.
pub(super) fn fixed_host(request: &Request) -> Option<String> {
    let outline = request.url.outline();
    // In `https://host{+path}` the host ends where the placeholder begins: nothing moves it to another.
    let reserved = outline.split_once("://").is_some_and(|(_, rest)| {
        rest.find(FIELD)
            .is_some_and(|at| at > 0 && !rest[..at].contains(['/', '?', '#']) && request.url.is_reserved_first())
    });
    let written = if reserved { outline.split(FIELD).next().unwrap_or_default() } else { outline.as_str() };
    redrive_core::jobs::host_of(written).filter(|host| !host.contains(FIELD))
}

/// Whether a request has something secret in it that the configuration put there, and not the job.
pub(super) fn carries(request: &Request, secrets: &Secrets) -> bool {
    let of_field = |name: &str, value: &str| secrets.is_in(value) || (secrets.is_secret_name(name) && is_mixed(value));
    let mut fields = request.headers.iter().chain(&request.query);
    let in_body = match &request.body {
        Body::None => false,
        Body::Text(text) => secrets.is_in(&text.outline()),
        Body::Form(fields) => fields.iter().any(|(name, value)| of_field(name, &value.outline())),
        Body::Json(value) => in_json(None, value, &of_field),
    };
    let mut address = secrets.is_in(&request.url.outline());
    let outline = request.url.outline();
    let query = outline.split_once('?').map_or("", |(_, query)| query);
    address |= form_urlencoded::parse(query.as_bytes()).any(|(name, value)| of_field(&name, &value));
    address || in_body || fields.any(|(name, value)| of_field(name, &value.outline()))
}

fn in_json(name: Option<&str>, value: &Value, of_field: &impl Fn(&str, &str) -> bool) -> bool {
    match value {
        Value::String(text) => {
            let outline = Template::parse(text).map_or_else(|_| text.clone(), |template| template.outline());
            of_field(name.unwrap_or_default(), &outline)
        }
        Value::Array(items) => items.iter().any(|item| in_json(name, item, of_field)),
        Value::Object(fields) => fields.iter().any(|(name, field)| in_json(Some(name), field, of_field)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a value of which a part is the job's has another part that may be a secret, and is no scheme of authentication.
fn is_mixed(value: &str) -> bool {
    const SCHEMES: [&str; 4] = ["basic", "bearer", "digest", "token"];
    let words = value.split(|c: char| c == FIELD || c.is_whitespace());
    let told = words.filter(|word| !SCHEMES.contains(&word.to_ascii_lowercase().as_str()));
    value.contains(FIELD) && told.map(str::len).sum::<usize>() >= 4
}

fn of_field(name: &str, value: &Template, secrets: &mut Secrets) {
    add(name, &value.outline(), secrets);
}

/// Adds a value, unless part of it is the job's.
fn add(name: &str, value: &str, secrets: &mut Secrets) {
    if !value.contains(FIELD) {
        secrets.add_sent(name, value);
    }
}

fn of_user(address: &str, secrets: &mut Secrets) {
    let authority = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let pair = authority.rsplit_once('@').and_then(|(pair, _)| pair.split_once(':'));
    if let Some((user, password)) = pair.filter(|(user, password)| !user.contains(FIELD) && !password.contains(FIELD)) {
        secrets.add_user(user, password);
    }
}

fn of_query(query: &str, secrets: &mut Secrets) {
    let query = query.split('#').next().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).for_each(|(name, value)| add(&name, &value, secrets));
}

fn of_body(body: &Body, secrets: &mut Secrets) {
    match body {
        Body::None => {}
        Body::Form(fields) => fields.iter().for_each(|(name, value)| of_field(name, value, secrets)),
        Body::Json(value) => of_json(None, value, secrets),
        Body::Text(text) => {
            let text = text.outline();
            match serde_json::from_str(&text) {
                Ok(value) => of_json(None, &value, secrets),
                Err(_) => of_query(&text, secrets),
            }
        }
    }
}

/// Adds the texts of a JSON value; those in a list go under the list's name.
fn of_json(name: Option<&str>, value: &Value, secrets: &mut Secrets) {
    match (name, value) {
        (Some(name), Value::String(text)) => match Template::parse(text) {
            Ok(template) => of_field(name, &template, secrets),
            Err(_) => add(name, text, secrets),
        },
        (name, Value::Array(items)) => items.iter().for_each(|item| of_json(name, item, secrets)),
        (_, Value::Object(fields)) => fields.iter().for_each(|(name, field)| of_json(Some(name), field, secrets)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template(text: &str) -> Template {
        Template::parse(text).expect("a template")
    }

    #[test]
    fn literal_secrets_are_found_wherever_a_request_has_them() {
        let bodies = [
            Body::Text(template("a=b&password=b0dy-secret")),
            Body::Text(template("{{\"password\": \"b0dy-secret\", \"x\": \"{x}\"}}")),
            Body::Form([("token".to_owned(), template("b0dy-secret"))].into()),
            Body::Json(json!({"deep": {"tokens": ["b0dy-secret", "{mine}"]}})),
        ];
        for body in bodies {
            let request = Request {
                method: reqwest::Method::POST,
                url: template("https://me:us3r-secret@host/{path}?key=qu3ry-secret&u={u}#token=x"),
                query: [("api_key".to_owned(), template("p4ram-secret"))].into(),
                headers: [("Authorization".to_owned(), template("Bearer h3ader-secret"))].into(),
                body,
            };
            let mut transport = Transport {
                connect_timeout: Default::default(),
                read_timeout: Default::default(),
                body_bytes_max: 0,
                redirects_max: 0,
                cookies: false,
                proxies: vec![super::super::Proxy { label: "l".into(), url: "http://u:pr0xy-secret@p:1".into() }],
                proxies_max: 3,
                egress: Default::default(),
                authorities: Default::default(),
                per_target_max: None,
                per_second_max: None,
                secrets: Secrets::default(),
                secret_hosts: Default::default(),
            };
            learn(&mut transport, &[&request]);
            for secret in ["b0dy", "us3r", "qu3ry", "p4ram", "h3ader", "pr0xy"] {
                assert_eq!(transport.secrets.mask(&format!("<{secret}-secret>")), "<***>", "{:?}", request.body);
            }
            assert_eq!(transport.secrets.mask("host path {mine} me"), "host path {mine} me");
        }
    }

    fn request(url: &str, header: (&str, &str)) -> Request {
        Request {
            method: reqwest::Method::GET,
            url: template(url),
            query: Default::default(),
            headers: [(header.0.to_owned(), template(header.1))].into(),
            body: Body::None,
        }
    }

    #[test]
    fn a_host_is_named_where_it_does_not_depend_on_the_job() {
        let host = |url: &str| fixed_host(&request(url, ("a", "b")));
        assert_eq!(host("https://shop.example/{id}").as_deref(), Some("shop.example"));
        assert_eq!(host("http://127.0.0.1:8080{+path}").as_deref(), Some("127.0.0.1"));
        for url in ["{url}", "https://{shop}.example/", "https://{+host}/", "https://shop.{tld}/", "{+url}/x"] {
            assert_eq!(host(url), None, "{url}");
        }
    }

    #[test]
    fn what_the_configuration_put_in_is_told_from_what_the_job_did() {
        let mut secrets = Secrets::default();
        secrets.add_value("fr0m-outside");
        let carried = |url: &str, name: &str, value: &str| carries(&request(url, (name, value)), &secrets);
        assert!(carried("{url}", "X-Any", "fr0m-outside"));
        assert!(carried("{url}?k=fr0m-outside", "a", "b"));
        assert!(carried("{url}", "Authorization", "Bearer abcdef{id}"));
        assert!(!carried("{url}", "Authorization", "Bearer {token}"), "it is the job's own");
        assert!(!carried("{url}?page={page}", "Accept", "text/html"));
    }
}
