//! Bars and sparklines from block characters, and rows that line up and fit the terminal.

use anstyle::Style;

use crate::output::foreign::{cut, fit, width_of};
use crate::output::paint::{BAD, DIM, GOOD, WAITING, paint};
use crate::output::report::tone::Tone;

const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Bars longer than this are not easier to compare.
const BAR_WIDTH_MAX: usize = 24;
/// Bars shorter than this say nothing.
const BAR_WIDTH_MIN: usize = 4;
const GAP: &str = "  ";

/// The style of a tone.
pub const fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => GOOD,
        Tone::Warn => WAITING,
        Tone::Bad => BAD,
        Tone::Quiet => DIM,
    }
}

/// A bar as long as a share of the width, filled up with spaces. What is not nothing can be seen.
pub fn bar(share: f64, width: usize) -> String {
    let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
    let mut eighths = (share * width as f64 * 8.0).round() as usize;
    if share > 0.0 && width > 0 {
        eighths = eighths.max(1);
    }
    let mut bar = "█".repeat(eighths / 8);
    bar.extend((eighths % 8).checked_sub(1).map(|rest| EIGHTHS[rest]));
    fit(&bar, width)
}

/// A series as one character per value, oldest first. The lowest level is for nothing only.
pub fn spark(values: &[i64]) -> String {
    let highest = values.iter().copied().max().unwrap_or(0).max(1) as f64;
    let above_nothing = (LEVELS.len() - 1) as f64;
    let level = |value: i64| match value {
        ..=0 => LEVELS[0],
        value => LEVELS[(value as f64 / highest * above_nothing).ceil().clamp(1.0, above_nothing) as usize],
    };
    values.iter().map(|value| level(*value)).collect()
}

/// A name, a bar, a number and a remark.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// What the row is about; may be of unknown origin.
    pub name: &'a str,
    /// How long the bar is.
    pub share: f64,
    /// The colour of the bar.
    pub tone: Tone,
    /// The number, aligned to the right.
    pub value: String,
    /// What else there is to say; cut where there is no room.
    pub remark: String,
}

/// The rows as lines of at most `width` columns.
pub fn rows(rows: &[Row<'_>], width: usize) -> Vec<String> {
    let widest = |of: fn(&Row<'_>) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let name_width = widest(|row| width_of(&cut(row.name, 200))).min(width / 3);
    let value_width = widest(|row| width_of(&row.value)).min(width / 3);
    let left = width.saturating_sub(name_width + value_width + 4 * GAP.len());
    let spare = left.saturating_sub(widest(|row| width_of(&row.remark)));
    let bar_width = spare.clamp(left / 4, left / 2).min(BAR_WIDTH_MAX);
    let bar_width = if bar_width < BAR_WIDTH_MIN { 0 } else { bar_width };
    let line = |row: &Row<'_>| {
        let name = fit(row.name, name_width);
        let bar = paint(style(row.tone), bar(row.share, bar_width));
        let value = cut(&row.value, value_width);
        let remark = paint(DIM, cut(&row.remark, left - bar_width));
        format!("{GAP}{name}{GAP}{bar}{GAP}{}{value}{GAP}{remark}", " ".repeat(value_width - width_of(&value)))
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_their_width() {
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(0.53, 4), "██▏ ");
        assert_eq!(bar(1e-9, 4), "▏   ");
        for share in [f64::NAN, f64::INFINITY, -1.0, 0.0, 0.3, 0.999, 1.0, 7.0] {
            for width in 0..20 {
                assert_eq!(width_of(&bar(share, width)), width, "{share} in {width}");
            }
        }
    }

    #[test]
    fn sparks_tell_little_from_nothing() {
        assert_eq!(spark(&[0, 1, 50, 100]), "▁▂▅█");
        assert_eq!(spark(&[0, 0]), "▁▁");
        assert_eq!(spark(&[-5, i64::MAX]), "▁█");
        assert_eq!(spark(&[]), "");
    }

    #[test]
    fn rows_line_up_and_fit() {
        let row = |name, remark: &str| Row {
            name,
            share: 0.4,
            tone: Tone::Plain,
            value: "1,204".to_owned(),
            remark: remark.to_owned(),
        };
        let table =
            [row("shop.example", "mostly timeout"), row("価格が見つかりません.example", ""), row("\u{1b}[31m", "x\ny")];
        for width in [20, 40, 80, 200] {
            for line in rows(&table, width) {
                let shown = anstream::adapter::strip_str(&line).to_string();
                assert!(width_of(&shown) <= width, "{width}: {shown:?}");
                assert!(!shown.contains('\n'));
            }
        }
    }
}
