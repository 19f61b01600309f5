use super::*;
use crate::failures::FailureReport;
use crate::time::Timestamp;

const SCRIPT: &str = "Traceback (most recent call last):\n  File \"/app/scrape.py\", line 12, in parse\n    x.text\n\
                      AttributeError: 'NoneType' object has no attribute 'text'";

fn job(n: u128, reason: Reason, report: FailureReport) -> RetryingJob {
    let failure = Failure::told(&report, reason, Timestamp::from_millis(0));
    RetryingJob { id: JobId::new(Timestamp::from_millis(0), n), target: Some("shop.example".into()), failure }
}

fn crash(n: u128) -> RetryingJob {
    let report = FailureReport {
        error_type: Some("AttributeError".into()),
        stack: Some(SCRIPT.into()),
        code: Some("exit_1".into()),
        ..FailureReport::message("AttributeError: 'NoneType' object has no attribute 'text'")
    };
    job(n, Reason::HandlerError, report)
}

fn answered(n: u128, status: u16) -> RetryingJob {
    let report = FailureReport { http_status: Some(status), ..FailureReport::message(format!("no luck, try {n}")) };
    job(n, Reason::ServerError, report)
}

fn view(targets: &[(&str, u64)], jobs: &[RetryingJob], all: u64) -> RetryingView {
    let targets = targets.iter().map(|(target, waiting)| ((*target).to_owned(), *waiting)).collect();
    RetryingView::new("shop".parse().expect("a name"), targets, jobs.to_vec(), all)
}

#[test]
fn failures_of_the_users_code_come_first_and_are_counted_by_error_and_place() {
    let jobs: Vec<_> = (0..60).map(|n| answered(n, 503)).chain((60..108).map(crash)).collect();
    let view = view(&[("shop.example", 108)], &jobs, 108);
    assert_eq!(
        view.lines(3),
        [
            "48 × AttributeError scrape.py:12: 'NoneType' object has no attribute 'text'",
            "60 × server_error 503: no luck, try <*>",
        ]
    );
    assert_eq!((view.at_least, view.causes[0].example), (false, jobs[60].id));
}

#[test]
fn counts_are_a_lower_bound_if_not_all_jobs_were_read() {
    let view = view(&[("shop.example", 900)], &[crash(1), crash(2)], 3);
    assert!(view.at_least && view.lines(1)[0].starts_with("at least 2 × AttributeError"), "{view:?}");
}

#[test]
fn causes_and_targets_are_bounded_and_the_rest_is_counted() {
    let jobs: Vec<_> = (0..9).map(|n| answered(u128::from(n), 500 + n)).collect();
    let targets = [("a", 1), ("shop.example", 9), ("c", 3), ("d", 2), ("e", 0)];
    let view = view(&targets, &jobs, 9);
    assert_eq!(
        (view.targets.as_slice(), view.more_targets),
        (["shop.example", "c", "d"].map(str::to_owned).as_slice(), 2)
    );
    assert_eq!((view.causes.len(), view.more_causes), (5, 4));
    assert_eq!(view.lines(2).last().map(String::as_str), Some("7 more causes"));
    assert_eq!(view.lines(2).len(), 3);
}

#[test]
fn failures_of_targets_that_answer_are_left_out() {
    let view = view(&[("other.example", 4)], &[crash(1), crash(2)], 2);
    assert_eq!((view.jobs, view.lines(3).len()), (0, 0), "to close that breaker does not help them");
}

#[test]
fn a_hold_without_failed_jobs_has_no_lines() {
    assert!(view(&[("shop.example", 4)], &[], 0).lines(3).is_empty());
}
