//! What webhooks are sent. Text of strangers is one line without controls by now; here it is kept from meaning anything to who
//! shows it.

use redrive_core::alerts::{Notice, NoticeKind};
use serde_json::{Value, json};

/// The longest text that Slack shows in one part.
const SLACK_MAX: usize = 2_900;

/// The longest summary that PagerDuty takes.
const PAGERDUTY_MAX: usize = 1_000;

/// The shape of what is sent.
pub(super) enum Shape {
    /// Everything that is known.
    Generic,
    /// A message.
    Slack,
    /// An event.
    PagerDuty {
        /// The key of the service.
        routing_key: String,
    },
}

/// What is sent of a notice.
pub(super) fn body(shape: &Shape, notice: &Notice) -> Value {
    match shape {
        Shape::Generic => generic(notice),
        Shape::Slack => slack(notice),
        Shape::PagerDuty { routing_key } => pagerduty(notice, routing_key),
    }
}

fn generic(notice: &Notice) -> Value {
    let mut body = json!(notice);
    body["text"] = notice.text().into();
    body["host"] = redrive_store::host().into();
    body
}

/// Plain text in a block, in which Slack finds no markup; the other text is what notifications show.
fn slack(notice: &Notice) -> Value {
    let text: String = escaped(&notice.text()).chars().take(SLACK_MAX).collect();
    let block = json!({"type": "section", "text": {"type": "plain_text", "emoji": false, "text": text}});
    let title: String = escaped(&notice.title()).chars().take(SLACK_MAX).collect();
    json!({"text": title, "mrkdwn": false, "blocks": [block]})
}

/// What would be a mention, a link or an entity, as what it looks like.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn pagerduty(notice: &Notice, routing_key: &str) -> Value {
    let action = match notice.kind {
        NoticeKind::Over => "resolve",
        NoticeKind::Fired | NoticeKind::Grown | NoticeKind::Test => "trigger",
    };
    let severity = if notice.kind == NoticeKind::Test { "info" } else { "error" };
    let summary: String = notice.title().chars().take(PAGERDUTY_MAX).collect();
    json!({
        "routing_key": routing_key,
        "event_action": action,
        "dedup_key": notice.dedup_key,
        "client": "Redrive",
        "payload": {
            "summary": summary,
            "source": redrive_store::host(),
            "severity": severity,
            "timestamp": notice.at,
            "component": notice.pipeline,
            "class": notice.condition,
            "custom_details": {
                "numbers": notice.numbers,
                "look": notice.look,
                "since": notice.since,
                "key": notice.key,
                "number": notice.number,
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::time::Timestamp;

    fn notice(kind: NoticeKind, summary: &str) -> Notice {
        Notice { kind, summary: summary.to_owned(), ..Notice::test(Timestamp::from_millis(0)) }
    }

    #[test]
    fn nothing_means_anything_to_slack() {
        let hostile = "<!channel> <https://evil.example|click> *bold* & more";
        let sent = slack(&notice(NoticeKind::Fired, hostile));
        let texts = [&sent["text"], &sent["blocks"][0]["text"]["text"]];
        for text in texts.map(|text| text.as_str().expect("text")) {
            assert!(!text.contains(['<', '>']) && text.contains("&lt;!channel&gt;"), "{text}");
        }
        assert_eq!(sent["blocks"][0]["text"]["type"], "plain_text");
        let long = slack(&notice(NoticeKind::Fired, &"x".repeat(9_000)));
        assert!(long["blocks"][0]["text"]["text"].as_str().is_some_and(|text| text.len() <= 3_000));
    }

    #[test]
    fn pagerduty_is_told_when_it_is_over() {
        let fired = pagerduty(&notice(NoticeKind::Fired, "bad"), "r0uting");
        let over = pagerduty(&notice(NoticeKind::Over, "good"), "r0uting");
        assert_eq!((&fired["event_action"], &over["event_action"]), (&json!("trigger"), &json!("resolve")));
        assert_eq!((&fired["dedup_key"], &fired["routing_key"]), (&over["dedup_key"], &json!("r0uting")));
        assert_eq!(fired["payload"]["severity"], "error");
    }
}
