//! A request as a command line for curl, to be pasted into any POSIX shell.
//!
//! Nothing in a request may end its quotes, be read as an option or a file name, or reach the terminal as a control
//! character: a terminal that is pasted into obeys some of those. Masked values stay masked; the person who pastes
//! fills them in.

use redrive_core::hidden::is_hidden;
use url::Url;

use super::request::{HttpRequest, header, one_line, token};

/// Linux takes no longer argument, in bytes, its end included. The `printf` of a shell has no such limit.
const ARGUMENT_BYTES_MAX: usize = 128 * 1024;

/// How the arguments of one command stand on lines of their own.
const NEXT_LINE: &str = " \\\n  ";

/// The command that sends a request.
pub fn curl(request: &HttpRequest) -> String {
    let mut arguments = vec!["curl".to_owned()];
    arguments.extend(method(request));
    arguments.extend(address(&request.url));
    arguments.extend(headers(request));
    let Some(body) = &request.body else { return arguments.join(NEXT_LINE) };
    if let Some(text) = as_argument(body) {
        arguments.push(format!("--data-raw {}", quote(text)));
        return arguments.join(NEXT_LINE);
    }
    arguments.push("--data-binary @-".to_owned());
    format!("{} | {}", printf(body), arguments.join(NEXT_LINE))
}

/// The method, where it is not the one that curl takes by itself.
fn method(request: &HttpRequest) -> Option<String> {
    match (token(&request.method).as_str(), &request.body) {
        ("GET", None) | ("POST", Some(_)) => None,
        // Told only the word, curl waits for a body that never comes.
        ("HEAD", None) => Some("--head".to_owned()),
        (method, _) => Some(format!("--request {}", quote(method))),
    }
}

/// The address, and an option if it has characters that curl would take for a pattern.
fn address(url: &str) -> impl Iterator<Item = String> {
    // What has no scheme is HTTP for curl too, but could begin with `-` or `@`, which mean something to it.
    let url = Url::parse(url).map_or_else(|_| format!("http://{}", one_line(url)), String::from);
    let globoff = url.contains(['[', ']', '{', '}']).then(|| "--globoff".to_owned());
    [quote(&url)].into_iter().chain(globoff)
}

/// The headers, without a length, which curl counts, and without a type that it would make up.
fn headers(request: &HttpRequest) -> Vec<String> {
    let sent = request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("Content-Length"));
    let sent = sent.map(|(name, value)| match one_line(value) {
        value if value.is_empty() => format!("{};", token(name)),
        value => format!("{}: {value}", token(name)),
    });
    let untyped = request.body.is_some() && header(&request.headers, "Content-Type").is_none();
    let mut options: Vec<_> = sent
        .chain(untyped.then(|| "Content-Type:".to_owned()))
        .map(|line| format!("--header {}", quote(&line)))
        .collect();
    if header(&request.headers, "Accept-Encoding").is_some() {
        options.push("--compressed".to_owned());
    }
    options
}

/// The body as text, if it can be an argument and go through a terminal unharmed.
fn as_argument(body: &[u8]) -> Option<&str> {
    let harmless = |c: char| !is_hidden(c) || matches!(c, '\n' | '\t');
    let text = std::str::from_utf8(body).ok()?;
    (text.len() < ARGUMENT_BYTES_MAX && text.chars().all(harmless)).then_some(text)
}

/// A command that prints any bytes.
fn printf(bytes: &[u8]) -> String {
    let mut command = "printf '".to_owned();
    for &byte in bytes {
        match byte {
            b' '..=b'~' if !br"'\%-".contains(&byte) => command.push(char::from(byte)),
            _ => command.push_str(&format!("\\{byte:03o}")),
        }
    }
    command.push('\'');
    command
}

/// The text as one word of a shell.
fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@,+".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    fn request(method: &str, url: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> HttpRequest {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        HttpRequest { method: method.into(), url: url.into(), headers, body: body.map(<[u8]>::to_vec) }
    }

    /// What a shell makes of a script that is pasted into it.
    fn shell(script: &str) -> Vec<u8> {
        let mut shell = Command::new("sh");
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell");
        shell.stdin.take().expect("its input").write_all(script.as_bytes()).expect("it reads");
        let output = shell.wait_with_output().expect("its output");
        assert!(output.status.success(), "{script}");
        output.stdout
    }

    /// The arguments that curl would get, and what it would read.
    fn run(request: &HttpRequest) -> (Vec<String>, Vec<u8>) {
        let told = shell(&format!("curl() {{ printf '%s\\0' \"$@\"; }}\n{}", curl(request)));
        let told = String::from_utf8(told).expect("text");
        let read = shell(&format!("curl() {{ case \"$*\" in *@-) cat;; esac; }}\n{}", curl(request)));
        (told.split_terminator('\0').map(str::to_owned).collect(), read)
    }

    #[test]
    fn it_reads_well() {
        let headers = [("Authorization", "***"), ("Accept", "text/html, */*"), ("Accept-Encoding", "gzip")];
        let get = curl(&request("GET", "https://h.example/a?b=c", &headers, None));
        let expected = "curl \\\n  'https://h.example/a?b=c' \\\n  --header 'Authorization: ***' \\\n  \
                        --header 'Accept: text/html, */*' \\\n  --header 'Accept-Encoding: gzip' \\\n  --compressed";
        assert_eq!(get, expected);
        let put = curl(&request("PUT", "https://h.example/", &[("Content-Type", "application/json")], Some(b"{}")));
        let expected = "curl \\\n  --request PUT \\\n  https://h.example/ \\\n  \
                        --header 'Content-Type: application/json' \\\n  --data-raw '{}'";
        assert_eq!(put, expected);
    }

    #[test]
    fn a_shell_gives_curl_what_was_meant() {
        let texts = [
            "'",
            "''\\'",
            "$(id) `id` $HOME !! \\n %s",
            "@/etc/passwd",
            "-d",
            "",
            " ",
            "ü 漢 🦀",
            "\ta\nb\n",
            "*?[a]~#&;|<>",
        ];
        for text in texts {
            let (told, read) = run(&request("POST", "https://h/", &[("X-A", text)], Some(text.as_bytes())));
            let line = if one_line(text).is_empty() { "X-A;".to_owned() } else { format!("X-A: {}", one_line(text)) };
            let expected = ["https://h/", "--header", &line, "--header", "Content-Type:", "--data-raw", text];
            assert_eq!(told, expected);
            assert_eq!(read, b"");
        }
    }

    #[test]
    fn what_no_argument_can_be_goes_through_a_pipe() {
        let every_byte: Vec<u8> = (0..=255).collect();
        let long = "ä%'".repeat(ARGUMENT_BYTES_MAX / 4);
        let escape = b"\x1b[201~id\n";
        for body in [every_byte.as_slice(), b"-n\0", b"a\r\nb", escape, "\u{9b}".as_bytes(), long.as_bytes()] {
            let request = request("POST", "https://h/", &[("Content-Type", "x")], Some(body));
            let (told, read) = run(&request);
            assert_eq!(told.last().map(String::as_str), Some("@-"));
            assert_eq!(read, body);
            assert!(!curl(&request).contains(|c: char| c.is_control() && c != '\n'));
        }
    }

    #[test]
    fn nothing_becomes_an_option_a_file_or_a_header_of_its_own() {
        let headers = [("@/etc/passwd", "1"), ("X-A", "1\r\nX-B: 2"), ("content-length", "99")];
        let (told, _) = run(&request("X'\n;id", "-K/etc/passwd\0", &headers, None));
        let headers = ["--header", "__etc_passwd: 1", "--header", "X-A: 1  X-B: 2"];
        assert_eq!(told[..3], ["--request", "X'__id", "http://-K/etc/passwd"]);
        assert_eq!(told[3..], headers);
        let (told, _) = run(&request("GET", "http://[::1]/?{a,b}[1-3]", &[], None));
        assert_eq!(told, ["http://[::1]/?{a,b}[1-3]", "--globoff"]);
    }

    #[test]
    fn methods_are_said_only_where_curl_would_take_another() {
        let method =
            |method, body| run(&request(method, "https://h/", &[("Content-Type", "x")], body)).0[..2].join(" ");
        assert_eq!(method("GET", None), "https://h/ --header");
        assert_eq!(method("POST", Some(b"".as_slice())), "https://h/ --header");
        assert_eq!(method("HEAD", None), "--head https://h/");
        assert_eq!(method("GET", Some(b"x".as_slice())), "--request GET");
        assert_eq!(method("POST", None), "--request POST");
    }
}
