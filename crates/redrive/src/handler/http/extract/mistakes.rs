//! What is wrong with a selector that the engine does not understand, and what to write instead.
//!
//! The engine only says that something is wrong. What people write is mostly XPath or jQuery, which is easily seen.

use scraper::Selector;
use scraper::error::SelectorErrorKind;

/// What jQuery has and CSS has not, and the way out.
const JQUERY: [(&str, &str); 14] = [
    (":contains", "CSS cannot look at text: select by class, attribute (`[title*=x]`) or place (`:nth-child(2)`)"),
    (":first", "leave it out, as the first match is taken anyway, or write `:first-child` or `:first-of-type`"),
    (":last", "write `:last-child` or `:last-of-type`"),
    (":eq", "write `:nth-child(1)` for `:eq(0)`: CSS counts from 1, among all children of an element"),
    (":nth", "write `:nth-child(1)`: CSS counts from 1"),
    (":even", "write `:nth-child(odd)`: CSS counts from 1"),
    (":odd", "write `:nth-child(even)`: CSS counts from 1"),
    (":gt", "write `:nth-child(n+2)` for `:gt(0)`: CSS counts from 1"),
    (":lt", "write `:nth-child(-n+1)` for `:lt(1)`: CSS counts from 1"),
    (":visible", "a page that is not shown has nothing visible or hidden: leave it out"),
    (":hidden", "a page that is not shown has nothing visible or hidden: leave it out"),
    (":text", "write `[type=text]`, or `::text` at the end for an element's text"),
    (":header", "write `:is(h1, h2, h3)`"),
    (":parent", "write `:has(*)`"),
];

/// Says what is wrong.
pub(super) fn explain(css: &str, error: &SelectorErrorKind) -> String {
    if let Some(told) = xpath(css).or_else(|| jquery(css)) {
        return told;
    }
    let kind = match error {
        SelectorErrorKind::UnexpectedSelectorParseError(kind) => format!("{kind:?}"),
        other => format!("{other:?}"),
    };
    let pseudo = pseudo(css).map(|(at, name)| format!("`{name}` at character {}", css[..at].chars().count() + 1));
    match (kind.as_str(), pseudo) {
        ("UnsupportedPseudoClassOrElement", Some(pseudo)) => {
            format!("{pseudo} is nothing that an element of a page at rest can be: leave it out")
        }
        ("EmptySelector", _) => "a part of it is empty: something is missing beside a comma or in brackets".into(),
        ("DanglingCombinator", _) => "it ends with a combinator: name what should follow".into(),
        ("ClassNeedsIdent", _) => "a `.` is not followed by the name of a class".into(),
        ("InvalidState", Some(pseudo)) => format!("{pseudo} cannot stand here: `:has` takes no other `:has`"),
        ("EndOfLine", _) => "it ends too early: a bracket or a quote is not closed, or a name is missing".into(),
        ("UnexpectedToken", _) => {
            "a character in it has no meaning there: quote values, escape others with `\\`".into()
        }
        (kind, _) => format!("{} (see the CSS selectors of any browser)", words(kind)),
    }
}

/// `//div[@class='x']/a/@href` is XPath; simple ones are put into CSS.
fn xpath(css: &str) -> Option<String> {
    let is_xpath = css.starts_with('/') || css.contains("//") || css.contains("[@") || css.contains("text()");
    if !is_xpath {
        return None;
    }
    let path = css.trim_start_matches('/').replace("//", " ").replace('/', " > ").replace("[@", "[");
    let (path, end) = match path.rsplit_once(" > ") {
        Some((path, "text()")) => (path.to_owned(), "::text".to_owned()),
        Some((path, last)) if last.starts_with('@') => (path.to_owned(), format!("::attr({})", &last[1..])),
        _ => (path, String::new()),
    };
    let instead = match Selector::parse(&path) {
        Ok(_) => format!("`{path}{end}`"),
        Err(_) => "`div.main > h1`, with `::text` or `::attr(name)` at the end".to_owned(),
    };
    Some(format!("it is XPath; in CSS it is {instead}"))
}

fn jquery(css: &str) -> Option<String> {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-');
    let found = JQUERY.iter().find_map(|(name, instead)| {
        let at = css.match_indices(name).find(|(at, _)| ends(&css[at + name.len()..]))?.0;
        Some((at, name, instead))
    });
    let (at, name, instead) = found?;
    let place = css[..at].chars().count() + 1;
    Some(format!("`{name}` at character {place} is jQuery's, not CSS: {instead}"))
}

/// The last pseudo-class or pseudo-element, and where it stands.
fn pseudo(css: &str) -> Option<(usize, &str)> {
    let at = css.rfind(':').map(|at| if css[..at].ends_with(':') { at - 1 } else { at })?;
    let name = css[at..].trim_start_matches(':');
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '-')).unwrap_or(name.len());
    Some((at, &css[at..css.len() - name.len() + end]))
}

/// `BadValueInAttr` is `bad value in attr`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(css: &str) -> String {
        explain(css, &Selector::parse(css).expect_err("not CSS"))
    }

    #[test]
    fn xpath_is_put_into_css() {
        assert_eq!(told("//h1"), "it is XPath; in CSS it is `h1`");
        assert_eq!(
            told("//div[@class='a']/b//a/@href"),
            "it is XPath; in CSS it is `div[class='a'] > b a::attr(href)`"
        );
        assert_eq!(told("//h1/text()"), "it is XPath; in CSS it is `h1::text`");
        assert!(told("//a[contains(@href, 'x')]").contains("`div.main > h1`"));
    }

    #[test]
    fn jquery_has_a_way_out() {
        let table = [
            ("p:contains(x)", "`:contains` at character 2 is jQuery's, not CSS: CSS cannot look at text"),
            ("li:first", "leave it out, as the first match is taken anyway"),
            ("ul li:last a", "`:last-child`"),
            ("li:eq(2)", "`:nth-child(1)` for `:eq(0)`"),
        ];
        for (css, expected) in table {
            assert!(told(css).contains(expected), "{css}: {}", told(css));
        }
    }

    #[test]
    fn nothing_asks_for_a_developer() {
        let wrong = [
            "a:hover",
            "p::before",
            "a,,b",
            "p >",
            "..a",
            "a:has(b:has(c))",
            "p:nth-child(",
            "div[",
            "a[b=]",
            "{}",
            "",
        ];
        for css in wrong {
            let told = told(css);
            assert!(!told.contains("developer") && !told.contains('\n') && told.len() > 15, "{css}: {told}");
        }
        assert!(told("a:hover").contains("`:hover` at character 2"), "{}", told("a:hover"));
    }
}
