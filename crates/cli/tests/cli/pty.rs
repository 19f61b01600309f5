//! `redrive` on a terminal: what it shows there, and what it does when somebody types, interrupts it or changes the size of the
//! window, each once something was seen.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Sandbox;

/// Runs a command on a terminal by a plan: after each text that was seen something is done. Ends with its exit code.
const DRIVER: &str = r#"
import fcntl, json, os, pty, signal, struct, subprocess, sys, termios
plan = json.loads(sys.argv[1])
master, slave = pty.openpty()
def resize(columns, rows):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
resize(plan["columns"], plan["rows"])
child = subprocess.Popen(sys.argv[2:], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
os.close(slave)
seen, place, steps = b"", 0, plan["steps"]
while True:
    try:
        block = os.read(master, 65536)
    except OSError:
        break
    if not block:
        break
    seen += block
    while steps:
        found = seen.find(steps[0]["after"].encode(), place)
        if found < 0:
            break
        step = steps.pop(0)
        place = found + len(step["after"].encode())
        if step["do"] == "type":
            os.write(master, step["line"].encode() + b"\n")
        elif step["do"] == "interrupt":
            child.send_signal(signal.SIGINT)
        elif step["do"] == "resize":
            resize(*step["size"])
            child.send_signal(signal.SIGWINCH)
        elif step["do"] == "touch":
            open(step["file"], "w").close()
sys.stdout.buffer.write(seen)
sys.stdout.flush()
code = child.wait()
sys.exit(code if not steps else 99)
"#;

/// A terminal for one command.
pub struct Terminal<'a> {
    sandbox: &'a Sandbox,
    size: (u16, u16),
    steps: Vec<Value>,
}

/// What was shown on it.
pub struct Shown {
    /// How the command ended.
    pub code: i32,
    /// Everything that was written to the terminal.
    pub raw: String,
    /// How wide it was at first.
    columns: usize,
}

impl<'a> Terminal<'a> {
    /// A terminal of so many columns.
    pub fn new(sandbox: &'a Sandbox, columns: u16) -> Self {
        Self { sandbox, size: (columns, 50), steps: Vec::new() }
    }

    /// The same with so many rows.
    pub fn rows(mut self, rows: u16) -> Self {
        self.size.1 = rows;
        self
    }

    /// Types a line once a text was seen.
    pub fn type_after(self, after: &str, line: &str) -> Self {
        self.step(json!({"after": after, "do": "type", "line": line}))
    }

    /// Interrupts the command once a text was seen.
    pub fn interrupt_after(self, after: &str) -> Self {
        self.step(json!({"after": after, "do": "interrupt"}))
    }

    /// Changes the size once a text was seen.
    pub fn resize_after(self, after: &str, columns: u16, rows: u16) -> Self {
        self.step(json!({"after": after, "do": "resize", "size": [columns, rows]}))
    }

    /// Makes a file once a text was seen, for a command that waits for it.
    pub fn touch_after(self, after: &str, file: &str) -> Self {
        self.step(json!({"after": after, "do": "touch", "file": file}))
    }

    fn step(mut self, step: Value) -> Self {
        self.steps.push(step);
        self
    }

    /// Runs `redrive`. What was to be done and never was is a failure.
    #[track_caller]
    pub fn run(self, args: &[&str]) -> Shown {
        let ((columns, rows), steps) = (self.size, self.steps);
        let plan = json!({"columns": columns, "rows": rows, "steps": steps}).to_string();
        let redrive = self.sandbox.command();
        let mut command = Command::new("timeout");
        command.args(["120", "python3", "-c", DRIVER, &plan]).arg(redrive.get_program()).args(args);
        for (name, value) in redrive.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let output = command.current_dir(self.sandbox.path("")).env("TERM", "xterm").output().expect("python3 starts");
        let raw = String::from_utf8_lossy(&output.stdout).into_owned();
        let code = output.status.code().unwrap_or_else(|| panic!("ended: {raw:?}"));
        assert!(code != 99 && code != 124, "not all was seen that was waited for ({steps:?}): {raw:?}");
        Shown { code, raw, columns: usize::from(columns) }
    }
}

impl Shown {
    /// Asserts the exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.raw);
        self
    }

    /// Every line that was shown, those that were overwritten included, without colours.
    pub fn lines(&self) -> Vec<String> {
        let text = without_codes(&self.raw).replace("\r\n", "\n");
        let lines = text.trim_end_matches('\n').split(['\r', '\n']);
        lines.flat_map(|line| rows(line, self.columns)).map(|row| row.trim_end().to_owned()).collect()
    }
}

/// The rows of a bar that has several: each is filled up with spaces instead of being ended. A line that is too long is left as it is.
fn rows(line: &str, columns: usize) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    let filled = chars.len() > columns && chars.len().is_multiple_of(columns);
    match filled && chars.chunks(columns).all(|row| row.last() == Some(&' ')) {
        true => chars.chunks(columns).map(|row| row.iter().collect()).collect(),
        false => vec![line.to_owned()],
    }
}

/// A text without the codes that set colours and move the cursor.
fn without_codes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(char::is_alphabetic).map_or("", |(_, rest)| rest))
}
