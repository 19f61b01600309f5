//! What is said beside the bar of a run, with what matters most first: what is held, why and until when; what runs and for how
//! long; what died. What does not fit is left out, from the end.

use std::time::Duration;

use redrive_core::breakers::BreakerView;
use redrive_core::time::Timestamp;

use super::foreign::{cut, width_of};

/// The longest target, and the longest reason, that are shown whole; and how short a target may be cut.
const TARGET_COLUMNS: usize = 32;
const WHY_COLUMNS: usize = 60;
const TARGET_COLUMNS_MIN: usize = 12;

/// What is known of a run under way.
pub struct Shown {
    pub done: u64,
    pub dead: u64,
    pub retrying: u64,
    /// Jobs that ended, per second.
    pub rate: f64,
    pub held: Option<Held>,
    /// How many run, and for how long the oldest of them.
    pub runs: Option<(usize, Duration)>,
    /// How many of them wait for a command that says nothing, and for how long the longest.
    pub silent: Option<(usize, Duration)>,
}

/// Jobs that wait for their target to get better.
pub struct Held {
    jobs: u64,
    /// The target that is tried next, and how many others there are.
    target: String,
    others: usize,
    /// Why, in full and in short.
    why: String,
    in_short: String,
    next_try: Duration,
}

impl Held {
    /// What is held of all targets; nothing if nothing is.
    pub fn of(breakers: &[BreakerView], now: Timestamp) -> Option<Self> {
        let waiting = || breakers.iter().filter(|breaker| breaker.held > 0);
        let next = waiting().min_by_key(|breaker| breaker.breaker.open_until)?;
        let opener = next.breaker.opened_by.as_ref();
        let why = opener.or(next.breaker.last.as_ref()).map(ToString::to_string);
        let in_short = opener.map(|opener| opener.code.clone().unwrap_or_else(|| opener.reason.to_string()));
        let why = why.unwrap_or_else(|| "it fails".to_owned());
        Some(Self {
            jobs: waiting().map(|breaker| breaker.held).sum(),
            target: next.target.clone(),
            others: waiting().count() - 1,
            in_short: in_short.unwrap_or_else(|| why.clone()),
            why,
            next_try: next.breaker.open_until.since(now),
        })
    }

    /// The same within so many columns: first the reason is told in short, then the target is cut.
    fn within(&self, room: usize) -> String {
        let others = if self.others > 0 { format!(" +{}", self.others) } else { String::new() };
        let told = |target: usize, why: &str| {
            let why = cut(why, WHY_COLUMNS);
            format!("held {} {}{others} ({why}) {}", self.jobs, cut(&self.target, target), short(self.next_try))
        };
        let whole = told(TARGET_COLUMNS, &self.why);
        if width_of(&whole) <= room {
            return whole;
        }
        let told_in_short = told(TARGET_COLUMNS, &self.in_short);
        let over = width_of(&told_in_short).saturating_sub(room);
        let target = width_of(&cut(&self.target, TARGET_COLUMNS)).saturating_sub(over);
        told(target.max(TARGET_COLUMNS_MIN), &self.in_short)
    }
}

impl Shown {
    /// As much of it as fits into so many columns.
    pub fn within(&self, room: usize) -> String {
        let runs = self.runs.map(|(count, longest)| match (self.silent, longest.as_secs()) {
            (Some((silent, longest)), _) => format!("{count} running, {silent} silent {}", short(longest)),
            (None, 0) => format!("{count} running"),
            (None, _) => format!("{count} running {}", short(longest)),
        });
        let count = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
        let parts = [
            runs,
            count(self.dead, "died"),
            count(self.retrying, "retrying"),
            Some(format!("{:.1}/s", self.rate)),
            Some(format!("{} done", self.done)),
        ];
        let mut text = String::new();
        if let Some(held) = &self.held {
            // What runs is to be seen too.
            let kept = parts[0].as_deref().map_or(0, |runs| width_of(runs) + 2);
            text = cut(&held.within(room.saturating_sub(kept)), room);
        }
        for part in parts.into_iter().flatten() {
            let space = if text.is_empty() { "" } else { "  " };
            if width_of(&text) + space.len() + width_of(&part) > room {
                break;
            }
            text = format!("{text}{space}{part}");
        }
        text
    }
}

/// A time in one unit.
fn short(time: Duration) -> String {
    match time.as_secs() {
        secs @ 0..120 => format!("{secs}s"),
        secs @ 120..7_200 => format!("{}m", secs / 60),
        secs => format!("{}h", secs / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> Shown {
        let held = Held {
            jobs: 96,
            target: "catalogue.shop.example".into(),
            others: 1,
            why: "blocked 403: Attention Required! | a challenge page that goes on and on, as such pages do".into(),
            in_short: "403".into(),
            next_try: Duration::from_secs(27),
        };
        let runs = Some((4, Duration::from_secs(12)));
        Shown { done: 512, dead: 3, retrying: 9, rate: 41.23, held: Some(held), runs, silent: None }
    }

    #[test]
    fn what_is_held_why_and_until_when_and_what_runs_is_seen_at_80_columns() {
        // A bar of 12, a counter of up to 11, and what is between them.
        assert_eq!(shown().within(80 - 12 - 11 - 3), "held 96 catalogue.shop.ex… +1 (403) 27s  4 running 12s");
        assert_eq!(shown().within(80 - 12 - 7 - 3), "held 96 catalogue.shop.example +1 (403) 27s  4 running 12s");
        let wide =
            "held 96 catalogue.shop.example +1 (blocked 403: Attention Required! | a challenge page that go…) 27s";
        assert_eq!(shown().within(140), format!("{wide}  4 running 12s  3 died  9 retrying"));
    }

    #[test]
    fn a_silent_command_is_seen_beside_what_is_held() {
        let silent = Shown { silent: Some((2, Duration::from_secs(45))), ..shown() };
        let narrow = silent.within(80 - 12 - 7 - 3);
        assert_eq!(narrow, "held 96 catalogue.s… +1 (403) 27s  4 running, 2 silent 45s");
        assert_eq!(Shown { held: None, ..silent }.within(40), "4 running, 2 silent 45s  3 died");
    }

    #[test]
    fn the_rest_is_left_out_from_the_end() {
        let free = Shown { held: None, ..shown() };
        assert_eq!(free.within(56), "4 running 12s  3 died  9 retrying  41.2/s  512 done");
        assert_eq!(free.within(30), "4 running 12s  3 died");
        for room in 0..120 {
            assert!(width_of(&shown().within(room)) <= room, "{room}");
            assert!(width_of(&free.within(room)) <= room, "{room}");
        }
    }
}
