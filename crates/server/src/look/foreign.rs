//! Text of unknown origin (targets, messages, codes, stack traces, names) made harmless, for all that people see.
//!
//! What a terminal would obey, what turns the direction of writing and what does not show is shown as an escape instead.
//! Escaping for HTML is not done here: `maud` does it.

use redrive_core::hidden::is_hidden;
use unicode_width::UnicodeWidthChar;

/// More characters than this per column are refused: accents can be piled up without taking any width.
const CHARS_PER_COLUMN: usize = 4;

/// Text of any number of lines. Ends of lines and tabs stay.
pub fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => safe.push(c),
            '\r' => {}
            c if is_hidden(c) => safe.extend(c.escape_unicode()),
            c => safe.push(c),
        }
    }
    safe
}

/// The text in one line of at most `width` columns, shortened with `…`.
pub fn cut(text: &str, width: usize) -> String {
    let line = one_line(text, width);
    if width_of(&line) <= width && line.chars().count() <= width * CHARS_PER_COLUMN {
        return line;
    }
    let mut short = String::new();
    let mut left = width.saturating_sub(1);
    for c in line.chars().take(width * CHARS_PER_COLUMN) {
        match left.checked_sub(c.width().unwrap_or(0)) {
            Some(rest) => left = rest,
            None => break,
        }
        short.push(c);
    }
    short.extend((width > 0).then_some('…'));
    short
}

/// Stands in a command before words that begin with `-`: they come last, after `--`. No quoted word has it.
const LAST: char = '\0';

/// A word of a command, quoted where a shell would take it for several. Hidden characters are written as bytes (`$'\x03'`): a terminal
/// obeys some of them even between quotes, and begins to run what was pasted so far.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.contains(is_hidden) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut safe = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\'' | '\\' | '!' => safe.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if is_hidden(c) => c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| safe.push_str(&format!("\\x{b:02x}"))),
            c => safe.push(c),
        }
    }
    safe + "'"
}

/// A flag of a command with its value, which is not taken for another flag.
pub fn flag(name: &str, value: &str) -> String {
    let between = if value.starts_with('-') { '=' } else { ' ' };
    format!(" --{name}{between}{}", quoted(value))
}

/// A command about something, with flags. More flags may be added to it before it is [`typed`].
pub fn about(command: &str, word: &str, flags: &str) -> String {
    match word.starts_with('-') {
        true => format!("{command}{flags}{LAST} {}", quoted(word)),
        false => format!("{command} {}{flags}", quoted(word)),
    }
}

/// A command as it is typed: its beginning, and the words after the last flag.
pub fn parts(command: &str) -> (&str, &str) {
    command.split_once(LAST).unwrap_or((command, ""))
}

/// A command with further flags, as it is typed.
pub fn typed(command: &str, flags: &str) -> String {
    match parts(command) {
        (begins, "") => format!("{begins}{flags}"),
        (begins, last) => format!("{begins}{flags} --{last}"),
    }
}

/// The text cut to `width` columns and filled up with spaces to exactly that.
pub fn fit(text: &str, width: usize) -> String {
    let mut text = cut(text, width);
    text.push_str(&" ".repeat(width.saturating_sub(width_of(&text))));
    text
}

/// How many columns a line takes.
pub fn width_of(line: &str) -> usize {
    line.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The beginning of the text, long enough to see whether it is too long.
fn one_line(text: &str, width: usize) -> String {
    let mut line = String::new();
    for c in text.chars().take(width * CHARS_PER_COLUMN + 1) {
        match c {
            '\u{2028}' | '\u{2029}' | '\u{85}' => line.extend(c.escape_unicode()),
            c if c.is_whitespace() => line.push(' '),
            c if is_hidden(c) => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a shell makes of a command.
    fn words(command: &str) -> Vec<String> {
        let script = format!("redrive() {{ printf '%s\\0' \"$@\"; }}\n{command}\n");
        let ran =
            std::process::Command::new("bash").args(["-c", &script]).output().expect("bash, which people paste into");
        assert!(ran.status.success(), "{command:?}");
        String::from_utf8(ran.stdout).expect("text").split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn a_shell_takes_a_command_as_it_was_meant_and_a_terminal_obeys_nothing_in_it() {
        for word in [
            "shop.example",
            "it's $(id) `id` !! \\",
            "\u{3}touch owned\n\u{1b}[201~'!ls\\x41\r",
            "a\u{202e}b\u{9b}41",
            "--all",
            "-\u{3}",
        ] {
            let command = typed(&about("redrive breaker close", word, &flag("pipeline", word)), &flag("why", word));
            assert!(!command.contains(is_hidden), "{command:?}");
            let found = words(&command);
            let flags: Vec<_> = match word.starts_with('-') {
                true => vec![format!("--pipeline={word}"), format!("--why={word}"), "--".into(), word.into()],
                false => vec![word.into(), "--pipeline".into(), word.into(), "--why".into(), word.into()],
            };
            assert_eq!(found, [vec!["breaker".to_owned(), "close".to_owned()], flags].concat(), "{command:?}");
        }
        assert_eq!(quoted("\u{3}id"), r"$'\x03id'");
    }

    #[test]
    fn terminal_codes_are_shown_not_obeyed() {
        assert_eq!(harmless("a\u{1b}[2Jb\n\tc\r\n"), "a\\u{1b}[2Jb\n\tc\n");
        assert_eq!(harmless("zażółć 🦀"), "zażółć 🦀");
        assert_eq!(harmless("a\u{202e}b\u{9b}c\u{2028}"), "a\\u{202e}b\\u{9b}c\\u{2028}");
    }

    #[test]
    fn nothing_is_obeyed_on_one_line() {
        assert_eq!(cut("a\u{1b}[2Jb\r\nc\t\u{7}", 40), "a\\u{1b}[2Jb  c \\u{7}");
        assert_eq!(cut("user\u{202e}gpj.exe", 40), "user\\u{202e}gpj.exe");
        assert_eq!(cut("a\u{2028}b\u{85}", 40), "a\\u{2028}b\\u{85}");
        assert_eq!(cut("zażółć 🦀", 40), "zażółć 🦀");
    }

    #[test]
    fn it_fits() {
        let pile = "e".to_owned() + &"\u{301}".repeat(10_000);
        for text in
            ["", "short", "a name that is a good deal too long", "価格が見つかりません", &pile, "\u{1b}\u{1b}\u{1b}"]
        {
            for width in 0..30 {
                assert!(width_of(&cut(text, width)) <= width, "{text:?} in {width}");
                assert_eq!(width_of(&fit(text, width)), width, "{text:?} in {width}");
            }
            assert!(cut(text, 10).chars().count() <= 41);
        }
        assert_eq!(cut("price-tag", 6), "price…");
        assert_eq!(cut("価格が", 4), "価…");
    }
}
