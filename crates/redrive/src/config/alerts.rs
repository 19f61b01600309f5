//! The keys of alerts: thresholds for all pipelines and for single ones. Those of sinks are in `sinks`.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use redrive_core::alerts::{RuleBook, Rules};
use redrive_core::ids::PipelineName;
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

use super::sinks::SinkConfig;
use super::units::{self, Size, Time};
use crate::alerts::Dashboard;

/// `[alerts]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AlertsConfig {
    /// Where people open the dashboard: what is told leads there.
    pub dashboard: Option<String>,
    /// `[alerts.rules]`: the thresholds of all pipelines.
    pub rules: RulesConfig,
    /// `[alerts.pipeline.NAME]`: the thresholds of one.
    pub pipeline: BTreeMap<PipelineName, RulesConfig>,
    /// `[alerts.sink.NAME]`: who is told.
    pub sink: BTreeMap<String, SinkConfig>,
}

/// Thresholds. `"off"` stands for a condition that is not watched.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RulesConfig {
    /// Over how long shares are measured.
    pub window: Option<Time>,
    /// The share of jobs that may die.
    pub rate: Option<OrOff<Portion>>,
    /// Jobs that must have died for a share to be told.
    pub died_min: Option<u64>,
    /// The second, longer window of `rate`.
    pub long_window: Option<OrOff<Time>>,
    /// Jobs that must have died in it.
    pub long_died_min: Option<u64>,
    /// How many times its usual share may die.
    pub jump: Option<OrOff<Times>>,
    /// Letters of a cause that is news.
    pub cause_letters: Option<OrOff<Count>>,
    /// The share of those that died that these letters must be.
    pub cause_share: Option<OrOff<Portion>>,
    /// How long jobs may wait for a failing target.
    pub breaker: Option<OrOff<Time>>,
    /// Whether replays that paused themselves are told.
    pub replay: Option<bool>,
    /// How long jobs may be due while none comes to its end.
    pub stalled: Option<OrOff<Time>>,
    /// By how much the share of records with a field may fall.
    pub coverage: Option<OrOff<Portion>>,
    /// How long before they are discarded letters are told of.
    pub expiry: Option<OrOff<Time>>,
    /// What must be free on the disk of the store.
    pub disk: Option<OrOff<Size>>,
}

/// A threshold, or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OrOff<T>(pub Option<T>);

/// A share such as `0.5%` or 0.005.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Portion(pub f64);

/// How many times something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times(pub f64);

/// A number of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

/// What a threshold is read from.
pub trait Threshold: Sized {
    /// What is expected, with an example.
    const EXPECTED: &'static str;

    /// From text.
    fn of_text(text: &str) -> Result<Self, String>;

    /// From a number.
    fn of_number(_number: f64) -> Result<Self, String> {
        Err(format!("expected {} or \"off\"", Self::EXPECTED))
    }
}

impl Threshold for Portion {
    const EXPECTED: &'static str = "a share such as \"0.5%\"";

    fn of_text(text: &str) -> Result<Self, String> {
        units::share(text).map(Self)
    }

    fn of_number(number: f64) -> Result<Self, String> {
        units::share(&number.to_string()).map(Self)
    }
}

impl Threshold for Times {
    const EXPECTED: &'static str = "a number such as 3";

    fn of_text(text: &str) -> Result<Self, String> {
        Self::of_number(text.parse().unwrap_or(f64::NAN))
    }

    fn of_number(number: f64) -> Result<Self, String> {
        let fits = number.is_finite() && number >= 1.0;
        if fits { Ok(Self(number)) } else { Err(format!("expected a number of at least 1 or \"off\", not {number}")) }
    }
}

impl Threshold for Count {
    const EXPECTED: &'static str = "a number such as 10";

    fn of_text(text: &str) -> Result<Self, String> {
        Self::of_number(text.parse().unwrap_or(f64::NAN))
    }

    fn of_number(number: f64) -> Result<Self, String> {
        let fits = number >= 1.0 && number.fract() == 0.0 && number < 1e15;
        if fits { Ok(Self(number as u64)) } else { Err(format!("expected a whole number or \"off\", not {number}")) }
    }
}

impl Threshold for Time {
    const EXPECTED: &'static str = "a time such as \"15m\"";

    fn of_text(text: &str) -> Result<Self, String> {
        units::positive(text).map(Self)
    }
}

impl Threshold for Size {
    const EXPECTED: &'static str = "a size such as \"1GiB\"";

    fn of_text(text: &str) -> Result<Self, String> {
        units::size(text).map(Self)
    }
}

impl<'de, T: Threshold> Deserialize<'de> for OrOff<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reading(PhantomData))
    }
}

struct Reading<T>(PhantomData<T>);

impl<T: Threshold> Visitor<'_> for Reading<T> {
    type Value = OrOff<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} or \"off\"", T::EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<OrOff<T>, E> {
        match text.trim() {
            "off" => Ok(OrOff(None)),
            text => T::of_text(text).map(|read| OrOff(Some(read))).map_err(E::custom),
        }
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<OrOff<T>, E> {
        T::of_number(number).map(|read| OrOff(Some(read))).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<OrOff<T>, E> {
        self.visit_f64(number as f64)
    }
}

impl AlertsConfig {
    /// The thresholds they make.
    pub fn rule_book(&self) -> RuleBook {
        let all = self.rules.over(&Rules::default());
        let pipelines = self.pipeline.iter().map(|(name, rules)| (name.clone(), rules.over(&all))).collect();
        RuleBook { all, pipelines, ..RuleBook::default() }
    }

    /// Where people open the dashboard, if the file says it.
    pub fn dashboard(&self) -> Result<Option<Dashboard>, String> {
        let read = self.dashboard.as_deref().map(str::parse::<Dashboard>).transpose();
        read.map_err(|why| format!("alerts.dashboard: {why}"))
    }

    /// Says what is wrong with values that each are valid.
    pub fn check(&self) -> Result<(), String> {
        self.dashboard()?;
        let books = [("alerts.rules".to_owned(), &self.rules)].into_iter();
        let books = books.chain(self.pipeline.iter().map(|(name, rules)| (format!("alerts.pipeline.{name}"), rules)));
        for (section, rules) in books {
            let minute = Duration::from_secs(60);
            // Counts are kept by the minute for six hours.
            if rules.window.is_some_and(|window| window.0 < minute || window.0 > minute * 300) {
                return Err(format!("{section}: window must be between 1m and 5h"));
            }
            let long = rules.long_window.and_then(|window| window.0);
            if long.is_some_and(|window| window.0 < minute * 60 || window.0 > minute * 60 * 72) {
                return Err(format!("{section}: long_window must be between 1h and 3d, or \"off\""));
            }
        }
        self.sink.iter().try_for_each(|(name, sink)| {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
                return Err(
                    "the name of a sink has at most 64 letters, digits, dashes, dots and underscores".to_owned()
                );
            }
            sink.check().map_err(|why| format!("alerts.sink.{name}: {why}"))
        })
    }
}

impl RulesConfig {
    /// These thresholds, and those of others for what is missing.
    fn over(&self, others: &Rules) -> Rules {
        fn given<T: Copy, U>(key: Option<OrOff<T>>, read: impl Fn(T) -> U, other: Option<U>) -> Option<U> {
            key.map_or(other, |given| given.0.map(read))
        }
        Rules {
            window: self.window.map_or(others.window, |time| time.0),
            rate: given(self.rate, |share| share.0, others.rate),
            died_min: self.died_min.unwrap_or(others.died_min),
            long_window: given(self.long_window, |time| time.0, others.long_window),
            long_died_min: self.long_died_min.unwrap_or(others.long_died_min),
            jump: given(self.jump, |times| times.0, others.jump),
            cause_letters: given(self.cause_letters, |count| count.0, others.cause_letters),
            cause_share: self.cause_share.map_or(others.cause_share, |share| share.0.map_or(0.0, |share| share.0)),
            breaker: given(self.breaker, |time| time.0, others.breaker),
            replay: self.replay.unwrap_or(others.replay),
            stalled: given(self.stalled, |time| time.0, others.stalled),
            coverage: given(self.coverage, |share| share.0, others.coverage),
            expiry: given(self.expiry, |time| time.0, others.expiry),
            disk: given(self.disk, |size| size.0, others.disk),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn parse(text: &str) -> Result<AlertsConfig, String> {
        let config = Config::parse(text, Path::new("redrive.toml")).map_err(|error| error.to_string())?;
        config.alerts.ok_or_else(|| "no alerts".to_owned())
    }

    #[test]
    fn thresholds_are_those_of_the_pipeline_then_of_all_then_the_defaults() {
        let read = parse(
            "[alerts.rules]\nrate = \"2%\"\njump = \"off\"\nexpiry = \"1d\"\ncause_letters = 3\nlong_window = \"off\"\n\
             [alerts.pipeline.shop]\nrate = 0.1\ndisk = \"5GiB\"\nlong_window = \"2d\"\nlong_died_min = 4\n",
        );
        let book = read.expect("valid").rule_book();
        let other = book.of(&"other".parse().expect("a name"));
        let shop = book.of(&"shop".parse().expect("a name"));
        assert_eq!((other.rate, shop.rate), (Some(0.02), Some(0.1)));
        assert_eq!((other.jump, shop.jump, shop.cause_letters), (None, None, Some(3)));
        assert_eq!((shop.long_window, shop.long_died_min), (Some(Duration::from_secs(2 * 86_400)), 4));
        assert_eq!(other.long_window, None);
        assert_eq!((other.breaker, shop.disk), (Rules::default().breaker, Some(5 << 30)));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (text, expected) in [
            ("[alerts.rules]\nrat = 1\n", "redrive.toml:2: unknown field `rat`"),
            ("[alerts.rules]\nrate = \"lots\"\n", "is not a share"),
            ("[alerts.rules]\nrate = 7\n", "is not a share"),
            ("[alerts.rules]\nbreaker = 5\n", "expected a time such as"),
            ("[alerts.rules]\njump = 0.5\n", "at least 1"),
            ("[alerts.rules]\nwindow = \"12h\"\n", "window must be between 1m and 5h"),
            ("[alerts.rules]\nlong_window = \"30d\"\n", "long_window must be between 1h and 3d"),
            ("[alerts]\ndashbord = \"https://a.example\"\n", "did you mean `dashboard`?"),
            ("[alerts]\ndashboard = \"a.example\"\n", "alerts.dashboard: expected where people open the dashboard"),
            ("[alerts]\ndashboard = \"https://a.example/b\"\n", "alerts.dashboard: the dashboard is not below a path"),
            ("[alerts]\ndashboard = \"https://a:S3@a.example\"\n", "leave out its name and password"),
            ("[alerts.sink.a]\nkind = \"slak\"\n", "did you mean `slack`?"),
            ("[alerts.sink.a]\nkind = \"slack\"\n", "alerts.sink.a: it needs a url"),
            ("[alerts.sink.a]\nkind = \"pagerduty\"\n", "it needs a routing_key"),
            ("[alerts.sink.a]\nkind = \"command\"\n", "it needs a command"),
            ("[alerts.sink.a]\nkind = \"log\"\nurl = \"http://x\"\n", "has no url"),
            ("[alerts.sink.\"a b\"]\nkind = \"log\"\n", "the name of a sink"),
            ("[alerts.sink.a]\nkind = \"log\"\ntimeout = \"5m\"\n", "timeout must be between"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(expected) && !error.contains("S3"), "{text}\n{error}");
        }
    }
}
