//! Where in our own code a failure happened: the innermost frame of a stack trace that is not a library's.
//!
//! A frame is named by file and function. Line numbers, directories and hashes differ between releases and machines, so
//! they are left out.

use super::beginning;

/// How much of a stack trace is looked at.
const STACK_BYTES_MAX: usize = 32 * 1024;

/// Parts of paths that belong to libraries and language runtimes.
#[rustfmt::skip]
const LIBRARY_PATHS: [&str; 18] = [
    "site-packages", "dist-packages", "/lib/python", "\\Lib\\", "<frozen", "<string>", ".pyx", ".pxi", "node_modules",
    "node:", "<anonymous>", "/pkg/mod/", "/usr/local/go/src/", "/rustc/", "/.cargo/registry", "/gems/", "/lib/ruby/",
    "native code",
];
/// Packages that are often shipped next to the program instead of in a directory for libraries.
#[rustfmt::skip]
const VENDORED: [&str; 16] = [
    "/requests/", "/urllib3/", "/httpx/", "/httpcore/", "/aiohttp/", "/pydantic/", "/scrapy/", "/twisted/",
    "/playwright/", "/selenium/", "/lxml/", "/bs4/", "/parsel/", "/botocore/", "/sqlalchemy/", "/celery/",
];
/// Starts of names that belong to libraries and language runtimes.
#[rustfmt::skip]
const LIBRARY_NAMES: [&str; 40] = [
    "java.", "javax.", "jdk.", "sun.", "com.sun.", "kotlin.", "kotlinx.", "scala.", "groovy.", "org.apache.",
    "org.springframework.", "org.jsoup.", "org.hibernate.", "org.eclipse.", "org.openqa.", "org.postgresql.",
    "io.netty.", "io.grpc.", "okhttp3.", "okio.", "com.google.", "com.fasterxml.", "com.mysql.", "com.zaxxer.",
    "com.microsoft.playwright.", "reactor.", "akka.", "System.", "Microsoft.", "OpenQA.", "Newtonsoft.", "Npgsql.",
    "runtime.", "net/http.", "std::", "core::", "alloc::", "tokio::", "<core::", "<alloc::",
];

/// The innermost frame of our own code, as `file in function` or as a qualified name.
pub(super) fn top_in_app(stack: &str) -> Option<String> {
    if stack.contains("\", line ") {
        // Python tells the innermost frame last.
        return end(stack).lines().rev().find_map(python);
    }
    let mut lines = beginning(stack, STACK_BYTES_MAX).lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().map(|line| line.trim_start());
        let frame = after_at(line).or_else(|| ruby(line)).or_else(|| named_above(line, next));
        if frame.is_some() {
            return frame;
        }
    }
    None
}

/// The frames of our own code, in their order, as they are told: with the line of source, or the place, that belongs to each.
pub fn own_frames(stack: &str) -> Vec<&str> {
    let is_python = stack.contains("\", line ");
    let mut frames = Vec::new();
    let mut lines = beginning(stack, STACK_BYTES_MAX).lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().copied();
        let has_more = match is_python {
            true => python(line).map(|_| next.is_some_and(|next| next.starts_with("    "))),
            false => match after_at(line).or_else(|| ruby(line)) {
                Some(_) => Some(false),
                None => named_above(line, next.map(str::trim_start)).map(|_| true),
            },
        };
        if let Some(has_more) = has_more {
            frames.push(line);
            frames.extend(lines.next_if(|_| has_more));
        }
    }
    frames
}

/// Returns the file and line of the innermost frame of our own code: `fetch.py:9`.
pub fn own_place(stack: &str) -> Option<String> {
    if stack.contains("\", line ") {
        let line = end(stack).lines().rev().find(|line| python(line).is_some())?;
        let (path, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
        return numbered(path, rest.split(',').next()?);
    }
    let frames = own_frames(stack);
    let mut words = frames.iter().flat_map(|line| line.split([' ', '\t', '(', ')'])).peekable();
    while let Some(word) = words.next() {
        let file = word.rsplit(['/', '\\']).next().unwrap_or(word);
        let place = file.split_once(':').and_then(|(name, line)| match line {
            "line" => numbered(name, words.peek()?),
            line => numbered(name, line.split(':').next()?),
        });
        if place.is_some() {
            return place;
        }
    }
    None
}

fn numbered(path: &str, line: &str) -> Option<String> {
    let file = path.rsplit(['/', '\\']).next().filter(|file| file.contains('.'))?;
    line.parse::<u32>().ok().map(|line| format!("{file}:{line}"))
}

fn end(stack: &str) -> &str {
    let from = stack.len().saturating_sub(STACK_BYTES_MAX);
    let from = (from..=stack.len()).find(|at| stack.is_char_boundary(*at)).unwrap_or(0);
    &stack[from..]
}

/// `File "/app/a.py", line 3, in f`
fn python(line: &str) -> Option<String> {
    let (path, rest) = line.trim_start().strip_prefix("File \"")?.split_once("\", line ")?;
    let (_, function) = rest.split_once(", in ")?;
    named(path, function)
}

/// JavaScript, Java and .NET: `at f (/app/a.js:1:2)`, `at a.B.c(B.java:3)`, `at A.B.C(String s) in /app/B.cs:line 4`.
fn after_at(line: &str) -> Option<String> {
    let frame = line.trim_start().strip_prefix("at ")?;
    // Whether the functions that wait are told depends on the version of the library.
    if frame.starts_with("async ") {
        return None;
    }
    if let Some((function, place)) = frame.strip_suffix(')').and_then(|frame| frame.rsplit_once(" (")) {
        return named(place, function.trim_start_matches("new "));
    }
    let Some((name, _)) = frame.split_once('(') else {
        return named(frame, "");
    };
    qualified(name.rsplit_once('/').map_or(name, |(_, name)| name))
}

/// ``/app/a.rb:3:in `f'``
fn ruby(line: &str) -> Option<String> {
    let (place, function) = line.trim_start().trim_start_matches("from ").split_once(":in ")?;
    named(place, function.trim_matches(['`', '\'']))
}

/// Go and Rust tell the function first and its place in the line below.
fn named_above(line: &str, next: Option<&str>) -> Option<String> {
    let place = next?;
    let file = place.strip_prefix("at ").unwrap_or(place);
    if !(file.contains(".go:") || file.contains(".rs:")) || is_library_path(file) {
        return None;
    }
    let numbered = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    let name = numbered.strip_prefix(": ").unwrap_or(numbered);
    let name = name.rsplit_once('(').map_or(name, |(name, _)| name);
    let name = name.rsplit_once("::h").filter(|(_, hash)| hash.len() == 16).map_or(name, |(name, _)| name);
    qualified(name.rsplit_once('/').map_or(name, |(_, name)| name))
}

fn named(place: &str, function: &str) -> Option<String> {
    if is_library_path(place) {
        return None;
    }
    let path = place.split(['?', '#']).next().unwrap_or(place);
    let file = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let file = file.split(':').next().unwrap_or(file);
    let function = function.split(" [as ").next().unwrap_or(function).rsplit('.').next().unwrap_or("");
    if file.is_empty() || !file.contains('.') {
        return None;
    }
    Some(if function.is_empty() { file.to_owned() } else { format!("{file} in {function}") })
}

/// Lambdas are numbered by the compiler.
fn qualified(name: &str) -> Option<String> {
    if name.is_empty() || name.contains(' ') || LIBRARY_NAMES.iter().any(|library| name.starts_with(library)) {
        return None;
    }
    Some(name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned())
}

fn is_library_path(path: &str) -> bool {
    path.starts_with("internal/") || LIBRARY_PATHS.iter().chain(&VENDORED).any(|library| path.contains(library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_frame_is_found_in_many_languages() {
        let table = [
            (
                "Traceback (most recent call last):\n  File \"/app/x/job.py\", line 3, in run\n    f()\n  File \
                 \"/app/x/fetch.py\", line 9, in get\n    r()\n  File \"/v/lib/python3.11/site-packages/requests/a.py\", line 1, \
                 in r\nE: x",
                Some("fetch.py in get"),
            ),
            (
                "Traceback:\n  File \"C:\\u\\a.py\", line 2, in f\n  File \"C:\\Py\\Lib\\json\\d.py\", line 2, in g",
                Some("a.py in f"),
            ),
            (
                "Error: x\n    at emit (node:events:5:2)\n    at g (/app/node_modules/a/b.js:1:2)\n    at Object.load \
                 (/srv/r/1/src/http.js:27:15)\n    at async run (/srv/r/1/src/job.js:2:1)",
                Some("http.js in load"),
            ),
            ("Error: x\n    at /app/src/main.js:3:4", Some("main.js")),
            ("Error: x\n    at emit (node:events:5:2)", None),
            (
                "java.lang.E: x\n\tat java.base/java.net.Socket.connect(Socket.java:633)\n\tat \
                 com.acme.Catalog.lambda$main$0(Catalog.java:78)",
                Some("com.acme.Catalog.lambda$main$"),
            ),
            (
                "System.E: x\n   at System.Net.Http.Send(Int32 n)\n   at Acme.Job.Run(String s) in /src/Job.cs:line 4",
                Some("Acme.Job.Run"),
            ),
            ("goroutine 1 [running]:\nmain.fetch(0xc0000)\n\t/app/main.go:12 +0x1d", Some("main.fetch")),
            (
                "   0: std::panicking::begin\n             at /rustc/9f/library/std/src/panicking.rs:5:1\n   4: \
                 shop::fetch::h0123456789abcdef\n             at ./src/main.rs:4:5",
                Some("shop::fetch"),
            ),
            ("/usr/lib/ruby/gems/a.rb:1:in `x'\n\tfrom /app/lib/job.rb:7:in `run'", Some("job.rb in run")),
            ("no stack at all", None),
            ("", None),
        ];
        for (stack, frame) in table {
            assert_eq!(top_in_app(stack).as_deref(), frame, "{stack}");
        }
    }

    #[test]
    fn the_innermost_place_in_our_own_code_has_a_file_and_a_line() {
        let table = [
            (
                "Traceback (most recent call last):\n  File \"/app/job.py\", line 3, in run\n    f()\n  File \
                 \"/app/fetch.py\", line 9, in get\n    r()\n  File \"/v/site-packages/a.py\", line 1, in r\nE: x",
                Some("fetch.py:9"),
            ),
            ("Error: x\n    at emit (node:events:5:2)\n    at load (/srv/http.js:27:15)", Some("http.js:27")),
            ("Error: x\n    at C:\\app\\main.js:3:4", Some("main.js:3")),
            ("java.lang.E: x\n\tat java.net.S.c(S.java:6)\n\tat com.acme.Cat.f(Cat.java:78)", Some("Cat.java:78")),
            ("System.E: x\n   at Acme.Job.Run(String s) in /src/Job.cs:line 4", Some("Job.cs:4")),
            ("goroutine 1 [running]:\nmain.fetch(0xc0000)\n\t/app/main.go:12 +0x1d", Some("main.go:12")),
            ("   4: shop::fetch::h0123456789abcdef\n             at ./src/main.rs:4:5", Some("main.rs:4")),
            ("/usr/lib/ruby/gems/a.rb:1:in `x'\n\tfrom /app/lib/job.rb:7:in `run'", Some("job.rb:7")),
            ("Error: x\n    at emit (node:events:5:2)", None),
            ("no stack: at 12:30 it was over", None),
        ];
        for (stack, place) in table {
            assert_eq!(own_place(stack).as_deref(), place, "{stack}");
        }
    }

    #[test]
    fn our_own_frames_are_told_with_what_belongs_to_each() {
        let table: [(&str, &[&str]); 4] = [
            (
                "Traceback (most recent call last):\n  File \"/app/job.py\", line 3, in run\n    f()\n  File \
                 \"/v/site-packages/requests/a.py\", line 1, in r\n    x()\n  File \"/app/late.py\", line 1, in g\nE: x",
                &["  File \"/app/job.py\", line 3, in run", "    f()", "  File \"/app/late.py\", line 1, in g"],
            ),
            (
                "Error: x\n    at emit (node:events:5:2)\n    at load (/srv/http.js:27:15)",
                &["    at load (/srv/http.js:27:15)"],
            ),
            (
                "goroutine 1 [running]:\nmain.fetch(0xc0000)\n\t/app/main.go:12 +0x1d",
                &["main.fetch(0xc0000)", "\t/app/main.go:12 +0x1d"],
            ),
            ("no stack at all", &[]),
        ];
        for (stack, own) in table {
            assert_eq!(own_frames(stack), own, "{stack}");
        }
    }
}
