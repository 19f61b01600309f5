//! What is secret in the arguments of a command: it may say them when it fails.

use redrive_core::secrets::Secrets;
use url::Url;

use super::webhook::hide_parts;

/// From how many characters on a word with letters and digits is taken for a token.
const TOKEN_MIN: usize = 16;

/// Adds addresses, what stands under a secret name, and what looks like a token, also inside of scripts.
pub(super) fn hide(words: &[String], secrets: &mut Secrets) {
    for word in words.iter().skip(1) {
        // A whole header, as one argument.
        if let Some((name, value)) = word.split_once(':') {
            secrets.add_sent(name.trim(), value.trim());
        }
    }
    let is_border = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ';' | '|' | '<' | '>' | '(' | ')');
    let mut after_secret_flag = false;
    for piece in words.iter().skip(1).flat_map(|word| word.split(is_border)).filter(|piece| !piece.is_empty()) {
        if after_secret_flag || is_token(piece) {
            secrets.add_value(piece);
        }
        hide_address(piece, secrets);
        let name = piece.trim_start_matches('-');
        if let Some((name, value)) = name.split_once('=') {
            secrets.add_sent(name, value);
        }
        after_secret_flag = piece.starts_with('-') && !piece.contains('=') && secrets.is_secret_name(name);
    }
}

fn hide_address(piece: &str, secrets: &mut Secrets) {
    let Some(place) = piece.find("://") else { return };
    let scheme = piece[..place].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |before| before + 1);
    // What comes before it may be a letter of another script.
    let Some(address) = piece.get(scheme..) else { return };
    secrets.add_value(address);
    if let Ok(url) = Url::parse(address) {
        hide_parts(&url, secrets);
    }
}

/// Whether a word looks like a token: long, of letters and digits, and not the name of a file.
fn is_token(piece: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '+' | '=');
    piece.len() >= TOKEN_MIN
        && piece.chars().all(is_part)
        && piece.contains(|c: char| c.is_ascii_digit())
        && piece.contains(|c: char| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(words: &[&str], said: &str) -> String {
        let mut secrets = Secrets::default();
        hide(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), &mut secrets);
        secrets.mask(said)
    }

    #[test]
    fn what_is_secret_in_arguments_is_hidden_in_every_form() {
        let hidden: [(&[&str], &str); 8] = [
            (&["curl", "https://hooks.example/services/T0/s3cr3t"], "s3cr3t"),
            (&["sh", "-c", "curl -d @- 'https://hooks.example/services/s3cr3t' >&2"], "s3cr3t"),
            (&["notify", "--url=https://me:s3cr3t@hooks.example/x"], "s3cr3t"),
            (&["notify", "--token", "s3cr3t"], "s3cr3t"),
            (&["notify", "--api-key=s3cr3t"], "s3cr3t"),
            (&["curl", "-H", "Authorization: Bearer s3cr3t"], "s3cr3t"),
            (&["sh", "-c", "TOKEN=s3cr3t notify"], "s3cr3t"),
            (&["notify", "123456789:AAs3cr3t-of-a-bot"], "AAs3cr3t-of-a-bot"),
        ];
        for (words, secret) in hidden {
            for said in [words.join(" "), words[words.len() - 1].to_owned()] {
                assert!(!masked(words, &said).contains(secret), "{words:?}: {}", masked(words, &said));
            }
        }
        let words = ["mail", "-s", "redrive", "team@shop.example"];
        assert_eq!(masked(&words, "mail: no user team@shop.example"), "mail: no user team@shop.example");
        assert_eq!(masked(&["x", "é://é", "://"], "well"), "well");
    }
}
