//! Text as Prometheus reads it.

use std::fmt::{Display, Write};

use redrive::times::{BUCKETS, Durations};

/// A family of series: what it is called, its kind, and what it means.
pub type Family = (&'static str, &'static str, &'static str);

/// Text that is being written.
#[derive(Default)]
pub struct Text(String);

impl Text {
    /// Begins a family, whose series follow.
    pub fn family(&mut self, (name, kind, help): Family) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes a series.
    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> = labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    /// Writes a family of one series without labels.
    pub fn one(&mut self, family: Family, value: impl Display) {
        self.family(family);
        self.sample(family.0, &[], value);
    }

    /// Writes the series of a histogram.
    pub fn durations(&mut self, name: &str, labels: &[(&str, &str)], durations: &Durations) {
        let bucket = format!("{name}_bucket");
        let mut sum = 0;
        for (end, count) in BUCKETS.iter().zip(durations.buckets) {
            sum += count;
            let end = end.as_secs_f64().to_string();
            self.sample(&bucket, &[labels, &[("le", end.as_str())]].concat(), sum);
        }
        self.sample(&bucket, &[labels, &[("le", "+Inf")]].concat(), durations.count);
        self.sample(&format!("{name}_sum"), labels, durations.sum.as_secs_f64());
        self.sample(&format!("{name}_count"), labels, durations.count);
    }

    /// All of it.
    pub fn finish(self) -> String {
        self.0
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_histogram_adds_up_its_buckets() {
        let mut text = Text::default();
        let mut durations = Durations { count: 4, sum: Duration::from_millis(1_500), ..Durations::default() };
        (durations.buckets[0], durations.buckets[2]) = (1, 2);
        text.durations("x_seconds", &[("route", "a\"b\\c\nd")], &durations);
        let text = text.finish();
        let value = |le: &str| {
            let line = format!("x_seconds_bucket{{route=\"a\\\"b\\\\c\\nd\",le=\"{le}\"}} ");
            text.lines().find_map(|found| found.strip_prefix(&line)).map(str::to_owned)
        };
        assert_eq!((value("0.002").as_deref(), value("0.005").as_deref()), (Some("1"), Some("1")), "{text}");
        assert_eq!((value("10").as_deref(), value("+Inf").as_deref()), (Some("3"), Some("4")), "{text}");
        assert!(text.contains("_sum{route=\"a\\\"b\\\\c\\nd\"} 1.5\n"), "{text}");
    }
}
