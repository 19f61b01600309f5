//! What letters of other programs tell beside their inputs: where they come from, and through what. It is theirs, and whoever wrote
//! it did not think of who would read it: passwords, cookies and keys are masked.

use serde_json::Value;

use crate::jobs::Input;
use crate::secrets::{MASK, Secrets, is_host};

/// What a proxy is called of which nothing can be told apart from its password.
const SOME_PROXY: &str = "proxy";

/// Masks what goes under secret names, and all of proxies but where they are.
pub(super) fn mask_details(details: &mut Input, secrets: &Secrets) {
    let mut value = Value::Object(std::mem::take(details));
    mask(&mut value, secrets, false);
    secrets.mask_json(&mut value);
    if let Value::Object(masked) = value {
        *details = masked;
    }
}

/// Masks the same in an object that is a task as a whole; says whether anything was. What it is known by stays.
pub fn mask_task(task: &mut Input, secrets: &Secrets, known_by: &[String]) -> bool {
    let before = task.clone();
    mask_details(task, secrets);
    for (name, value) in before.iter().filter(|(name, _)| *name == "key" || known_by.contains(name)) {
        task.insert(name.clone(), value.clone());
    }
    *task != before
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
                mask(field, secrets, of_proxy || name.contains("proxy") || name.contains("proxies"));
            }
        }
        _ => {}
    }
}

/// The label of a proxy: its host and port at most, never its credentials.
pub(super) fn label(proxy: &str) -> String {
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
