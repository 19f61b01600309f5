//! What a colour means, the same on the page and in the terminal. A tone never stands alone: there is always a word or
//! a number beside it.

/// How good or bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Neither good nor bad.
    Plain,
    /// As it should be.
    Good,
    /// Worth a look.
    Warn,
    /// Worth getting up for.
    Bad,
    /// Of little importance now.
    Quiet,
}

impl Tone {
    /// The tone of the state of a cause.
    pub fn of_state(state: &str) -> Self {
        match state {
            "new" | "escalating" | "regressed" => Self::Bad,
            "ongoing" => Self::Warn,
            "resolved" => Self::Good,
            _ => Self::Quiet,
        }
    }

    /// The tone of a DLQ rate: alerts fire above 0.5 %.
    pub fn of_dlq_rate(rate: f64) -> Self {
        Self::above(rate, 0.005, 0.05)
    }

    /// The tone of a share of attempts that failed. Retries are there for the few.
    pub fn of_failed_share(share: f64) -> Self {
        Self::above(share, 0.05, 0.2)
    }

    fn above(value: f64, warn: f64, bad: f64) -> Self {
        match value {
            value if value >= bad => Self::Bad,
            value if value >= warn => Self::Warn,
            _ => Self::Plain,
        }
    }

    /// Its class in the page's style sheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Good => "good",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::Quiet => "quiet",
        }
    }
}
