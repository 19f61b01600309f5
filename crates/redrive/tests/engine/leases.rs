//! Workers that live elsewhere: what they lease, keep up and bring back is settled as by the engine's own.

use std::time::Duration;

use redrive::contract::{DeadFilter, FindGood, Lane, ListDead, ListPayloads};
use redrive::events::{Happening, Heard};
use redrive::leases::{BroughtBack, BroughtBytes, BroughtPayload, EndedJob, RemoteWorker};
use redrive::vault::{Capture, Keep};
use redrive::worker::Until;
use redrive::{CancellationToken, FailureReport, HandedOn, Job, Pipeline, PipelineName, Policy, Reason, Redrive, json};
use redrive_core::jobs::{Lease, LeasedJob};
use redrive_core::payloads::Response;
use redrive_core::settlements::Outcome;
use redrive_core::workers::TakesReplays;

use redrive::handler::exec::{Command, Exec, Mode};

use self::bench::{Bench, Caught};
use self::in_memory::{breakers, redrive};

use crate::support::bench;
use crate::support::in_memory;

const TTL: Duration = Duration::from_secs(30);

/// A pipeline whose handler is never run here.
fn pipeline() -> Pipeline {
    Pipeline::new("p", |_: Job| async { panic!("it runs elsewhere") as Result<serde_json::Value, FailureReport> })
        .expect("a pipeline")
}

async fn attached(redrive: &Redrive) -> RemoteWorker {
    let worker = redrive.remote_worker(None, "far.example", 7);
    worker.attach(&[pipeline()]).await.expect("attached");
    worker
}

async fn leased(worker: &RemoteWorker, limit: u32) -> Vec<LeasedJob> {
    worker.look(&[pipeline()], (TakesReplays::None, 0)).await.expect("seen");
    worker.lease(&pipeline(), (Lane::Queue, None), limit, TTL).await.expect("leased").jobs
}

fn ended(lease: Lease, outcome: Outcome) -> EndedJob {
    EndedJob {
        lease,
        outcome,
        result: None,
        log: None,
        is_written: false,
        handed_on: Vec::new(),
        payload: None,
        duration: Some(Duration::from_secs(1)),
    }
}

fn failed(reason: Reason) -> Outcome {
    Outcome::Failed(FailureReport::new(reason, "no"))
}

#[tokio::test]
async fn what_is_done_elsewhere_is_written_settled_and_heard() {
    let (redrive, _) = redrive();
    let (worker, caught) = (attached(&redrive).await, Caught::default());
    let pipeline = pipeline().sink(caught.clone());
    redrive.enqueue(&pipeline, (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    let jobs = leased(&worker, 2).await;
    assert_eq!(jobs.len(), 2);
    worker.start(vec![jobs[0].lease], true).await.expect("started");
    let mut listener = redrive.events().listen();
    let result = Some(json!({"found": 1}));
    let done = EndedJob { result, ..ended(jobs[0].lease, Outcome::Done) };
    let brought = worker.settle(&pipeline, vec![done, ended(jobs[1].lease, Outcome::Returned)]).await.expect("settled");
    assert_eq!(brought, [BroughtBack::Settled, BroughtBack::Settled]);
    assert_eq!(*caught.0.lock().expect("unpoisoned"), [json!({"found": 1})]);
    let ledger = redrive.ledger(pipeline.name()).await.expect("read");
    assert_eq!((ledger.done, ledger.queued, ledger.leased), (1, 2, 0));
    let heard = listener.next().await;
    assert!(
        matches!(&heard, Some(Heard::Event(event))
        if event.worker == Some(worker.id()) && matches!(event.what, Happening::JobDone { attempts: 1, .. })),
        "{heard:?}"
    );
    let again = worker.settle(&pipeline, vec![ended(jobs[0].lease, failed(Reason::Timeout))]).await.expect("answered");
    assert_eq!(again, [BroughtBack::Stale], "a job ends once");
}

#[tokio::test]
async fn what_a_job_hands_on_elsewhere_is_accepted_with_its_end() {
    let (redrive, _) = redrive();
    let worker = attached(&redrive).await;
    let items: PipelineName = "items".parse().expect("a name");
    let pipeline = pipeline().hand_on(vec![items.clone()]);
    redrive.enqueue(&pipeline, (0..2).map(|n| json!({"n": n}))).await.expect("accepted");
    let jobs = leased(&worker, 2).await;
    let back = |to: &str| {
        let handed_on = vec![HandedOn::new(Default::default()).to(to.parse().expect("a name"))];
        EndedJob { handed_on, ..ended(jobs[usize::from(to != "items")].lease, Outcome::Done) }
    };
    let answers = worker.settle(&pipeline, vec![back("items"), back("others")]).await.expect("settled");
    assert_eq!(answers[0], BroughtBack::Settled);
    assert!(matches!(&answers[1], BroughtBack::NotDone { why, dies: true } if why.contains("others")), "{answers:?}");
    let again = worker.settle(&pipeline, vec![back("items")]).await.expect("answered");
    assert_eq!(again, [BroughtBack::Settled], "it is brought back again because the answer was lost");
    assert_eq!(redrive.ledger(&items).await.expect("read").queued, 1, "once");
    let ledger = redrive.ledger(pipeline.name()).await.expect("read");
    assert_eq!((ledger.done, ledger.dead), (1, 1), "to others it may not hand on");
}

#[tokio::test]
async fn what_is_brought_back_again_is_settled_once_and_answered_alike() {
    let (redrive, _) = redrive();
    let (worker, caught) = (attached(&redrive).await, Caught::default());
    let pipeline = pipeline().sink(caught.clone());
    redrive.enqueue(&pipeline, (0..3).map(|n| json!({"n": n}))).await.expect("accepted");
    let jobs = leased(&worker, 3).await;
    let back = || {
        let done = EndedJob { result: Some(json!(1)), ..ended(jobs[0].lease, Outcome::Done) };
        vec![done, ended(jobs[1].lease, Outcome::Returned), ended(jobs[2].lease, failed(Reason::Blocked))]
    };
    for _ in 0..2 {
        let answers = worker.settle(&pipeline, back()).await.expect("answered");
        assert_eq!(answers, [BroughtBack::Settled, BroughtBack::Settled, BroughtBack::Settled]);
    }
    assert_eq!(*caught.0.lock().expect("unpoisoned"), [json!(1)], "its result is written once");
    let ledger = redrive.ledger(pipeline.name()).await.expect("read");
    assert_eq!((ledger.done, ledger.queued, ledger.dead), (1, 1, 1));
    assert_eq!(redrive.job(jobs[0].lease.job).await.expect("there").late.len(), 0, "nothing came too late");
}

/// Waits for the second request before it writes.
#[derive(Clone)]
struct Slow {
    caught: Caught,
    both: std::sync::Arc<tokio::sync::Notify>,
}

#[async_trait::async_trait]
impl redrive::sink::Sink for Slow {
    async fn write(&self, results: &[redrive::sink::JobResult]) -> Result<(), redrive::Error> {
        self.both.notified().await;
        self.caught.write(results).await
    }
}

#[tokio::test]
async fn result_that_arrives_twice_at_once_is_written_once() {
    let (redrive, _) = redrive();
    let worker = attached(&redrive).await;
    let sink = Slow { caught: Caught::default(), both: std::sync::Arc::default() };
    let pipeline = pipeline().sink(sink.clone());
    redrive.enqueue(&pipeline, [json!({"n": 1})]).await.expect("accepted");
    let lease = leased(&worker, 1).await[0].lease;
    let bring = || async {
        let done = EndedJob { result: Some(json!(1)), ..ended(lease, Outcome::Done) };
        worker.settle(&pipeline, vec![done]).await.expect("answered")
    };
    let go_on = async {
        // Both have seen by now that the lease holds.
        tokio::time::sleep(Duration::from_millis(200)).await;
        sink.both.notify_one();
        sink.both.notify_one();
    };
    let (first, second, ()) = tokio::join!(bring(), bring(), go_on);
    assert_eq!(first, [BroughtBack::Settled]);
    assert!(second == [BroughtBack::Settled] || second == [BroughtBack::Stale], "{second:?}");
    assert_eq!(*sink.caught.0.lock().expect("unpoisoned"), [json!(1)]);
}

#[tokio::test]
async fn result_that_its_worker_has_written_is_kept_and_not_written_again() {
    let (redrive, _) = redrive();
    let (worker, caught) = (attached(&redrive).await, Caught::default());
    let pipeline = pipeline().sink(caught.clone());
    redrive.enqueue(&pipeline, [json!({"n": 1})]).await.expect("accepted");
    let lease = leased(&worker, 1).await[0].lease;
    let done = EndedJob { result: Some(json!(1)), is_written: true, ..ended(lease, Outcome::Done) };
    assert_eq!(worker.settle(&pipeline, vec![done]).await.expect("settled"), [BroughtBack::Settled]);
    assert!(caught.0.lock().expect("unpoisoned").is_empty());
    assert_eq!(redrive.job(lease.job).await.expect("there").result, Some(json!(1)));
}

#[tokio::test]
async fn the_policy_decides_what_becomes_of_a_failure() {
    let (redrive, clock) = redrive();
    let worker = attached(&redrive).await;
    let pipeline = pipeline().attempts(2);
    redrive.enqueue(&pipeline, [json!({"url": "https://shop.example/"})]).await.expect("accepted");
    let first = leased(&worker, 1).await[0].lease;
    worker.settle(&pipeline, vec![ended(first, failed(Reason::Timeout))]).await.expect("settled");
    assert!(leased(&worker, 1).await.is_empty(), "a retry waits");
    clock.advance(Duration::from_secs(60));
    // Another process may answer the next call: an id and a lease are all that it needs.
    let same = redrive.remote_worker(Some(worker.id()), "far.example", 7);
    let second = leased(&worker, 1).await[0].lease;
    same.settle(&pipeline, vec![ended(second, failed(Reason::Timeout))]).await.expect("settled");
    let ledger = redrive.ledger(pipeline.name()).await.expect("read");
    assert_eq!((ledger.dead, ledger.queued), (1, 0));
    let params = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 1) };
    let letter = redrive.store().list_dead(params).await.expect("listed").items.remove(0);
    assert_eq!((letter.attempts, letter.reason), (2, Reason::Timeout));
    assert!(letter.cause.is_some(), "it is recognised");
    assert_eq!(redrive.store().audit().await.expect("audited").problems, Vec::<String>::new());
}

#[tokio::test]
async fn failures_elsewhere_open_the_breaker_of_their_target() {
    let (redrive, _) = redrive();
    let worker = attached(&redrive).await;
    let pipeline = pipeline().attempts(1);
    let task = |n| json!({"n": n, "url": "https://sick.example/"});
    redrive.enqueue(&pipeline, (0..60).map(task)).await.expect("accepted");
    let mut listener = redrive.events().listen();
    for _ in 0..5 {
        let jobs = leased(&worker, 10).await;
        let ended = jobs.iter().map(|job| ended(job.lease, failed(Reason::Timeout))).collect();
        worker.settle(&pipeline, ended).await.expect("settled");
    }
    let breakers = breakers(&redrive).await;
    assert_eq!(breakers.iter().map(|view| view.target.as_str()).collect::<Vec<_>>(), ["sick.example"]);
    assert!(leased(&worker, 10).await.is_empty(), "its jobs wait");
    let mut opened = 0;
    while let Ok(Some(Heard::Event(event))) = tokio::time::timeout(Duration::from_millis(50), listener.next()).await {
        opened += u32::from(matches!(&event.what, Happening::BreakerOpened { target, .. } if target == "sick.example"));
    }
    assert_eq!(opened, 1, "it is heard once");
}

#[tokio::test]
async fn a_worker_that_is_not_heard_of_loses_its_jobs_without_blame() {
    let (redrive, clock) = redrive();
    let worker = attached(&redrive).await;
    redrive.enqueue(&pipeline(), (0..2).map(|n| json!({"n": n}))).await.expect("accepted");
    let jobs = leased(&worker, 2).await;
    worker.start(jobs.iter().map(|job| job.lease).collect(), false).await.expect("started");
    clock.advance(TTL / 2);
    let kept = worker.extend(&[pipeline()], vec![jobs[0].lease], TTL).await.expect("extended");
    assert_eq!(kept, [jobs[0].lease]);
    clock.advance(TTL / 2 + Duration::from_secs(1));
    redrive.take_back(&[pipeline()]).await.expect("taken back");
    let still = worker.extend(&[pipeline()], jobs.iter().map(|job| job.lease).collect(), TTL).await.expect("extended");
    assert_eq!(still, [jobs[0].lease]);
    let failed = Outcome::Failed(FailureReport::message("too late"));
    let late = vec![ended(jobs[0].lease, Outcome::Done), ended(jobs[1].lease, failed)];
    let brought = worker.settle(&pipeline(), late).await.expect("answered");
    assert_eq!(brought, [BroughtBack::Settled, BroughtBack::Stale]);
    let evidence = redrive.job(jobs[1].lease.job).await.expect("there").late;
    assert_eq!((evidence.len(), evidence[0].worker, evidence[0].epoch), (1, worker.id(), jobs[1].lease.epoch));
    let failure = evidence[0].failure.as_ref().expect("it is kept");
    assert_eq!((failure.message.as_str(), failure.attempt), ("too late", 1));
    let again = leased(&worker, 1).await;
    assert_eq!((again[0].lease.job, again[0].tally.crashes, again[0].tally.suspect), (jobs[1].lease.job, 0, false));
}

#[tokio::test]
async fn a_lease_of_another_pipeline_settles_nothing() {
    let (redrive, _) = redrive();
    let worker = attached(&redrive).await;
    redrive.enqueue(&pipeline(), [json!({})]).await.expect("accepted");
    let lease = leased(&worker, 1).await[0].lease;
    let other = Pipeline::new("other", |_: Job| async { Ok(json!({})) }).expect("a pipeline");
    let brought = worker.settle(&other, vec![ended(lease, Outcome::Done)]).await.expect("answered");
    assert_eq!(brought, [BroughtBack::Stale]);
    assert_eq!(redrive.ledger(pipeline().name()).await.expect("read").leased, 1);
}

#[tokio::test]
async fn what_a_failure_was_about_is_kept_in_the_vault() {
    let bench = Bench::new();
    let worker = attached(&bench.redrive).await;
    let pipeline = pipeline().attempts(1).vault(bench.vault.clone()).keep_payloads(Keep::Failed, 8 << 20);
    bench.redrive.enqueue(&pipeline, [json!({})]).await.expect("accepted");
    let lease = leased(&worker, 1).await[0].lease;
    let payload = Some(brought(b"<p>sold out</p>"));
    let failed = EndedJob { payload, ..ended(lease, failed(Reason::SchemaValidation)) };
    assert_eq!(worker.settle(&pipeline, vec![failed]).await.expect("settled"), [BroughtBack::Settled]);
    let params = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 1) };
    let letter = bench.redrive.store().list_dead(params).await.expect("listed").items.remove(0);
    let kept = bench::payload(&letter).expect("a payload");
    assert_eq!((bench.bytes(&kept).await, kept.response.status), (b"<p>sold out</p>".to_vec(), Some(200)));
}

fn brought(bytes: &[u8]) -> BroughtPayload {
    let mut capture = Capture::begin(1 << 20).expect("begun");
    capture.write(bytes).expect("written");
    let response = Response { status: Some(200), ..Response::default() };
    BroughtPayload { bytes: BroughtBytes::Here(Box::new(capture)), response, total_bytes: None }
}

/// Of many that are brought one is kept, of each shape of addresses, and no job refers to it. A cause holds on to it.
#[tokio::test]
async fn a_page_that_worked_elsewhere_is_kept_beside_those_that_broke() {
    let bench = Bench::new();
    let worker = attached(&bench.redrive).await;
    let pipeline = pipeline().attempts(1).vault(bench.vault.clone()).keep_payloads(Keep::Failed, 8 << 20);
    let inputs = (0..4).map(|n| json!({ "url": format!("https://shop.example/p/{n}") }));
    bench.redrive.enqueue(&pipeline, inputs).await.expect("accepted");
    let jobs = leased(&worker, 4).await;
    let done = |n: usize, page: &[u8]| EndedJob { payload: Some(brought(page)), ..ended(jobs[n].lease, Outcome::Done) };
    worker.settle(&pipeline, vec![done(0, b"<b>0</b>"), done(1, b"<b>1</b>")]).await.expect("settled");
    worker.settle(&pipeline, vec![done(2, b"<b>2</b>")]).await.expect("settled");
    let broke =
        EndedJob { payload: Some(brought(b"<i>3</i>")), ..ended(jobs[3].lease, failed(Reason::SchemaValidation)) };
    worker.settle(&pipeline, vec![broke]).await.expect("settled");
    let store = bench.redrive.store();
    let params = ListDead::newest(DeadFilter::default(), 1);
    let cause = store.list_dead(params).await.expect("listed").items.remove(0).cause;
    let find = FindGood { pipeline: pipeline.name().clone(), target: None, cause, limit: 9 };
    let good = store.good_pages(find).await.expect("found");
    let told: Vec<_> = good.iter().map(|page| (page.url.as_str(), page.shape.as_str())).collect();
    assert_eq!(told, [("https://shop.example/p/0", "/p/*")]);
    assert_eq!(bench.bytes(&good[0].payload).await, b"<b>0</b>");
    let all = ListPayloads { prefix: None, limit: 9, cursor: None };
    assert_eq!(store.list_payloads(all).await.expect("listed").items.len(), 2, "that page, and the one that broke");
}

#[tokio::test]
async fn secrets_in_what_is_brought_are_masked() {
    let bench = Bench::new();
    let worker = attached(&bench.redrive).await;
    let mut command = Command::new("never-run-here", []);
    command.secrets.add_value("pl4nted-s3cret");
    let pipeline = Pipeline::new("p", Exec::new(command, Mode::Process)).expect("a pipeline");
    let pipeline = pipeline.with_policy(Policy { crashes_max: 1, ..Policy::default() }).attempts(1);
    let pipeline = pipeline.vault(bench.vault.clone()).keep_payloads(Keep::Failed, 8 << 20);
    bench.redrive.enqueue(&pipeline, (0..2).map(|n| json!({"n": n}))).await.expect("accepted");
    let jobs = leased(&worker, 2).await;
    let report = || FailureReport {
        stderr: Some("Authorization: Bearer pl4nted-s3cret".into()),
        proxy: Some("http://me:pl4nted-s3cret@proxy.example".into()),
        ..FailureReport::new(Reason::HandlerError, "refused ?api_key=of-another and pl4nted-s3cret")
    };
    let mut capture = Capture::begin(1 << 20).expect("begun");
    capture.write(b"no").expect("written");
    let response = Response {
        url: Some("https://a.example/?token=pl4nted-s3cret".into()),
        headers: vec![("Set-Cookie".into(), "id=of-another".into()), ("X".into(), "pl4nted-s3cret".into())],
        ..Response::default()
    };
    let payload = Some(BroughtPayload { bytes: BroughtBytes::Here(Box::new(capture)), response, total_bytes: None });
    let failed = EndedJob { payload, ..ended(jobs[0].lease, Outcome::Failed(report())) };
    let crashed = ended(jobs[1].lease, Outcome::Crashed(report()));
    worker.settle(&pipeline, vec![failed, crashed]).await.expect("settled");
    let params = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 9) };
    let letters = bench.redrive.store().list_dead(params).await.expect("listed").items;
    let kept = serde_json::to_string(&letters).expect("JSON");
    assert_eq!(letters.len(), 2);
    assert!(kept.contains("a.example") && kept.contains("Set-Cookie") && kept.contains("***"), "{kept}");
    assert!(!kept.contains("pl4nted") && !kept.contains("of-another"), "{kept}");
}

#[tokio::test]
async fn a_worker_that_vanished_is_forgotten_once_its_leases_have_run_out() {
    let (redrive, clock) = redrive();
    let worker = attached(&redrive).await;
    redrive.enqueue(&pipeline(), (0..2).map(|n| json!({"n": n}))).await.expect("accepted");
    leased(&worker, 1).await;
    let workers = async || {
        redrive.take_back(&[pipeline()]).await.expect("taken back");
        redrive.store().list_workers().await.expect("listed")
    };
    clock.advance(TTL / 2);
    assert_eq!(workers().await[0].leases, 1);
    clock.advance(Duration::from_secs(599) - TTL / 2);
    let silent = workers().await.remove(0);
    assert!(silent.is_at_work(redrive.now()) && silent.leases == 0, "its lease ran out; it may come back");
    clock.advance(Duration::from_secs(1));
    assert!(!silent.is_at_work(redrive.now()), "nobody waits for it");
    assert!(workers().await.is_empty());
    // Who asks for jobs is there again, and keeps what it gets.
    let job = leased(&worker, 1).await.remove(0);
    assert_eq!(workers().await[0].leases, 1);
    let brought = worker.settle(&pipeline(), vec![ended(job.lease, Outcome::Done)]).await.expect("settled");
    assert_eq!(brought, [BroughtBack::Settled]);
}

#[tokio::test]
async fn who_asks_for_jobs_now_and_then_stays_on_the_list_with_what_it_runs() {
    let (redrive, clock) = redrive();
    let worker = attached(&redrive).await;
    for _ in 0..30 {
        clock.advance(Duration::from_secs(61));
        leased(&worker, 1).await;
        redrive.take_back(&[pipeline()]).await.expect("taken back");
    }
    let listed = redrive.store().list_workers().await.expect("listed").remove(0);
    assert_eq!((listed.runs.len(), listed.is_at_work(redrive.now())), (1, true));
}

#[tokio::test]
async fn a_worker_of_this_process_does_not_shorten_leases_of_one_that_lives_elsewhere() {
    let (redrive, clock) = redrive();
    let worker = attached(&redrive).await;
    let long = Duration::from_secs(7_200);
    redrive.enqueue(&pipeline(), [json!({})]).await.expect("accepted");
    let job = worker.lease(&pipeline(), (Lane::Queue, None), 1, long).await.expect("leased").jobs.remove(0);
    let stop = CancellationToken::new();
    let own = tokio::spawn(redrive.worker(vec![pipeline()]).run(Until::Stopped, stop.clone()));
    for _ in 0..40 {
        clock.advance(Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.cancel();
    own.await.expect("no panic").expect("stopped");
    let brought = worker.settle(&pipeline(), vec![ended(job.lease, Outcome::Done)]).await.expect("settled");
    assert_eq!(brought, [BroughtBack::Settled], "it has two hours");
}
