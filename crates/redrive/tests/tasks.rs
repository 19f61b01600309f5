//! Feeding files of tasks into a pipeline.

#[path = "support/in_memory.rs"]
mod in_memory;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redrive::tasks::{BrokenLine, Fed, Feed, TaskFormat, Tasks, TasksError, WhenFull};
use redrive::{CancellationToken, Error, ErrorKind, Job, Pipeline, Redrive, json};

use self::in_memory::{eventually, redrive};

fn feed(redrive: &Redrive, queued_max: Option<u64>, when_full: WhenFull) -> Feed {
    let pipeline = "p".parse().expect("a name");
    Feed { queued_max, when_full, ..Feed::new(redrive.clone(), pipeline, CancellationToken::new()) }
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
