//! The public suffix list: names such as `co.uk`, under which anybody can register a domain.
//!
//! The list is that of publicsuffix.org, under the Mozilla Public License 2.0. `scripts/suffixes` writes it as a sorted table. It stays a
//! text that is searched: as code it would be a third of this crate's compile time.

use std::cmp::Ordering;

/// One rule per line, sorted by bytes: `com`, `*.ck`, `!www.ck`.
static RULES: &str = include_str!("suffixes.txt");

/// Returns the registrable domain of a lowercase host: its public suffix and one label more. `None` if the host has no such label.
pub(super) fn registrable(host: &str) -> Option<&str> {
    let suffix = suffix(host);
    let owner = host.strip_suffix(suffix)?.strip_suffix('.')?;
    let start = owner.rfind('.').map_or(0, |dot| dot + 1);
    Some(&host[start..]).filter(|_| !owner.is_empty())
}

/// Returns the public suffix of a host by the longest rule that matches; the last label if none does.
fn suffix(host: &str) -> &str {
    let mut rest = host;
    while let Some((_, parent)) = rest.split_once('.') {
        if has_rule("!", rest) {
            return parent;
        }
        if has_rule("", rest) || has_rule("*.", parent) {
            return rest;
        }
        rest = parent;
    }
    rest
}

/// Searches the table for a rule: `mark` and `name` without anything between them.
fn has_rule(mark: &str, name: &str) -> bool {
    let (mut start, mut end) = (0, RULES.len());
    while start < end {
        let middle = start + (end - start) / 2;
        let line_start = RULES.as_bytes()[..middle].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let line = RULES.as_bytes()[line_start..].split(|&byte| byte == b'\n').next().unwrap_or_default();
        match line.iter().copied().cmp(mark.bytes().chain(name.bytes())) {
            Ordering::Equal => return true,
            Ordering::Less => start = line_start + line.len() + 1,
            Ordering::Greater => end = line_start,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts made of every fifth rule and of all rules with a mark, with none to three labels in front of them.
    fn hosts() -> Vec<String> {
        let marked = |rule: &str| rule.starts_with(['*', '!']);
        let chosen = RULES.lines().enumerate().filter(|(number, rule)| number % 5 == 0 || marked(rule));
        let names = chosen.map(|(_, rule)| rule.trim_start_matches('!').replace('*', "any"));
        names.flat_map(|name| ["", "a.", "b.a.", "c.b.a."].map(|front| format!("{front}{name}"))).collect()
    }

    #[test]
    fn domains_are_those_of_the_crate_that_has_the_list_as_code() {
        let hosts = hosts();
        assert!(hosts.len() > 2_000, "{}", hosts.len());
        let more =
            ["com", "example", "a.example", "b.a.example", "", ".", "a..com", ".com", "city.kawasaki.jp", "www.ck"];
        for host in hosts.iter().map(String::as_str).chain(more) {
            // An empty label is no owner's name.
            let expected = psl::domain_str(host).filter(|domain| !domain.starts_with('.'));
            assert_eq!(registrable(host).filter(|domain| !domain.starts_with('.')), expected, "{host}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_every_rule_is_found() {
        assert!(RULES.lines().is_sorted(), "scripts/suffixes sorts it");
        for rule in RULES.lines() {
            assert!(has_rule("", rule), "{rule}");
        }
        for name in ["", "no.such.rule", "a", "zzzz", "\u{10ffff}"] {
            assert!(!has_rule("", name), "{name}");
        }
    }
}
