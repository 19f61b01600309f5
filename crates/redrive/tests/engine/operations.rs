//! Every operation of the list is checked: by role, and by the pipelines that the caller covers.

use redrive::access::AccessError;
use redrive::api::breakers::{CloseBreaker, HoldBreaker, ListBreakers, ProbeBreaker};
use redrive::api::{Caller, Deadline, Page};
use redrive::breakers::BreakerError;
use redrive::pipelines::PipelineError;
use redrive::{Entry, Error, Redrive, json, operations};
use redrive_core::actors::{Actor, Via};
use redrive_core::tokens::Role;
use serde_json::Value;

use self::in_memory::{hold, redrive};

use crate::support::in_memory;

fn caller(role: Role, pipelines: &[&str]) -> Caller {
    let pipelines = pipelines.iter().map(|name| name.parse().expect("a pattern")).collect();
    let actor = Actor::new("eve", Via::Api);
    Caller { actor, role, pipelines, payloads: true, is_remote: true }
}

/// Returns a store with what the examples of the operations are about.
async fn filled() -> Redrive {
    let (redrive, _) = redrive();
    for pipeline in ["shop", "bank"] {
        let pipeline = redrive::Pipeline::new(pipeline, |_: redrive::Job| async { Ok(json!({})) }).expect("a pipeline");
        redrive.enqueue(&pipeline, [json!({ "url": "https://shop.example/" })]).await.expect("accepted");
    }
    hold(&redrive, "shop.example", None).await.expect("held");
    redrive
}

async fn send(entry: &Entry, caller: &Caller) -> Result<Value, Error> {
    let redrive = filled().await;
    let example = serde_json::from_str(entry.example).expect("an example is a JSON object");
    let response = (entry.run)(&redrive, example, caller).await?;
    Ok(serde_json::from_slice(&response).expect("JSON"))
}

#[tokio::test]
async fn every_operation_accepts_its_example_and_refuses_a_lower_role() {
    for entry in operations() {
        for role in Role::ALL {
            match send(entry, &caller(role, &[])).await {
                Err(Error::Access(AccessError::RoleRequired { needs, has })) => {
                    assert_eq!((needs, has, role < needs), (entry.route.role, role, true), "{}", (entry.name)());
                }
                done => assert!(done.is_ok() && role >= entry.route.role, "{} as {role}: {done:?}", (entry.name)()),
            }
        }
    }
}

#[tokio::test]
async fn every_operation_refuses_or_hides_a_foreign_pipeline() {
    for entry in operations() {
        match send(entry, &caller(Role::Admin, &["mill-*"])).await {
            Err(Error::Access(error)) => assert_eq!(error, AccessError::ForeignPipeline, "{}", (entry.name)()),
            Err(error) => panic!("{}: {error}", (entry.name)()),
            Ok(response) => {
                let text = response.to_string();
                assert!(!text.contains("shop") && !text.contains("bank"), "{}: {text}", (entry.name)());
            }
        }
    }
}

#[tokio::test]
async fn caller_with_some_pipelines_changes_none_by_naming_none() {
    let redrive = filled().await;
    let eve = caller(Role::Admin, &["shop"]);
    let target = || "shop.example".parse().expect("a target");
    let hold = HoldBreaker { target: target(), pipeline: None, until: None, why: None, version: None };
    let close = CloseBreaker { target: target(), pipeline: None, version: None };
    let probe = ProbeBreaker { target: target(), pipeline: None, version: None };
    let errors = [
        redrive.ask(hold, &eve).await.map(drop),
        redrive.ask(close, &eve).await.map(drop),
        redrive.ask(probe, &eve).await.map(drop),
    ];
    for error in errors {
        let error = error.expect_err("refused");
        assert!(matches!(error, Error::Access(AccessError::PipelineRequired)), "{error}");
        assert_eq!(error.field(), Some("pipeline"));
    }
    let Page { items, .. } = redrive.ask(ListBreakers::default(), &eve).await.expect("listed");
    assert_eq!(items.iter().map(|row| row.view.pipeline.as_str()).collect::<Vec<_>>(), ["shop"]);
}

#[tokio::test]
async fn response_to_a_turn_has_all_that_its_sentence_says() {
    let redrive = filled().await;
    let ada = Caller::local(Actor::new("ada", Via::Cli));
    let (shop, until) = ("shop".parse().expect("a name"), Some("2h".parse::<Deadline>().expect("a deadline")));
    let request = |target: &str, pipeline: &str| HoldBreaker {
        target: target.parse().expect("a target"),
        pipeline: Some(pipeline.parse().expect("a name")),
        until,
        why: None,
        version: None,
    };
    let held = redrive.ask(request("SHOP.example", "shop"), &ada).await.expect("held");
    assert_eq!((held.target.as_str(), &held.pipelines, &held.opened), ("shop.example", &vec![shop], &vec![]));
    assert_eq!((held.until, held.is_queued), (Some(redrive.now() + std::time::Duration::from_secs(7_200)), true));
    let held = redrive.ask(request("shop.exmaple", "shop"), &ada).await.expect("held");
    assert_eq!((held.opened.len(), held.is_queued), (1, false), "it is misspelled");
    redrive.pause_pipeline(&"bank".parse().expect("a name"), None, &ada.actor).await.expect("paused");
    let close = CloseBreaker { target: "Shop.example".parse().expect("a target"), pipeline: None, version: None };
    let closed = redrive.ask(close.clone(), &ada).await.expect("closed");
    let names = |names: &[redrive::PipelineName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        (names(&closed.pipelines), names(&closed.paused)),
        (vec!["bank".into(), "shop".into()], vec!["bank".into()])
    );
    for (target, pipeline) in [("shop.exmaple", "bank"), ("other.example", "shop")] {
        redrive.ask(request(target, pipeline), &ada).await.expect("held");
    }
    let again = redrive.ask(close, &ada).await.expect_err("it is closed");
    let Error::Breaker(BreakerError::NotOpen { open, .. }) = again else { panic!("{again}") };
    assert_eq!(open, ["other.example", "shop.exmaple"], "each is named once");
    let unknown = redrive.ask(request("shop.example", "nobody"), &ada).await.expect_err("no such pipeline");
    assert!(matches!(unknown, Error::Pipeline(PipelineError::Unknown { .. })), "{unknown}");
}
