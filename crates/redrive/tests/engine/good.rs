//! Pages that worked: the last one of each shape is kept, once in a while, and a cause holds on to it.

use redrive::contract::{DeadFilter, FindGood, ListDead, ListPayloads};
use redrive::vault::Keep;
use redrive::{FailureReport, Job, Pipeline, Reason, json};
use redrive_core::good::GoodPage;
use redrive_core::payloads::Response;
use serde_json::Value;

use crate::support::bench::Bench;

/// A handler that fetches nothing: it keeps a page, if that is wanted, and fails if it is told to.
async fn page(job: Job) -> Result<Value, FailureReport> {
    let fails = job.input["fails"] == true;
    if job.evidence.is_wanted(fails) {
        let mut capture = job.evidence.capture().expect("a capture");
        capture.write(job.input["url"].as_str().unwrap_or_default().as_bytes()).expect("written");
        let response = Response { status: Some(200), ..Response::default() };
        job.evidence.save(capture, response, None).await.expect("saved");
    }
    match fails {
        true => Err(FailureReport::new(Reason::SchemaValidation, "no price")),
        false => Ok(json!({"ok": true})),
    }
}

fn pipeline(bench: &Bench) -> Pipeline {
    Pipeline::new("pages", page).expect("a pipeline").vault(bench.vault.clone()).attempts(1).concurrency(1)
}

async fn run(bench: &Bench, pipeline: Pipeline, jobs: impl IntoIterator<Item = (String, bool)>) {
    let inputs = jobs.into_iter().map(|(url, fails)| json!({"url": url, "fails": fails}));
    bench.redrive.enqueue(&pipeline, inputs).await.expect("accepted");
    bench.redrive.drain(pipeline).await.expect("drained");
}

async fn kept(bench: &Bench, of_cause: bool) -> Vec<GoodPage> {
    let store = bench.redrive.store();
    let list = ListDead::newest(DeadFilter::default(), 1);
    let dead = store.list_dead(list).await.expect("listed").items.pop();
    let cause = dead.and_then(|letter| letter.cause).filter(|_| of_cause);
    let find = FindGood { pipeline: "pages".parse().expect("a name"), target: None, cause, limit: 100 };
    store.good_pages(find).await.expect("found")
}

async fn payloads(bench: &Bench) -> usize {
    let all = ListPayloads { prefix: None, limit: 100, cursor: None };
    bench.redrive.store().list_payloads(all).await.expect("listed").items.len()
}

fn url(path: &str) -> String {
    format!("https://shop.example{path}")
}

/// Of many pages of one shape that work only the first is even written, and it is there when a page breaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_pages_that_work_one_of_each_shape_is_kept() {
    let bench = Bench::new();
    let products = (1..=20).map(|n| (url(&format!("/p/{n}?token=x")), n == 15));
    run(&bench, pipeline(&bench), products.chain([(url("/about"), false)])).await;
    let good = kept(&bench, false).await;
    let shapes: Vec<_> = good.iter().map(|page| page.shape.as_str()).collect();
    assert_eq!(shapes, ["/about", "/p/*"]);
    assert_eq!(good[1].target, "shop.example");
    assert_eq!(bench.bytes(&good[1].payload).await, url("/p/1?token=x").into_bytes());
    assert_eq!(payloads(&bench).await, 3, "one page each, and the one that broke");
    assert_eq!(kept(&bench, true).await[0].shape, "/p/*", "its cause holds on to it");
    let grace = std::time::Duration::ZERO;
    bench.vault.collect(grace, &redrive_core::actors::Actor::redrive()).await.expect("collected");
    assert_eq!(payloads(&bench).await, 3, "they are in use");
}

/// Nothing is kept of pages where nothing is to be kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_keeps_no_payloads_or_no_good_pages_has_none() {
    let never: fn(Pipeline) -> Pipeline = |pipeline| pipeline.keep_payloads(Keep::Never, 1_000);
    for without in [never, Pipeline::no_good_pages] {
        let bench = Bench::new();
        run(&bench, without(pipeline(&bench)), [(url("/p/1"), false)]).await;
        assert_eq!((kept(&bench, false).await.len(), payloads(&bench).await), (0, 0));
    }
}
