//! What an XML document's entities and namespaces would cost, counted before it is parsed.
//!
//! The parser bounds entities inside of entities, but not how often one is used; it looks for every entity, and for every
//! prefix of a name, one after the other.

use std::collections::HashSet;

use super::caps::{Cap, ENTITIES_COST_MAX, PREFIXES_MAX};

/// How many entities one may lead to at most, through those inside of it.
const NESTED_MAX: usize = 256;

/// How many namespaces all elements that declare some may have in all.
const NAMESPACES_MAX: usize = 64 << 20;

/// References that need no entity.
const BUILT_IN: [&str; 6] = ["#", "lt;", "gt;", "amp;", "quot;", "apos;"];

/// Whether a document stays below the caps.
pub(super) fn check(text: &str) -> Result<(), Cap> {
    let values: Vec<&str> = text.split("<!ENTITY").skip(1).filter_map(value).collect();
    let is_own = |rest: &&str| !BUILT_IN.iter().any(|known| rest.starts_with(known));
    let own = |text: &str| text.split('&').skip(1).filter(is_own).count();
    if !values.is_empty() {
        let factor = if values.iter().any(|value| own(value) > 0) { NESTED_MAX } else { 1 };
        let longest = values.iter().map(|value| value.len()).max().unwrap_or(0);
        let cost = own(text).saturating_mul(longest.saturating_mul(factor).max(values.len()));
        // Markup in an entity would be nodes and attributes that nobody counted.
        if cost > ENTITIES_COST_MAX || values.iter().any(|value| value.contains('<')) {
            return Err(Cap::Entities);
        }
    }
    let declared = || text.split("xmlns").skip(1);
    let prefixes: HashSet<&str> = declared().map(|rest| rest.split(['=', ' ']).next().unwrap_or_default()).collect();
    let is_too_many = prefixes.len() > PREFIXES_MAX || declared().count() * prefixes.len() > NAMESPACES_MAX;
    if is_too_many { Err(Cap::Namespaces) } else { Ok(()) }
}

/// What an entity stands for: the text between the first two quotes behind its name.
fn value(declaration: &str) -> Option<&str> {
    let start = declaration.find(['"', '\''])?;
    let quote = declaration[start..].chars().next()?;
    let rest = &declaration[start + 1..];
    Some(&rest[..rest.find(quote).unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_are_below_the_caps() {
        let entities = "<!DOCTYPE rss [<!ENTITY nbsp \"&#160;\"><!ENTITY eacute '&#233;'>]>";
        let item = "<item xmlns='urn:a' xmlns:b=\"urn:b\">&lt;p&gt;&nbsp;&amp;</item>";
        assert_eq!(check(&format!("{entities}<rss>{}</rss>", item.repeat(50_000))), Ok(()));
        assert_eq!(check("<a>&amp; xmlns</a>"), Ok(()));
    }

    #[test]
    fn what_multiplies_is_refused() {
        let nested = "<!ENTITY a 'xxxxxxxxxx'><!ENTITY b '&a;&a;&a;'>";
        assert_eq!(check(&format!("{nested}{}", "&b;".repeat(10_000))), Ok(()));
        assert_eq!(check(&format!("{nested}{}", "&b;".repeat(100_000))), Err(Cap::Entities));
        let many: String = (0..20_000).map(|n| format!("<!ENTITY e{n} 'x'>")).collect();
        assert_eq!(check(&format!("{many}{}", "&e19999;".repeat(10_000))), Err(Cap::Entities));
        let prefixes: String = (0..300).map(|n| format!(" xmlns:p{n}='u'")).collect();
        assert_eq!(check(&format!("<a{prefixes}/>")), Err(Cap::Namespaces));
    }
}
