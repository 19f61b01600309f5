//! Payloads: keeping pages of 100 KB beside what the disk takes, and extracting records from kept ones beside the bare
//! parser.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use redrive::Redrive;
use redrive::handler::http::document::Document;
use redrive::handler::http::extract::Rules;
use redrive::vault::{Capture, Vault};
use redrive_core::payloads::{Payload, Response};
use scraper::Html;
use serde_json::json;

use crate::row;

const PAGES: usize = 400;
const PAGE_BYTES: usize = 100 * 1024;
const CALLERS: usize = 16;

pub async fn measure(folder: &Path) -> Result<()> {
    let redrive = Redrive::open(&format!("sqlite:{}", folder.join("payloads.db").display())).await?;
    let vault = Vault::open(&folder.join("payloads").display().to_string(), &redrive)?;
    let pages: Vec<String> = (0..PAGES).map(page).collect();
    let disk = write_files(&folder.join("files"), &pages)?;
    let (kept, rate) = keep(&vault, &pages).await?;
    row("keep payloads, MB/s (files, each flushed)", CALLERS, 0, rate, disk);
    let bare = parse_bare(&pages)?;
    row("extract from kept payloads, MB/s (the bare parser)", cores(), 0, extract(&vault, kept).await?, bare);
    Ok(())
}

pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn rate(pages: usize, begun: Instant) -> f64 {
    (pages * PAGE_BYTES) as f64 / 1e6 / begun.elapsed().as_secs_f64()
}

/// What the parser alone does, on every core.
fn parse_bare(pages: &[String]) -> Result<f64> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for part in pages.chunks(pages.len().div_ceil(cores())) {
            scope.spawn(|| part.iter().for_each(|page| drop(Html::parse_document(page))));
        }
    });
    Ok(rate(pages.len(), begun))
}

/// From the vault to records, on every core: some tasks read while others parse.
async fn extract(vault: &Vault, kept: Vec<Payload>) -> Result<f64> {
    let extractor = rules()?.compile()?;
    let (pages, begun) = (kept.len(), Instant::now());
    let tasks: Vec<_> = kept
        .chunks(kept.len().div_ceil(4 * cores()))
        .map(|part| {
            let (vault, extractor, part) = (vault.clone(), extractor.clone(), part.to_vec());
            tokio::spawn(async move {
                let mut read = Vec::new();
                for payload in part {
                    read.clear();
                    vault.copy(payload.hash, &mut read).await?;
                    let document = Document::parse(extractor.format(Some("text/html")), std::str::from_utf8(&read)?)?;
                    anyhow::ensure!(extractor.extract(&document)?.len() == 5, "every field is found");
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(rate(pages, begun))
}

pub fn rules() -> Result<Rules> {
    Ok(serde_json::from_value(json!({"format": "html", "fields": {
        "title": "h1.title::text",
        "price": {"select": ".price-tag-main::text", "type": "number"},
        "image": "img.photo::attr(src)",
        "tags": {"select": "ul.tags li::text", "list": true},
        "reviews": {"select": ".review", "list": true, "fields": {"by": ".by::text", "stars": {"select": ".stars::text", "type": "integer"}}},
    }}))?)
}

/// A shop's page of 100 KB: one product, its reviews, and a long list of others.
pub fn page(n: usize) -> String {
    let mut page = format!(
        "<!doctype html><html><head><title>Product {n}</title></head><body><h1 class=\"title\">Product {n}</h1>\
         <span class=\"price-tag-main\">{n}.99</span><img class=\"photo\" src=\"/images/{n}.jpg\">\
         <ul class=\"tags\"><li>home</li><li>gift</li></ul>"
    );
    let mut random = fastrand::Rng::with_seed(n as u64);
    while page.len() < PAGE_BYTES - 400 {
        let words: Vec<String> = (0..14).map(|_| format!("w{:x}", random.u16(..))).collect();
        page += &format!(
            "<div class=\"card\"><a href=\"/products/{}\" data-id=\"{}\"><b>{}</b></a><p>{}</p></div>\n",
            random.u16(..),
            random.u32(..),
            words[0],
            words.join(" ")
        );
        if random.u8(..) < 10 {
            page += &format!(
                "<div class=\"review\"><i class=\"by\">{}</i><span class=\"stars\">{}</span></div>\n",
                words[1],
                random.u8(1..6)
            );
        }
    }
    page += "<div class=\"review\"><i class=\"by\">last</i><span class=\"stars\">5</span></div>";
    while page.len() < PAGE_BYTES - 14 {
        page.push(' ');
    }
    page + "</body></html>"
}

/// What the disk takes: each page a file of its own, flushed, from as many threads as there are callers.
fn write_files(folder: &Path, pages: &[String]) -> Result<f64> {
    std::fs::create_dir_all(folder)?;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let write = |(caller, part): (usize, &[String])| -> Result<()> {
            for (n, page) in part.iter().enumerate() {
                let mut file = File::create(folder.join(format!("{caller}-{n}")))?;
                file.write_all(page.as_bytes())?;
                file.sync_all()?;
            }
            Ok(())
        };
        let threads: Vec<_> =
            pages.chunks(PAGES / CALLERS).enumerate().map(|part| scope.spawn(move || write(part))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    Ok(rate(pages.len(), begun))
}

async fn keep(vault: &Vault, pages: &[String]) -> Result<(Vec<Payload>, f64)> {
    let begun = Instant::now();
    let tasks: Vec<_> = pages
        .chunks(PAGES / CALLERS)
        .map(|part| {
            let (vault, part) = (vault.clone(), part.to_vec());
            tokio::spawn(async move {
                let mut kept = Vec::new();
                for page in part {
                    let mut capture = Capture::begin(u64::MAX)?;
                    capture.write(page.as_bytes())?;
                    kept.push(vault.save(capture, Response::default(), None).await?);
                }
                anyhow::Ok(kept)
            })
        })
        .collect();
    let mut kept = Vec::new();
    for task in tasks {
        kept.extend(task.await??);
    }
    Ok((kept, rate(pages.len(), begun)))
}
