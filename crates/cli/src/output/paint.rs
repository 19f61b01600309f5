//! Colours. `anstream` leaves them out where they would not be seen.

use anstyle::{AnsiColor, Style};
use redrive_core::state::JobState;

const fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(anstyle::Color::Ansi(colour)))
}

/// Headings.
pub const HEADING: Style = Style::new().bold();
/// Details of less importance.
pub const DIM: Style = Style::new().dimmed();
/// What went well.
pub const GOOD: Style = colour(AnsiColor::Green);
/// What waits.
pub const WAITING: Style = colour(AnsiColor::Yellow);
/// What went wrong.
pub const BAD: Style = colour(AnsiColor::Red);

/// Text in a style.
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The colour of a state.
pub const fn of_state(state: JobState) -> Style {
    match state {
        JobState::Queued | JobState::Leased => WAITING,
        JobState::Done => GOOD,
        JobState::Dead => BAD,
        JobState::Discarded => DIM,
    }
}
