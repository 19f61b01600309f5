//! Lines of comma-separated values, for spreadsheets.

use super::foreign::harmless;

/// Fields as one line.
pub fn line(fields: &[&str]) -> String {
    fields.iter().map(|field| quoted(field)).collect::<Vec<_>>().join(",")
}

/// A field. What a spreadsheet would take for a formula is made a text.
fn quoted(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = format!("{}{}", if formula { "'" } else { "" }, harmless(text));
    match text.contains(['"', ',', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stay_apart_and_formulas_texts() {
        assert_eq!(line(&["a", "b,c", "say \"x\"", "=1+1", ""]), "a,\"b,c\",\"say \"\"x\"\"\",'=1+1,");
        assert_eq!(line(&["a\u{1b}[2J", "\u{202e}x\ny"]), "a\\u{1b}[2J,\"\\u{202e}x\ny\"");
    }
}
