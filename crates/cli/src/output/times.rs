//! Times as people say them.

use redrive_core::time::Timestamp;

/// An instant to the second, in UTC.
pub fn second(at: Timestamp) -> String {
    let text = at.to_string();
    text.get(..19).unwrap_or(&text).replace('T', " ")
}

/// How long ago, in the largest unit.
pub fn ago(then: Timestamp, now: Timestamp) -> String {
    format!("{} ago", span(then, now))
}

/// How long it is until then, to the nearest of its unit, or how long ago it was.
pub fn from_now(then: Timestamp, now: Timestamp) -> String {
    if then <= now {
        return ago(then, now);
    }
    let millis = then.since(now).as_millis();
    let nearest = |unit: u128| (millis + unit / 2) / unit;
    match (nearest(1_000), nearest(60_000), nearest(3_600_000), nearest(86_400_000)) {
        (secs @ 0..60, ..) => format!("in {secs}s"),
        (_, minutes @ 0..60, ..) => format!("in {minutes}m"),
        (_, _, hours @ 0..48, _) => format!("in {hours}h"),
        (.., days) => format!("in {days}d"),
    }
}

/// The time between two instants, in the largest unit.
pub fn span(from: Timestamp, to: Timestamp) -> String {
    let secs = to.since(from).as_secs();
    match secs {
        0..60 => format!("{secs}s"),
        60..3_600 => format!("{}m", secs / 60),
        3_600..172_800 => format!("{}h", secs / 3_600),
        _ => format!("{}d", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_in_their_largest_unit() {
        let at = |secs: i64| Timestamp::from_millis(secs * 1_000);
        for (secs, said) in [(0, "0s"), (59, "59s"), (60, "1m"), (7_199, "1h"), (172_799, "47h"), (172_800, "2d")] {
            assert_eq!(span(at(0), at(secs)), said);
        }
        for (secs, said) in [(59, "in 59s"), (89, "in 1m"), (3_599, "in 1h"), (7_199, "in 2h"), (172_799, "in 2d")] {
            assert_eq!(from_now(at(secs), at(0)), said);
        }
        assert_eq!((from_now(at(9), at(0)), from_now(at(0), at(9))), ("in 9s".into(), "9s ago".into()));
    }
}
