//! What remains of a message: words and punctuation in order, with a mask for everything that varies.
//!
//! How many values there are in a row does not matter, so neighbouring masks become one, repeated groups are folded,
//! and brackets with nothing but values in them are dropped.

use super::Masked;
use super::vocabulary::{CALENDAR, CLOCK};

/// What stands in a template for something that varies.
const MASK: &str = "<*>";
/// How many masked texts are kept for the explanation, and how much of each.
const MASKED_MAX: usize = 32;
const MASKED_BYTES_MAX: usize = 120;
/// The longest group, in tokens, that is recognised when it repeats.
const GROUP_MAX: usize = 12;

/// A piece of a template.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A word that means something.
    Word(&'a str),
    /// Punctuation.
    Sign(&'a str),
    /// Something that varies.
    Mask,
}

/// A template while its message is read.
#[derive(Default)]
pub(super) struct Template<'a> {
    /// Each with whether there was space before it.
    tokens: Vec<(Token<'a>, bool)>,
    /// Where the brackets stand that are open.
    opened: Vec<usize>,
    masked: Vec<(&'static str, &'a str)>,
}

impl<'a> Template<'a> {
    /// An empty template for a message of so many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { tokens: Vec::with_capacity(bytes / 4 + 8), ..Self::default() }
    }

    /// Adds a word; `spaced` says whether there was space before it.
    pub(super) fn word(&mut self, text: &'a str, spaced: bool) {
        if self.last() == Some(Token::Mask) && CLOCK.contains(&text) {
            return;
        }
        self.tokens.push((Token::Word(text), spaced));
    }

    /// Adds punctuation.
    pub(super) fn sign(&mut self, text: &'a str, spaced: bool) {
        self.tokens.push((Token::Sign(text), spaced));
    }

    /// Adds a mask for a text that varies.
    pub(super) fn mask(&mut self, kind: &'static str, text: &'a str, mut spaced: bool) {
        self.note(kind, text);
        while let Some((Token::Word(word), before)) = self.tokens.last()
            && CALENDAR.contains(word)
        {
            spaced = *before;
            self.tokens.pop();
        }
        if self.back(2) == Some(Token::Mask) && self.last().is_some_and(is_joint) {
            self.tokens.pop();
        }
        if self.last() != Some(Token::Mask) {
            self.tokens.push((Token::Mask, spaced));
        }
        self.fold();
    }

    fn note(&mut self, kind: &'static str, text: &'a str) {
        if self.masked.len() < MASKED_MAX {
            self.masked.push((kind, text));
        }
    }

    /// Adds a bracket that opens.
    pub(super) fn open(&mut self, bracket: &'a str, spaced: bool) {
        self.opened.push(self.tokens.len());
        self.sign(bracket, spaced);
    }

    /// Adds a bracket that closes. With nothing but values in between both go, and `bounds=Rect(0, 0)` is a value as a
    /// whole.
    pub(super) fn close(&mut self, bracket: &'a str, spaced: bool) {
        let opened = self.opened.pop().and_then(|at| Some((at, self.tokens.get(at..)?)));
        let is_value = |token: &(Token<'_>, bool)| matches!(token.0, Token::Mask | Token::Sign("," | ":"));
        match opened {
            Some((at, [(Token::Sign("(" | "[" | "{"), _), inner @ ..])) if inner.iter().all(is_value) => {
                self.tokens.truncate(at);
                if self.back(2) == Some(Token::Sign("=")) {
                    self.mask_back(1, "value");
                }
            }
            _ => {
                self.sign(bracket, spaced);
                self.fold();
            }
        }
    }

    /// Where the next token will stand.
    pub(super) fn position(&self) -> usize {
        self.tokens.len()
    }

    /// Adds the quote that closes the one at `start`. Quotes around nothing but a value go.
    pub(super) fn close_quote(&mut self, quote: &'a str, start: usize) {
        let spaced = self.tokens.get(start).is_some_and(|token| token.1);
        if self.tokens.len() == start + 2 && self.last() == Some(Token::Mask) {
            self.tokens.truncate(start);
            self.tokens.push((Token::Mask, spaced));
            self.fold();
        } else {
            self.sign(quote, false);
        }
    }

    /// The bracket that is open here.
    pub(super) fn bracket(&self) -> Option<&'a str> {
        match self.tokens.get(*self.opened.last()?)?.0 {
            Token::Sign(bracket) => Some(bracket),
            _ => None,
        }
    }

    /// Whether these are the options of a call: `getByRole('button', { name: 'Next' })`.
    pub(super) fn in_options(&self) -> bool {
        let outer = self.opened.len().checked_sub(2).and_then(|at| self.tokens.get(self.opened[at]));
        self.bracket() == Some("{") && matches!(outer, Some((Token::Sign("("), _)))
    }

    /// The last token.
    pub(super) fn last(&self) -> Option<Token<'a>> {
        self.back(1)
    }

    /// The token so many places back; 1 is the last.
    pub(super) fn back(&self, places: usize) -> Option<Token<'a>> {
        Some(self.tokens.get(self.tokens.len().checked_sub(places)?)?.0)
    }

    /// The last word, looking through the punctuation that ties a name to its value.
    pub(super) fn name(&self) -> Option<&'a str> {
        for (token, _) in self.tokens.iter().rev().take(5) {
            match token {
                Token::Word(word) => return Some(word),
                Token::Sign(":" | "=" | "(" | "[" | "<" | "'" | "\"") => {}
                _ => return None,
            }
        }
        None
    }

    /// Turns the word so many places back into a mask.
    pub(super) fn mask_back(&mut self, places: usize, kind: &'static str) {
        let Some(at) = self.tokens.len().checked_sub(places) else { return };
        if let Some((Token::Word(word), spaced)) = self.tokens.get(at).copied() {
            self.note(kind, word);
            self.tokens[at] = (Token::Mask, spaced);
        }
    }

    /// Drops the last group if the same group stands before it, next to it or after a separator.
    fn fold(&mut self) {
        let len = self.tokens.len();
        let last = self.tokens[len - 1].0;
        for size in 1..=GROUP_MAX.min(len / 2) {
            let group = &self.tokens[len - size..];
            for gap in 0..=1 {
                let Some(from) = len.checked_sub(2 * size + gap) else { continue };
                let before = &self.tokens[from..from + size];
                let is_gap = gap == 0 || matches!(self.tokens[from + size].0, Token::Sign("," | ";"));
                if before[size - 1].0 == last && is_gap && before.iter().zip(group).all(|(a, b)| a.0 == b.0) {
                    self.tokens.truncate(len - size - gap);
                    return;
                }
            }
        }
    }

    /// The text of the template, and what was left out of it.
    pub(super) fn finish(self) -> (String, Vec<Masked>) {
        let bytes = self.tokens.iter().map(|(token, spaced)| token.text().len() + usize::from(*spaced)).sum();
        let mut text = String::with_capacity(bytes);
        for (token, spaced) in &self.tokens {
            if *spaced && !text.is_empty() {
                text.push(' ');
            }
            text.push_str(token.text());
        }
        let cut = |(kind, text)| Masked { kind, text: super::beginning(text, MASKED_BYTES_MAX).to_owned() };
        (text, self.masked.into_iter().map(cut).collect())
    }
}

impl<'a> Token<'a> {
    fn text(&self) -> &'a str {
        match self {
            Self::Word(text) | Self::Sign(text) => text,
            Self::Mask => MASK,
        }
    }
}

/// Whether two values around it are one: `10.0.0.1:80`, `1 - 2`, `1, 2`.
fn is_joint(token: Token<'_>) -> bool {
    matches!(token, Token::Sign("," | ":" | ";" | ".") | Token::Word("-" | "–" | "->" | "/" | "|" | "x" | "."))
}

#[cfg(test)]
mod tests {
    use crate::fingerprint::message;

    #[test]
    fn how_many_values_there_are_does_not_matter() {
        let table = [
            ("delete 1 2 3", "delete <*>"),
            ("names: DNS:a.example, DNS:b.example, DNS:c.example", "names: DNS:<*>"),
            ("close, 10 bytes (1.2 KB) sent", "close, <*> sent"),
            ("from 10.0.0.1 () at Fri Jun 17 07:07:00 2005", "from <*> at <*>"),
            ("bounds=Rect(0, 0 - 7, 8), done", "bounds=<*>, done"),
            ("[{\"id\":1},{\"id\":2},{\"id\":3}]", "[{\"id\":<*>}]"),
            ("f() and (word)", "f and (word)"),
            (") ] x", ") ] x"),
        ];
        for (text, template) in table {
            assert_eq!(message::read(text).0, template);
        }
    }
}
