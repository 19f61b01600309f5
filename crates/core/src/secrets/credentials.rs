//! Which parts of what is sent under a secret name are secret, and in which forms a server may give them back.
//!
//! `Authorization: Bearer abc` comes back as `abc`, `Authorization: Basic dTpw` as `u:p`, a cookie by its value alone.

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL_NOPAD};

use super::percent_encode;

/// Shorter values that have no digit in them are words, such as `default`.
const WORD_BYTES_MAX: usize = 7;

/// Values of cookies and parameters shorter than this are settings, such as `lang=en-US`.
const PARAMETER_BYTES_MIN: usize = 12;

/// Values shorter than this would be too common in their encoded form.
const ENCODED_BYTES_MIN: usize = 6;

/// The parts of a value that are secret because of the name it goes under.
pub(super) fn parts(name: &str, value: &str) -> Vec<String> {
    let (name, value) = (name.to_ascii_lowercase(), value.trim());
    let mut parts = vec![value.to_owned()];
    if name.ends_with("authorization") {
        let (scheme, rest) = value.split_once(char::is_whitespace).unwrap_or_default();
        parts.push(rest.trim().to_owned());
        parts.extend(parameters(rest));
        if scheme.eq_ignore_ascii_case("basic") {
            parts.extend(decoded_pair(rest.trim()));
        }
    } else if name.ends_with("cookie") {
        parts.extend(parameters(value));
    } else if value.len() <= WORD_BYTES_MAX && !value.bytes().any(|b| b.is_ascii_digit()) {
        parts.clear();
    }
    parts
}

/// The secret parts of the user and password in an address, as they stand there and as they are sent.
pub(super) fn user_parts(user: &str, password: &str) -> Vec<String> {
    let (user, plain) = (percent_decode(user), percent_decode(password));
    let pair = format!("{user}:{plain}");
    vec![password.to_owned(), plain, BASE64.encode(pair.as_bytes())]
}

/// A secret in the forms it may come back in: as it is, in an address, within JSON, in Base64.
pub(super) fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned(), percent_encode(value), percent_encode(value).replace("%20", "+")];
    forms.push(lower_hex(&forms[1]));
    let quoted = serde_json::Value::from(value).to_string();
    forms.push(quoted[1..quoted.len() - 1].to_owned());
    // Some escape slashes too.
    forms.push(forms[4].replace('/', "\\/"));
    if value.len() >= ENCODED_BYTES_MIN {
        forms.push(BASE64_NOPAD.encode(value.as_bytes()));
        forms.push(BASE64URL_NOPAD.encode(value.as_bytes()));
    }
    forms.sort();
    forms.dedup();
    forms
}

/// The values of `name=value` that can be secrets, between commas, semicolons or blanks.
fn parameters(text: &str) -> impl Iterator<Item = String> + '_ {
    let pieces = text.split([',', ';', ' ']).filter_map(|piece| piece.split_once('='));
    let values = pieces.map(|(_, value)| value.trim().trim_matches('"'));
    let long = |value: &&str| value.len() >= PARAMETER_BYTES_MIN && value.bytes().any(|b| b.is_ascii_digit());
    values.filter(long).map(str::to_owned)
}

/// What `user:password` in Base64 says, and its password.
fn decoded_pair(encoded: &str) -> Vec<String> {
    let decoded = BASE64_NOPAD.decode(encoded.trim_end_matches('=').as_bytes()).ok();
    let Some(pair) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) else { return Vec::new() };
    let password = pair.split_once(':').map(|(_, password)| password.to_owned());
    std::iter::once(pair).chain(password).collect()
}

fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (*first, tail) {
            (b'%', [high, low, after @ ..]) if digit(*high).is_some() && digit(*low).is_some() => {
                bytes.push(digit(*high).unwrap_or_default() * 16 + digit(*low).unwrap_or_default());
                rest = after;
            }
            (byte, tail) => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The same with the digits of `%2F` in lower case.
fn lower_hex(encoded: &str) -> String {
    let mut pieces = encoded.split('%');
    let mut lower = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at(piece.len().min(2));
        lower.extend(["%", &digits.to_ascii_lowercase(), rest]);
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_secret_and_not_its_scheme() {
        for (name, value, expected) in [
            ("Authorization", "Bearer abcdef", &["Bearer abcdef", "abcdef"][..]),
            ("proxy-authorization", "Basic dXNlcjpoIHU=", &["Basic dXNlcjpoIHU=", "dXNlcjpoIHU=", "user:h u", "h u"]),
            ("Cookie", "lang=en-US; sid=0123456789ab", &["lang=en-US; sid=0123456789ab", "0123456789ab"]),
            ("X-Api-Key", "normal", &[]),
            ("X-Api-Key", "n0rmal", &["n0rmal"]),
            ("X-Api-Key", "long-enough", &["long-enough"]),
        ] {
            assert_eq!(parts(name, value), expected, "{name}: {value}");
        }
        let token = parts("authorization", "Token token=\"abcdef012345\"");
        assert!(token.contains(&"abcdef012345".to_owned()), "{token:?}");
    }

    #[test]
    fn a_password_in_an_address_is_known_as_it_is_sent() {
        assert_eq!(user_parts("me", "a%2fb%zz"), ["a%2fb%zz", "a/b%zz", "bWU6YS9iJXp6"]);
    }

    #[test]
    fn a_secret_is_known_in_other_forms() {
        let forms = forms("a/b \"c\"?");
        for form in ["a/b \"c\"?", "a%2Fb%20%22c%22%3F", "a%2fb%20%22c%22%3f", "a%2Fb+%22c%22%3F", "a/b \\\"c\\\"?"] {
            assert!(forms.contains(&form.to_owned()), "{form} in {forms:?}");
        }
        assert!(forms.contains(&"YS9iICJjIj8".to_owned()), "{forms:?}");
        assert_eq!(super::forms("abcd").len(), 1, "a short one is not looked for in Base64");
    }
}
