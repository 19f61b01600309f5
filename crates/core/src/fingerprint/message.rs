//! The walk over a message: from left to right, once, deciding for each word whether it means something.

use super::quotes::{self, Quoted};
use super::template::{Template, Token};
use super::vocabulary::{NAME_GOES_ON, NAMES, has};
use super::words::{Shape, is_numbered_name, shape};
use super::{Masked, chunks, markup, numbers, sections, values};

/// How deep quotes within quotes are read.
const DEPTH_MAX: usize = 4;

/// The template of a message, and what was left out.
pub(super) fn read(message: &str) -> (String, Vec<Masked>) {
    let mut template = Template::with_capacity(message.len());
    for section in sections::telling(message) {
        read_into(section, &mut template);
    }
    template.finish()
}

/// Reads a text on its own into a template.
pub(super) fn read_into<'a>(text: &'a str, template: &mut Template<'a>) {
    Walk::new(text, true, 0).run(template);
}

struct Walk<'a> {
    text: &'a str,
    at: usize,
    /// Whether there was space before what comes next.
    spaced: bool,
    depth: usize,
    /// What comes after the word at hand.
    next: &'a str,
    /// Whether this is a line of an access log, where a status is a field like any other.
    access_log: bool,
    /// Where the next `>` and closing quotes are, so that each byte is looked at once for each.
    closing: [Option<usize>; 4],
}

impl<'a> Walk<'a> {
    fn new(text: &'a str, spaced: bool, depth: usize) -> Self {
        Self { text, at: 0, spaced, depth, next: "", access_log: false, closing: [None; 4] }
    }

    fn run(&mut self, out: &mut Template<'a>) {
        while let Some(&byte) = self.text.as_bytes().get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => (self.at, self.spaced) = (self.at + 1, true),
                0x1b => self.skip_escape(),
                b'\'' | b'"' | b'`' => self.quote(byte, out),
                b'<' => self.angle(out),
                b'(' | b'[' | b'{' => self.bracket(out, Template::open),
                b')' | b']' | b'}' => self.bracket(out, Template::close),
                b',' | b';' | b'=' | b'!' | b'>' => self.bracket(out, Template::sign),
                _ => self.chunk(out),
            }
        }
    }

    /// Colours of a terminal.
    fn skip_escape(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let end = rest.iter().position(u8::is_ascii_alphabetic).unwrap_or(rest.len() - 1);
        self.at += end + 1;
    }

    fn bracket(&mut self, out: &mut Template<'a>, add: fn(&mut Template<'a>, &'a str, bool)) {
        let sign = &self.text[self.at..self.at + 1];
        add(out, sign, self.spaced);
        self.at += 1;
        self.spaced = false;
    }

    /// Where the next closing sign is, looked up once.
    fn next_closing(&mut self, slot: usize, closes: impl Fn(&[u8], usize) -> bool) -> Option<usize> {
        let (bytes, from) = (self.text.as_bytes(), self.at + 1);
        let known = self.closing[slot].filter(|at| *at >= from);
        let at = known.unwrap_or_else(|| (from..bytes.len()).find(|at| closes(bytes, *at)).unwrap_or(usize::MAX));
        self.closing[slot] = Some(at);
        (at != usize::MAX).then_some(at)
    }

    /// A quote closes where no word goes on, so that `'O'Neal'` is one. Quotes around brackets are left to the
    /// brackets.
    fn quote(&mut self, quote: u8, out: &mut Template<'a>) {
        let bytes = self.text.as_bytes();
        let opens_list = matches!(bytes.get(self.at + 1), Some(b'[' | b'{' | b'('));
        let closes_list = self.at > 0 && matches!(bytes[self.at - 1], b']' | b'}' | b')');
        let slot = match quote {
            b'\'' => 1,
            b'"' => 2,
            _ => 3,
        };
        let closes = |bytes: &[u8], at: usize| {
            let goes_on = bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
            bytes[at] == quote && !goes_on && bytes[at - 1] != b'\\'
        };
        if opens_list || closes_list || self.depth >= DEPTH_MAX {
            return self.bracket(out, Template::sign);
        }
        match self.next_closing(slot, closes) {
            Some(end) => self.quoted(self.at + 1, end, out),
            None => self.bracket(out, Template::sign),
        }
    }

    fn quoted(&mut self, start: usize, end: usize, out: &mut Template<'a>) {
        let (inner, after) = (&self.text[start..end], &self.text[end + 1..]);
        let decision = quotes::decide(inner, out, after);
        self.access_log |= quotes::is_request(inner);
        if decision == Quoted::Mask {
            out.mask("quoted", inner, self.spaced);
        } else {
            let (sign, position) = (&self.text[end..end + 1], out.position());
            out.sign(sign, self.spaced);
            match decision {
                Quoted::Keep => out.word(inner, false),
                _ => Walk::new(inner, false, self.depth + 1).run(out),
            }
            out.close_quote(sign, position);
        }
        self.at = end + 1;
        self.spaced = false;
    }

    /// What is compared with a number (`<1 sec`), an object, a snippet of a page, or a name.
    fn angle(&mut self, out: &mut Template<'a>) {
        let rest = &self.text[self.at..];
        match rest.as_bytes().get(1) {
            Some(b'0'..=b'9') => self.at += 1,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'!' | b'/' | b'?') => {
                let close = self.next_closing(0, |bytes, at| bytes[at] == b'>');
                let snippet = close.and_then(|close| markup::snippet(rest, close - self.at));
                let Some((kind, length)) = snippet else { return self.bracket(out, Template::sign) };
                out.mask(kind, &rest[..length], self.spaced);
                self.at += length;
                self.spaced = false;
            }
            _ => self.bracket(out, Template::sign),
        }
    }

    fn chunk(&mut self, out: &mut Template<'a>) {
        let (start, mut end) = (self.at, chunks::end(self.text, self.at));
        let chunk = &self.text[start..end];
        if let Some(url) = chunks::url_start(chunk) {
            self.pieces(&chunk[..url], out);
            end = chunks::address_end(self.text, start + url);
            out.mask("url", &self.text[start + url..end], self.spaced);
        } else if chunks::is_path(chunk, &self.text[end..]) {
            end = chunks::address_end(self.text, start);
            out.mask("path", &self.text[start..end], self.spaced);
        } else {
            self.pieces(chunk, out);
            if out.last() == Some(Token::Mask) && chunk.ends_with(|c: char| c.is_ascii_digit()) {
                end += numbers::following_unit(&self.text[end..]);
            }
        }
        self.at = end;
        self.spaced = false;
        if self.text[..end].ends_with(':') && values::announces_value(out) {
            self.rest(out);
        }
    }

    /// What follows up to the end of the line is a value, unless it is in quotes, which mark its end.
    fn rest(&mut self, out: &mut Template<'a>) {
        let rest = self.text[self.at..].lines().next().unwrap_or("").trim_end();
        let value = rest.trim_start();
        if !value.is_empty() && !value.starts_with(['\'', '"', '`']) {
            out.mask("value", value, true);
            self.at += rest.len();
        }
    }

    /// Cuts off the punctuation at both ends and splits at colons.
    fn pieces(&mut self, chunk: &'a str, out: &mut Template<'a>) {
        let body = chunk.trim_end_matches(['.', ':', '?', '…']);
        let end = &chunk[body.len()..];
        self.next = &self.text[self.at + body.len()..];
        let body = match body.strip_prefix(':') {
            Some(rest) if !rest.starts_with(':') => {
                out.sign(":", std::mem::replace(&mut self.spaced, false));
                rest
            }
            _ => body,
        };
        if chunks::is_host_and_port(body, out) {
            let spaced = std::mem::replace(&mut self.spaced, false);
            self.masked("host", body, spaced, out);
        } else if body.contains(':') && !chunks::is_one_with_colons(body) {
            for (index, piece) in body.split(':').enumerate() {
                if index > 0 {
                    out.sign(":", self.spaced);
                    self.spaced = false;
                }
                self.word(piece, out);
            }
        } else {
            self.word(body, out);
        }
        if !end.is_empty() {
            out.sign(end, self.spaced);
        }
    }

    fn word(&mut self, word: &'a str, out: &mut Template<'a>) {
        if word.is_empty() {
            return;
        }
        let spaced = std::mem::replace(&mut self.spaced, false);
        match shape(word) {
            Shape::Plain if values::is_plural_of_value(word, out) => {
                let (one, plural) = word.split_at(word.len() - 1);
                out.word(one, spaced);
                out.mask("value", plural, true);
            }
            Shape::Plain | Shape::Numbered if values::is_value(word, out) => out.mask("value", word, spaced),
            Shape::Plain => out.word(word, spaced),
            _ if self.means_something(word, out) => out.word(word, spaced),
            Shape::Varies(kind) => self.masked(kind, word, spaced, out),
            Shape::Numbered if out.last() == Some(Token::Sign("=")) => out.mask("value", word, spaced),
            Shape::Numbered => numbered(word, spaced, out),
        }
    }

    /// Whether a number is a status or code that makes another cause.
    fn means_something(&self, word: &str, out: &Template<'_>) -> bool {
        if self.access_log {
            return false;
        }
        if self.is_name(word, out) {
            return true;
        }
        let is_status =
            || numbers::is_failed_status(word) && numbers::is_status_before(self.next, out.last().is_none());
        is_status() || out.name().is_some_and(|name| numbers::means_something(word, name))
    }

    /// Whether a word with digits is a name: `row2 is not defined`, `field price2`, and the place in `:nth-child(2)`.
    fn is_name(&self, word: &str, out: &Template<'_>) -> bool {
        let goes_on = || NAME_GOES_ON.iter().any(|words| self.next.starts_with(words));
        let is_named = || matches!(out.last(), Some(Token::Word(before)) if has(NAMES, before));
        let is_place = || match (out.back(2), out.last()) {
            (Some(Token::Word(function)), Some(Token::Sign("("))) => function.starts_with("nth-"),
            _ => false,
        };
        is_place() || (is_numbered_name(word) && (goes_on() || is_named()))
    }

    fn masked(&mut self, kind: &'static str, word: &'a str, spaced: bool, out: &mut Template<'a>) {
        if matches!(kind, "ip" | "host") && values::follows_a_name(out) {
            out.mask_back(2, "name");
        }
        out.mask(kind, word, spaced);
    }
}

/// Keeps the letters of a word and masks its digits.
fn numbered<'a>(word: &'a str, mut spaced: bool, out: &mut Template<'a>) {
    let mut rest = word;
    while let Some(first) = rest.bytes().next() {
        let digits = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        if digits {
            out.mask("number", run, spaced)
        } else {
            out.word(run, spaced)
        }
        (rest, spaced) = (after, false);
    }
}
