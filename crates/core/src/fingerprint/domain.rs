//! The registrable domain of a target: what one owner answers for, whatever the host in front of it.

use std::borrow::Cow;

use super::suffixes;

/// The registrable domain of a host or URL (`www.shop.co.uk` → `shop.co.uk`); anything else, lowercased.
pub(super) fn of_target(target: &str) -> String {
    let host = host(target.trim());
    let lower: Cow<'_, str> =
        if host.bytes().any(|b| b.is_ascii_uppercase()) { host.to_ascii_lowercase().into() } else { host.into() };
    let is_address = lower.contains(':') || lower.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if is_address {
        return lower.into_owned();
    }
    suffixes::registrable(lower.trim_end_matches('.')).unwrap_or(&lower).to_owned()
}

fn host(target: &str) -> &str {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if let Some(inner) = host.strip_prefix('[') {
        return inner.split(']').next().unwrap_or(inner);
    }
    match host.split_once(':') {
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_become_registrable_domains() {
        let table = [
            ("https://www.Shop.co.uk/p/1?x=2", "shop.co.uk"),
            ("api.shop.co.uk:8443", "shop.co.uk"),
            ("user:secret@www.example.com", "example.com"),
            ("10.0.0.7:80", "10.0.0.7"),
            ("http://[2001:db8::1]:80/", "2001:db8::1"),
            ("2captcha", "2captcha"),
            ("www.lumina.example.", "lumina.example"),
            ("", ""),
        ];
        for (target, domain) in table {
            assert_eq!(of_target(target), domain, "{target}");
        }
    }
}
