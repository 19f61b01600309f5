//! Feeding files of tasks into a pipeline.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive::tasks::{BrokenLine, ByLine, Fed, Feed, Naming, Recognised, TaskFormat, Tasks, TasksError, WhenFull};
use redrive::worker::Until;
use redrive::{CancellationToken, Error, ErrorKind, Job, Pipeline, Redrive, json};
use redrive_core::jobs::{Input, NewJob};
use redrive_core::policy::Bounds;
use redrive_core::tasks::FILE_DIGITS;
use redrive_store::Options;
use redrive_store::conformance::decorators::{Counting, Decorated};
use redrive_store::sqlite::SqliteStore;

use self::in_memory::{eventually, over, redrive};

use crate::support::in_memory;

fn feed(redrive: &Redrive, queued_max: Option<u64>, when_full: WhenFull) -> Feed {
    let pipeline = "p".parse().expect("a name");
    Feed {
        bounds: Bounds::of_queue(queued_max),
        when_full,
        ..Feed::new(std::sync::Arc::new(redrive.clone()), pipeline, CancellationToken::new())
    }
}

fn tasks(text: &str) -> Tasks {
    Tasks::copied("tasks", std::io::Cursor::new(text.to_owned()), TaskFormat::JsonLines).expect("tasks")
}

fn lines(count: usize) -> String {
    (0..count).map(|n| format!("{{\"key\": \"k{n}\"}}\n")).collect()
}

async fn fed(feed: &Feed, text: &str) -> Result<(Fed, Vec<BrokenLine>), Error> {
    let broken = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&broken);
    let fed = feed.run(tasks(text), move |line| heard.lock().expect("unpoisoned").push(line)).await?;
    let broken = broken.lock().expect("unpoisoned").clone();
    Ok((fed, broken))
}

#[tokio::test]
async fn broken_lines_are_told_and_the_rest_is_enqueued_once() {
    let (redrive, clock) = redrive();
    let feed = feed(&redrive, None, WhenFull::Refuse);
    let text = format!("{}nonsense\n{{}}\n", lines(2_100));
    let (first, broken) = fed(&feed, &text).await.expect("fed");
    assert_eq!((first.accepted, first.known(), first.broken, first.complete), (2_101, 0, 1, true));
    assert_eq!(broken.iter().map(|line| line.number).collect::<Vec<_>>(), [2_101]);
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!({})) }).expect("a pipeline");
    redrive.drain(pipeline).await.expect("drained");
    clock.advance(Duration::from_secs(1));
    let (again, _) = fed(&feed, &text).await.expect("fed");
    assert_eq!((again.accepted, again.known_done, again.broken), (0, 2_101, 1));
}

#[tokio::test]
async fn all_jobs_may_have_one_target() {
    let (redrive, _) = redrive();
    let feed = Feed { target: Some("shop.example".into()), ..feed(&redrive, None, WhenFull::Refuse) };
    fed(&feed, "{\"url\": \"https://other.example/\"}\n").await.expect("fed");
    let params = redrive::contract::ListJobs { filter: Default::default(), limit: 1, cursor: None };
    let jobs = redrive.store().list_jobs(params).await.expect("listed").items;
    assert_eq!(jobs[0].target.as_deref(), Some("shop.example"));
}

#[tokio::test]
async fn a_full_queue_takes_what_it_has_room_for_and_says_how_many() {
    let (redrive, _) = redrive();
    let refused = fed(&feed(&redrive, Some(30), WhenFull::Refuse), &lines(50)).await.expect_err("full");
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(matches!(refused, Error::Tasks(TasksError::Full { accepted: 30, .. })), "{refused}");
    let name = "p".parse().expect("a name");
    assert_eq!(redrive.ledger(&name).await.expect("read").queued, 30);
}

#[tokio::test]
async fn room_is_waited_for_where_somebody_works() {
    let (redrive, _) = redrive();
    let pipeline = Pipeline::new("p", |_: Job| async { Ok(json!({})) }).expect("a pipeline");
    let stop = CancellationToken::new();
    let working = tokio::spawn({
        let (redrive, stop) = (redrive.clone(), stop.clone());
        async move { redrive.work(vec![pipeline], stop).await }
    });
    let (fed, _) = fed(&feed(&redrive, Some(10), WhenFull::Wait), &lines(200)).await.expect("fed");
    assert_eq!((fed.accepted, fed.complete), (200, true));
    let name = "p".parse().expect("a name");
    eventually("all are done", async || redrive.ledger(&name).await.expect("read").done == 200).await;
    stop.cancel();
    working.await.expect("no panic").expect("worked");
}

/// Nobody works: the queue stays as full as it is, and is looked at again every few seconds only. Each look is a call.
#[tokio::test]
async fn a_full_queue_is_left_alone_until_jobs_move() {
    let counting = Arc::<Counting>::default();
    let (redrive, _) = over(Decorated::around(Arc::new(SqliteStore::in_memory().expect("opened")), &counting));
    let waiting = feed(&redrive, Some(10), WhenFull::Wait);
    let full = Arc::clone(&waiting.is_full);
    let feeding = tokio::spawn(async move { fed(&waiting, &lines(20)).await.expect("fed").0 });
    eventually("the queue is full", async || full.load(Ordering::Relaxed)).await;
    let asked = counting.calls("enqueue");
    let often = async { eventually("it is asked often", async || counting.calls("enqueue") > asked + 8).await };
    tokio::time::timeout(Duration::from_secs(2), often).await.expect_err("it is not asked again and again");
    let working = redrive.work(vec![pipeline()], CancellationToken::new());
    tokio::select! {
        fed = feeding => assert_eq!(fed.expect("no panic").accepted, 20),
        ended = working => panic!("it ended: {ended:?}"),
    }
}

fn pipeline() -> Pipeline {
    Pipeline::new("p", |_: Job| async { Ok(json!({})) }).expect("a pipeline")
}

async fn done(redrive: &Redrive) -> i64 {
    redrive.ledger(&"p".parse().expect("a name")).await.expect("read").done
}

/// A stream, and the end by which it is written.
fn stream() -> (Tasks, File) {
    let (reading, writing) = std::io::pipe().expect("a pipe");
    (Tasks::stream("standard input", reading.into(), TaskFormat::Auto), File::from(std::os::fd::OwnedFd::from(writing)))
}

/// A file that grew is run from where it grew; one that was repaired, only there; and what two files have in common is one.
#[tokio::test]
async fn what_is_known_is_not_enqueued_again_whatever_file_it_comes_in() {
    let (redrive, clock) = redrive();
    let feed = feed(&redrive, None, WhenFull::Refuse);
    let line = |n: u32| format!("{{\"n\": {n}}}\n");
    let text: String = (0..100).map(line).collect();
    assert_eq!(fed(&feed, &text).await.expect("fed").0.accepted, 100);
    redrive.drain(pipeline()).await.expect("drained");
    clock.advance(Duration::from_secs(1));
    let grown: String = (0..110).map(line).collect();
    let (again, _) = fed(&feed, &grown).await.expect("fed");
    assert_eq!((again.accepted, again.known_done), (10, 100));
    let repaired = grown.replace("{\"n\": 7}\n", "{\"n\": 700}\n").replace(&line(50), "");
    assert_eq!(fed(&feed, &repaired).await.expect("fed").0.accepted, 1);
    assert_eq!(fed(&feed, &line(3).repeat(2)).await.expect("fed").0.accepted, 1, "the second of two equal ones");
}

#[tokio::test]
async fn each_round_runs_every_task_once() {
    let (redrive, _) = redrive();
    let name = "p".parse().expect("a name");
    let round = redrive.next_round(&name).await.expect("asked");
    let of = |round: &redrive_core::ids::RoundName| Feed {
        naming: Naming { round: Some(round.clone()), ..Naming::default() },
        ..feed(&redrive, None, WhenFull::Refuse)
    };
    assert_eq!(fed(&of(&round), &lines(5)).await.expect("fed").0.accepted, 5);
    assert_eq!(fed(&of(&round), &lines(6)).await.expect("fed").0.accepted, 1, "it resumes");
    let next = redrive.next_round(&name).await.expect("asked");
    assert_ne!(next, round);
    assert_eq!(fed(&of(&next), &lines(6)).await.expect("fed").0.accepted, 6);
    redrive.drain(pipeline()).await.expect("drained");
    let rounds = redrive.rounds(Some(&name), 9).await.expect("listed");
    let mut counts: Vec<_> = rounds.iter().map(|round| (round.accepted, round.done, round.queued)).collect();
    counts.sort_unstable();
    assert_eq!(counts, [(6, 6, 0), (6, 6, 0)]);
}

#[tokio::test]
async fn a_limit_takes_so_many_new_tasks_and_then_the_next() {
    let (redrive, _) = redrive();
    let feed = Feed { limit: Some(1_500), ..feed(&redrive, None, WhenFull::Refuse) };
    for (accepted, known, limited) in [(1_500, 0, true), (1_500, 1_500, true), (100, 3_000, false)] {
        let (some, _) = fed(&feed, &lines(3_100)).await.expect("fed");
        assert_eq!((some.accepted, some.known(), some.limited), (accepted, known, limited));
    }
}

#[tokio::test]
async fn a_survey_says_what_would_be_and_changes_nothing() {
    let (redrive, clock) = redrive();
    let feed = feed(&redrive, None, WhenFull::Refuse);
    fed(&feed, &lines(3)).await.expect("fed");
    redrive.drain(pipeline()).await.expect("drained");
    clock.advance(Duration::from_secs(1));
    let text = format!("{}nonsense\n", lines(2_005));
    for _ in 0..2 {
        let survey = feed.survey(tasks(&text), |_| ()).await.expect("surveyed");
        assert_eq!((survey.fed.accepted, survey.fed.known_done, survey.fed.broken), (2_002, 3, 1));
        assert_eq!(survey.examples[0].key.as_deref(), Some("k3"));
    }
    let limited = Feed { limit: Some(4), ..feed };
    let survey = limited.survey(tasks(&text), |_| ()).await.expect("surveyed");
    assert_eq!((survey.fed.accepted, survey.fed.limited), (4, true));
    assert_eq!(done(&redrive).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_worked_on_while_it_is_open() {
    let (redrive, clock) = redrive();
    let (tasks, mut writing) = stream();
    let feed = Arc::new(feed(&redrive, None, WhenFull::Wait));
    let ended = CancellationToken::new();
    let until = Until::DrainedAfterStream { ended: ended.clone(), is_full: Arc::clone(&feed.is_full) };
    let worker = redrive.worker(vec![pipeline()]).max_wait(Duration::from_secs(60));
    let working = tokio::spawn(worker.run(until, CancellationToken::new()));
    let feeding = tokio::spawn({
        let feed = Arc::clone(&feed);
        async move { feed.run(tasks, |_| ()).await }
    });
    for n in 1..=3 {
        // The line is whole only with what comes later.
        writing.write_all(format!("https://a.example/{n}\nhttps://b.ex").as_bytes()).expect("written");
        eventually("what came is done", async || done(&redrive).await == n * 2 - 1).await;
        clock.advance(Duration::from_secs(3_600));
        writing.write_all(format!("ample/{n}\n").as_bytes()).expect("written");
        eventually("and the rest", async || done(&redrive).await == n * 2).await;
    }
    assert!(!working.is_finished(), "an input that is open and silent is no standstill");
    drop(writing);
    let fed = feeding.await.expect("no panic").expect("fed");
    assert_eq!((fed.accepted, fed.complete), (6, true));
    ended.cancel();
    working.await.expect("no panic").expect("worked");
}

/// What had come is nowhere else: it is enqueued, but for a line whose end had not come.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_left_loses_nothing_that_had_come() {
    let (redrive, _) = redrive();
    let (tasks, mut writing) = stream();
    let feed = feed(&redrive, Some(10), WhenFull::Wait);
    writing.write_all(b"https://a.example/0\n").expect("written");
    let (name, stop) = ("p".parse().expect("a name"), feed.stop.clone());
    let broken = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&broken);
    let feeding =
        tokio::spawn(async move { feed.run(tasks, move |line| heard.lock().expect("unpoisoned").push(line)).await });
    eventually("it is read", async || redrive.ledger(&name).await.expect("read").queued == 1).await;
    let rest: String = (1..500).map(|n| format!("https://a.example/{n}\n")).collect();
    writing.write_all(format!("{rest}https://a.exa").as_bytes()).expect("written");
    stop.cancel();
    let fed = feeding.await.expect("no panic").expect("fed");
    assert_eq!((fed.accepted, fed.complete), (500, false));
    assert_eq!(redrive.ledger(&name).await.expect("read").queued, 500, "however full the queue is");
    let broken = broken.lock().expect("unpoisoned");
    assert!(broken.len() == 1 && broken[0].number == 501, "{broken:?}");
    drop(writing);
}

/// Compressed data that has not come yet is not damaged.
#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_stream_that_is_left_is_cut_and_not_damaged() {
    let (redrive, _) = redrive();
    let (tasks, mut writing) = stream();
    let feed = feed(&redrive, None, WhenFull::Wait);
    // A beginning of gzip, as far as its header.
    writing.write_all(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]).expect("written");
    feed.stop.cancel();
    let broken = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&broken);
    let fed = feed.run(tasks, move |line: BrokenLine| heard.lock().expect("unpoisoned").push(line)).await;
    assert!(!fed.expect("fed").complete);
    let broken = broken.lock().expect("unpoisoned");
    assert!(broken.len() == 1 && broken[0].why.contains("its end had not come yet"), "{broken:?}");
    drop(writing);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_writes_without_end_is_left_in_the_end() {
    let (redrive, _) = redrive();
    let (tasks, mut writing) = stream();
    let feed = feed(&redrive, None, WhenFull::Wait);
    let writer = std::thread::spawn(move || {
        let mut n = 0;
        while writing.write_all(format!("https://a.example/{n}\n").as_bytes()).is_ok() {
            n += 1;
        }
    });
    let stop = feed.stop.clone();
    let name = "p".parse().expect("a name");
    let stopping = async {
        eventually("some has come", async || redrive.ledger(&name).await.expect("read").accepted > 0).await;
        stop.cancel();
    };
    let (fed, ()) = tokio::join!(feed.run(tasks, |_| ()), stopping);
    let fed = fed.expect("fed");
    assert!(!fed.complete && fed.accepted > 0, "{fed:?}");
    writer.join().expect("nobody reads it any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn enough_of_a_stream_ends_it() {
    let (redrive, _) = redrive();
    let (tasks, mut writing) = stream();
    let feed = Feed { limit: Some(2), ..feed(&redrive, None, WhenFull::Wait) };
    writing.write_all(b"a\nb\nc\nd\n").expect("written");
    let fed = feed.run(tasks, |_| ()).await.expect("fed");
    assert_eq!((fed.accepted, fed.limited, fed.not_taken), (2, true, Some(2)), "what had come is told");
    drop(writing);
    let (tasks, mut writing) = stream();
    writing.write_all(b"e\nf\n").expect("written");
    let fed = feed.run(tasks, |_| ()).await.expect("it ends though the stream is open");
    assert_eq!((fed.accepted, fed.limited, fed.not_taken), (2, true, Some(0)));
    drop(writing);
    let (tasks, mut writing) = stream();
    writing.write_all(lines(3_000).as_bytes()).expect("written");
    drop(writing);
    let fed = feed.run(tasks, |_| ()).await.expect("fed");
    assert_eq!((fed.accepted, fed.not_taken), (2, Some(2_998)));
}

#[tokio::test]
async fn dead_letters_among_what_is_known_are_noted_if_asked_for() {
    let (redrive, clock) = redrive();
    let feed = Feed { keep_dead: true, ..feed(&redrive, None, WhenFull::Refuse) };
    fed(&feed, &lines(3)).await.expect("fed");
    let fatal = Pipeline::new("p", |job: Job| async move {
        match job.key.as_deref() {
            Some("k1") => Err(redrive::FailureReport::new(redrive::Reason::RejectedInput, "no")),
            _ => Ok(json!({})),
        }
    });
    redrive.drain(fatal.expect("a pipeline")).await.expect("drained");
    clock.advance(Duration::from_secs(1));
    let (again, _) = fed(&feed, &lines(3)).await.expect("fed");
    assert_eq!((again.known_done, again.known_dead, again.dead.len()), (2, 1, 1));
}

/// Before tasks were known by their content, they were known by the hash of their file and the line.
#[tokio::test]
async fn a_file_of_before_is_known_by_its_lines_and_asked_about_if_it_was_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("redrive.db");
    let redrive = Redrive::over(Arc::new(SqliteStore::open(&path, Options::create()).expect("opened")));
    let (before, name) = ("{\"n\": 1}\n{\"n\": 2}\n", "p".parse().expect("a name"));
    let recognise =
        async |text: &str, naming: &Naming| redrive.recognise_tasks(&name, &tasks(text), naming).await.expect("asked");
    assert_eq!(recognise(before, &Naming::default()).await, Recognised::AsItIs, "nothing is from before");
    let hash = blake3::hash(before.as_bytes()).to_hex()[..FILE_DIGITS].to_owned();
    let job = |line: u32| NewJob { key: Some(format!("{hash}:{line}")), ..redrive.new_job(Input::new()) };
    redrive.enqueue_jobs(&name, Bounds::default(), vec![job(1), job(2)]).await.expect("accepted");
    let conn = rusqlite::Connection::open(&path).expect("opened");
    conn.execute("INSERT INTO task_file (pipeline, hash) SELECT id, ?1 FROM pipeline", [&hash])
        .expect("a store of before");
    let by_line = Recognised::ByLine(ByLine { hash, lines: 2 });
    let grown = format!("{before}{{\"n\": 3}}\n");
    assert_eq!(recognise(before, &Naming::default()).await, by_line);
    assert_eq!(recognise(&grown, &Naming::default()).await, by_line, "it has only grown");
    let changed = grown.replace('1', "100");
    assert_eq!(recognise(&changed, &Naming::default()).await, Recognised::Changed { new: 3 });
    let round = Naming { round: "monday".parse().ok(), ..Naming::default() };
    assert_eq!(recognise(&changed, &round).await, Recognised::AsItIs, "a round is new in any case");
    assert_eq!(recognise(&lines(3), &Naming::default()).await, Recognised::AsItIs, "they bring their keys");
}
