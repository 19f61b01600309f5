//! What letters of other programs tell beside their inputs: where they come from, and through what. It is theirs, and whoever wrote
//! it did not think of who would read it: passwords, cookies and keys are masked.

use serde_json::Value;

use crate::jobs::Input;
use crate::secrets::{MASK, Secrets, is_host, mask_named};

/// What a proxy is called of which nothing can be told apart from its password.
pub const SOME_PROXY: &str = "proxy";

/// The longest label of a proxy, in characters.
const LABEL_CHARS_MAX: usize = 100;

/// Masks what goes under secret names, and all of proxies but where they are.
pub(super) fn mask_details(details: &mut Input, secrets: &Secrets) {
    let mut value = Value::Object(std::mem::take(details));
    mask(&mut value, secrets, false);
    secrets.mask_json(&mut value);
    if let Value::Object(masked) = value {
        *details = masked;
    }
}

/// Masks the same in an object that is a task as a whole; says what was masked, by name or by JSON pointer. What it is known by stays.
pub fn mask_task(task: &mut Input, secrets: &Secrets, known_by: &[String]) -> Vec<String> {
    mask_but(task, known_by, |task| mask_details(task, secrets))
}

/// Masks in a task that is still to be done only what goes under secret names; says what was masked as [`mask_task`] does.
pub fn mask_fields(task: &mut Input, secrets: &Secrets, known_by: &[String]) -> Vec<String> {
    mask_but(task, known_by, |task| {
        let mut value = Value::Object(std::mem::take(task));
        mask_named(secrets, &mut value);
        if let Value::Object(masked) = value {
            *task = masked;
        }
    })
}

/// Masks all of a task but what it is known by; says what was masked.
fn mask_but(task: &mut Input, known_by: &[String], mask: impl FnOnce(&mut Input)) -> Vec<String> {
    let before = task.clone();
    mask(task);
    for (name, value) in before.iter().filter(|(name, _)| *name == "key" || known_by.contains(name)) {
        task.insert(name.clone(), value.clone());
    }
    let mut masked = Vec::new();
    for (name, value) in &before {
        let inside = format!("/{}", step(name));
        let found = task.get(name).unwrap_or(&Value::Null);
        match (value, found) {
            (value, found) if value == found => {}
            (Value::Object(_) | Value::Array(_), _) => differences(value, found, &inside, &mut masked),
            // A name that would be read as a path is written as one.
            _ if name.contains(['.', '/']) || name.is_empty() => masked.push(inside),
            _ => masked.push(name.clone()),
        }
    }
    masked
}

/// The most lost fields that are named one by one, and the longest name of one, in characters.
const LOST_MAX: usize = 20;
const LOST_CHARS_MAX: usize = 100;

/// Lost fields as they are kept: if there are too many, what they are in is named instead, and if that is too much, the whole input.
pub fn kept_lost(lost: Vec<String>) -> Vec<String> {
    let fits =
        |lost: &[String]| lost.len() <= LOST_MAX && lost.iter().all(|name| name.chars().count() <= LOST_CHARS_MAX);
    let tidy = |mut lost: Vec<String>| {
        let mut seen = std::collections::BTreeSet::new();
        lost.retain(|name| seen.insert(name.clone()));
        lost
    };
    let lost = tidy(lost);
    if fits(&lost) {
        return lost;
    }
    let outermost = |name: &String| match name.strip_prefix('/') {
        Some(pointer) => format!("/{}", pointer.split('/').next().unwrap_or_default()),
        None => name.clone(),
    };
    let outer = tidy(lost.iter().map(outermost).collect());
    if fits(&outer) { outer } else { vec![String::new()] }
}

/// Where a value differs from what it was, by JSON pointer.
fn differences(before: &Value, after: &Value, at: &str, found: &mut Vec<String>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Value::Object(before), Value::Object(after)) => before.iter().for_each(|(name, value)| {
            let after = after.get(name).unwrap_or(&Value::Null);
            differences(value, after, &format!("{at}/{}", step(name)), found);
        }),
        (Value::Array(before), Value::Array(after)) => before.iter().zip(after).enumerate().for_each(|(n, (b, a))| {
            differences(b, a, &format!("{at}/{n}"), found);
        }),
        _ => found.push(at.to_owned()),
    }
}

/// A name as it stands in a JSON pointer.
fn step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Masks what is known as a secret only by what stands beside it: pairs of a name and a value, and proxies.
fn mask(value: &mut Value, secrets: &Secrets, of_proxy: bool) {
    match value {
        Value::String(text) if of_proxy && !is_plain(text) => *text = label(text),
        Value::Array(items) => match items.as_mut_slice() {
            [Value::String(name), value @ Value::String(_)] if secrets.is_secret_name(name) => *value = MASK.into(),
            items => items.iter_mut().for_each(|item| mask(item, secrets, of_proxy)),
        },
        Value::Object(fields) => {
            let named = fields.get("name").and_then(Value::as_str).is_some_and(|name| secrets.is_secret_name(name));
            if let (true, Some(value)) = (named, fields.get_mut("value")) {
                *value = MASK.into();
            }
            for (name, field) in fields {
                let name = name.to_ascii_lowercase();
                if name == "proxy" && field.as_str().is_some_and(is_name) {
                    continue;
                }
                mask(field, secrets, of_proxy || name.contains("proxy") || name.contains("proxies"));
            }
        }
        _ => {}
    }
}

/// Returns the label of a proxy that another program reported. A name is kept, however many words it has; of an address, its host
/// and port at most.
pub fn proxy_label(proxy: &str) -> String {
    let name = proxy.split_whitespace().collect::<Vec<_>>().join(" ");
    let label = if is_name(&name) { name } else { label(proxy) };
    label.chars().take(LABEL_CHARS_MAX).collect()
}

/// Returns true if a proxy is given by a name, which is neither an address nor credentials. One word may look like a host; of several words
/// that do, the others may be a user and a password.
fn is_name(proxy: &str) -> bool {
    let words: Vec<&str> = proxy.split(|c| " #+&,/()".contains(c)).filter(|word| !word.is_empty()).collect();
    let is_word = |word: &&str| word.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    words.iter().all(is_word) && (words == [proxy] || (!words.is_empty() && !words.iter().any(|word| is_address(word))))
}

/// Returns true if a word of several is a host: a version (`v1.2`) is none.
fn is_address(word: &str) -> bool {
    let word = word.trim_matches('.');
    let last = word.rsplit('.').next().unwrap_or_default();
    let is_domain = is_host(word) && last.chars().all(|c| c.is_ascii_alphabetic());
    is_domain || word.parse::<std::net::Ipv4Addr>().is_ok()
}

/// The address of a proxy without its credentials: its host and port at most.
fn label(proxy: &str) -> String {
    let (scheme, rest) = proxy.trim().split_once("://").map_or((false, proxy.trim()), |(_, rest)| (true, rest));
    let (user, address) = rest.rsplit_once('@').map_or((false, rest), |(_, address)| (true, address));
    let address = address.split(['/', '?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    if let Some((host, port)) = address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let (v6, port) = (host.parse::<std::net::Ipv6Addr>().is_ok(), port.strip_prefix(':').unwrap_or("0"));
        return if v6 && is_port(port) { address } else { SOME_PROXY.to_owned() };
    }
    // Who says how it is reached says where it is: such a host may have any name.
    let is_named = |host: &str| {
        let fits = host.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c));
        is_host(host) || ((scheme || user) && !host.is_empty() && fits)
    };
    match address.split(':').collect::<Vec<_>>().as_slice() {
        [host] if is_named(host) => (*host).to_owned(),
        [host, port] if is_named(host) && is_port(port) => format!("{host}:{port}"),
        // Some write the user first. What can be read both ways is not told.
        [_, _, host, port] if is_host(host) && is_port(port) => SOME_PROXY.to_owned(),
        [host, port, ..] if is_host(host) && is_port(port) => format!("{host}:{port}"),
        _ => SOME_PROXY.to_owned(),
    }
}

/// Whether a proxy says no more than where it is.
fn is_plain(proxy: &str) -> bool {
    let address = proxy.trim().split_once("://").map_or(proxy.trim(), |(_, rest)| rest);
    address.trim_end_matches('/').eq_ignore_ascii_case(&label(proxy))
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_masked_is_told_by_where_it_was() {
        let Value::Object(mut task) = json!({
            "url": "https://a.example/?token=abc", "token": "t0p", "key": "mine", "sid": "known by it",
            "headers": {"Cookie": "c=1", "Accept": "x"}, "pairs": [["Authorization", "Basic x"]], "a.secret": 1, "n": 1,
        }) else {
            panic!("an object")
        };
        let masked = mask_task(&mut task, &Secrets::default(), &["sid".to_owned()]);
        assert_eq!(masked, ["url", "token", "/headers/Cookie", "/pairs/0/1", "/a.secret"]);
        assert_eq!((&task["key"], &task["sid"], &task["token"]), (&json!("mine"), &json!("known by it"), &json!(MASK)));
        assert_eq!(mask_task(&mut task, &Secrets::default(), &["sid".to_owned()]), [""; 0], "there is nothing left");
    }

    #[test]
    fn a_task_that_is_to_be_done_keeps_all_but_what_goes_under_secret_names() {
        let url = "https://me:pw@a.example/?token=abc";
        let Value::Object(mut task) = json!({"url": url, "key": "k", "auth": {"user": "u"}, "on": [{"token": 7}]})
        else {
            panic!("an object")
        };
        assert_eq!(mask_fields(&mut task, &Secrets::default(), &[]), ["/auth/user", "/on/0/token"]);
        assert_eq!((task["url"].as_str(), task["key"].as_str()), (Some(url), Some("k")));
    }

    #[test]
    fn of_many_lost_fields_what_they_are_in_is_named() {
        let many = |under: &str| (0..30).map(|n| format!("{under}{n}")).collect::<Vec<_>>();
        assert_eq!(kept_lost(vec!["a".into(), "a".into(), "/b/c".into()]), ["a", "/b/c"]);
        assert_eq!(kept_lost(many("/cookies/")), ["/cookies"]);
        assert_eq!(kept_lost(many("field")), [""]);
        assert_eq!(kept_lost(vec!["x".repeat(500)]), [""]);
    }
}
