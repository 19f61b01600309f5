//! What a runtime prints about an error that nobody caught: Python, Node, Java, Ruby and Go.
//!
//! Only forms that the runtimes themselves print are read; anything else is left to its last line.

/// An error that ended a process.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Uncaught {
    /// The line that tells it.
    pub message: String,
    /// Its type, if it has one.
    pub error_type: Option<String>,
    /// Its code, if it has one: `ECONNREFUSED`.
    pub code: Option<String>,
}

/// The error that ended a process, from what it wrote to its error stream.
pub fn read(stderr: &str) -> Option<Uncaught> {
    python(stderr).or_else(|| node(stderr)).or_else(|| java(stderr)).or_else(|| ruby(stderr)).or_else(|| go(stderr))
}

/// The last line that says something.
pub fn last_line(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

/// The type in a line such as `requests.exceptions.Timeout: it took too long`, or `Timeout('it took too long')` as Python's `repr`
/// has it.
pub fn error_type(line: &str) -> Option<String> {
    let line = line.trim();
    let told = line.split(':').next()?;
    let name = told.split_once('(').filter(|_| line.ends_with(')')).map_or(told, |(name, _)| name).trim();
    let last = name.rsplit('.').next()?;
    let ends = ["Error", "Exception", "Timeout", "Exit", "Interrupt", "NotFound"];
    let is_type = last.starts_with(|c: char| c.is_ascii_uppercase()) && ends.iter().any(|end| last.ends_with(end));
    (is_type && is_name(name)).then(|| name.to_owned())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '$' | ':'))
}

/// The frames of a traceback are indented; what follows the last of them is the error. Its message may have more lines.
fn python(stderr: &str) -> Option<Uncaught> {
    let (_, trace) = stderr.rsplit_once("Traceback (most recent call last):")?;
    if let Some(last) = last_line(trace).filter(|line| error_type(line).is_some()) {
        return Some(Uncaught { error_type: error_type(last), message: last.to_owned(), code: None });
    }
    let mut rest = trace.trim_start_matches(['\r', '\n']);
    while rest.starts_with([' ', '\t']) {
        rest = rest.split_once('\n')?.1;
    }
    let name = rest.lines().next()?.split(':').next()?.trim();
    let is_type = is_name(name) && name.contains(|c: char| c.is_ascii_alphabetic());
    is_type.then(|| Uncaught { error_type: Some(name.to_owned()), message: rest.trim_end().to_owned(), code: None })
}

/// `Name: message`, frames that begin with `at`, the fields of the error, and the version at the end.
fn node(stderr: &str) -> Option<Uncaught> {
    let lines: Vec<&str> = stderr.lines().collect();
    let frame = lines.iter().position(|line| line.starts_with("    at "))?;
    let head = lines[..frame].iter().rposition(|line| node_name(line).is_some())?;
    let (name, marked) = node_name(lines[head])?;
    // What stands in brackets is the error's own name, or its code.
    let marked_code = marked.filter(|marked| is_code(marked));
    let field = lines[frame..].iter().find_map(|line| line.trim().strip_prefix("code: '")?.split('\'').next());
    let causes = lines[frame..].iter().filter_map(|line| node_cause(line));
    Some(Uncaught {
        message: lines[head..frame].iter().copied().chain(causes).collect::<Vec<_>>().join("\n"),
        error_type: Some(marked.filter(|marked| !is_code(marked)).unwrap_or(name).to_owned()),
        code: marked_code.or(field.filter(|code| is_code(code))).map(str::to_owned),
    })
}

/// `[cause]: Error: connect ECONNREFUSED 127.0.0.1:1`, without the bracket that opens its fields.
fn node_cause(line: &str) -> Option<&str> {
    let cause = line.trim().strip_suffix('{').unwrap_or(line).trim();
    let said = cause.strip_prefix("[cause]: ")?;
    (!said.trim().is_empty()).then_some(cause)
}

/// `TypeError`, or `DOMException [TimeoutError]`, before a colon; after `<ref *1> ` if the error refers to itself.
fn node_name(line: &str) -> Option<(&str, Option<&str>)> {
    let line = line.strip_prefix("<ref *").and_then(|rest| rest.split_once("> ")).map_or(line, |(_, rest)| rest);
    let head = line.split(": ").next()?;
    let (name, marked) = match head.split_once(" [") {
        Some((name, marked)) => (name, Some(marked.strip_suffix(']')?)),
        None => (head, None),
    };
    let is_error = ["Error", "Exception"].iter().any(|end| name.ends_with(end));
    (is_error && is_name(name)).then_some((name, marked))
}

fn is_code(text: &str) -> bool {
    (2..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// `Exception in thread "main" java.net.ConnectException: Connection refused`
fn java(stderr: &str) -> Option<Uncaught> {
    let said = stderr.lines().find_map(|line| line.strip_prefix("Exception in thread \"")?.split_once("\" "))?.1;
    let name = said.split(':').next()?.trim();
    is_name(name).then(|| Uncaught { message: said.to_owned(), error_type: Some(name.to_owned()), code: None })
}

/// `fetch.rb:3:in 'open': execution expired (Net::OpenTimeout)`
fn ruby(stderr: &str) -> Option<Uncaught> {
    let line = stderr.lines().find(|line| line.contains(".rb:") && line.contains(":in ") && line.ends_with(')'))?;
    let (said, name) = line.strip_suffix(')')?.rsplit_once(" (")?;
    let (_, said) = said.split_once(": ")?;
    let is_type = is_name(name) && name.starts_with(|c: char| c.is_ascii_uppercase());
    is_type.then(|| Uncaught { message: said.to_owned(), error_type: Some(name.to_owned()), code: None })
}

/// The methods by which Go's client begins its errors.
const GO_METHODS: &[&str] = &["Get", "Head", "Post", "Put", "Patch", "Delete", "Options"];

/// `panic: Get "https://…": dial tcp: …`, or the same after the date of a log.
fn go(stderr: &str) -> Option<Uncaught> {
    let panicked =
        stderr.lines().find_map(|line| line.strip_prefix("panic: ")).filter(|_| stderr.contains("\ngoroutine "));
    let last = last_line(stderr)?;
    let said = panicked.unwrap_or_else(|| without_date(last));
    let asks = |method: &&str| said.strip_prefix(*method).is_some_and(|rest| rest.starts_with(" \""));
    let error_type = if GO_METHODS.iter().any(asks) && said.contains("\": ") {
        Some("*url.Error")
    } else {
        ["dial tcp", "dial udp", "read tcp", "write tcp"]
            .iter()
            .any(|start| said.starts_with(start))
            .then_some("*net.OpError")
    };
    if error_type.is_none() && panicked.is_none() {
        return None;
    }
    Some(Uncaught { message: said.to_owned(), error_type: error_type.map(str::to_owned), code: None })
}

/// Without `2024/01/31 12:00:00 ` at the beginning.
fn without_date(line: &str) -> &str {
    let is_stamp = |text: &str| text.chars().all(|c| c.is_ascii_digit() || matches!(c, '/' | ':' | '.'));
    match line.char_indices().filter(|(_, c)| *c == ' ').nth(1) {
        Some((at, _)) if line[..at].split(' ').all(is_stamp) => &line[at + 1..],
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_read(stderr: &str, message: &str, error_type: Option<&str>, code: Option<&str>) {
        let uncaught = read(stderr).unwrap_or_else(|| panic!("nothing was read in:\n{stderr}"));
        assert_eq!(uncaught.message, message);
        assert_eq!((uncaught.error_type.as_deref(), uncaught.code.as_deref()), (error_type, code));
    }

    #[test]
    fn python_tells_the_error_last() {
        let trace = "noise\nTraceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    f()\n";
        let timeout = "requests.exceptions.ReadTimeout: too long";
        assert_read(&format!("{trace}{timeout}\n"), timeout, Some("requests.exceptions.ReadTimeout"), None);
        let long =
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for Product\nprice\n  Field required";
        assert_read(&format!("{trace}{long}\n"), long, Some("pydantic_core._pydantic_core.ValidationError"), None);
        assert_read(
            &format!("{trace}socket.gaierror: [Errno -2] Name or service not known\n"),
            "socket.gaierror: [Errno -2] Name or service not known",
            Some("socket.gaierror"),
            None,
        );
        let first = "urllib3.exceptions.ReadTimeoutError: slow\n\nDuring handling of the above exception, another exception occurred:\n\n";
        assert_read(&format!("{trace}{first}{trace}KeyError: 'price'\n"), "KeyError: 'price'", Some("KeyError"), None);
    }

    #[test]
    fn node_tells_the_error_before_its_frames() {
        let refused = "node:events:502\n      throw er; // Unhandled 'error' event\n      ^\n\nError: connect ECONNREFUSED 127.0.0.1:1\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16) {\n  errno: -111,\n  code: 'ECONNREFUSED',\n  port: 1\n}\n\nNode.js v20.20.2\n";
        assert_read(refused, "Error: connect ECONNREFUSED 127.0.0.1:1", Some("Error"), Some("ECONNREFUSED"));
        let late = "node:internal\n      ^\nDOMException [TimeoutError]: The operation was aborted due to timeout\n    at node:internal/deps/undici/undici:14976:13\n\nNode.js v20.20.2\n";
        let message = "DOMException [TimeoutError]: The operation was aborted due to timeout";
        assert_read(late, message, Some("TimeoutError"), None);
        let circular = "    ^\n\n<ref *1> AxiosError: timeout of 200ms exceeded\n    at RedirectableRequest.handleTimeout (/app/node_modules/axios/dist/node/axios.cjs:5103:15) {\n  isAxiosError: true,\n  code: 'ECONNABORTED',\n  request: <ref *3> Writable {}\n}\n\nNode.js v20.20.2\n";
        let message = "<ref *1> AxiosError: timeout of 200ms exceeded";
        assert_read(circular, message, Some("AxiosError"), Some("ECONNABORTED"));
        let caused = "    ^\n\nTypeError: fetch failed\n    at node:internal/deps/undici/undici:13185:13\n    at async main (file:///app/scrape.mjs:3:13) {\n  [cause]: Error: connect ECONNREFUSED 127.0.0.1:1\n      at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16) {\n    errno: -111,\n    code: 'ECONNREFUSED',\n    port: 1\n  }\n}\n\nNode.js v20.20.2\n";
        let message = "TypeError: fetch failed\n[cause]: Error: connect ECONNREFUSED 127.0.0.1:1";
        assert_read(caused, message, Some("TypeError"), Some("ECONNREFUSED"));
        let coded = "      ^\n\nTypeError [ERR_INVALID_URL]: Invalid URL\n    at new URL (node:internal/url:806:29)\n";
        assert_read(coded, "TypeError [ERR_INVALID_URL]: Invalid URL", Some("TypeError"), Some("ERR_INVALID_URL"));
    }

    #[test]
    fn java_ruby_and_go_tell_it_first() {
        assert_read(
            "Exception in thread \"main\" java.net.ConnectException: Connection refused\n\tat java.base/sun.nio.ch.Net.connect0(Native Method)\n",
            "java.net.ConnectException: Connection refused",
            Some("java.net.ConnectException"),
            None,
        );
        assert_read(
            "fetch.rb:3:in 'Net::HTTP#connect': execution expired (Net::OpenTimeout)\n\tfrom fetch.rb:9:in '<main>'\n",
            "execution expired",
            Some("Net::OpenTimeout"),
            None,
        );
        let refused = "Get \"http://127.0.0.1:1\": dial tcp 127.0.0.1:1: connect: connection refused";
        assert_read(
            &format!("panic: {refused}\n\ngoroutine 1 [running]:\nmain.main()\n\t/app/main.go:9 +0x5\nexit status 2\n"),
            refused,
            Some("*url.Error"),
            None,
        );
        assert_read(&format!("2026/01/31 12:00:00 {refused}\n"), refused, Some("*url.Error"), None);
    }

    #[test]
    fn a_line_may_begin_with_a_type() {
        for line in
            ["TimeoutError: x", "TimeoutError", "TimeoutError()", "TimeoutError('a: b')", "TimeoutError(1, 'x')"]
        {
            assert_eq!(error_type(line).as_deref(), Some("TimeoutError"), "{line}");
        }
        assert_eq!(error_type("a.b.ReadTimeout(Pool('x'))").as_deref(), Some("a.b.ReadTimeout"));
        for line in ["", "it was a TimeoutError", "timeout(3)", "Error(s) were found", "(x)", "no: TimeoutError: x"] {
            assert_eq!(error_type(line), None, "{line}");
        }
    }

    #[test]
    fn anything_else_is_left_alone() {
        for text in ["", "it is over: no\n", "Error: no such file\n", "warning at line 3\n    at the end\n", "a b c\n"]
        {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
