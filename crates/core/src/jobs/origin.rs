//! Where a job came from, and what follows from that: who wrote one that came over the network need not be trusted with what is
//! configured here, and what they did not send is not there.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Where a job came from: the kind of system that handed it over, and by what that system knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The kind of system, such as `import`, `celery` or `scrapy`.
    pub kind: String,
    /// What it belongs to there: a queue, a spider, a stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Whether it came over the network. Of jobs that were handed over before that was noted it is not known.
    #[serde(rename = "over_network", default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// Fields of its input that did not come, or were masked because their names say that they are secret: what needs them is wrong
    /// until somebody supplies them. By name, or by JSON pointer.
    #[serde(rename = "lost_input", default, deserialize_with = "lenient", skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Whatever else that system needs to know it by.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

/// A value, if it is what it should be: origins were once whatever a program wrote.
fn lenient<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + serde::de::DeserializeOwned,
    D: serde::Deserializer<'de>,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or_default())
}

impl Origin {
    /// The names in JSON of what an origin says of itself, and no program says of it.
    pub const OWN_FIELDS: [&str; 3] = ["kind", "over_network", "lost_input"];

    /// Of a job that somebody handed over on this machine.
    pub fn here(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), group: None, network: Some(false), lost: Vec::new(), details: Map::new() }
    }

    /// Of a job that came over the network.
    pub fn over_network(kind: impl Into<String>) -> Self {
        Self { network: Some(true), ..Self::here(kind) }
    }

    /// Of a job whose input somebody changed over the network.
    pub fn touched(origin: Option<Self>) -> Self {
        Self { network: Some(true), ..origin.unwrap_or_else(|| Self::over_network("edit")) }
    }

    /// The same of a job with what whoever handed it over said of it: what it belongs to there, and the trace that it is part of.
    pub fn told(self, group: Option<String>, traceparent: Option<String>) -> Self {
        let mut details = self.details;
        details.extend(traceparent.map(|trace| (TRACEPARENT.to_owned(), Value::from(trace))));
        Self { group: group.or(self.group), details, ..self }
    }

    /// The trace that it is part of, as the W3C's Trace Context writes it, if it was given one.
    pub fn traceparent(&self) -> Option<&str> {
        self.details.get(TRACEPARENT)?.as_str().filter(|text| is_traceparent(text))
    }

    /// Whether a job is to be trusted no more than one that came over the network. One of which it is not known counts as such.
    pub fn is_from_network(&self) -> bool {
        self.network.unwrap_or(true)
    }
}

/// By what name a trace stands in an origin.
const TRACEPARENT: &str = "traceparent";

/// Whether a text says which trace something is part of, as the W3C's Trace Context writes it: version, trace, parent and flags.
pub fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_hex = |part: &&str| part.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c));
    let lengths = parts.iter().map(|part| part.len()).collect::<Vec<_>>() == [2, 32, 16, 2];
    let is_some = |part: &str| part.chars().any(|c| c != '0');
    lengths && parts.iter().all(is_hex) && parts[0] != "ff" && is_some(parts[1]) && is_some(parts[2])
}

/// The longest origin that is kept, in bytes of JSON.
pub const ORIGIN_BYTES_MAX: usize = 4096;

/// Whether a change of a field supplies another, which is named as [`Origin::lost`] has it: it is that field, or is around it.
pub fn supplies(edit: &str, lost: &str) -> bool {
    let steps = |text: &str, dotted: bool| -> Vec<String> {
        match text.strip_prefix('/') {
            Some(pointer) => pointer.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect(),
            None if text.is_empty() => Vec::new(),
            None if dotted => text.split('.').map(str::to_owned).collect(),
            None => vec![text.to_owned()],
        }
    };
    [false, true].iter().any(|dotted| steps(lost, false).starts_with(&steps(edit, *dotted)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_trace_is_carried_along_if_it_is_one() {
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let origin = Origin::over_network("api").told(Some("toys".into()), Some(trace.into()));
        let again: Origin = serde_json::from_value(serde_json::to_value(&origin).expect("written")).expect("read");
        assert_eq!((again.traceparent(), again.group.as_deref()), (Some(trace), Some("toys")));
        for wrong in [
            "",
            "00-4bf9-00f0-01",
            &trace.to_uppercase(),
            &format!("ff{}", &trace[2..]),
            &trace.replace("00f067aa0ba902b7", "0000000000000000"),
        ] {
            assert!(!is_traceparent(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_job_counts_as_from_the_network_unless_it_is_known_not_to() {
        let origin = |value| serde_json::from_value::<Origin>(value).expect("an origin");
        assert!(origin(json!({"kind": "api", "over_network": true})).is_from_network());
        assert!(origin(json!({"kind": "import"})).is_from_network(), "it was not noted then");
        assert!(!origin(json!({"kind": "import", "over_network": false})).is_from_network());
        let odd = origin(json!({"kind": "import", "over_network": "no", "lost_input": 7, "queue": "q"}));
        assert!(odd.is_from_network() && odd.lost.is_empty() && odd.details["queue"] == "q");
        assert_eq!(json!(Origin::here("import")), json!({"kind": "import", "over_network": false}));
    }

    #[test]
    fn a_field_is_supplied_by_itself_or_by_what_is_around_it() {
        for (edit, lost) in [
            ("token", "token"),
            ("/token", "token"),
            ("headers", "/headers/cookie"),
            ("headers.cookie", "/headers/cookie"),
            ("/headers/cookie", "/headers/cookie"),
            ("", "/headers/cookie"),
            ("a.b", "a.b"),
            ("/a~1b", "/a~1b/c"),
        ] {
            assert!(supplies(edit, lost), "{edit} {lost}");
        }
        for (edit, lost) in [("url", "token"), ("tok", "token"), ("headers.cookie", "headers"), ("/a/b", "a.b")] {
            assert!(!supplies(edit, lost), "{edit} {lost}");
        }
    }
}
