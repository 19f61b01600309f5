//! Characters that nobody sees but that change what is seen: a terminal obeys controls, marks of direction turn text around,
//! zero-width characters and tags carry text that does not show.
//!
//! Text of unknown origin may have any of them. Whoever shows it escapes them; JSON has its own escapes, so that it stays the
//! same JSON.

use std::borrow::Cow;

/// Whether a character is obeyed, or changes what is around it, instead of being seen. Ends of lines and tabs are such, too.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// JSON whose texts have hidden characters as escapes. What is not inside a text has none but the ends of its lines.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let escaped = |c: char| is_hidden(c) && c != '\n';
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) || !json.contains(escaped) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match escaped(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| safe.push_str(&format!("\\u{unit:04x}"))),
            false => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_is_seen_stays() {
        assert!(!"zażółć 価格 🦀 e\u{301} ❤\u{fe0f} — «x»".contains(is_hidden));
        for c in ['\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2028}', '\u{2029}', '\u{200d}', '\u{e0041}', '\u{feff}']
        {
            assert!(is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn json_with_escapes_is_the_same_json() {
        let hostile = "a\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{2028}\u{e0041}\u{feff}\n\t\"\\é🦀";
        let value = json!({ hostile: [hostile, { "n": 1.50 }] });
        for text in [value.to_string(), format!("{value:#}")] {
            let safe = escape_json(&text);
            assert_eq!(serde_json::from_str::<Value>(&safe).ok().as_ref(), Some(&value));
            assert!(safe.chars().all(|c| c == '\n' || !is_hidden(c)), "{safe:?}");
            assert!(safe.contains("\\u009b") && safe.contains("\\udb40\\udc41") && safe.contains('🦀'), "{safe}");
        }
        assert!(matches!(escape_json("{\"a\": \"b\"}"), Cow::Borrowed(_)));
    }
}
