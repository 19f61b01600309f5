//! Counting the attributes of a tag before the parser sees them, byte by byte as the HTML standard reads tags.
//!
//! The tokenizer compares each attribute with all others of its element, so that it must never be given a tag with very
//! many of them.

/// How far the inside of a tag is read, from behind its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Quoted(u8),
    Unquoted,
    Ended,
}

/// The attributes of a tag that is being read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TagReader {
    state: State,
    attributes: usize,
}

impl TagReader {
    /// Reads on; says how many attributes there were so far.
    pub(super) fn read(&mut self, bytes: &[u8]) -> usize {
        for byte in bytes {
            self.step(*byte);
        }
        self.attributes
    }

    /// Whether the tag is over.
    pub(super) fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    fn step(&mut self, byte: u8) {
        let is_blank = matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ');
        self.state = match (self.state, byte) {
            (State::Ended, _) => State::Ended,
            (State::Quoted(quote), _) if byte != quote => State::Quoted(quote),
            (State::Quoted(_), _) => State::BeforeName,
            (_, b'>') => State::Ended,
            (State::BeforeValue, _) if is_blank => State::BeforeValue,
            (State::BeforeValue, b'"' | b'\'') => State::Quoted(byte),
            (State::BeforeValue, _) => State::Unquoted,
            (State::Unquoted, _) if !is_blank => State::Unquoted,
            (State::Unquoted, _) => State::BeforeName,
            (State::Name | State::AfterName, b'=') => State::BeforeValue,
            (State::Name | State::AfterName, _) if is_blank => State::AfterName,
            (State::BeforeName, _) if is_blank => State::BeforeName,
            (_, b'/') => State::BeforeName,
            (State::Name, _) => State::Name,
            (State::BeforeName | State::AfterName, _) => {
                self.attributes += 1;
                State::Name
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_counted_as_the_standard_reads_them() {
        let table = [
            (">", 0),
            (" a>", 1),
            ("a b c>", 3),
            ("a=1 b='2' c=\"3\">", 3),
            ("a='x y > z' b>", 2),
            ("a=\"'\" b='\"' c>", 3),
            ("a = b c\t=\n'd'e>", 3),
            ("/a/b/ c / >", 3),
            ("a=b/c d>", 2),
            ("= == \" '>", 3),
            ("a=>", 1),
            ("\"a b\">", 2),
        ];
        for (text, expected) in table {
            let mut reader = TagReader::default();
            assert_eq!((reader.read(text.as_bytes()), reader.is_ended()), (expected, true), "{text}");
        }
        let mut open = TagReader::default();
        assert_eq!((open.read(b"a='> b c"), open.is_ended()), (1, false));
        assert_eq!((open.read(b"' d>"), open.is_ended()), (2, true), "read on");
    }
}
