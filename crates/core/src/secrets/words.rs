//! Finding secrets in the words of a command line. Of a word that may be secret it is believed: what is kept of a command stays for
//! years, and to repeat one costs little.
//!
//! - `programs`: what well-known programs mean by flags that mean a password elsewhere

mod programs;

use self::programs::{after_flag, is_attached, runs_another};
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

/// What begins another command within a word: in a script, what comes after it is a program.
const BEGINNINGS: &[char] = &[';', '|', '&', '(', '`', '{', '\n'];

/// What the word before says of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// Nothing.
    Nothing,
    /// That it is a secret.
    Secret,
    /// That it is a secret, unless it is a small number or plainly a path: a port, a page, a profile.
    Unless,
    /// That it is a port, or ports, if it looks like one; else a secret.
    Port,
    /// That it may be a user and a password; many programs mean something else by the same flag.
    User,
    /// That it is a user, with a password only after a colon.
    Name,
    /// That it is a header.
    Header,
    /// That it may be a cookie.
    Cookie,
}

/// Reads the words of a command line one by one.
struct Reading<'a> {
    secrets: &'a Secrets,
    /// The program whose flags are read.
    program: String,
    /// Whether the next word that is no flag is one.
    expects_program: bool,
    after: After,
}

impl Secrets {
    /// The words of a command line, masked where they may be secret. What stands after a flag with a secret name is, whatever it
    /// begins with. What a program takes for a password only by its place cannot be known.
    pub fn mask_words(&self, words: &[String]) -> Vec<String> {
        let mut reading = Reading::new(self);
        words.iter().map(|word| reading.mask_word(word)).collect()
    }
}

impl<'a> Reading<'a> {
    fn new(secrets: &'a Secrets) -> Self {
        Self { secrets, program: String::new(), expects_program: true, after: After::Nothing }
    }

    fn mask_word(&mut self, word: &str) -> String {
        let pieces = || word.split(SEPARATORS).filter(|piece| !piece.is_empty());
        if pieces().nth(1).is_none() {
            return self.mask_piece(word);
        }
        let after = std::mem::replace(&mut self.after, After::Nothing);
        let has_user = !word.contains(char::is_whitespace) && word.contains("://") && word.contains('@');
        let mut secret = self.hides(after, word) || has_user || self.secrets.mask(word) != word;
        if after != After::Header {
            secret |= Reading::new(self.secrets).finds_secrets(word);
        }
        if secret { MASK.to_owned() } else { word.to_owned() }
    }

    /// Whether something in a word that has others in it may be secret: it may be a script.
    fn finds_secrets(&mut self, script: &str) -> bool {
        let (mut found, mut rest) = (false, script);
        while !rest.is_empty() {
            let end = rest.find(SEPARATORS).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            found |= !piece.is_empty() && self.mask_piece(piece) != piece;
            let separator = after.chars().next();
            if separator.is_some_and(|c| BEGINNINGS.contains(&c)) {
                *self = Reading::new(self.secrets);
            }
            rest = after.get(separator.map_or(0, char::len_utf8)..).unwrap_or_default();
        }
        found
    }

    /// A word that has no others in it.
    fn mask_piece(&mut self, word: &str) -> String {
        let after = std::mem::replace(&mut self.after, After::Nothing);
        if self.hides(after, word) {
            return MASK.to_owned();
        }
        let name = word.trim_start_matches('-');
        let is_flag = name.len() < word.len() && !name.is_empty();
        if let Some((left, value)) = word.split_once('=').filter(|(left, _)| is_name(left.trim_start_matches('-'))) {
            return self.mask_assigned(word, left, value, is_flag);
        }
        if is_flag {
            if self.secrets.may_name_secret(name) {
                self.after = After::Secret;
            } else if is_attached(&self.program, word) || !self.secrets.is_harmless(name) {
                return MASK.to_owned();
            } else {
                self.after = after_flag(&self.program, word);
            }
            return word.to_owned();
        }
        // A number is what a wrapper is told: for how long, how many.
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        if self.expects_program && after == After::Nothing && !is_number {
            self.program = word.to_owned();
            self.expects_program = runs_another(word);
        }
        if self.secrets.is_harmless(word) || after == After::Port { word.to_owned() } else { MASK.to_owned() }
    }

    /// `--name=value`, `NAME=value`.
    fn mask_assigned(&self, word: &str, left: &str, value: &str, is_flag: bool) -> String {
        if is_flag && is_attached(&self.program, left) {
            return MASK.to_owned();
        }
        let secret = self.secrets.may_name_secret(left.trim_start_matches('-'))
            || !self.secrets.is_harmless(value)
            || (is_flag && self.hides(after_flag(&self.program, left), value));
        if secret { format!("{left}={MASK}") } else { word.to_owned() }
    }

    fn hides(&self, after: After, word: &str) -> bool {
        match after {
            After::Nothing => false,
            After::Secret => true,
            After::Unless => !(is_small_number(word) || is_plainly_path(word)),
            After::Port => !is_port(word),
            After::Name => word.contains(':') && !is_port(word),
            After::User => {
                let is_flag = word.starts_with("--") || (word.starts_with('-') && word.len() == 2);
                word.contains(':') || !(is_flag || is_path(word))
            }
            After::Header => {
                let public = |(name, value): (&str, &str)| {
                    PUBLIC_HEADERS.contains(&name.trim().to_ascii_lowercase().as_str())
                        && self.secrets.mask(value) == value
                };
                !word.split_once(':').is_some_and(public)
            }
            After::Cookie => word.contains('='),
        }
    }
}

impl Secrets {
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

/// Whether a word is a number that a port, a page or a count has: passwords are longer.
fn is_small_number(word: &str) -> bool {
    (1..=5).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a word can be nothing but a path.
fn is_plainly_path(word: &str) -> bool {
    ["/", "./", "../", "~/"].iter().any(|beginning| word.starts_with(beginning)) && is_path(word)
}

/// Whether a word has the look of a port, or of two with an address: `8080`, `8080:80/tcp`, `127.0.0.1:8080:80`.
fn is_port(word: &str) -> bool {
    let bare = word.trim_end_matches("/tcp").trim_end_matches("/udp");
    !bare.is_empty() && bare.split(':').all(|part| is_small_number(part) || part.parse::<std::net::Ipv4Addr>().is_ok())
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
            &["mysql", "-u", "shop", "-phunter2"],
            &["mysql", "-u", "shop", "-p", "hunter2"],
            &["mysql", "-u", "shop:hunter2"],
            &["curl", "-u", "bob:hunter2", "https://a.example/"],
            &["sshpass", "-p", "hunter2", "ssh", "a.example"],
            &["docker", "login", "-u", "bob", "-p", "hunter2"],
            &["ldapsearch", "-D", "cn=bob", "-w", "hunter2"],
            &["sudo", "-u", "bob", "scrape", "-p", "hunter2"],
            &["python3", "scrape.py", "-p", "hunter2"],
            &["scrape", "-p", "hunter.2/x"],
            &["scrape", "-p123456"],
            &["sh", "-c", "mkdir -p out && scrape -p hunter2"],
            &["sh", "-c", "cd out; mysql -phunter2 < dump"],
            &["sh", "-c", "echo x | curl -u bob:hunter2 -T - https://a.example/"],
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
            &["mkdir", "-p", "out"],
            &["sh", "-c", "mkdir -p out/pages; cp -p a b && python3 -u scrape.py"],
            &["ssh", "-p", "2222", "a.example", "scrape"],
            &["docker", "run", "-p", "8080:80", "-u", "1000:1000", "scraper"],
            &["psql", "-U", "shop", "-p", "5432", "-c", "select 1"],
            &["sudo", "-u", "crawler", "timeout", "10", "scrape", "-p", "3"],
            &["python3", "scrape.py", "-p", "8080", "-P", "./profiles/a"],
            &["xargs", "-P", "4", "-n", "1", "scrape"],
            &["sort", "-u", "urls"],
            &["scrape", "-port", "8080", "-pages", "3"],
            &["/usr/bin/python3.11", "-u", "scrape", "-p8080"],
        ];
        for line in lines {
            assert_eq!(masked(line), *line, "{line:?}");
        }
    }
}
