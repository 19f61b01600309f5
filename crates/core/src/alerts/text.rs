//! Numbers as people read them, and text of strangers on one line.

use std::time::Duration;

use crate::hidden::is_hidden;

/// Text of unknown origin on one line, at most so many characters of it: what a terminal, a chat or a log would obey is escaped.
pub fn plain(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref().take(chars_max) {
        match c {
            '\n' | '\r' | '\t' => line.push(' '),
            c if is_hidden(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

/// A share in per cent: two digits below one per cent, one above.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value > 0.0 && value < 1.0 { format!("{value:.2} %") } else { format!("{value:.1} %") }
}

/// A time in its two largest units.
pub fn span(time: Duration) -> String {
    let secs = time.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let Some(first) = units.iter().position(|(unit, _)| secs >= *unit) else { return "0s".to_owned() };
    let (unit, name) = units[first];
    let rest = units.get(first + 1).map(|(smaller, name)| (secs % unit / smaller, name)).filter(|(n, _)| *n > 0);
    let rest = rest.map(|(n, name)| format!(" {n}{name}")).unwrap_or_default();
    format!("{}{name}{rest}", secs / unit)
}

/// A size in its largest unit.
pub fn size(bytes: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_strangers_text_is_obeyed() {
        let hostile = "a\nb\r\u{1b}[2J\u{202e}c";
        assert_eq!(plain(hostile, 99), "a b \\u{1b}[2J\\u{202e}c");
        assert_eq!(plain("abcdef", 3), "abc…");
        assert_eq!(plain("abc", 3), "abc");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!((percent(0.005), percent(0.152), percent(0.0)), ("0.50 %".into(), "15.2 %".into(), "0.0 %".into()));
        let spans = [0, 45, 900, 5_400, 90_000, 86_400].map(|secs| span(Duration::from_secs(secs)));
        assert_eq!(spans, ["0s", "45s", "15m", "1h 30m", "1d 1h", "1d"]);
        assert_eq!((size(512), size(3 << 29)), ("512 bytes".into(), "1.5 GiB".into()));
    }
}
