//! A page that broke beside the last one that worked, what is different about those who died, and drafts of rules.

use std::path::Path;

use redrive::compare::Comparing;
use redrive::config::{Config, Overrides, Setting, with_vault};
use redrive::contract::{DeadFilter, ListCauses, ListDead, Selection};
use redrive::replays::{Draft, Drafted, NewTry, ReplayError, drafted};
use redrive::{CancellationToken, FailureReport, Job, Pipeline, Reason, json};
use redrive_core::actors::Actor;
use redrive_core::dead::DeadLetter;
use redrive_core::definitions::{Definition, define};
use redrive_core::facets::Baseline;
use redrive_core::good::Pairing;
use redrive_core::payloads::Response;
use serde_json::Value;

use crate::support::bench::Bench;

const RULES: &str = "[pipeline.pages]\nhandler = \"http\"\n[pipeline.pages.extract.fields]\ntitle = \"h1::text\"\n\
                     price = { select = \".price-tag-main::text\", type = \"number\" }\n";

fn setting() -> Setting {
    setting_of(RULES)
}

fn setting_of(text: &str) -> Setting {
    Setting::of(Config::parse(text, Path::new("redrive.toml")).expect("rules"), None).expect("a setting")
}

fn page(n: u32, new: bool) -> String {
    let price = if new {
        format!("<div class=price><data value={n}.95>€ {n}.95</data></div>")
    } else {
        format!("<p class=price-box><span class=price-tag-main>{n}.50</span></p>")
    };
    format!("<script>fetch('//evil')</script><h1>Thing {n}</h1>{price}<p>Buy")
}

/// Keeps its page, if that is wanted, and fails if it is of the new layout.
async fn fetch(job: Job) -> Result<Value, FailureReport> {
    let (n, new) = (job.input["n"].as_u64().unwrap_or(0) as u32, job.input["new"] == true);
    if job.evidence.is_wanted(new) {
        let mut capture = job.evidence.capture().expect("a capture");
        capture.write(page(n, new).as_bytes()).expect("written");
        let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
        let response = Response { status: Some(200), headers, ..Response::default() };
        job.evidence.save(capture, response, None).await.expect("saved");
    }
    job.notes.proxy(if new { "p1" } else { "p2" });
    match new {
        true => Err(FailureReport {
            proxy: Some("p1".into()),
            ..FailureReport::new(Reason::SchemaValidation, "SelectorNotFound: .price-tag-main (field price)")
        }),
        false => Ok(json!({"n": n})),
    }
}

/// Twenty pages that work, then six of a new layout.
async fn changed_layout() -> Bench {
    changed_layout_under(None).await
}

/// The same by a pipeline that is so defined.
async fn changed_layout_under(definition: Option<&Definition>) -> Bench {
    let bench = Bench::new();
    for (numbers, new) in [(1..=20, false), (21..=26, true)] {
        let pipeline = Pipeline::new("pages", fetch).expect("a pipeline").vault(bench.vault.clone());
        let pipeline = pipeline.attempts(1).concurrency(1);
        let pipeline = match definition {
            Some(definition) => pipeline.described(definition.clone()),
            None => pipeline,
        };
        let input = |n: u32| json!({"url": format!("https://shop.example/p/{n}"), "n": n, "new": new});
        bench.redrive.enqueue(&pipeline, numbers.map(input)).await.expect("accepted");
        bench.redrive.drain(pipeline).await.expect("drained");
    }
    bench
}

async fn letters(bench: &Bench) -> Vec<DeadLetter> {
    let list = ListDead { with_failures: true, ..ListDead::newest(DeadFilter::default(), 50) };
    bench.redrive.store().list_dead(list).await.expect("listed").items
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_broke_is_read_beside_the_last_one_that_worked() {
    let (bench, setting) = (changed_layout().await, setting());
    let with = Comparing { setting: &setting, vault: Some(&bench.vault) };
    let letter = letters(&bench).await.remove(0);
    let found = bench.redrive.compare(&with, &letter, true).await.expect("compared");
    assert_eq!((found.why_not, found.pairing), (None, Some(Pairing::SameShape)));
    let price = found.fields.iter().find(|field| field.field == "price").expect("a field");
    assert_eq!((price.rule.as_str(), price.kind.as_str()), (".price-tag-main::text", "number"));
    assert_eq!((price.broke.matches, price.broke.miss.as_deref()), (0, Some("SelectorNotFound")));
    assert_eq!(price.worked.as_ref().and_then(|found| found.value.as_deref()), Some("1.50"), "as it was first");
    let help = price.help.as_ref().expect("help");
    assert!(help.candidates.iter().any(|one| one.rule == "data::attr(value)"), "{help:?}");
    assert_eq!(found.hunks[0].near, ["price"]);
    let worked = found.worked.expect("a good page").payload.hash;
    let shown = bench.redrive.render_page(&with, &letter, worked).await.expect("made").expect("a page");
    assert!(shown.contains("class=\"redrive-found\"") && shown.contains("Thing 1"), "{shown}");
    assert!(!shown.contains("<script") && !shown.contains("evil"), "{shown}");
    let foreign = redrive_core::payloads::PayloadHash::from_bytes([9; 32]);
    assert!(bench.redrive.render_page(&with, &letter, foreign).await.expect("asked").is_none(), "it is not its page");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_worked_is_judged_by_the_rules_it_was_saved_under() {
    let fields = json!({ "title": "h1::text", "price": { "select": ".price-tag-main::text", "type": "number" } });
    let section = json!({ "handler": "http", "extract": { "fields": fields } });
    let then = define(&section, &Default::default(), &Default::default());
    let changed = setting_of(&RULES.replace(".price-tag-main::text", ".price data::attr(value)"));
    for definition in [Some(&then), None] {
        let bench = changed_layout_under(definition).await;
        let with = Comparing { setting: &changed, vault: Some(&bench.vault) };
        let letter = letters(&bench).await.remove(0);
        let found = bench.redrive.compare(&with, &letter, true).await.expect("compared");
        let price = found.fields.iter().find(|field| field.field == "price").expect("a field");
        assert_eq!((price.broke.matches, price.broke.miss.as_ref()), (1, None), "by the rules of now");
        let hash = found.worked.expect("a good page").payload.hash;
        let shown = bench.redrive.render_page(&with, &letter, hash).await.expect("made").expect("a page");
        if definition.is_none() {
            assert_eq!(price.worked, None, "what it was saved under is not known: no rule says that it is missed");
            assert_eq!(found.worked_rules, found.rules_now);
            continue;
        }
        let worked = price.worked.as_ref().expect("it was found");
        assert_eq!((worked.value.as_deref(), worked.miss.as_ref()), (Some("1.50"), None));
        assert_eq!(price.worked_rule.as_deref(), Some(".price-tag-main::text"));
        assert_eq!(found.worked_rules.as_deref(), Some(then.version.as_str()));
        assert_ne!(found.worked_rules, found.rules_now);
        assert!(shown.contains("found by the rule of price"), "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_sets_those_who_died_apart_is_told_with_both_numbers() {
    let bench = changed_layout().await;
    let list = ListCauses { with_empty: false, ..ListCauses::all(5, bench.redrive.now()) };
    let cause = bench.redrive.store().list_causes(list).await.expect("listed").remove(0);
    assert_eq!((cause.dead, cause.saved), (6, 6));
    let different = bench.redrive.differences(&cause).await.expect("compared");
    assert_eq!((different.failures, different.successes, different.baseline), (6, 20, Baseline::SameHours));
    let first = &different.found[0];
    assert_eq!((first.kind.as_str(), first.value.as_str()), ("proxy", "p1"));
    assert_eq!((first.failures.part, first.failures.whole, first.successes.part, first.successes.whole), (6, 6, 0, 20));
    assert!(different.alike.contains(&"target".to_owned()), "{:?}", different.alike);
    let only: Vec<_> = different.uncompared.iter().map(|one| one.kind.as_str()).collect();
    assert_eq!(only, [] as [&str; 0], "neither a status nor a stage was told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_is_tried_over_saved_pages_and_checked_against_good_ones() {
    let (bench, setting) = (changed_layout().await, setting());
    let with = Comparing { setting: &setting, vault: Some(&bench.vault) };
    let name = "pages".parse().expect("a name");
    for (rule, same) in [(".price data::attr(value)", 0), (".price-tag-main, .price data::text", 1)] {
        let draft = Draft::from([("price".to_owned(), rule.to_owned())]);
        let (changed, rules, change) = drafted(&setting, &name, &draft).expect("a draft");
        let good = bench.redrive.check_good(&with, &changed, &name).await.expect("checked");
        assert_eq!((good.same, good.of), (same, 1), "{rule}");
        let (pipeline, _) = changed.pipeline(name.clone(), &Overrides::default()).expect("a pipeline");
        let pipelines = [with_vault(pipeline, Some(&bench.vault))];
        let ids = letters(&bench).await.iter().map(|letter| letter.id).collect();
        let selection = Selection { ids, ..Selection::default() };
        let new = NewTry { by: Actor::redrive(), selection, force: true, edits: Default::default() };
        let draft = Some(Drafted { rules, change, good: Default::default() });
        let begun = bench.redrive.begin_try(&pipelines, (new, draft)).await.expect("begun");
        let tried = begun.run(&CancellationToken::new(), |_, _| {}, async { Ok(good) }).await.expect("tried");
        assert_eq!((tried.recovered, tried.tried), (6, 6), "{rule}");
        assert_eq!(letters(&bench).await.len(), 6, "nothing is settled");
        let kept = bench.redrive.list_tries().await.expect("listed").remove(0);
        let refused = async |setting: &Setting| {
            let (pipeline, _) = setting.pipeline(name.clone(), &Overrides::default()).expect("a pipeline");
            bench.redrive.find_recoverable(&kept.selection, &Default::default(), &[pipeline]).await.err()
        };
        let why = refused(&setting).await.expect("refused");
        assert!(
            matches!(why, redrive::Error::Replay(ReplayError::TriedOtherwise(_))),
            "the file has other rules: {why}"
        );
        let written = setting_of(&RULES.replace(".price-tag-main::text", rule));
        assert!(refused(&written).await.is_none(), "once the file has the rules of the draft, it is a try of them");
    }
}
