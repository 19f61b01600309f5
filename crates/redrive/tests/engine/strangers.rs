//! What jobs that came over the network, or were edited, do not reach, with real listeners that see who comes and with what.

use crate::support::bench::{Bench, config};
use crate::support::misbehaving::Misbehaving;
use redrive::handler::http::request::Template;
use redrive::handler::http::{Http, HttpConfig};
use redrive::replays::{AskedReplay, ReplayRef};
use redrive::worker::Until;
use redrive::{CancellationToken, Pipeline, Reason, json};
use redrive_core::actors::{Actor, Via};
use redrive_core::dead::DeadLetter;
use redrive_core::egress::Egress;
use redrive_core::jobs::Origin;
use redrive_store::contract::{DeadFilter, ListDead, Selection};
use serde_json::Value;

/// Without a secret in it.
fn plain() -> HttpConfig {
    let mut asked = config();
    asked.request.headers.clear();
    asked
}

/// One that may go to this machine, so that only the secret is in the way.
fn carrying(hosts: &[&str]) -> HttpConfig {
    let mut asked = config();
    asked.transport.egress = Egress::only(&["127.0.0.0/8"]).expect("a network");
    hosts.iter().for_each(|host| asked.transport.secret_hosts.add(host).expect("a host"));
    asked
}

#[track_caller]
fn assert_refused(letter: Option<DeadLetter>, code: &str) {
    let letter = letter.expect("it fails");
    assert_eq!((letter.reason, letter.code.as_deref()), (Reason::RejectedInput, Some(code)), "{}", letter.message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_from_the_network_reaches_no_private_address_unless_the_pipeline_says_so() {
    let home = Misbehaving::start();
    let input = json!({"url": home.url("/page")});
    assert_eq!(Bench::new().run(plain(), input.clone()).await, None, "it is from here");
    let imported = Bench { origin: Some(Origin::here("import")), ..Bench::new() };
    assert_eq!(imported.run(plain(), input.clone()).await, None, "somebody here handed it over");
    let before = home.requests().len();
    assert_refused(Bench::from_network().run(plain(), input.clone()).await, "AddressNotAllowed");
    let old = Bench { origin: Some(Origin { network: None, ..Origin::here("import") }), ..Bench::new() };
    assert_refused(old.run(plain(), input.clone()).await, "AddressNotAllowed");
    let by_name = json!({"url": home.url("/page").replace("127.0.0.1", "localhost")});
    assert_refused(Bench::from_network().run(plain(), by_name).await, "AddressNotAllowed");
    assert_eq!(home.requests().len(), before, "nobody came");
    let mut allowing = plain();
    allowing.transport.egress = Egress::only(&["127.0.0.0/8"]).expect("a network");
    assert_eq!(Bench::from_network().run(allowing, input).await, None, "its pipeline says so");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_the_pipeline_writes_out_is_reached_and_what_it_redirects_to_is_not() {
    let home = Misbehaving::start();
    let written = |path: &str| {
        let mut asked = config();
        asked.request.url = Template::parse(&home.url(path)).expect("a template");
        asked
    };
    assert_eq!(Bench::from_network().run(written("/page?n={n}"), json!({"n": 1})).await, None);
    assert!(home.requests().iter().any(|request| request.to_string().contains("pl4nted-s3cret")), "it is named");
    let elsewhere = Misbehaving::start();
    let away = elsewhere.url("/page").replace("127.0.0.1", "localhost");
    let redirected = Bench::from_network().run(written(&format!("/redirect-by/302/{away}")), json!({})).await;
    assert_refused(redirected, "AddressNotAllowed");
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_go_with_a_job_from_the_network_only_to_hosts_that_are_named() {
    let (home, other) = (Misbehaving::start(), Misbehaving::start());
    let input = json!({"url": home.url("/page")});
    assert_refused(Bench::from_network().run(carrying(&[]), input.clone()).await, "SecretHost");
    assert_refused(Bench::from_network().run(carrying(&["shop.example"]), input.clone()).await, "SecretHost");
    assert!(home.requests().is_empty(), "nothing was sent");
    assert_eq!(Bench::new().run(carrying(&[]), input.clone()).await, None, "it is from here");
    assert_eq!(Bench::from_network().run(carrying(&["127.0.0.1"]), input).await, None, "it is named");
    assert!(home.requests().iter().all(|request| request.to_string().contains("pl4nted-s3cret")));
    let away = home.url(&format!("/redirect-by/302/{}", other.url("/page")));
    assert_eq!(Bench::from_network().run(carrying(&["127.0.0.1"]), json!({"url": away})).await, None);
    let sent = other.requests();
    assert!(sent.len() == 1 && !sent[0].to_string().contains("pl4nted-s3cret"), "another origin: {sent:?}");
}

/// The one letter that there is.
async fn letter(bench: &Bench) -> Option<DeadLetter> {
    let params = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 1) };
    bench.redrive.store().list_dead(params).await.expect("listed").items.pop()
}

/// Replays the letter with another address.
async fn replay(bench: &Bench, config: HttpConfig, url: &str, over_network: bool) -> Option<DeadLetter> {
    let pipeline = Pipeline::new("p", Http::new(config).expect("a handler")).expect("a pipeline").attempts(1);
    let id = letter(bench).await.expect("a letter").id;
    let selection = Selection { ids: vec![id], ..Selection::default() };
    let Value::Object(edits) = json!({"url": url}) else { panic!("an object") };
    let asked = AskedReplay { edits, over_network, ..AskedReplay::of(selection, Actor::new("ada", Via::Cli)) };
    let started = bench.redrive.ask_replay(asked, std::slice::from_ref(&pipeline)).await.expect("started");
    let id = started.id.expect("it goes");
    let worker = bench.redrive.worker(vec![pipeline]).only_replay(id);
    worker.run(Until::Drained, CancellationToken::new()).await.expect("replayed");
    assert!(bench.redrive.find_replay(ReplayRef::Id(id)).await.expect("found").finished_at.is_some());
    letter(bench).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_go_with_an_edited_job_only_to_hosts_that_are_named_and_an_edit_over_the_network_marks_it() {
    let home = Misbehaving::start();
    let fails = json!({"url": home.url("/status/404")});
    let page = home.url("/page");
    let bench = Bench::new();
    assert!(bench.run(carrying(&[]), fails.clone()).await.is_some(), "it fails there");
    assert_refused(replay(&bench, carrying(&[]), &page, false).await, "SecretHost");
    assert_eq!(replay(&bench, carrying(&["127.0.0.1"]), &page, false).await, None, "it is named");
    let bench = Bench::new();
    assert!(bench.run(plain(), fails.clone()).await.is_some());
    assert_eq!(replay(&bench, plain(), &page, false).await, None, "somebody here edited it");
    let bench = Bench::new();
    assert!(bench.run(plain(), fails).await.is_some());
    assert_refused(replay(&bench, plain(), &page, true).await, "AddressNotAllowed");
}
