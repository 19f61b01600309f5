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
    assert!(has_id(&line, &job()), "it says which job it answers");
    let odd = br#"{"n": 1, "enqueue": [{"input": {}}, {"input": {}, "kee": 1}]}"#;
    let Err(HandlerError::Failed(report)) = of_process(Exit::Code(0), odd, "", &Secrets::default()) else {
        panic!("it cannot be understood")
    };
    assert!(report.message.contains("enqueue[1]") && report.message.contains("kee"), "{}", report.message);
    assert_eq!((report.reason, report.code.as_deref()), (Some(Reason::HandlerError), Some("bad_enqueue")));
}

#[test]
fn fields_beside_the_jobs_of_a_line_are_its_result() {
    let jobs = json!([{"input": {"n": 2}}]);
    for (id, result) in [(json!(job().id), json!({"n": 1})), (json!("sku-7"), json!({"id": "sku-7", "n": 1}))] {
        let line = json!({"id": id, "n": 1, "enqueue": jobs}).to_string();
        let done = of_line(&line, &job(), "", &Secrets::default()).expect("an answer").expect("a result");
        assert_eq!((done.result, done.handed_on.len()), (result, 1));
        assert_eq!(has_id(&line, &job()), id == json!(job().id), "{id}");
    }
}

#[test]
fn last_line_is_the_result_if_only_it_is_json() {
    let done = |stdout: &str| {
        let done = of_process(Exit::Code(0), stdout.as_bytes(), "", &Secrets::default()).expect("a result");
        (done.result, done.log)
    };
    assert_eq!(done("debug line\n{\"n\": 1}\n"), (json!({"n": 1}), Some("debug line".into())));
    assert_eq!(done("a\n\nb\n3"), (json!(3), Some("a\n\nb".into())));
    assert_eq!(done("1\nlog\n{\"n\": 1}\n"), (json!({"n": 1}), Some("1\nlog".into())));
    assert_eq!(done("{\n  \"n\": 1\n}\n"), (json!({"n": 1}), None), "pretty-printed JSON is one result");
    assert_eq!(done("{\"n\": 1}\n{\"n\": 2}\n"), (json!("{\"n\": 1}\n{\"n\": 2}"), None), "no line is a log");
    assert_eq!(done("{\"n\": 1}\nthe end\n"), (json!("{\"n\": 1}\nthe end"), None));
    let with_jobs =
        of_process(Exit::Code(0), b"log\n{\"n\": 1, \"enqueue\": [{\"input\": {}}]}", "", &Secrets::default());
    let with_jobs = with_jobs.expect("a result");
    assert_eq!((with_jobs.handed_on.len(), with_jobs.log.as_deref()), (1, Some("log")));
}
