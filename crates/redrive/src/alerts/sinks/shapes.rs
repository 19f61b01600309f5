//! What webhooks are sent. Text of strangers is one line without controls by now; here it is kept from meaning anything to who
//! shows it.

use redrive_core::alerts::{Notice, NoticeKind};
use serde_json::{Value, json};

/// The longest text that Slack takes in one part, as it is sent; a longer one is refused.
const SLACK_MAX: usize = 3_000;

/// The longest summary that PagerDuty takes.
const PAGERDUTY_MAX: usize = 1_024;

/// What a link to the dashboard says.
const OPEN: &str = "Open in Redrive";

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

/// What is sent of a notice, with the address of its page if there is one.
pub(super) fn body(shape: &Shape, notice: &Notice, link: Option<&str>) -> Value {
    match shape {
        Shape::Generic => generic(notice, link),
        Shape::Slack => slack(notice, link),
        Shape::PagerDuty { routing_key } => pagerduty(notice, routing_key, link),
    }
}

fn generic(notice: &Notice, link: Option<&str>) -> Value {
    let mut body = json!(notice);
    body["text"] = notice.text(link).into();
    body["host"] = redrive_store::host().into();
    if let Some(link) = link {
        body["url"] = link.into();
    }
    body
}

/// Plain text in a block, in which Slack finds no markup; the other text is what notifications show. A link needs a block with markup:
/// it has one of its own, with no text of strangers in it.
fn slack(notice: &Notice, link: Option<&str>) -> Value {
    let text = escaped(&notice.text(None), SLACK_MAX);
    let mut blocks = vec![json!({"type": "section", "text": {"type": "plain_text", "emoji": false, "text": text}})];
    if let Some(link) = link {
        // A bar would end the address.
        let link = escaped(&link.replace('|', "%7C"), SLACK_MAX);
        blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": format!("<{link}|{OPEN}>")}}));
    }
    let title = escaped(&notice.title(), SLACK_MAX);
    json!({"text": title, "mrkdwn": false, "blocks": blocks})
}

/// What would be a mention, a link or an entity, as what it looks like; at most so many characters of it, and no part of an entity.
fn escaped(text: &str, chars_max: usize) -> String {
    let (mut escaped, mut chars) = (String::new(), 0);
    for c in text.chars() {
        let as_sent = match c {
            '&' => "&amp;".to_owned(),
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            c => c.to_string(),
        };
        chars += as_sent.chars().count();
        if chars > chars_max {
            break;
        }
        escaped.push_str(&as_sent);
    }
    escaped
}

fn pagerduty(notice: &Notice, routing_key: &str, link: Option<&str>) -> Value {
    let action = match notice.kind {
        NoticeKind::Over => "resolve",
        NoticeKind::Fired | NoticeKind::Grown | NoticeKind::Test => "trigger",
    };
    let severity = if notice.kind == NoticeKind::Test { "info" } else { "error" };
    let summary: String = notice.title().chars().take(PAGERDUTY_MAX).collect();
    let mut event = json!({
        "routing_key": routing_key,
        "event_action": action,
        "dedup_key": notice.dedup_key,
        "client": "Redrive",
        "payload": {
            "summary": summary,
            "source": redrive_store::host(),
            "severity": severity,
            "timestamp": notice.at,
            "custom_details": {
                "numbers": notice.numbers,
                "look": notice.look,
                "since": notice.since,
                "key": notice.key,
                "number": notice.number,
            },
        },
    });
    // What an alert does not have is left out: null is not a text.
    if let Some(pipeline) = &notice.pipeline {
        event["payload"]["component"] = json!(pipeline);
    }
    if let Some(condition) = notice.condition {
        event["payload"]["class"] = json!(condition);
    }
    if let Some(link) = link {
        event["links"] = json!([{"href": link, "text": OPEN}]);
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use redrive_core::time::Timestamp;

    /// Worse than any that there is.
    const LINK: &str = "https://redrive.example/?pipeline=a&b|<c>";

    fn notice(kind: NoticeKind, summary: &str) -> Notice {
        Notice { kind, summary: summary.to_owned(), ..Notice::test(Timestamp::from_millis(0)) }
    }

    #[test]
    fn nothing_means_anything_to_slack() {
        let hostile = "<!channel> <https://evil.example|click> *bold* & more";
        let sent = slack(&notice(NoticeKind::Fired, hostile), Some(LINK));
        let texts = [&sent["text"], &sent["blocks"][0]["text"]["text"]];
        for text in texts.map(|text| text.as_str().expect("text")) {
            assert!(!text.contains(['<', '>']) && text.contains("&lt;!channel&gt;"), "{text}");
        }
        assert_eq!(sent["blocks"][0]["text"]["type"], "plain_text");
        let open = json!({"type": "mrkdwn", "text": "<https://redrive.example/?pipeline=a&amp;b%7C&lt;c&gt;|Open in Redrive>"});
        assert_eq!(sent["blocks"][1]["text"], open, "the link is all that means something");
        for long in ["x".repeat(9_000), "<é&>".repeat(2_000)] {
            let sent = slack(&notice(NoticeKind::Fired, &long), None);
            for text in [&sent["text"], &sent["blocks"][0]["text"]["text"]].map(|text| text.as_str().expect("text")) {
                assert!((2_990..=3_000).contains(&text.chars().count()));
                assert!(
                    !text.rsplit('&').next().is_some_and(|rest| text.contains('&') && !rest.contains(';')),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn pagerduty_is_told_when_it_is_over() {
        let fired = pagerduty(&notice(NoticeKind::Fired, "bad"), "r0uting", Some(LINK));
        let over = pagerduty(&notice(NoticeKind::Over, "good"), "r0uting", None);
        assert_eq!((&fired["event_action"], &over["event_action"]), (&json!("trigger"), &json!("resolve")));
        assert_eq!((&fired["dedup_key"], &fired["routing_key"]), (&over["dedup_key"], &json!("r0uting")));
        assert_eq!(fired["payload"]["severity"], "error");
        assert_eq!(fired["links"], json!([{"href": LINK, "text": "Open in Redrive"}]));
        assert!(over.get("links").is_none(), "{over}");
    }
}
