//! How letters of other programs are read.

use super::*;
use crate::dead::Gate;

const fn at(secs: i64) -> Timestamp {
    Timestamp::from_millis(secs * 1_000)
}

fn reading(named: &[(Field, &str)]) -> Reading {
    let named = named.iter().map(|(field, name)| (*field, (*name).to_owned())).collect();
    Reading {
        pipeline: "p".parse().expect("a name"),
        named,
        target: None,
        key: Vec::new(),
        rules: Vec::new(),
        codes: Vec::new(),
        secrets: Secrets::default(),
        keep_secrets: false,
        told: FailureReport::default(),
    }
}

fn read_by(reading: &Reading, value: Value) -> Result<ForeignLetter, String> {
    let Value::Object(object) = value else { panic!("an object") };
    reading.read(object, at(2_000_000_000))
}

fn read(value: Value) -> ForeignLetter {
    read_by(&reading(&[]), value).expect("a letter")
}

#[test]
fn the_usual_names_tell_of_the_failure_and_the_rest_is_the_input() {
    let ForeignLetter { letter, dated, .. } = read(json!({
        "sitekey": "6Lc", "url": "https://shop.example/p", "error": "ERROR_NO_SLOT_AVAILABLE", "attempts": 5,
        "timestamp": 1_763_215_320, "code": "E1", "status": 503, "stack": "at x", "proxy": "http://me:pw@p.lan:8080",
    }));
    assert_eq!(Value::Object(letter.input.clone()), json!({"sitekey": "6Lc", "url": "https://shop.example/p"}));
    assert_eq!((letter.message.as_str(), letter.attempts), ("ERROR_NO_SLOT_AVAILABLE", 5));
    assert_eq!((letter.code.as_deref(), letter.http_status), (Some("E1"), Some(503)));
    assert_eq!((letter.proxy.as_deref(), letter.target.as_deref()), (Some("p.lan:8080"), Some("shop.example")));
    assert_eq!((letter.died_at, dated), (at(1_763_215_320), true));
    assert_eq!((letter.reason, letter.gate), (Reason::ServerError, Gate::Auto), "the rules classify as ever");
    let failure = &letter.failures.as_ref().expect("failures")[0];
    assert_eq!((failure.stack.as_deref(), failure.attempt), (Some("at x"), 5));
}

#[test]
fn the_smallest_letter_is_an_input_and_a_message() {
    let ForeignLetter { letter, dated, .. } = read(json!({"input": {"n": 1}, "message": "no"}));
    assert_eq!((Value::Object(letter.input), letter.message.as_str(), dated), (json!({"n": 1}), "no", false));
    assert_eq!((letter.origin, letter.died_at), (None, at(2_000_000_000)));
    let letter = read(json!({"input": "https://a.example/", "message": "no", "queue": "q1"})).letter;
    assert_eq!(Value::Object(letter.input), json!({"url": "https://a.example/"}));
    assert_eq!(letter.origin.expect("an origin").details["queue"], "q1");
}

#[test]
fn what_only_looks_like_a_failure_stays_in_the_input() {
    let letter = read(json!({"status": "failed", "code": {"a": 1}, "error": "x", "key": "k-1"})).letter;
    assert_eq!(Value::Object(letter.input), json!({"status": "failed", "code": {"a": 1}, "key": "k-1"}));
    assert_eq!((letter.http_status, letter.key.as_deref()), (None, Some("k-1")));
}

#[test]
fn errors_are_texts_objects_or_a_type_and_a_message() {
    let told = |value: Value| {
        let failure = read(value).letter.failures.expect("failures").remove(0);
        (failure.message, failure.error_type, failure.code)
    };
    let some = |text: &str| Some(text.to_owned());
    let object = json!({"error": {"message": "slow", "type": "TimeoutError", "code": "ETIMEDOUT"}});
    assert_eq!(told(object), ("slow".into(), some("TimeoutError"), some("ETIMEDOUT")));
    let both = json!({"error": "TimeoutError", "message": "took too long"});
    assert_eq!(told(both), ("took too long".into(), some("TimeoutError"), None));
    let both = json!({"error": "request failed", "message": "took too long"});
    assert_eq!(told(both), ("request failed: took too long".into(), None, None));
    assert_eq!(told(json!({"error": {"x": 1}})).0, "{\"x\":1}");
    assert_eq!(told(json!({"error": ["a"]})).0, "[\"a\"]");
}

/// What an error object tells beside what has a place is kept where the letter came from; what is no text is kept as JSON.
#[test]
fn nothing_of_an_error_is_lost() {
    let error = json!({"message": {"why": "slow"}, "code": [1, 2], "type": "E", "errno": -110, "token": "hunter2"});
    let letter = read(json!({"url": "https://a.example/", "error": error})).letter;
    assert_eq!((letter.message.as_str(), letter.code.as_deref()), ("{\"why\":\"slow\"}", None));
    let details = json!(letter.origin.expect("an origin").details);
    assert_eq!(details, json!({"error": {"code": [1, 2], "errno": -110, "token": "***"}}));
    assert_eq!(Value::Object(letter.input), json!({"url": "https://a.example/"}), "the task is what it was");
    let both = json!({"message": "job failed", "error": {"message": "reset", "code": 7, "n": 1}, "input": {}, "q": 1});
    let letter = read(both).letter;
    assert_eq!((letter.message.as_str(), letter.code.as_deref()), ("job failed: reset", Some("7")));
    assert_eq!(json!(letter.origin.expect("an origin").details), json!({"q": 1, "error": {"n": 1}}));
    let much = json!({"error": {"message": "no", "body": "x".repeat(10_000), "errno": 5}});
    let letter = read(much).letter;
    assert_eq!(json!(letter.origin.expect("an origin").details), json!({"error": {"errno": 5}}), "as much as fits");
}

#[test]
fn a_list_of_attempts_is_the_history_of_the_letter() {
    let letter = read(json!({
        "n": 1, "error": "blocked", "attempts": [
            {"error": "timed out", "at": 1_763_215_320, "status": 504, "took": 30},
            "connection reset https://bob:hunter2@p.example/",
            {"message": "blocked", "code": "403", "timestamp": "2025-11-15T14:05:00Z"},
        ],
    }));
    assert!(letter.dated, "the last attempt says when");
    let letter = letter.letter;
    assert_eq!((letter.attempts, letter.code.as_deref(), letter.message.as_str()), (3, Some("403"), "blocked"));
    assert_eq!(letter.died_at.to_string(), "2025-11-15T14:05:00.000Z");
    assert_eq!(Value::Object(letter.input), json!({"n": 1}));
    let failures = letter.failures.expect("failures");
    let told: Vec<_> = failures.iter().map(|failure| (failure.attempt, failure.message.as_str())).collect();
    let expected = [(1, "timed out {\"took\":30}"), (2, "connection reset https://***@p.example/"), (3, "blocked")];
    assert_eq!(told, expected);
    assert_eq!((failures[0].http_status, failures[0].at), (Some(504), at(1_763_215_320)));
    let alone = read(json!({"n": 1, "attempts": [{"error": "a"}, {"error": "b"}]})).letter;
    assert_eq!((alone.message.as_str(), alone.failures.map(|failures| failures.len())), ("b", Some(2)));
    let other = read(json!({"error": "given up", "attempts": ["a", null]})).letter.failures.expect("failures");
    let told: Vec<_> = other.iter().map(|failure| (failure.attempt, failure.message.as_str())).collect();
    assert_eq!(told, [(1, "a"), (2, "it is not told what went wrong"), (2, "given up")]);
    let many = read(json!({"error": "x", "attempts": vec!["x"; 5_000]})).letter;
    let failures = many.failures.expect("failures");
    assert_eq!((many.attempts, failures.len(), failures[0].attempt), (5_000, 100, 4_901), "the last of them");
}

#[test]
fn counts_may_be_written_as_fractions() {
    let attempts =
        |value: Value| read_by(&reading(&[]), json!({"error": "x", "attempts": value})).map(|l| l.letter.attempts);
    assert_eq!((attempts(json!(3.0)), attempts(json!("3.0")), attempts(json!(" 4 "))), (Ok(3), Ok(3), Ok(4)));
    assert!(attempts(json!(2.5)).is_err() && attempts(json!(1e12)).is_err() && attempts(json!({})).is_err());
}

#[test]
fn times_are_read_as_programs_write_them() {
    let at = |value: Value| time_of(&value).map(|time| time.to_string());
    let expected = Some("2025-11-15T14:02:00.000Z".to_owned());
    for value in [
        json!(1_763_215_320),
        json!(1_763_215_320.0),
        json!(1_763_215_320_000_i64),
        json!(1_763_215_320_000_000_i64),
        json!(1_763_215_320_000_000_000_i64),
        json!("1763215320"),
        json!("2025-11-15T14:02:00Z"),
        json!("2025-11-15T15:02:00+01:00"),
        json!("2025-11-15 14:02:00"),
        json!("2025-11-15T14:02:00.000000"),
        json!("Sat, 15 Nov 2025 14:02:00 +0000"),
    ] {
        assert_eq!(at(value.clone()), expected, "{value}");
    }
    for value in [json!("yesterday"), json!(-5), json!(1e300), json!(true), json!([1]), json!("")] {
        assert_eq!(at(value.clone()), None, "{value}");
    }
    let refused = read_by(&reading(&[]), json!({"error": "x", "timestamp": "yesterday"})).expect_err("no time");
    assert!(refused.contains("timestamp is \"yesterday\", which is no time"), "{refused}");
    assert!(!read(json!({"error": "x", "timestamp": null})).dated);
}

#[test]
fn other_names_can_be_given() {
    let reading = reading(&[(Field::Message, "result.why"), (Field::Input, "/task"), (Field::Key, "uid")]);
    let value = json!({"task": {"n": 1}, "result": {"why": "no", "took": 3}, "uid": 9});
    let letter = read_by(&reading, value).expect("a letter").letter;
    assert_eq!((letter.message.as_str(), letter.key.as_deref()), ("no", Some("9")));
    assert_eq!(Value::Object(letter.input), json!({"n": 1}));
    assert_eq!(letter.origin.expect("an origin").details["result"], json!({"took": 3}));
    let refused = read_by(&reading, json!({"task": {}, "message": "no"})).expect_err("not where it was said to be");
    assert!(refused.contains("says nothing of a failure"), "{refused}");
    assert!("messages".parse::<Field>().is_err() && "error_type".parse() == Ok(Field::ErrorType));
}

#[test]
fn the_same_task_is_the_same_letter() {
    let one = read(json!({"b": 1, "a": {"d": 1, "c": 2}, "error": "x", "timestamp": 1})).letter;
    let other = read(json!({"a": {"c": 2, "d": 1}, "error": "y", "b": 1, "timestamp": 9})).letter;
    assert_eq!(one.id, other.id);
    assert_ne!(one.id, read(json!({"b": 2, "a": {}, "error": "x"})).letter.id);
    let keyed = |n: u32| read(json!({"key": "k", "n": n, "error": "x"})).letter.id;
    assert_eq!(keyed(1), keyed(2));
}

#[test]
fn what_is_not_a_letter_says_why() {
    let why = |value: Value| read_by(&reading(&[]), value).expect_err("no letter");
    assert!(why(json!({"url": "x"})).contains("no field error or message"));
    assert!(why(json!({"error": ""})).contains("no field error or message"));
    assert!(why(json!({"error": "x", "attempts": "many"})).contains("attempts is \"many\", which is no count"));
    assert!(why(json!({"error": "x", "attempts": -1})).contains("no count"));
    let much = json!({"input": {}, "error": "x", "page": "x".repeat(10_000)});
    assert!(why(much).contains("beside its input it has"));
}

#[test]
fn huge_texts_are_cut_and_secrets_masked() {
    let letter = read(json!({"error": "é".repeat(1_000_000), "stack": "x".repeat(1_000_000)})).letter;
    assert!(letter.message.chars().count() < MESSAGE_MAX + 40 && letter.message.ends_with("more bytes)"));
    let mut reading = reading(&[]);
    reading.secrets.add_value("s3cret-token");
    let letter = read_by(&reading, json!({"error": "refused s3cret-token"})).expect("a letter").letter;
    assert!(!letter.message.contains("s3cret-token"), "{}", letter.message);
}

#[test]
fn of_a_proxy_at_most_its_host_and_port_are_kept() {
    for (proxy, kept) in [
        ("10.1.1.1:8080:bob:hunter2", "10.1.1.1:8080"),
        ("10.1.1.1:8080", "10.1.1.1:8080"),
        ("http://p.lan:8080:bob:hunter2", "p.lan:8080"),
        ("http://bob:hunter2@Squid:3128/", "squid:3128"),
        ("bob:hun/ter2@p.lan:1", "p.lan:1"),
        ("http://[::1]:8080", "[::1]:8080"),
        ("p.lan", "p.lan"),
        ("bob:hunter2:10.1.1.1:8080", "proxy"),
        ("bob.b:1234:10.1.1.1:8080", "proxy"),
        ("bob:hunter2", "proxy"),
        ("bob:1234", "proxy"),
        ("http://[hunter2]:1", "proxy"),
    ] {
        let letter = read(json!({"input": {}, "error": "x", "proxy": proxy})).letter;
        assert_eq!(letter.proxy.as_deref(), Some(kept), "{proxy}");
        let failure = &letter.failures.as_ref().expect("failures")[0];
        assert_eq!(failure.proxy.as_deref(), Some(kept), "{proxy}");
    }
}

#[test]
fn plain_label_of_a_proxy_is_kept() {
    for label in ["residential-de-3", "DC_7", "eu.west.1", "p7", "resi pool 3", "Büro (2), v1.2 #4/b"] {
        let told = json!({
            "input": {"n": 1, "proxy": label}, "error": "x", "proxy": label, "config": {"proxy": label},
            "failures": [{"error": "y", "proxy": label}],
        });
        let letter = read(told).letter;
        assert_eq!(letter.proxy.as_deref(), Some(label));
        assert_eq!(letter.origin.expect("an origin").details["config"]["proxy"], label);
        let mut input = letter.input;
        assert!(mask_task(&mut input, &Secrets::default(), &[]).is_empty(), "nothing is lost: {input:?}");
    }
}

#[test]
fn label_of_a_proxy_is_never_an_address_with_credentials_nor_hidden_characters() {
    for (proxy, kept) in [
        ("  resi\tpool\n3 ", "resi pool 3"),
        ("pool 3 http://bob:hunter2@10.1.1.1:8080", "10.1.1.1:8080"),
        ("10.1.1.1 8080 bob hunter2", "proxy"),
        ("bob hunter2 p.lan 8080", "proxy"),
        ("bob/hunter2, 10.1.1.1.", "proxy"),
        ("bob hunter2 (localhost)", "proxy"),
        ("bob : hunter2", "proxy"),
        ("bob:hunter2 @ p.lan:1", "proxy"),
        ("pool\u{1b}[31m 3", "proxy"),
        ("pool\u{202e}3", "proxy"),
        ("( )", "proxy"),
        (" ", "proxy"),
    ] {
        let letter = read(json!({"input": {}, "error": "x", "proxy": proxy})).letter;
        assert_eq!(letter.proxy.as_deref(), Some(kept), "{proxy:?}");
    }
    let long = read(json!({"input": {}, "error": "x", "proxy": "pool 3 ".repeat(100_000)})).letter.proxy;
    assert_eq!(long.map(|label| label.chars().count()), Some(100));
}

#[test]
fn what_stands_beside_the_input_is_masked() {
    let letter = read(json!({
        "input": {"n": 1}, "error": "x", "queue": "q1", "api_key": "hunter2", "link": "https://bob:hunter2@a.example/",
        "group": "g https://bob:hunter2@a.example/",
        "headers": {"Authorization": "Bearer hunter2", "Cookie": "sid=hunter2", "accept": "text/html"},
        "sent": [["Cookie", "hunter2"], {"name": "X-Api-Key", "value": "hunter2"}],
        "session": {"proxies": ["10.1.1.1:8080:bob:hunter2"]}, "config": {"proxy": {"server": "bob:hunter2@p.lan:1"}},
    }));
    let origin = letter.letter.origin.expect("an origin");
    let text = json!(origin).to_string();
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!((&origin.details["queue"], &origin.details["headers"]["accept"]), (&json!("q1"), &json!("text/html")));
    assert_eq!(origin.details["config"]["proxy"]["server"], "p.lan:1");
}

/// Where everything else is the input, it is the context of a failure as well: it is masked, unless somebody says that it is needed.
#[test]
fn letters_without_an_input_are_masked_too() {
    let flat = json!({
        "key": "k-1", "sku": "s", "url": "https://bob:hunter2@a.example/?token=hunter2", "error": "x", "password": "hunter2",
        "headers": {"Cookie": "hunter2"}, "proxies": ["bob:hunter2@p.lan:1", "http://q.lan:8080"],
    });
    let mut reading = reading(&[]);
    let masked = read_by(&reading, flat.clone()).expect("a letter");
    let text = json!(masked.letter.input).to_string();
    assert!(masked.masked && !text.contains("hunter2"), "{text}");
    assert_eq!((&masked.letter.input["key"], &masked.letter.input["sku"]), (&json!("k-1"), &json!("s")));
    assert_eq!(masked.letter.input["proxies"], json!(["p.lan:1", "http://q.lan:8080"]));
    reading.keep_secrets = true;
    let kept = read_by(&reading, flat).expect("a letter");
    assert!(!kept.masked && json!(kept.letter.input).to_string().matches("hunter2").count() == 5);
    assert_eq!(kept.letter.id, masked.letter.id, "it is the same letter");
    let plain = json!({"url": "https://a.example/?page=2", "proxy_url": "http://p.lan:8080/", "error": "x"});
    assert!(!read(plain).masked);
    let content = |secret: &str| read(json!({"n": 1, "password": secret, "error": "x"})).letter.id;
    assert_ne!(content("a"), content("b"), "it is known by what it was, as a run would know it");
}

#[test]
fn what_a_runtime_printed_is_read_as_in_a_run() {
    let trace = "Traceback (most recent call last):\n  File \"a.py\", line 2, in <module>\n    f()\nrequests.exceptions.ReadTimeout: x";
    let told = [
        json!({"t": 3, "error": "x", "stack": trace}),
        json!({"t": 3, "error": "x", "traceback": trace.lines().collect::<Vec<_>>()}),
        json!({"error": trace}),
        json!({"error": {"message": "x", "stack": trace}}),
        json!({"error": "TimeoutError: x"}),
        json!({"attempts": ["no", "TimeoutError: x"]}),
        json!({"error": "ReadTimeout('timed out')"}),
        json!({"error": "x", "stack": "java.net.SocketTimeoutException: Read timed out\n\tat a.B.c(B.java:3)"}),
    ];
    for told in told {
        let letter = read(told.clone()).letter;
        assert_eq!((letter.reason, letter.gate), (Reason::Timeout, Gate::Auto), "{told}");
    }
    let letter = read(json!({"error": trace})).letter;
    assert_eq!(letter.message, "requests.exceptions.ReadTimeout: x");
    let failure = &letter.failures.as_ref().expect("failures")[0];
    assert_eq!(failure.error_type.as_deref(), Some("requests.exceptions.ReadTimeout"));
    assert_eq!(failure.stack.as_deref(), Some(trace));
    let letter = read(json!({"error": "mine", "stack": trace, "error_type": "KeyError"})).letter;
    let failure = &letter.failures.as_ref().expect("failures")[0];
    assert_eq!(
        (letter.message.as_str(), failure.error_type.as_deref()),
        ("mine", Some("KeyError")),
        "what is said counts"
    );
}

#[test]
fn a_status_may_have_its_words_and_a_time_be_that_of_ctime() {
    let letter = read(json!({"error": "x", "status": "404 Not Found", "failed_at": "Mon Nov 16 02:14:00 2026"})).letter;
    assert_eq!((letter.http_status, letter.reason), (Some(404), Reason::NotFound));
    assert_eq!(letter.died_at.to_string(), "2026-11-16T02:14:00.000Z");
    assert_eq!(time_of(&json!("Fri Nov  6 02:14:00 2026")), time_of(&json!("2026-11-06T02:14:00Z")));
    let letter = read(json!({"error": "x", "status": "4 were tried"})).letter;
    assert_eq!((letter.http_status, &letter.input["status"]), (None, &json!("4 were tried")));
}

/// What a code of a provider means, as a table has it.
fn with_codes() -> Reading {
    let unsolvable = Rule { code: vec!["ERROR_CAPTCHA_UNSOLVABLE".into()], ..Rule::for_reason(Reason::Unsolvable) };
    Reading { codes: vec![unsolvable], ..reading(&[]) }
}

#[test]
fn codes_of_providers_are_understood_as_a_field_and_in_a_message() {
    for told in [
        json!({"sitekey": "6Lc", "error": "ERROR_CAPTCHA_UNSOLVABLE"}),
        json!({"sitekey": "6Lc", "error": "task 7 failed: ERROR_CAPTCHA_UNSOLVABLE (3 attempts)"}),
        json!({"sitekey": "6Lc", "error": "it failed", "code": "ERROR_CAPTCHA_UNSOLVABLE"}),
    ] {
        let letter = read_by(&with_codes(), told.clone()).expect("a letter").letter;
        assert_eq!(
            (letter.reason, letter.code.as_deref()),
            (Reason::Unsolvable, Some("ERROR_CAPTCHA_UNSOLVABLE")),
            "{told}"
        );
    }
    let own = Rule { code: vec!["ERROR_CAPTCHA_UNSOLVABLE".into()], ..Rule::for_reason(Reason::RejectedInput) };
    let reading = Reading { rules: vec![own], ..with_codes() };
    let letter = read_by(&reading, json!({"n": 1, "error": "ERROR_CAPTCHA_UNSOLVABLE"})).expect("a letter").letter;
    assert_eq!(letter.reason, Reason::RejectedInput, "the pipeline's own rules come first");
}

#[test]
fn a_reason_beside_an_input_is_taken_or_refused() {
    let told = |reason: Value| json!({"input": {"n": 1}, "error": "ERROR_CAPTCHA_UNSOLVABLE", "reason": reason});
    let letter = read_by(&with_codes(), told(json!("timeout"))).expect("a letter").letter;
    assert_eq!(letter.reason, Reason::Timeout);
    let why = read_by(&with_codes(), told(json!("tired"))).expect_err("there is no such reason");
    assert!(why.contains("its reason") && why.contains("tired"), "{why}");
    read_by(&with_codes(), told(json!(7))).expect_err("that is no text");
    let flat = read(json!({"n": 1, "error": "no", "reason": "tired"})).letter;
    assert_eq!(flat.input["reason"], "tired", "without an input it is a part of it");
}
