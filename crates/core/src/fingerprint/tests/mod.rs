//! What holds for any failure, and lists of failures and log lines, written from memory, that must group as they stand.

mod clients;
mod logs;
mod services;

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn of_message(message: &str) -> Fingerprint {
    fingerprint(&Subject { message, ..Subject::default() })
}

/// Fails, and says where, if a group does not share one key or two groups share one.
fn check(groups: &[&[&str]]) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    let mut wrong = Vec::new();
    for group in groups {
        let first = of_message(group[0]);
        for message in *group {
            let found = of_message(message);
            if found.key != first.key {
                wrong.push(format!("split:  {}\n        {}", first.template, found.template));
            }
        }
        if let Some(other) = seen.insert(first.key, group[0]) {
            wrong.push(format!("merged: {other}\n        {}", group[0]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// Reads `text` and says how long it took, so that slow ways to read hostile text are found.
fn millis(text: &str) -> u128 {
    let began = std::time::Instant::now();
    let found = fingerprint(&Subject { message: text, stack: Some(text), ..Subject::default() });
    assert!(found.template.len() <= 3 * MESSAGE_BYTES_MAX);
    own_place(text);
    began.elapsed().as_millis()
}

#[test]
#[rustfmt::skip]
fn hostile_text_is_read_quickly() {
    let pieces = [
        "(", "[", "{", ")", "'", "\"", "`", "'a", "a'", "\"a ", "<", "<a", "<a b>", "<?", ">", "1", "1 ", "1,", "a1",
        "/", "//", "://", "a://", ":", "1:", "=", "a=", ".", "-", "\u{1b}", "\u{1b}[2m", "\n", "\n1) <", "\\", "é",
        "é1", "\u{0}", "%", "@", "a.com ", "at ", "\nat ", "x::", ", data", "{\"path\":", "[", "Call log:\n",
        "mismatch: ", "File \"", "\", line ", "['", "'['", "a, ", "1 validation error for \n",
    ];
    for piece in pieces {
        let many = piece.repeat(MESSAGE_BYTES_MAX / piece.len() - 1) + "'\">`";
        let took = || millis(&piece.repeat(1_000_000 / piece.len())).max(millis(&many));
        // Other processes may keep it waiting, but not each time.
        assert!((0..10).any(|_| took() < 500), "{piece:?} takes more than half a second");
    }
}

#[test]
fn every_part_makes_another_key() {
    let base = Subject { pipeline: "shop", message: "it failed", ..Subject::default() };
    let variants = [
        base,
        Subject { pipeline: "news", ..base },
        Subject { reason: Some("timeout"), ..base },
        Subject { about_target: true, target: Some("www.shop.example"), ..base },
        Subject { http_status: Some(403), ..base },
        Subject { http_status: Some(429), ..base },
        Subject { code: Some("exit_1"), ..base },
        Subject { error_type: Some("exit_1"), ..base },
        Subject { message: "it really failed", ..base },
        Subject { stack: Some("Error: x\n    at f (/app/a.js:1:2)"), ..base },
    ];
    let keys: std::collections::HashSet<String> = variants.iter().map(|subject| fingerprint(subject).key).collect();
    assert_eq!(keys.len(), variants.len());
    let elsewhere = Subject { target: Some("www.other.example"), ..base };
    assert_eq!(
        fingerprint(&elsewhere).key,
        fingerprint(&base).key,
        "the target counts only where the reason is about it"
    );
}

#[test]
fn the_explanation_names_parts_and_what_was_masked() {
    let found = of_message("block 71823460 at https://a.example/x is gone");
    assert_eq!(found.template, "block <*> at <*> is gone");
    assert_eq!(found.parts, [Part { name: "template".into(), value: found.template.clone() }]);
    let masked: Vec<_> = found.masked.iter().map(|masked| (masked.kind, masked.text.as_str())).collect();
    assert_eq!(masked, [("number", "71823460"), ("url", "https://a.example/x")]);
}

/// Frames of messages with one place for something that varies.
const FRAMES: [&str; 8] = [
    "Fetching {} failed",
    "could not read {}: permission denied",
    "item {}, try again",
    "worker lost ({})",
    "[{}] gave up",
    "id={} is gone",
    "cannot load '{}' now",
    "no answer for {}",
];

type Bits = (u32, u64);

proptest! {
    #[test]
    fn any_text_is_read_and_always_the_same(message in "\\PC{0,200}|[ -~\\n]{0,400}", stack in "[ -~\\n]{0,200}") {
        let (target, stack) = (Some(message.as_str()), Some(stack.as_str()));
        let subject = Subject { message: &message, stack, target, about_target: true, ..Subject::default() };
        prop_assert_eq!(fingerprint(&subject), fingerprint(&subject));
    }

    #[test]
    fn messages_of_many_signs_are_read(message in "(['\"`<>(){}\\[\\],;:=./@ \\n]|[a-f]|[0-9]|é|://|ERROR|at 0x){0,120}") {
        of_message(&message);
    }

    #[test]
    fn what_varies_does_not_matter(frame in 0..FRAMES.len(), kind in 0..6, a in any::<Bits>(), b in any::<Bits>()) {
        let value = |(small, large): Bits| match kind {
            0 => format!("{}", 10 + large % 1_000_000_007),
            1 => format!("{large:016x}-{small:08x}"),
            2 => uuid(small, large),
            3 => std::net::Ipv4Addr::from_bits(small).to_string(),
            4 => format!("https://h{small}.example/{large:x}?q={small}"),
            _ => format!("/var/data/{small}/{large:x}.html"),
        };
        let message = |value: String| FRAMES[frame].replace("{}", &value);
        let (a, b) = (of_message(&message(value(a))), of_message(&message(value(b))));
        prop_assert_eq!(a.key, b.key, "{} / {}", a.template, b.template);
    }

    #[test]
    fn statuses_and_errnos_matter(a in 1..140u16, b in 1..140u16, c in 400..600u16, d in 400..600u16) {
        prop_assume!(a != b && c != d);
        let key = |frame: &str, code: u16| of_message(&frame.replace("{}", &code.to_string())).key;
        for frame in ["[Errno {}] no", "exit status {}", "killed by signal {}"] {
            prop_assert_ne!(key(frame, a), key(frame, b));
        }
        for frame in ["HTTP Error {}: x", "status code {}", "{} Client Error"] {
            prop_assert_ne!(key(frame, c), key(frame, d));
        }
    }

    #[test]
    fn similarity_is_a_share(a in "[a-c <*>]{0,30}", b in "[a-c <*>]{0,30}") {
        prop_assert!((0.0..=1.0).contains(&similarity(&a, &b)));
        prop_assert_eq!(similarity(&a, &b), similarity(&b, &a));
        prop_assert_eq!(similarity(&a, &a), 1.0);
    }
}

fn uuid(small: u32, large: u64) -> String {
    let hex = format!("{small:08x}{large:016x}{small:08x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
