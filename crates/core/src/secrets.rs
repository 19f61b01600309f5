//! Secrets: what must never reach the store, the vault, a log or a message, and how it is masked.
//!
//! A secret is known by its value (it came from the environment or a file) or by the name it goes under (a header, cookie,
//! query or form field on a list).

use serde_json::Value;

use crate::credentials;
use crate::failures::FailureReport;
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

    /// The text without any secret value, and without secret parameters in what looks like a query.
    pub fn mask(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for value in &self.values {
            masked = masked.replace(value.as_str(), MASK);
        }
        mask_credentials(&mask_pairs(self, &mask_parameters(self, &masked)))
    }

    /// A header's value, masked if its name says so.
    pub fn mask_header(&self, name: &str, value: &str) -> String {
        if self.is_secret_name(name) { MASK.to_owned() } else { self.mask(value) }
    }

    /// A response without secrets.
    pub fn mask_response(&self, response: &mut Response) {
        for (name, value) in &mut response.headers {
            *value = self.mask_header(name, value);
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
        for text in texts.into_iter().flatten() {
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

/// Masks every text and number in a value that goes under a secret name.
fn mask_leaves(value: &mut Value) {
    match value {
        Value::String(_) | Value::Number(_) => *value = MASK.into(),
        Value::Array(items) => items.iter_mut().for_each(mask_leaves),
        Value::Object(fields) => fields.values_mut().for_each(mask_leaves),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Masks `name=value` where the name is secret and stands where a parameter does: after `?`, `&` or `;`.
fn mask_parameters(secrets: &Secrets, text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['?', '&', ';']) {
        masked.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| c == '?' || ends_value(c)).unwrap_or(rest.len());
        if let Some((name, value)) = rest[..end].split_once('=')
            && secrets.is_secret_name(name)
            && let value @ 1.. = without_punctuation(value)
        {
            masked.push_str(name);
            masked.push('=');
            masked.push_str(MASK);
            rest = &rest[name.len() + 1 + value..];
        }
    }
    masked.push_str(rest);
    masked
}

/// Names that people also use for what is no secret: `key=price`, `unexpected token: }`. What they stand before must look like
/// a secret.
const COMMON_NAMES: &[&str] = &["key", "token", "auth", "sid", "sig", "session", "signature", "cookie", "secret"];

/// Values of common names that are shorter than this are words.
const COMMON_BYTES_MIN: usize = 12;

/// Masks `name=value` and `name: value` in any text where the name is a secret's, and what follows `Bearer`.
fn mask_pairs(secrets: &Secrets, text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['=', ':', ' ']) {
        let (before, sign) = (&rest[..at], rest.as_bytes()[at]);
        masked.push_str(&rest[..=at]);
        rest = &rest[at + 1..];
        let name = match sign {
            b' ' => last_name(before).filter(|name| name.eq_ignore_ascii_case("bearer")),
            // With blanks before it the name was passed already: it is the end of what was written.
            _ if before.trim().is_empty() => last_name(masked[..masked.len() - 1].trim_end()),
            _ => last_name(before),
        };
        let Some(name) = name.filter(|name| sign == b' ' || secrets.is_secret_name(name)).map(str::to_owned) else {
            continue;
        };
        let is_header =
            sign == b':' && ["authorization", "cookie"].iter().any(|end| name.to_ascii_lowercase().ends_with(end));
        let value = value_in(rest, !is_header);
        if looks_secret(&name, &rest[value.clone()], is_header) {
            masked.push_str(&rest[..value.start]);
            masked.push_str(MASK);
            rest = &rest[value.end..];
        }
    }
    masked.push_str(rest);
    masked
}

/// The name at the end of a text, in quotes or not.
fn last_name(text: &str) -> Option<&str> {
    let text = text.trim_end_matches(['"', '\'', '\\']);
    let name = text.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c))).next()?;
    (!name.is_empty()).then_some(name)
}

/// Whether a value can be a secret of that name.
fn looks_secret(name: &str, value: &str, is_header: bool) -> bool {
    let value = value.trim();
    let common = COMMON_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name));
    match (value.is_empty(), common) {
        (true, _) => false,
        (_, true) if is_header => value.contains('='),
        (_, true) => value.len() >= COMMON_BYTES_MIN && value.bytes().any(|b| b.is_ascii_digit()),
        (_, false) => true,
    }
}

/// Where a value stands: between brackets or quotes, or up to what cannot be part of it.
fn value_in(text: &str, one_word: bool) -> std::ops::Range<usize> {
    let start = text.len() - text.trim_start_matches([' ', '\\']).len();
    let value = &text[start..];
    if value.starts_with(['[', '{', '(']) {
        return start..start + bracketed(value);
    }
    if let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let end = value[1..].find(quote).unwrap_or(value.len() - 1);
        return start + 1..start + 1 + value[1..=end].trim_end_matches('\\').len();
    }
    if !one_word {
        return start..start + value.find(|c: char| "\"'<>)}]\r\n".contains(c)).unwrap_or(value.len());
    }
    start..start + without_punctuation(&value[..value.find(ends_value).unwrap_or(value.len())])
}

/// Whether a character ends a value of one word. What follows is not secret, and belongs to what a failure is
/// recognised by.
fn ends_value(c: char) -> bool {
    c.is_whitespace() || "\"'<>)}]&;,#".contains(c)
}

/// The length of a value without what ends the sentence or the quote that it stands in.
fn without_punctuation(value: &str) -> usize {
    value.trim_end_matches(['.', ':', '!', '…', '\\']).len()
}

/// The length of a list or an object, with its brackets; without its end, that of the line.
fn bracketed(text: &str) -> usize {
    let (mut depth, mut quote) = (0, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (_, '\n') => return at,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{' | '(') => depth += 1,
            (None, ']' | '}' | ')') => depth -= 1,
            (None, _) => {}
        }
        if depth == 0 {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// Masks the user and password of `scheme://user:password@host`.
fn mask_credentials(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        masked.push_str(&rest[..at + 3]);
        rest = &rest[at + 3..];
        let end = rest.find(|c: char| "/?#\"'<> ".contains(c) || c.is_whitespace()).unwrap_or(rest.len());
        if let Some(host) = rest[..end].rfind('@') {
            masked.push_str(MASK);
            rest = &rest[host..];
        }
    }
    masked.push_str(rest);
    masked
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
    fn secrets_in_any_text_are_masked() {
        let secrets = Secrets::default();
        let table = [
            ("Authorization: Bearer eyJhbGciOi", "Authorization: ***"),
            ("sent Bearer eyJhbGciOi and failed", "sent Bearer *** and failed"),
            ("{'Cookie': 'sid=1; b=2', 'Accept': '*/*'}", "{'Cookie': '***', 'Accept': '*/*'}"),
            ("password=hunter2 for user bob", "password=*** for user bob"),
            ("api_key=AKIA777", "api_key=***"),
            ("unexpected token: '}' at 7", "unexpected token: '}' at 7"),
            ("the answer was 403: key price is missing", "the answer was 403: key price is missing"),
            ("a = b, c: d", "a = b, c: d"),
            ("key=price not found in record", "key=price not found in record"),
            ("expected token=EOF, got token=IDENT", "expected token=EOF, got token=IDENT"),
            ("cookie: none were set by the server", "cookie: none were set by the server"),
            ("password = 'SECRET'", "password = '***'"),
            ("X-Auth-Token: abc", "X-Auth-Token: ***"),
            ("{\"accessToken\": \"abc\", \"a\": 1}", "{\"accessToken\": \"***\", \"a\": 1}"),
            ("{\\\"password\\\": \\\"X\\\"}", "{\\\"password\\\": \\\"***\\\"}"),
            ("token=abcdef1234567890", "token=***"),
            ("{\"tokens\": [\"abc\", \"d]e\"], \"a\": [1]}", "{\"tokens\": ***, \"a\": [1]}"),
            ("passwords={'me': ['x', 'y']} and more", "passwords=*** and more"),
            ("unexpected token: [1, 2]", "unexpected token: [1, 2]"),
            ("GET https://h/in.php?key=abc123: 502", "GET https://h/in.php?key=***: 502"),
            ("failed (https://h/in.php?key=abc123), again", "failed (https://h/in.php?key=***), again"),
            ("[https://h/?a=1&api_key=abc]: refused.", "[https://h/?a=1&api_key=***]: refused."),
            ("{\\\"url\\\": \\\"https://h/?key=abc\\\"}", "{\\\"url\\\": \\\"https://h/?key=***\\\"}"),
            ("login failed: password=hunter2: wrong", "login failed: password=***: wrong"),
            ("api_key=abc,user=bob", "api_key=***,user=bob"),
        ];
        for (text, masked) in table {
            assert_eq!(secrets.mask(text), masked);
        }
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
