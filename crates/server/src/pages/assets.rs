//! The style and the scripts, in the binary. Their names carry a hash of what is in them, so that browsers keep them for good.

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
    let chosen = chosen_colours(PALETTE).unwrap_or_default();
    let (wide, narrow) = (include_str!("../../assets/style.css"), include_str!("../../assets/narrow.css"));
    Asset::new("style", "css", CSS, squeezed(&[PALETTE, &chosen, wide, charts::STYLE, narrow].concat()))
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
    ends.iter().chain(&beside).fold(lines, |squeezed, (wide, narrow)| squeezed.replace(wide, narrow))
}

/// A script without comments that have a line of their own, and without indentation. No text of a script goes over several lines.
fn bare(script: &str) -> String {
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The script that sets the colours that somebody chose, before anything is drawn.
pub static THEME: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("theme", "js", JS, bare(include_str!("../../assets/theme.js"))));

/// The light and the dark colours for who wants them whatever the system has: the same as in the palette.
fn chosen_colours(palette: &str) -> Option<String> {
    let blocks: Vec<&str> = palette.split(":root {").skip(1).filter_map(|block| block.split('}').next()).collect();
    let [light, dark] = blocks[..] else { return None };
    let light = light.replace("color-scheme: light dark", "color-scheme: light");
    Some(format!(":root[data-theme=light] {{{light}}}\n:root[data-theme=dark] {{color-scheme: dark;{dark}}}\n"))
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
        assert!(bytes < 60 * 1024, "{bytes} bytes");
    }

    #[test]
    fn a_style_says_the_same_without_spaces() {
        let style =
            "/* why */\n.a,\n.b { color: red; margin: 0 calc(1px + 2px); }\n\n  a > b :hover { top: 0 } /* end */\n";
        assert_eq!(squeezed(style), ".a,.b{color:red;margin:0 calc(1px + 2px)}a>b :hover{top:0}");
    }

    #[test]
    fn a_script_says_the_same_without_comments() {
        let script = "// why\nif (a) {\n  // because\n  b(\"http://x\"); // kept\n}\n";
        assert_eq!(bare(script), "if (a) {\nb(\"http://x\"); // kept\n}");
    }

    #[test]
    fn colours_that_somebody_chose_are_those_of_the_palette() {
        let chosen = chosen_colours(PALETTE).expect("two blocks");
        assert!(chosen.contains(":root[data-theme=light]") && chosen.contains(":root[data-theme=dark]"), "{chosen}");
        for name in ["--ground", "--text", "--link", "--bad-tint"] {
            assert_eq!(chosen.matches(&format!("{name}:")).count(), 2, "{name} in {chosen}");
        }
    }
}
