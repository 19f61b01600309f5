//! Replaying saved pages beside the bare handler: the same pages, the same rules, the same cores.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use redrive::handler::http::document::Document;
use redrive::handler::http::extract::Extractor;
use redrive::handler::http::request::{Body, Request, Template};
use redrive::handler::http::{Http, HttpConfig, Transport};
use redrive::replays::{NewReplay, NewTry};
use redrive::vault::Vault;
use redrive::worker::Until;
use redrive::{CancellationToken, FailureReport, Handler, HandlerError, Job, Pipeline, Reason, Redrive, Success};
use redrive_core::actors::Actor;
use redrive_core::jobs::Input;
use redrive_core::payloads::Response;
use redrive_core::replays::{Pacing, ReplayMode, Wish};
use redrive_core::secrets::Secrets;
use redrive_store::contract::{DeadFilter, Selection};
use serde_json::json;

use crate::payloads;
use crate::row;

const PAGES: usize = 2_000;

pub async fn measure(folder: &Path) -> Result<()> {
    let redrive = Redrive::open(&format!("sqlite:{}", folder.join("replay.db").display())).await?;
    let vault = Vault::open(&folder.join("saved").display().to_string(), &redrive)?;
    let pages: Vec<String> = (0..PAGES).map(payloads::page).collect();
    let extractor = payloads::rules()?.compile()?;
    let bare = bare(&pages, &extractor)?;
    bury(&redrive, &vault).await?;
    let pipeline = http(&vault)?;
    let begun = Instant::now();
    try_out(&redrive, &pipeline).await?;
    let tried = PAGES as f64 / begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    replay(&redrive, pipeline).await?;
    let replayed = PAGES as f64 / begun.elapsed().as_secs_f64();
    row("try saved pages of 100 KB (the rules alone, in memory)", payloads::cores(), 0, tried, bare);
    row("replay saved pages of 100 KB (the handler alone: trying them)", payloads::cores(), 0, replayed, tried);
    row("replay saved pages of 100 KB (the rules alone, in memory)", payloads::cores(), 0, replayed, bare);
    Ok(())
}

/// What the rules come to, on every core.
fn bare(pages: &[String], extractor: &Extractor) -> Result<f64> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for part in pages.chunks(pages.len().div_ceil(payloads::cores())) {
            scope.spawn(move || {
                for page in part {
                    let format = extractor.format(Some("text/html"));
                    let record =
                        Document::parse(format, page).ok().map(|document| extractor.extract(&document).is_ok());
                    assert_eq!(record, Some(true), "every field is found");
                }
            });
        }
    });
    Ok(pages.len() as f64 / begun.elapsed().as_secs_f64())
}

/// A handler that keeps a page and fails, as if its layout had changed.
struct Fails;

#[async_trait]
impl Handler for Fails {
    async fn run(&self, job: Job) -> std::result::Result<Success, HandlerError> {
        let n = job.input["n"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let mut capture = job.evidence.capture()?;
        capture.write(payloads::page(n).as_bytes()).map_err(|error| HandlerError::Unavailable(error.to_string()))?;
        let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
        let response = Response { status: Some(200), headers, ..Response::default() };
        job.evidence.save(capture, response, None).await?;
        Err(FailureReport::new(Reason::SchemaValidation, "SelectorNotFound: .price").into())
    }
}

/// Dead letters with a page each.
async fn bury(redrive: &Redrive, vault: &Vault) -> Result<()> {
    let fails = Pipeline::new("shop", Fails)?.vault(vault.clone());
    let inputs = (0..PAGES).map(|n| json!({"n": n, "url": format!("https://shop.example/{n}")}));
    redrive.enqueue(&fails, inputs).await?;
    let ledger = redrive.drain(fails).await?;
    ensure!(ledger.dead as usize == PAGES, "all of them died");
    Ok(())
}

/// The handler with the rules that find everything.
fn http(vault: &Vault) -> Result<Pipeline> {
    let config = HttpConfig {
        transport: Transport {
            connect_timeout: Duration::from_secs(1),
            read_timeout: Duration::from_secs(1),
            body_bytes_max: 1 << 24,
            redirects_max: 0,
            egress: Default::default(),
            authorities: Default::default(),
            cookies: false,
            proxies: Vec::new(),
            proxies_max: 3,
            per_target_max: None,
            per_second_max: None,
            secrets: Secrets::default(),
            secret_hosts: Default::default(),
        },
        request: Request {
            method: "GET".parse()?,
            url: Template::parse("{url}").map_err(anyhow::Error::msg)?,
            query: BTreeMap::new(),
            headers: BTreeMap::new(),
            body: Body::None,
        },
        challenges: Vec::new(),
        extractor: Some(payloads::rules()?.compile()?),
        validator: None,
    };
    let handler = Http::new(config).map_err(anyhow::Error::msg)?;
    Ok(Pipeline::new("shop", handler)?.concurrency(4 * payloads::cores()).vault(vault.clone()))
}

fn chosen() -> Selection {
    let filter = DeadFilter { reason: Some(Reason::SchemaValidation), ..DeadFilter::default() };
    Selection { filter, ids: Vec::new() }
}

/// The handler alone, over the saved pages: nothing is settled.
async fn try_out(redrive: &Redrive, pipeline: &Pipeline) -> Result<()> {
    let stop = CancellationToken::new();
    let new = NewTry { by: Actor::redrive(), selection: chosen(), force: false, edits: Input::new() };
    let tried = redrive.try_replay(std::slice::from_ref(pipeline), new, (&stop, |_, _| {}), None).await?;
    ensure!(tried.recovered as usize == PAGES, "every page would recover");
    Ok(())
}

async fn replay(redrive: &Redrive, pipeline: Pipeline) -> Result<()> {
    let new = NewReplay {
        name: "bench".into(),
        by: Actor::redrive(),
        selection: chosen(),
        wish: Wish::of(ReplayMode::Saved),
        force_why: None,
        pacing: Pacing { ramp: Vec::new(), ..Pacing::default() },
        edits: Input::new(),
        pins: redrive::replays::pins(std::slice::from_ref(&pipeline)),
    };
    let (started, plan) = redrive.start_replay(new).await?;
    let id = started.context("a replay of something")?;
    ensure!(plan.included as usize == PAGES, "every letter is replayed");
    redrive.worker(vec![pipeline]).only_replay(id).run(Until::Drained, CancellationToken::new()).await?;
    let replay = redrive.store().get_replay(id).await?;
    ensure!(replay.is_some_and(|replay| replay.progress.recovered as usize == PAGES), "every letter recovered");
    Ok(())
}
