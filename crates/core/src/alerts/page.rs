//! The page of the dashboard that an alert is about: where whoever was told of it goes on.

use serde_json::{Map, Value};

use super::{Alert, Condition, Notice};
use crate::causes::CauseId;
use crate::ids::{PipelineName, ReplayId};
use crate::paths::in_path;

/// A page of the dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlertPage {
    /// That of a cause, from which its letters are replayed.
    Cause(CauseId),
    /// That of a replay, which waits for somebody to say how to go on.
    Replay(ReplayId),
    /// The overview of one pipeline: what its tasks die of, and which letters are soon discarded.
    Overview(PipelineName),
    /// That of a pipeline: its targets, its queue, its fields.
    Pipeline(PipelineName),
    /// The alerts.
    Alerts,
}

impl AlertPage {
    fn of(condition: Option<Condition>, pipeline: Option<&PipelineName>, numbers: &Map<String, Value>) -> Self {
        let id = |name: &str| numbers.get(name).and_then(Value::as_str);
        let replay = || id("replay").and_then(|id| id.parse().ok()).map(Self::Replay);
        let of_pipeline = |page: fn(PipelineName) -> Self| pipeline.cloned().map(page);
        let found = match condition {
            // What an older program wrote may lack the id.
            Some(Condition::Cause) => {
                let cause = id("cause").and_then(|id| id.parse().ok()).map(Self::Cause);
                cause.or_else(|| of_pipeline(Self::Overview))
            }
            Some(Condition::Replay) => replay(),
            Some(Condition::Rate | Condition::Jump | Condition::Expiry | Condition::Letters) => {
                of_pipeline(Self::Overview)
            }
            Some(Condition::Stalled) => replay().or_else(|| of_pipeline(Self::Pipeline)),
            Some(Condition::Breaker | Condition::Coverage) => of_pipeline(Self::Pipeline),
            Some(Condition::Disk) | None => None,
        };
        found.unwrap_or(Self::Alerts)
    }

    /// Its path below the address of the dashboard.
    pub fn path(&self) -> String {
        match self {
            Self::Cause(id) => format!("/causes/{id}"),
            Self::Replay(id) => format!("/replays/{id}"),
            Self::Overview(name) => format!("/?pipeline={name}"),
            Self::Pipeline(name) => format!("/pipelines/{}", in_path(name.as_str())),
            Self::Alerts => "/alerts".to_owned(),
        }
    }
}

impl Alert {
    /// The page that it is about.
    pub fn page(&self) -> AlertPage {
        AlertPage::of(Some(self.condition), self.pipeline.as_ref(), &self.finding.numbers)
    }
}

impl Notice {
    /// The page that it is about.
    pub fn page(&self) -> AlertPage {
        AlertPage::of(self.condition, self.pipeline.as_ref(), &self.numbers)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::time::Timestamp;

    const REPLAY: &str = "019a8d6e-0000-7000-8000-000000000001";

    fn path(condition: Condition, pipeline: Option<&str>, numbers: Value) -> String {
        let pipeline = pipeline.map(|name| name.parse().expect("a name"));
        let numbers = numbers.as_object().cloned().expect("numbers");
        let test = Notice::test(Timestamp::from_millis(0));
        Notice { condition: Some(condition), pipeline, numbers, ..test }.page().path()
    }

    #[test]
    fn every_alert_has_the_page_on_which_something_can_be_done_about_it() {
        for condition in Condition::ALL {
            let numbers = json!({"cause": "3f9a1c2e", "replay": REPLAY});
            let expected = match condition {
                Condition::Cause => "/causes/3f9a1c2e".to_owned(),
                Condition::Replay | Condition::Stalled => format!("/replays/{REPLAY}"),
                Condition::Rate | Condition::Jump | Condition::Expiry | Condition::Letters => {
                    "/?pipeline=shop".to_owned()
                }
                Condition::Breaker | Condition::Coverage => "/pipelines/shop".to_owned(),
                Condition::Disk => "/alerts".to_owned(),
            };
            assert_eq!(path(condition, Some("shop"), numbers), expected, "{condition}");
        }
        assert_eq!(Notice::test(Timestamp::from_millis(0)).page(), AlertPage::Alerts);
    }

    #[test]
    fn names_of_dots_are_no_steps_in_a_path() {
        assert_eq!(path(Condition::Breaker, Some(".."), json!({})), "/pipelines/~..");
        assert_eq!(path(Condition::Stalled, Some("."), json!({})), "/pipelines/~.");
        assert_eq!(path(Condition::Rate, Some(".."), json!({})), "/?pipeline=..");
    }

    #[test]
    fn what_lacks_an_id_or_has_none_that_is_one_leads_to_the_nearest_page() {
        for numbers in [json!({}), json!({"cause": "../x", "replay": "<a>"}), json!({"cause": 1, "replay": 2})] {
            assert_eq!(path(Condition::Cause, Some("shop"), numbers.clone()), "/?pipeline=shop");
            assert_eq!(path(Condition::Cause, None, numbers.clone()), "/alerts");
            assert_eq!(path(Condition::Replay, None, numbers), "/alerts");
        }
        assert_eq!(path(Condition::Rate, None, json!({})), "/alerts");
    }
}
