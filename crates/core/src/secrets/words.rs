//! Finding secrets in the words of a command line. Of a word that may be secret it is believed: what is kept of a command stays for
//! years, and to repeat one costs little.

use super::{MASK, Secrets};

/// Parts of a name that say that what goes under it is a secret, or a user who may have one.
const SECRET_PARTS: &[&str] =
    &["auth", "bearer", "dsn", "login", "oauth", "pin", "private", "pw", "pwd", "sid", "sig", "user", "username"];

/// How such a part may begin, and how it may end.
const SECRET_BEGINNINGS: &[&str] = &["cred", "pass", "secret"];
const SECRET_ENDINGS: &[&str] = &["key", "keys", "pass", "pwd", "token"];

/// Names that only look like those of secrets: everybody who opens a page is told them.
const PUBLIC_NAMES: &[&str] = &["googlekey", "site-key", "site_key", "sitekey", "user-agent", "user_agent"];

/// Headers that have no secrets.
const PUBLIC_HEADERS: &[&str] = &["accept", "accept-encoding", "accept-language", "content-type", "host", "user-agent"];

/// How the keys of well-known services begin.
const KEY_BEGINNINGS: &[&str] = &["sk-", "sk_", "pk_", "ghp_", "gho_", "glpat-", "xox", "AKIA", "eyJ"];

/// Letters and digits in one piece that are a key rather than a word.
const KEY_CHARS_MIN: usize = 20;

/// Where words end within a word: in a script, a list, an object, a query.
const SEPARATORS: &[char] =
    &['"', '\'', '`', ';', '|', '&', '(', ')', '<', '>', '{', '}', '[', ']', ',', '?', ' ', '\t', '\n', '\r'];

/// What the word before says of one.
#[derive(Clone, Copy)]
enum After {
    /// Nothing.
    Nothing,
    /// That it is a secret.
    Secret,
    /// That it may be a user and a password; many programs mean something else by the same flag.
    User,
    /// That it is a header.
    Header,
    /// That it may be a cookie.
    Cookie,
}

impl Secrets {
    /// The words of a command line, masked where they may be secret. What stands after a flag with a secret name is, whatever it
    /// begins with.
    pub fn mask_words(&self, words: &[String]) -> Vec<String> {
        let mut after = After::Nothing;
        let mask = |word: &String| {
            let masked;
            (masked, after) = self.mask_word(word, after);
            masked
        };
        words.iter().map(mask).collect()
    }

    fn mask_word(&self, word: &str, after: After) -> (String, After) {
        let pieces = || word.split(SEPARATORS).filter(|piece| !piece.is_empty());
        if pieces().nth(1).is_none() {
            return self.mask_piece(word, after);
        }
        let has_user = !word.contains(char::is_whitespace) && word.contains("://") && word.contains('@');
        let mut secret = self.hides(after, word) || has_user || self.mask(word) != word;
        let mut within = After::Nothing;
        for piece in pieces().take_while(|_| !matches!(after, After::Header)) {
            let masked;
            (masked, within) = self.mask_piece(piece, within);
            secret |= masked != piece;
        }
        (if secret { MASK.to_owned() } else { word.to_owned() }, After::Nothing)
    }

    /// A word that has no others in it.
    fn mask_piece(&self, word: &str, after: After) -> (String, After) {
        if self.hides(after, word) {
            return (MASK.to_owned(), After::Nothing);
        }
        let name = word.trim_start_matches('-');
        let is_flag = name.len() < word.len() && !name.is_empty();
        match word.split_once('=') {
            Some((left, value)) if is_name(left.trim_start_matches('-')) => {
                let secret = self.may_name_secret(left.trim_start_matches('-')) || !self.is_harmless(value);
                let attached = is_flag && is_attached(left);
                let secret = secret || !matches!(after_flag(left), After::Nothing);
                let masked = if secret || attached { format!("{left}={MASK}") } else { word.to_owned() };
                (if attached { MASK.to_owned() } else { masked }, After::Nothing)
            }
            _ if is_flag && self.may_name_secret(name) => (word.to_owned(), After::Secret),
            _ if is_flag && (is_attached(word) || !self.is_harmless(name)) => (MASK.to_owned(), After::Nothing),
            _ if is_flag => (word.to_owned(), after_flag(word)),
            _ if self.is_harmless(word) => (word.to_owned(), After::Nothing),
            _ => (MASK.to_owned(), After::Nothing),
        }
    }

    fn hides(&self, after: After, word: &str) -> bool {
        match after {
            After::Nothing => false,
            After::Secret => true,
            After::User => {
                let is_flag = word.starts_with("--") || (word.starts_with('-') && word.len() == 2);
                word.contains(':') || !(is_flag || is_path(word))
            }
            After::Header => {
                let public = |(name, value): (&str, &str)| {
                    PUBLIC_HEADERS.contains(&name.trim().to_ascii_lowercase().as_str()) && self.mask(value) == value
                };
                !word.split_once(':').is_some_and(public)
            }
            After::Cookie => word.contains('='),
        }
    }

    /// Whether what goes under the name of a flag or a variable may be secret.
    fn may_name_secret(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let says_so = |part: &str| {
            SECRET_PARTS.contains(&part)
                || SECRET_BEGINNINGS.iter().any(|beginning| part.starts_with(beginning))
                || SECRET_ENDINGS.iter().any(|ending| part.ends_with(ending))
        };
        !PUBLIC_NAMES.contains(&name.as_str())
            && (self.is_secret_name(&name) || name.split(['-', '_', '.']).any(says_so))
    }

    /// Whether a word is no secret by what it looks like.
    fn is_harmless(&self, word: &str) -> bool {
        let is_key = |piece: &str| {
            piece.len() >= KEY_CHARS_MIN
                && piece.contains(|c: char| c.is_ascii_digit())
                && piece.contains(|c: char| c.is_ascii_alphabetic())
        };
        if self.mask(word) != word
            || KEY_BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
            || word.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '+').any(is_key)
        {
            return false;
        }
        match word.split_once("://") {
            Some((_, rest)) => !rest.contains('@'),
            None => !may_be_credentials(word),
        }
    }
}

/// What a flag says of the word after it.
fn after_flag(flag: &str) -> After {
    match flag {
        "-p" | "-P" => After::Secret,
        "-u" | "-U" | "-a" => After::User,
        "-H" | "--header" => After::Header,
        "-b" => After::Cookie,
        _ => After::Nothing,
    }
}

/// Whether a flag may have a password attached to it: `-phunter2`, `-ubob:hunter2`.
fn is_attached(flag: &str) -> bool {
    match flag.as_bytes() {
        [b'-', b'p' | b'P', _, ..] => true,
        [b'-', b'u' | b'U' | b'a', rest @ ..] => rest.contains(&b':'),
        _ => false,
    }
}

/// Whether a text may be `user:password`, or have one: `host:port:user:password`, `user:password@host`. An address with a port and a
/// time are none.
fn may_be_credentials(word: &str) -> bool {
    let parts: Vec<_> = word.split(':').collect();
    if parts.iter().filter(|part| !part.is_empty()).count() < 2 {
        return false;
    }
    let is_time = |part: &&str| part.chars().all(|c| c.is_ascii_digit() || "-+.TZ".contains(c));
    let is_address = matches!(parts.as_slice(), [host, port] if is_host(host) && port.parse::<u16>().is_ok());
    !is_address && !parts.iter().all(is_time)
}

/// Whether a text is the name or the number of a host, rather than that of a person.
pub(crate) fn is_host(text: &str) -> bool {
    let fits = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-');
    fits && (text == "localhost" || (text.contains('.') && !text.starts_with('.')))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Whether a word is a path rather than anything else.
pub(crate) fn is_path(word: &str) -> bool {
    word.len() <= 80 && word.contains(['.', '/']) && !word.contains([':', '@', '?', '=', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(line: &[&str]) -> Vec<String> {
        let words: Vec<_> = line.iter().map(|word| (*word).to_owned()).collect();
        Secrets::default().mask_words(&words)
    }

    #[test]
    fn whatever_may_be_a_secret_is_masked() {
        let lines: &[&[&str]] = &[
            &["-u", "bob:hunter2"],
            &["-ubob:hunter2"],
            &["-u", "hunter2"],
            &["-a", "hunter2"],
            &["--proxy", "10.0.0.1:80:bob:hunter2"],
            &["--proxy=10.0.0.1:80:bob:hunter2"],
            &["bob:hunter2@10.0.0.1:80"],
            &["http://bob:hunter2@10.0.0.1:80"],
            &["-p", "hunter2"],
            &["-p", "-hunter2"],
            &["-phunter2"],
            &["-p=hunter2"],
            &["-phunter2=x"],
            &["--credentials", "hunter2"],
            &["--client-key", "hunter2"],
            &["--clientKey=hunter2"],
            &["--password", "-hunter2"],
            &["--password", "--hunter2=x"],
            &["--password", "two words hunter2"],
            &["SHOP_PW=hunter2"],
            &["DB_USER=hunter2"],
            &["-H", "X-Shop: hunter2"],
            &["--header", "hunter2"],
            &["-b", "sid=hunter2"],
            &["-c", "curl -u bob:hunter2 https://a.example/"],
            &["-c", "curl --password 'hunter2' | jq ."],
            &["-c", "mysql -phunter2 < dump"],
            &["{\"user\":\"x\",\"proxy\":\"10.0.0.1:80:bob:hunter2\"}"],
            &["https://a.example/?a=1&pw=hunter2"],
            &["sk-hunter2"],
            &["0123456789hunter2abcdef"],
        ];
        for line in lines {
            let shown = masked(line).join(" ");
            assert!(!shown.contains("hunter2") && shown.contains(MASK), "{line:?} is {shown}");
        }
    }

    #[test]
    fn what_is_harmless_stays() {
        let lines: &[&[&str]] = &[
            &["python3", "scrape.py", "--depth", "3", "-v", "a=b"],
            &["python3", "-u", "scrape.py"],
            &["python3", "-u", "-B", "shops/scrape.py", "--since", "2026-11-15T14:02:00Z", "--at", "12:30"],
            &["node", "solve.js", "--sitekey", "6Lc", "--user-agent", "Redrive", "--proxy", "10.0.0.1:8080"],
            &["curl", "-sS", "-H", "Accept: text/html", "https://shop.example:8443/p?page=2"],
            &["sh", "-c", "read -r job; test -e fixed || exit 64; echo '{\"ok\":true, \"n\": 1}'"],
        ];
        for line in lines {
            assert_eq!(masked(line), *line);
        }
    }
}
