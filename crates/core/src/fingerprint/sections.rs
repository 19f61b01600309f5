//! Which lines of a message say what happened. The rest is about this one instance: details, hints, progress, excerpts,
//! the item at hand.

/// Starts of lines after which databases only tell the details of this instance.
const DETAILS: [&str; 7] = ["DETAIL:", "HINT:", "CONTEXT:", "STATEMENT:", "QUERY:", "WHERE:", "LINE "];

/// The parts of a message that say what happened, each of one or more whole lines.
pub(super) fn telling(message: &str) -> Vec<&str> {
    let (mut state, mut sections) = (State::Telling, Vec::with_capacity(1));
    let (mut start, mut at) = (0, 0);
    for line in message.split_inclusive('\n') {
        let end = at + line.len();
        if !state.accepts(at == 0, line.trim_end()) {
            if start < at {
                sections.push(&message[start..at]);
            }
            start = end;
        }
        at = end;
    }
    if start < at {
        sections.push(&message[start..at]);
    }
    sections
}

enum State {
    Telling,
    /// Inside a Python traceback, whose frames are indented.
    Traceback,
    /// After `Call log:`, where the first entry says what was waited for and the others how it went.
    CallLog,
    Over,
}

impl State {
    fn accepts(&mut self, first: bool, line: &str) -> bool {
        let text = line.trim_start();
        let indented = text.len() < line.len();
        match self {
            Self::Over => return false,
            Self::CallLog => {
                *self = Self::Over;
                return true;
            }
            Self::Traceback if indented => return false,
            Self::Traceback | Self::Telling => {}
        }
        *self = match text {
            _ if text.starts_with("[cause]: ") => Self::Telling,
            _ if !first && text.starts_with(['{', '[']) => Self::Over,
            _ if DETAILS.iter().any(|start| text.starts_with(start)) => Self::Over,
            "Call log:" => Self::CallLog,
            "Traceback (most recent call last):" => Self::Traceback,
            _ => Self::Telling,
        };
        matches!(self, Self::Telling) && !is_frame(text, indented) && !is_excerpt(text)
    }
}

fn is_frame(text: &str, indented: bool) -> bool {
    indented && (text.starts_with("at ") || text.starts_with("from "))
}

/// Underlines, boxes, and listed elements of a page.
fn is_excerpt(text: &str) -> bool {
    let listed = || text.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(") <");
    text.starts_with(['╔', '║', '╚', '^', '~']) || (text.starts_with(|c: char| c.is_ascii_digit()) && listed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_of_one_instance_are_left_out() {
        let table = [
            ("one line", "one line"),
            ("duplicate key\nDETAIL:  Key (a)=(1) already exists.\nmore", "duplicate key"),
            ("Timeout.\nCall log:\n  - waiting for x\n  - 63 × resolved", "Timeout.|  - waiting for x"),
            ("bad:\n    1) <p>a</p>\n    2) <p>b</p>\nend", "bad:|end"),
            ("Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'", "KeyError: 'x'"),
            ("Dropped: no price\n{'sku': 'B0'}", "Dropped: no price"),
            ("Error: no\n    at f (a.js:1:2)", "Error: no"),
            (
                "Error: no\n    at f (a.js:1:2) {\n  [cause]: Error: late\n      at g (a.js:3:1)\n}",
                "Error: no|  [cause]: Error: late|}",
            ),
        ];
        for (message, told) in table {
            let sections: Vec<&str> = telling(message).into_iter().map(str::trim_end).collect();
            assert_eq!(sections.join("|"), told);
        }
    }
}
