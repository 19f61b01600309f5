//! Fixed amounts of work, whose instructions `bench/instructions` counts.
//!
//! There is one caller, no network and no timer, so that two counts of one build differ by less than 0.3 %. The counts of a small and a
//! large number of rounds are subtracted from each other: what opening a store costs drops out.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use redrive::config::{Setting, TokenFile};
use redrive::{Redrive, json};
use redrive_core::ids::PipelineName;
use redrive_core::time::Timestamp;
use redrive_server::{App, Options, router};
use redrive_store::contract::{DeadFilter, ListDead};
use tower_service::Service;

use crate::{dead, store};

/// Letters in the store of which pages are read, and on each page.
const LETTERS: u64 = 500;
const PAGE: u32 = 50;

/// Does some rounds of a workload.
pub async fn run(workload: &str, folder: &Path, rounds: usize) -> Result<()> {
    let path = folder.join("redrive.db");
    match workload {
        "enqueue" => {
            store::enqueue(&open(&path).await?, &pipeline()?, 1, rounds, 1).await?;
        }
        "settle" => settle(&path, rounds, None).await?,
        "results" => settle(&path, rounds, Some(RESULT.into())).await?,
        "letters" => letters(&path, rounds).await?,
        "post" => post(folder, rounds).await?,
        other => anyhow::bail!("{other} is not one of enqueue, settle, results, letters, post"),
    }
    Ok(())
}

/// A result as the store keeps it.
const RESULT: &str = r#"{"id":"01a1f22c-1d26-7df8-9713-a30d8c164303","pipeline":"shop","key":"k17","input":{"url":"https://shop.example/products/17"},"result":{"name":"Cup","price":12.5,"stock":3}}"#;

async fn settle(path: &Path, rounds: usize, result: Option<Arc<str>>) -> Result<()> {
    let redrive = open(path).await?;
    store::enqueue(&redrive, &pipeline()?, 1, rounds, 1).await?;
    store::settle((&redrive, &pipeline()?), 1, (rounds, 1), result).await?;
    Ok(())
}

fn pipeline() -> Result<PipelineName> {
    Ok("shop".parse()?)
}

async fn open(path: &Path) -> Result<Redrive> {
    Ok(Redrive::open(&format!("sqlite:{}", path.display())).await?)
}

/// Reads the newest page of letters, again and again.
async fn letters(path: &Path, rounds: usize) -> Result<()> {
    // Always the same letters: how long a text is depends on the moment, too.
    dead::fill_until(path, LETTERS, Timestamp::from_millis(1_750_000_000_000)).await?;
    let redrive = open(path).await?;
    for _ in 0..rounds {
        let page = redrive.store().list_dead(ListDead::newest(DeadFilter::default(), PAGE)).await?;
        ensure!(page.items.len() == PAGE as usize, "a whole page");
    }
    Ok(())
}

/// Sends `POST /jobs` with one job to the routes of a server.
async fn post(folder: &Path, rounds: usize) -> Result<()> {
    let file = folder.join("redrive.toml");
    std::fs::write(&file, "[pipeline.shop]\nhandler = \"remote\"\n")?;
    let store = format!("sqlite:{}", folder.join("redrive.db").display());
    let setting = Setting::load(Some(&file), Some(&store)).context("a setting")?;
    let redrive = setting.redrive().await?;
    let token_file = Some(TokenFile::of_token("rdl_bench"));
    let options = Options { token_file, ..Options::listening(([127, 0, 0, 1], 0).into()) };
    let app = App::new(redrive, setting, options).context("an app")?;
    let mut routes = router(app);
    for round in 0..rounds {
        let job = json!({"pipeline": "shop", "jobs": [{"input": {"key": format!("k{round}"), "url": "https://shop.example/1"}}]});
        let request = Request::post("/api/v1/jobs")
            .header("Host", "127.0.0.1")
            .header("Authorization", "Bearer rdl_bench")
            .header("Content-Type", "application/json")
            .body(Body::from(Bytes::from(serde_json::to_vec(&job)?)))?;
        let response = routes.call(request).await?;
        ensure!(response.status() == StatusCode::CREATED, "job {round} is accepted: {}", response.status());
    }
    Ok(())
}
