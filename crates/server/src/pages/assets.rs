//! The style and the scripts, in the binary. Their names carry a hash of what is in them, so that browsers keep them for good.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::look::{PALETTE, charts};

const CSS: HeaderValue = HeaderValue::from_static("text/css; charset=utf-8");
const JS: HeaderValue = HeaderValue::from_static("text/javascript; charset=utf-8");
const ICON: HeaderValue = HeaderValue::from_static("image/svg+xml");

/// A file for browsers.
pub struct Asset {
    /// Its name, with a hash.
    pub name: String,
    kind: HeaderValue,
    text: String,
}

/// The style of all pages.
pub static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let colours = colours(PALETTE).unwrap_or_default();
    let (wide, narrow) = (include_str!("../../assets/style.css"), include_str!("../../assets/narrow.css"));
    Asset::new("style", "css", CSS, squeezed(&[&colours, wide, charts::STYLE, narrow].concat()))
});

/// A style without what is there for who reads it: comments, indentation, spaces and ends of lines beside signs.
fn squeezed(style: &str) -> String {
    let mut pieces = style.split("/*");
    let first = pieces.next().unwrap_or_default();
    let plain: String =
        std::iter::once(first).chain(pieces.filter_map(|piece| Some(piece.split_once("*/")?.1))).collect();
    let lines: String = plain.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    let ends = [("}\n", "}"), ("{\n", "{"), (";\n", ";"), (",\n", ","), ("\n}", "}")];
    let beside = [
        (" {", "{"),
        ("{ ", "{"),
        (" }", "}"),
        ("} ", "}"),
        ("; ", ";"),
        (": ", ":"),
        (", ", ","),
        (" > ", ">"),
        (";}", "}"),
    ];
    renamed(&ends.iter().chain(&beside).fold(lines, |squeezed, (wide, narrow)| squeezed.replace(wide, narrow)))
}

/// A style with short names of its variables: nothing else knows them.
fn renamed(style: &str) -> String {
    let (mut names, mut out) = (BTreeMap::new(), String::new());
    let mut pieces = style.split("--");
    out.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(piece.len());
        let count = names.len();
        let short: &mut String = names.entry(&piece[..end]).or_insert_with(|| letters(count));
        out = out + "--" + short + &piece[end..];
    }
    out
}

/// A name of as few letters as there can be.
fn letters(nth: usize) -> String {
    let all: Vec<char> = ('a'..='z').chain('A'..='Z').collect();
    let more = if nth < all.len() { String::new() } else { letters(nth / all.len() - 1) };
    more + &all[nth % all.len()].to_string()
}

/// A script without comments that have a line of their own, indentation, and spaces beside signs. No text of a script goes over several lines,
/// and none that is within another is quoted as that is.
fn bare(script: &str) -> String {
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.map(tight).fold(String::new(), |mut all, line| {
        // After these signs nothing is needed to tell two lines apart.
        if !(all.is_empty() || all.ends_with(['{', '}', ';', ','])) {
            all.push('\n');
        }
        if line.starts_with('}') && all.ends_with(';') {
            all.pop();
        }
        all + &line
    })
}

/// A line of a script without the spaces beside signs that are no part of a text.
fn tight(line: &str) -> String {
    let (mut out, mut quote, mut escaped) = (String::new(), None, false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match quote {
            Some(open) => {
                quote = Some(open).filter(|open| escaped || c != *open);
                escaped = c == '\\' && !escaped;
            }
            None if c == '"' || c == '`' => quote = Some(c),
            None if c == ' ' && (out.ends_with(BESIDE) || chars.peek().is_some_and(|next| BESIDE.contains(next))) => {
                continue;
            }
            None => {}
        }
        out.push(c);
    }
    out
}

/// Signs that need no space beside them.
const BESIDE: &[char] = &['=', '>', '<', '{', '}', '(', ')', '[', ']', ',', ';', ':', '?', '&', '|'];

/// The script that sets the colours that somebody chose, before anything is drawn.
pub static THEME: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("theme", "js", JS, bare(include_str!("../../assets/theme.js"))));

/// The colours of the palette, the light and the dark one of each beside each other: which of them is seen is a matter of the scheme of the
/// system, or of the one that somebody chose.
fn colours(palette: &str) -> Option<String> {
    let blocks: Vec<&str> = palette.split(":root {").skip(1).filter_map(|block| block.split('}').next()).collect();
    let [light, dark] = blocks[..] else { return None };
    let said = |block| -> BTreeMap<&str, &str> {
        let pairs = str::split(block, ';').filter_map(|said| said.split_once(':'));
        pairs.map(|(name, value)| (name.trim(), value.trim())).collect()
    };
    let dark = said(dark);
    let both = said(light).into_iter().map(|(name, light)| match dark.get(name) {
        Some(dark) => format!("{name}:light-dark({light},{dark});"),
        None => format!("{name}:{light};"),
    });
    let chosen = ["light", "dark"].map(|scheme| format!(":root[data-theme={scheme}]{{color-scheme:{scheme}}}"));
    Some(format!(":root{{{}}}{}", both.collect::<String>(), chosen.concat()))
}

/// The scripts of all pages.
pub static SCRIPTS: LazyLock<[Asset; 4]> = LazyLock::new(|| {
    [
        ("copy", include_str!("../../assets/copy.js")),
        ("keys", include_str!("../../assets/keys.js")),
        ("live", include_str!("../../assets/live.js")),
        ("select", include_str!("../../assets/select.js")),
    ]
    .map(|(name, text)| Asset::new(name, "js", JS, bare(text)))
});

/// The picture of a tab.
pub static MARK: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("mark", "svg", ICON, include_str!("../../assets/mark.svg").to_owned()));

impl Asset {
    fn new(name: &str, ending: &str, kind: HeaderValue, text: String) -> Self {
        let hash = blake3::hash(text.as_bytes()).to_hex();
        Self { name: format!("{name}-{}.{ending}", &hash[..10]), kind, text }
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("/assets/{}", self.name)
    }
}

/// Gives a file.
pub async fn give(Path(name): Path<String>) -> Response {
    let found = [&*STYLE, &*THEME, &*MARK].into_iter().chain(SCRIPTS.iter()).find(|asset| asset.name == name);
    match found {
        Some(asset) => {
            let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
            ([(header::CONTENT_TYPE, asset.kind.clone()), (header::CACHE_CONTROL, kept)], asset.text.clone())
                .into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_browser_loads_is_small() {
        let scripts: usize = SCRIPTS.iter().map(|asset| asset.text.len()).sum();
        let bytes = scripts + STYLE.text.len() + THEME.text.len() + MARK.text.len();
        assert!(bytes < 61 * 1024, "{bytes} bytes");
    }

    #[test]
    fn a_style_says_the_same_without_spaces() {
        let style =
            "/* why */\n.a,\n.b { color: red; margin: 0 calc(1px + 2px); }\n\n  a > b :hover { top: 0 } /* end */\n";
        assert_eq!(squeezed(style), ".a,.b{color:red;margin:0 calc(1px + 2px)}a>b :hover{top:0}");
        let named = ":root { --text: red; --text-2: blue; } p { color: var(--text-2); top: var(--text) }";
        assert_eq!(squeezed(named), ":root{--a:red;--b:blue}p{color:var(--b);top:var(--a)}");
        assert_eq!([letters(0), letters(51), letters(52), letters(104)], ["a", "Z", "aa", "ba"]);
    }

    #[test]
    fn a_script_says_the_same_without_comments() {
        let script = "// why\nif (a) {\n  // because\n  b(\"http://x\"); // kept\n}\n";
        assert_eq!(bare(script), "if(a){b(\"http://x\");// kept\n}");
        let texts = r#"const a = (b) => ({ c: "d, \" = e" }[`f ? ${b} : g`] ?? h + +b);"#;
        assert_eq!(bare(texts), r#"const a=(b)=>({c:"d, \" = e"}[`f ? ${b} : g`]??h + +b);"#);
    }

    #[test]
    fn colours_are_those_of_the_palette_whatever_somebody_chose() {
        let style = colours(PALETTE).expect("two blocks");
        for said in PALETTE.split([';', '{', '}']).filter(|said| said.trim().starts_with("--") && said.contains('#')) {
            let (name, value) = said.split_once(':').expect("a name");
            let found =
                style.split(';').find(|one| one.trim_start_matches(":root{").starts_with(&format!("{}:", name.trim())));
            assert!(found.expect(name).contains(value.trim()), "{said} in {style}");
        }
        assert!(style.contains(":root[data-theme=dark]{color-scheme:dark}"), "{style}");
    }
}
