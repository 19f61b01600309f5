//! Which charset a body is in: what its byte order mark says, or the header, or the document itself, or the bytes.
//!
//! Pages declare it in `<meta>`, which the standard wants within the first kilobyte and which stands far behind it on
//! real pages, after scripts and styles. So the whole head is looked through, as browsers end up doing too.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// How far a page is looked through for its charset, in bytes.
const HEAD_BYTES_MAX: usize = 256 * 1024;

/// The longest `<meta>` that is read, in bytes.
const TAG_BYTES_MAX: usize = 4 * 1024;

/// The body as text.
pub(super) fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    let named = content_type.and_then(of_content_type).or_else(|| declared(body));
    let encoding = match named {
        Some(encoding) => encoding,
        None if std::str::from_utf8(body).is_ok() => UTF_8,
        // What is neither declared nor UTF-8 is, on the web, most often this.
        None => WINDOWS_1252,
    };
    // A byte order mark overrules all of it.
    encoding.decode(body).0
}

fn of_content_type(header: &str) -> Option<&'static Encoding> {
    let at = header.to_ascii_lowercase().find("charset=")? + 8;
    let label = header[at..].split(';').next()?.trim().trim_matches(['"', '\'']);
    Encoding::for_label(label.as_bytes())
}

/// What a document of markup declares about itself.
fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let head = &body[..body.len().min(HEAD_BYTES_MAX)];
    if head.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'<') {
        return None;
    }
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let label = of_xml(&head).or_else(|| of_meta(&head))?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // Who could read the declaration was not reading UTF-16.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

/// The `encoding` of `<?xml version="1.0" encoding="…"?>`.
fn of_xml(head: &str) -> Option<&str> {
    let (declaration, _) = head.trim_start().strip_prefix("<?xml")?.split_once("?>")?;
    value_after(declaration, "encoding")
}

/// The charset of the first `<meta>` that names one, outside of comments, scripts and styles.
fn of_meta(head: &str) -> Option<&str> {
    let mut rest = head;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        let skipped = [("<!--", "-->"), ("<script", "</script"), ("<style", "</style")];
        if let Some((_, end)) = skipped.iter().find(|(start, _)| rest.starts_with(start)) {
            rest = &rest[rest.find(end)?..];
        } else if let Some(tag) = rest.strip_prefix("<meta").filter(|tag| !tag.starts_with(char::is_alphanumeric)) {
            // A tag that is not closed ends where the next begins: nothing is read twice.
            let tag = &tag[..tag.find(['<', '>']).unwrap_or(tag.len())];
            if tag.len() <= TAG_BYTES_MAX
                && let Some(label) = of_tag(tag)
            {
                return Some(label);
            }
        } else if rest.starts_with("<body") {
            return None;
        }
        rest = &rest[1..];
    }
    None
}

/// `charset="…"`, or `http-equiv="Content-Type" content="text/html; charset=…"`.
fn of_tag(tag: &str) -> Option<&str> {
    let (mut charset, mut content, mut is_header, mut rest) = (None, None, false, tag);
    while let Some((name, value, after)) = attribute(rest) {
        match name {
            "charset" => charset = charset.or(Some(value)),
            "content" => content = content.or(Some(value)),
            "http-equiv" => is_header = true,
            _ => {}
        }
        rest = after;
    }
    let label = charset.map(|value| value.trim().trim_end_matches('/')).filter(|label| !label.is_empty());
    label.or_else(|| value_after(content.filter(|_| is_header)?, "charset"))
}

/// The first attribute of what is left of a tag: its name, its value, and what follows. Quotes of the other kind are part
/// of a value.
fn attribute(tag: &str) -> Option<(&str, &str, &str)> {
    let tag = tag.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
    let end = tag.find(|c: char| c.is_ascii_whitespace() || "=/".contains(c)).unwrap_or(tag.len());
    let (name, rest) = tag.split_at(end);
    let Some(value) = rest.trim_start().strip_prefix('=').map(str::trim_start) else {
        return (!name.is_empty()).then_some((name, "", rest));
    };
    if let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (value, rest) = value[1..].split_once(quote).unwrap_or((&value[1..], ""));
        return Some((name, value, rest));
    }
    let (value, rest) = value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len()));
    Some((name, value, rest))
}

/// What `name = "value"` says.
fn value_after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    let value = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| c.is_ascii_whitespace() || "\"';/>".contains(c)).unwrap_or(value.len());
    (end > 0).then(|| &value[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str, bytes: &[u8], content_type: Option<&str>) -> String {
        let body = [head.as_bytes(), bytes].concat();
        decode(&body, content_type).trim_start_matches(head).to_owned()
    }

    #[test]
    fn a_page_may_name_its_charset_late() {
        for before in [100, 3_000, 60_000] {
            let script = format!("<html><head><script>{}</script>", "x<y;".repeat(before / 4));
            let head = format!("{script}<!-- <meta charset=utf-8> --><META  Charset = 'Shift_JIS' />");
            assert_eq!(read(&head, b"\x93\xfa\x96\x7b", None), "日本", "{before}");
        }
        let old = "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=windows-1251\"><body>";
        assert_eq!(read(old, b"\xef", None), "п");
    }

    #[test]
    fn other_attributes_do_not_hide_it() {
        for head in [
            "<meta data-x=\"it's\" charset=windows-1251>",
            "<meta data-x='\"' charset=\"windows-1251\">",
            "<meta = data-x =a/b charset= windows-1251/>",
            "<meta content='text/html;charset=windows-1251' data-x=\"it's\" http-equiv=content-type>",
        ] {
            assert_eq!(read(head, b"\xef", None), "п", "{head}");
        }
    }

    /// Each of them was once read to the end of the head: 52,000 times 256 KiB.
    #[test]
    fn tags_without_an_end_are_read_once() {
        for piece in ["<meta", "<meta ", "<meta\u{130}'"] {
            assert_eq!(read(&piece.repeat(HEAD_BYTES_MAX / piece.len()), "é".as_bytes(), None), "é");
        }
        let long = format!("<meta {} charset=windows-1251>", "é".repeat(TAG_BYTES_MAX));
        assert_eq!(read(&long, "é".as_bytes(), None), "é", "too long to be one");
    }

    #[test]
    fn header_and_mark_come_first() {
        let head = "<meta charset=windows-1251>";
        assert_eq!(read(head, "é".as_bytes(), Some("text/html; Charset=\"UTF-8\"")), "é");
        let marked = [b"\xef\xbb\xbf<meta charset=windows-1251>".as_slice(), "é".as_bytes()].concat();
        assert!(decode(&marked, Some("text/html; charset=windows-1251")).ends_with('é'));
    }

    #[test]
    fn what_only_looks_like_a_charset_is_none() {
        for head in [
            "<script charset=windows-1251></script>",
            "<meta name=description content=\"what charset=windows-1251 means\">",
            "<metadata charset=windows-1251>",
            "<body><meta charset=windows-1251>",
            "<meta charset=no-such-thing>",
            "<meta data-x=\"charset='windows-1251'\">",
            "<meta charset=utf-16>",
            "{\"a\": \"<meta charset=windows-1251>\"}",
        ] {
            assert_eq!(read(head, "é".as_bytes(), None), "é", "{head}");
        }
        assert_eq!(read("<p>", b"\xe9", None), "é", "neither declared nor UTF-8");
        assert_eq!(read("<?xml version='1.0' encoding='ISO-8859-2'?><a>", b"\xb1", None), "ą");
    }
}
