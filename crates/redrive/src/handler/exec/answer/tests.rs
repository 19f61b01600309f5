//! What exit codes, output and answers of commands mean.

use super::*;
use serde_json::json;

fn failed(code: i32, stdout: &str, stderr: &str) -> FailureReport {
    match of_process(Exit::Code(code), stdout.as_bytes(), stderr, &Secrets::default()) {
        Err(HandlerError::Failed(report)) => *report,
        other => panic!("expected a failure, not {other:?}"),
    }
}

#[test]
fn a_message_is_masked_before_it_is_cut() {
    let mut secrets = Secrets::default();
    secrets.add_value("s3cret-value-of-some-length");
    for before in MESSAGE_CHARS_MAX - 30..MESSAGE_CHARS_MAX {
        let said = format!("{} s3cret-value-of-some-length", "x".repeat(before));
        for (stdout, stderr) in [("", said.as_str()), (&said, ""), ("{\"failure\": {}}", &said)] {
            let ended = of_process(Exit::Code(1), stdout.as_bytes(), stderr, &secrets);
            let Err(HandlerError::Failed(report)) = ended else { panic!("it failed") };
            assert!(report.message.starts_with("xx") && !report.message.contains("s3"), "{}", report.message);
        }
    }
}

#[test]
fn results_are_json_or_text() {
    let ok = |stdout: &str| {
        of_process(Exit::Code(0), stdout.as_bytes(), "noise", &Secrets::default()).expect("a result").result
    };
    assert_eq!(ok(""), Value::Null);
    assert_eq!(ok("{\"a\": 1}\n"), json!({"a": 1}));
    assert_eq!(ok("plain text\n"), json!("plain text"));
    assert_eq!(ok("{\"error\": \"no such field\"}"), json!({"error": "no such field"}), "exit 0 is success");
}

#[test]
fn exit_codes_mean_what_sysexits_says() {
    let verdict = |code| {
        let report = failed(code, "", "");
        (report.reason, report.disposition)
    };
    assert_eq!(verdict(64), (Some(Reason::Misconfigured), Some(Disposition::Dead)));
    assert_eq!(verdict(65), (Some(Reason::RejectedInput), Some(Disposition::Dead)));
    assert_eq!(verdict(78), (Some(Reason::Misconfigured), Some(Disposition::Dead)));
    assert_eq!(verdict(75), (Some(Reason::HandlerError), Some(Disposition::Retry)));
    assert_eq!(verdict(1), (None, None), "the rules look at what was said");
    assert_eq!(failed(3, "", "").code.as_deref(), Some("exit_3"));
}

#[test]
fn the_last_line_of_a_traceback_is_the_message() {
    let stderr = "warning\nTraceback (most recent call last):\n  File \"a.py\", line 3\nrequests.exceptions.ReadTimeout: too long\n";
    let report = failed(1, "", stderr);
    assert_eq!(report.message, "requests.exceptions.ReadTimeout: too long");
    assert_eq!(report.error_type.as_deref(), Some("requests.exceptions.ReadTimeout"));
    assert!(report.stack.expect("a stack").starts_with("warning\nTraceback"));
    assert_eq!(report.stderr.as_deref(), Some(stderr));
    assert_eq!(failed(1, "", "it is over: no\n").error_type, None);
}

#[test]
fn a_stated_failure_is_taken_at_its_word() {
    let stated = r#"{"failure": {"reason": "timeout", "code": "E1", "message": "slow", "http_status": 504, "proxy": "p7", "retry_after": 30}}"#;
    for report in [failed(1, stated, ""), failed(0, &format!("log\n{stated}\n"), ""), failed(1, "", stated)] {
        assert_eq!(report.reason, Some(Reason::Timeout));
        assert_eq!((report.code.as_deref(), report.http_status), (Some("E1"), Some(504)));
        assert_eq!((report.proxy.as_deref(), report.retry_after_secs), (Some("p7"), Some(30.0)));
    }
    let bare = failed(1, r#"{"status": 403, "message": "go away"}"#, "");
    assert_eq!((bare.http_status, bare.reason), (Some(403), None), "rules decide the rest");
    let error = failed(1, r#"{"error": "ERROR_ZERO_BALANCE"}"#, "");
    assert_eq!(error.message, "ERROR_ZERO_BALANCE");
    let fatal = failed(65, r#"{"failure": {"message": "no url"}}"#, "");
    assert_eq!((fatal.reason, fatal.disposition), (Some(Reason::RejectedInput), Some(Disposition::Dead)));
}

#[test]
fn headers_may_be_passed_on_as_they_came() {
    let report = failed(1, r#"{"failure": {"http_status": "429", "retry_after": "30"}}"#, "");
    assert_eq!((report.http_status, report.retry_after_secs), (Some(429), Some(30.0)));
    let dated = failed(1, r#"{"status": 503, "retry_after": "Wed, 21 Oct 2099 07:28:00 GMT"}"#, "");
    assert!(dated.retry_after_secs > Some(1e9));
}

#[test]
fn one_odd_field_does_not_lose_the_others() {
    let report = failed(1, r#"{"failure": {"reason": "sad", "code": 17, "http_status": "none", "message": "m"}}"#, "");
    assert_eq!((report.reason, report.code.as_deref(), report.message.as_str()), (None, Some("17"), "m"));
}

#[test]
fn signals_and_lack_of_memory_are_crashes() {
    let crash = |exit, stderr| match of_process(exit, b"", stderr, &Secrets::default()) {
        Err(HandlerError::Crashed(report)) => report.code.expect("a code"),
        other => panic!("expected a crash, not {other:?}"),
    };
    assert_eq!(crash(Exit::Signal(11), ""), "SIGSEGV");
    assert_eq!(crash(Exit::Code(1), "Traceback (most recent call last):\nMemoryError\n"), "exit_1");
}

fn job() -> Job {
    let now = redrive_core::time::Timestamp::from_millis(0);
    Job {
        id: redrive_core::ids::JobId::new(now, 1),
        pipeline: "p".parse().expect("a name"),
        round: None,
        key: None,
        target: None,
        input: Map::new(),
        attempt: 1,
        crashes: 0,
        replays: 0,
        worker: redrive_core::ids::WorkerId::new(now, 2),
        deadline: std::time::Duration::from_secs(1),
        saved: None,
        tried: Vec::new(),
        notes: crate::handler::Notes::default(),
        evidence: crate::vault::Evidence::default(),
        progress: crate::handler::Progress::default(),
        from_network: false,
        traceparent: None,
        edited: false,
        parent: None,
    }
}

#[test]
fn lines_of_a_persistent_process() {
    let of_line = |line: &str| of_line(line, &job(), "", &Secrets::default());
    assert_eq!(of_line(r#"{"result": 7}"#), Some(Ok(json!(7).into())));
    assert_eq!(of_line(&json!({"id": job().id, "result": 7}).to_string()), Some(Ok(json!(7).into())));
    assert_eq!(of_line(r#"{"id": "another", "result": 7}"#), None);
    assert_eq!(of_line("[1]"), Some(Ok(json!([1]).into())));
    assert_eq!(of_line("not json"), None);
    let Some(Err(HandlerError::Failed(report))) = of_line(r#"{"failure": {"reason": "blocked"}}"#) else {
        panic!("a failure")
    };
    assert_eq!(report.reason, Some(Reason::Blocked));
    assert!(matches!(of_end(Exit::Signal(9), "", &Secrets::default()), HandlerError::Crashed(_)));
    assert!(matches!(of_end(Exit::Code(0), "", &Secrets::default()), HandlerError::Failed(_)));
}

#[test]
fn an_answer_may_hand_on_jobs() {
    let done =
        of_process(Exit::Code(0), br#"{"result": 7, "enqueue": [{"input": {"n": 1}}]}"#, "", &Secrets::default());
    let done = done.expect("a result");
    assert_eq!((done.result, done.handed_on.len()), (json!(7), 1));
    let line = json!({"id": "another", "enqueue": [{"input": {}}]}).to_string();
    assert!(has_id(&line), "it says which job it answers");
    let odd = of_process(Exit::Code(0), br#"{"enqueue": [{"input": {}, "kee": 1}]}"#, "", &Secrets::default());
    let Err(HandlerError::Failed(report)) = odd else { panic!("it cannot be understood") };
    assert!(report.message.contains("kee"), "{}", report.message);
}
