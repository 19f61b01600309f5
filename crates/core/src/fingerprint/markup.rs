//! What stands in angle brackets: objects, and snippets of a page.

use super::vocabulary::TAGS;

/// The longest tag that is looked at.
const TAG_BYTES_MAX: usize = 500;

/// What the text, which starts with `<`, starts with, and how long that is; `close` is where the first `>` is. A page
/// goes to the end, a snippet to the last tag of the line.
pub(super) fn snippet(text: &str, close: usize) -> Option<(&'static str, usize)> {
    let inner = text.get(1..close).filter(|inner| inner.len() <= TAG_BYTES_MAX)?;
    if inner.contains(" at 0x") {
        return Some(("object", close + 1));
    }
    if is_page(inner) {
        return Some(("page", text.len()));
    }
    if !is_markup(inner) {
        return None;
    }
    let line = text.lines().next().unwrap_or(text);
    Some(("markup", line.rfind('>').unwrap_or(close).max(close) + 1))
}

fn is_page(inner: &str) -> bool {
    ["!doctype", "html", "?xml"]
        .iter()
        .any(|name| inner.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)))
}

fn is_markup(inner: &str) -> bool {
    let name = inner.trim_start_matches('/').split([' ', '\n', '/']).next().unwrap_or("");
    inner.starts_with(['!', '/', '?']) || inner.contains("=\"") || inner.contains("='") || TAGS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_snippets_and_pages_end_where_they_end() {
        let table = [
            ("<a.B object at 0x7f> failed", Some(("object", 20))),
            ("<div class=\"x\">a</div> is gone", Some(("markup", 22))),
            ("<button>\nnext", Some(("markup", 8))),
            ("<!DOCTYPE html>\n<html>\nno", Some(("page", 25))),
            ("<string>, line 3", None),
            ("<GET https://a.example/>", None),
        ];
        for (text, found) in table {
            let close = text.find('>').expect("each has one");
            assert_eq!(snippet(text, close), found, "{text}");
        }
    }
}
