//! Chunks: runs of a message without white space, quotes and brackets, and the addresses that reach beyond them.

use super::template::Template;

/// Where the chunk that starts here ends. An apostrophe within a word belongs to it.
pub(super) fn end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let is_letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        if ENDS[byte as usize] && !(byte == b'\'' && is_letter(at - 1) && is_letter(at + 1)) {
            break;
        }
        at += 1;
    }
    at
}

static ENDS: [bool; 256] = {
    let mut ends = [false; 256];
    let signs = b" \t\n\r\x1b()[]{}<>,;=\"'`!";
    let mut at = 0;
    while at < signs.len() {
        ends[signs[at] as usize] = true;
        at += 1;
    }
    ends
};

/// Where the URL or path that starts here ends, without the punctuation of the sentence around it.
pub(super) fn address_end(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let ends = [' ', '\t', '\n', '\r', '\x1b', '"', '\'', '`', '<', '>', ')', ']', '}'];
    let address = &rest[..rest.find(ends).unwrap_or(rest.len())];
    start + address.trim_end_matches(['.', ',', ':', ';', '?', '!', '…']).len()
}

/// Where the URL in a chunk starts: with its scheme.
pub(super) fn url_start(chunk: &str) -> Option<usize> {
    let before = &chunk[..chunk.as_bytes().windows(3).position(|signs| signs == b"://")?];
    Some(before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+')).len())
}

/// `/item.php?id`, `res.php?id` before `=5`, `C:\jobs`. Two slashes start an XPath.
pub(super) fn is_path(chunk: &str, after: &str) -> bool {
    let rooted = match chunk.as_bytes() {
        [b'/', next, ..] => *next != b'/',
        [drive, b':', b'\\', _, ..] => drive.is_ascii_alphabetic(),
        _ => false,
    };
    rooted || (after.starts_with('=') && chunk.contains('?'))
}

/// Times, MAC and IPv6 addresses hold colons and are one thing.
pub(super) fn is_one_with_colons(chunk: &str) -> bool {
    let (mut letters, mut digits, mut colons, mut hex) = (0, 0, 0, true);
    for byte in chunk.bytes() {
        digits += usize::from(byte.is_ascii_digit());
        letters += usize::from(byte.is_ascii_alphabetic());
        colons += usize::from(byte == b':');
        hex &= byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
    }
    digits > 0 && (letters == 0 || (letters <= 3 && digits >= 6) || (hex && colons >= 2))
}

/// `shop.example:443`, `to redis:6379`. What names code rather than a host has capitals or underscores, and any other
/// word with a number could be anything.
pub(super) fn is_host_and_port(chunk: &str, before: &Template<'_>) -> bool {
    let Some((host, port)) = chunk.split_once(':') else { return false };
    let is_port = (2..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
    let is_host = |name: &str| name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'));
    let announced = |word| matches!(word, "to" | "at" | "from" | "via" | "host" | "server" | "proxy" | "address");
    is_port && is_host(host) && (host.contains(['.', '-']) || before.name().is_some_and(announced))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_end_before_the_punctuation_of_the_sentence() {
        let table = [
            ("https://a.example/x?y=1,2. Next", "https://a.example/x?y=1,2"),
            ("https://a.example/x), which", "https://a.example/x"),
            ("/item.php?id=1&b=2 (Caused", "/item.php?id=1&b=2"),
        ];
        for (text, address) in table {
            assert_eq!(&text[..address_end(text, 0)], address);
        }
    }

    #[test]
    fn chunks_keep_apostrophes_and_end_at_signs() {
        for (text, chunk) in [("can't do", "can't"), ("a='b'", "a"), ("x'", "x"), ("é(1)", "é"), ("(", "(")] {
            assert_eq!(&text[..end(text, 0)], chunk);
        }
    }

    #[test]
    fn times_and_addresses_are_one() {
        for one in ["07:07:00", "00:11:43:e3:ba:c3", "2606:4700::936b:443", "2017-05-16T05:00:00Z"] {
            assert!(is_one_with_colons(one), "{one}");
        }
        for several in ["index:0", "a::b", "error:0A00010B:SSL"] {
            assert!(!is_one_with_colons(several), "{several}");
        }
    }
}
