//! Secrets: what must never reach the store, the vault, a log or a message, and how it is masked.
//!
//! A secret is known by its value (it came from the environment or a file) or by the name it goes under (a header, cookie,
//! query or form field on a list).
//!
//! - `credentials`: which parts of what is sent are secret, and in which forms they may come back
//! - `hosts`: where configured secrets may go with jobs that others wrote
//! - `text`: finding what goes under a secret name in any text
//! - `words`: finding secrets in the words of a command line

mod credentials;
mod hosts;
mod text;
mod words;

use serde_json::Value;

pub use self::hosts::{InvalidHost, SecretHosts};
pub(crate) use self::words::{is_host, is_path};
use crate::failures::{FailureReport, Miss};
use crate::payloads::Response;

/// What stands where a secret was.
pub const MASK: &str = "***";

/// Names whose values are secret unless something else is said. A name counts if one of these is part of it.
pub const NAMES: &[&str] = &[
    "authorization",
    "cookie",
    "token",
    "secret",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "clientkey",
    "session",
    "signature",
];

/// Names that are secret only if they are the whole name.
const WHOLE_NAMES: &[&str] = &["key", "pass", "pwd", "auth", "sid", "sig"];

/// Values shorter than this are too common to be looked for in other text.
const VALUE_BYTES_MIN: usize = 4;

/// The secrets of a pipeline.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// Values in all the forms they may come back in, the longest first: one may be part of another.
    values: Vec<String>,
    names: Vec<String>,
}

impl Secrets {
    /// Adds a value that came from outside the configuration.
    pub fn add_value(&mut self, value: &str) {
        let value = value.trim();
        if value.len() >= VALUE_BYTES_MIN && !self.values.iter().any(|known| known == value) {
            self.values.extend(credentials::forms(value));
            self.values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            self.values.dedup();
        }
    }

    /// Adds what is sent under a name, if the name says that it is secret: the token of `Authorization`, the password that
    /// its Base64 hides.
    pub fn add_sent(&mut self, name: &str, value: &str) {
        if self.is_secret_name(name) {
            credentials::parts(name, value).iter().for_each(|part| self.add_value(part));
        }
    }

    /// Adds what a header of any name is sent with: the value, and what follows a scheme such as `Bearer` in it.
    pub fn add_credentials(&mut self, value: &str) {
        credentials::parts("authorization", value).iter().for_each(|part| self.add_value(part));
    }

    /// Adds the user and password of an address.
    pub fn add_user(&mut self, user: &str, password: &str) {
        if !password.is_empty() {
            credentials::user_parts(user, password).iter().for_each(|part| self.add_value(part));
        }
    }

    /// Adds a name whose values are secret.
    pub fn add_name(&mut self, name: &str) {
        self.names.push(name.to_ascii_lowercase());
    }

    /// Whether what goes under a name is secret.
    pub fn is_secret_name(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        NAMES.iter().any(|part| name.contains(part))
            || WHOLE_NAMES.contains(&name.as_str())
            || self.names.contains(&name)
    }

    /// Whether a text has the value of a secret in it.
    pub fn is_in(&self, text: &str) -> bool {
        self.values.iter().any(|value| text.contains(value.as_str()))
    }

    /// The text without any secret value, and without secret parameters in what looks like a query.
    pub fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for value in &self.values {
            masked = masked.replace(value.as_str(), MASK);
        }
        text::mask(self, &masked)
    }

    /// A header's value, masked if its name says so.
    pub fn mask_header(&self, name: &str, value: &str) -> String {
        if self.is_secret_name(name) { MASK.to_owned() } else { self.mask(value) }
    }

    /// A response without secrets.
    pub fn mask_response(&self, response: &mut Response) {
        for (name, value) in &mut response.headers {
            *value = self.mask_header(name, value);
            *name = self.mask(name);
        }
        if let Some(url) = &mut response.url {
            *url = self.mask(url);
        }
    }

    /// A failure without secrets.
    pub fn mask_report(&self, report: &mut FailureReport) {
        report.message = self.mask(&report.message);
        let texts = [
            &mut report.code,
            &mut report.error_type,
            &mut report.stack,
            &mut report.stage,
            &mut report.target,
            &mut report.proxy,
            &mut report.stderr,
        ];
        let misses = report.misses.iter_mut().flat_map(Miss::texts_mut);
        for text in texts.into_iter().flatten().chain(misses) {
            *text = self.mask(text);
        }
    }

    /// A text that may be JSON, without secrets.
    pub fn mask_text(&self, text: &str) -> String {
        match serde_json::from_str::<Value>(text) {
            Ok(mut value @ (Value::Object(_) | Value::Array(_))) => {
                self.mask_json(&mut value);
                value.to_string()
            }
            _ => self.mask(text),
        }
    }

    /// A JSON value without secrets: values of secret names, and secret values anywhere.
    pub fn mask_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_json(item)),
            Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| match self.is_secret_name(name) {
                true => mask_leaves(field),
                false => self.mask_json(field),
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Masks what goes under secret names in a value, and nothing else.
pub(crate) fn mask_named(secrets: &Secrets, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| mask_named(secrets, item)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| match secrets.is_secret_name(name) {
            true => mask_leaves(field),
            false => mask_named(secrets, field),
        }),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Masks every text and number in a value that goes under a secret name.
fn mask_leaves(value: &mut Value) {
    match value {
        Value::String(_) | Value::Number(_) => *value = MASK.into(),
        Value::Array(items) => items.iter_mut().for_each(mask_leaves),
        Value::Object(fields) => fields.values_mut().for_each(mask_leaves),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The value as it stands in a URL.
pub fn percent_encode(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add_value("s3cr3t/value");
        secrets.add_value("s3cr3t/value-and-more");
        secrets.add_value("ab");
        secrets.add_name("X-Shop");
        secrets
    }

    #[test]
    fn values_are_found_wherever_they_stand() {
        let secrets = secrets();
        assert_eq!(secrets.mask("bad s3cr3t/value-and-more here"), "bad *** here");
        assert_eq!(secrets.mask("q=s3cr3t%2Fvalue"), "q=***");
        assert_eq!(secrets.mask("about nothing"), "about nothing", "short values are no secrets");
    }

    #[test]
    fn names_are_masked_in_queries_and_headers() {
        let secrets = secrets();
        let url = "https://u:p@h.example/in.php?key=123&method=x&api_key=9#f and ?token=";
        assert_eq!(secrets.mask(url), "https://***@h.example/in.php?key=***&method=x&api_key=***#f and ?token=");
        assert_eq!(secrets.mask_header("Set-Cookie", "a=b"), MASK);
        assert_eq!(secrets.mask_header("x-shop", "1"), MASK);
        assert_eq!(secrets.mask_header("Content-Type", "text/html"), "text/html");
        assert!(!secrets.is_secret_name("googlekey") && !secrets.is_secret_name("keyword"));
    }

    #[test]
    fn what_is_sent_under_a_secret_name_is_known_when_it_comes_back() {
        let mut secrets = Secrets::default();
        secrets.add_sent("Authorization", "Bearer tok3n-abc/d");
        secrets.add_sent("Accept", "text/html");
        secrets.add_user("me", "p%40ssword");
        let echoes = "got tok3n-abc/d, tok3n-abc%2fd, dG9rM24tYWJjL2Q=, p@ssword, bWU6cEBzc3dvcmQ= as text/html";
        assert_eq!(secrets.mask(echoes), "got ***, ***, ***=, ***, *** as text/html");
    }

    #[test]
    fn everything_under_a_secret_name_is_masked_and_every_part_of_a_failure() {
        let secrets = secrets();
        let mut value = serde_json::json!({"tokens": ["a", {"b": 7, "ok": true}], "cookies": {"c": null}, "n": [1]});
        secrets.mask_json(&mut value);
        let masked = serde_json::json!({"tokens": [MASK, {"b": MASK, "ok": true}], "cookies": {"c": null}, "n": [1]});
        assert_eq!(value, masked);
        let text = || Some("x s3cr3t/value".to_owned());
        let mut report = FailureReport {
            message: "s3cr3t/value".into(),
            code: text(),
            error_type: text(),
            stack: text(),
            stage: text(),
            target: text(),
            proxy: text(),
            stderr: text(),
            ..FailureReport::default()
        };
        secrets.mask_report(&mut report);
        let kept = serde_json::to_string(&report).expect("JSON");
        assert_eq!((kept.contains("s3cr3t"), kept.matches(MASK).count()), (false, 8), "{kept}");
    }

    #[test]
    fn masking_twice_changes_nothing() {
        let secrets = secrets();
        let once = secrets.mask("https://u:p@h/?key=1&x=s3cr3t/value");
        assert_eq!(secrets.mask(&once), once);
    }
}
