//! What the paths send, sound and damaged. Tests compare with these.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// The page behind `/gzip`, `/br` and `/zstd`, and half of it behind `/truncgzip`.
pub const PAGE: &str = "<!DOCTYPE html><html><head><title>A page</title></head><body><h1>A page</h1>\
    <p class=\"price\">12.99</p><p>It is long enough for a compressor to find something in it, as it says the same \
    thing again: it is long enough for a compressor to find something in it.</p></body></html>";

/// A page that bars the way.
pub const CHALLENGE: &str = "<!DOCTYPE html><html><head><title>Just a moment...</title></head>\
    <body><h1>Checking your browser before accessing the site</h1></body></html>";

/// What `/latin1` says, once decoded.
pub const LATIN1_TEXT: &str = "Café crème à 3 £";
/// ISO-8859-1 has every one of these characters at its Unicode number.
pub fn latin1_page() -> Vec<u8> {
    let page = format!("<html><head><title>Menu</title></head><body><p>{LATIN1_TEXT}</p></body></html>");
    page.chars().map(|character| u8::try_from(u32::from(character)).expect("a character of Latin-1")).collect()
}

/// What `/metacharset` says, once decoded.
pub const WINDOWS1252_TEXT: &str = "“Café” – 5 €";
/// Curly quotes, dash and euro are where windows-1252 differs from ISO-8859-1.
pub fn windows1252_page() -> Vec<u8> {
    [
        b"<html><head><meta charset=\"windows-1252\"><title>Menu</title></head><body><p>".as_slice(),
        b"\x93Caf\xe9\x94 \x96 5 \x80",
        b"</p></body></html>",
    ]
    .concat()
}

pub const JSON: &str = r#"{"products":[{"number":1,"title":"Linen desk lamp","price":"12.99"},{"number":2}]}"#;
/// Half of [`JSON`], in the middle of a string.
pub const TRUNCATED_JSON: &str = r#"{"products":[{"number":1,"title":"Linen de"#;
pub const XML: &str = r#"<?xml version="1.0"?><products><product number="1"><price>12.99</price></product></products>"#;
/// Half of [`XML`], in the middle of an element.
pub const TRUNCATED_XML: &str = r#"<?xml version="1.0"?><products><product number="1"><pri"#;

pub fn gzip() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(PAGE.as_bytes()).expect("written to memory");
    encoder.finish().expect("finished in memory")
}

/// The first half of [`gzip`].
pub fn truncated_gzip() -> Vec<u8> {
    let mut bytes = gzip();
    bytes.truncate(bytes.len() / 2);
    bytes
}

pub fn brotli() -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    encoder.write_all(PAGE.as_bytes()).expect("written to memory");
    encoder.into_inner()
}

pub fn zstd() -> Vec<u8> {
    zstd::encode_all(PAGE.as_bytes(), 3).expect("encoded in memory")
}

/// One MiB of `/big/N`: bytes that do not compress, other ones for each `index`.
pub fn big_mebibyte(index: u32) -> Vec<u8> {
    let mut state = u64::from(index) + 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..(1 << 20) / 8).flat_map(|_| next()).collect()
}
