//! A page that broke beside the last one that worked, and what is different about those who died: for who wants to know why.
//!
//! Pages are hostile. They are read below the caps of the `http` handler's documents, on a thread of its own and for a short time, few at
//! once.
//!
//! - `pages`: two pages, read by the same rules; `lines`: a page as lines; `candidates`: how often rules that could be meant match
//! - `safe`: a page that can be shown

mod candidates;
mod lines;
mod pages;
mod safe;

use std::collections::BTreeMap;
use std::time::Duration;

use redrive_core::alerts::Share;
use redrive_core::dead::DeadLetter;
use redrive_core::facets::{self, BASELINE_MIN, Baseline, Difference, FacetCount, differences};
use redrive_core::failures::{Failure, Miss};
use redrive_core::good::{GoodPage, Pairing, pair};
use redrive_core::ids::JobId;
use redrive_core::payloads::{Payload, PayloadHash};
use redrive_core::time::Timestamp;
use redrive_store::contract::{CauseView, DoneIn, FindGood};
use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

pub use self::candidates::{COUNTED_MAX, CandidateCounts};
use self::pages::{Beside, Shown, Wanted};
pub use self::pages::{ComparedField, Found, Hunk, HunkLine, HunkRow};
use crate::config::{Overrides, Setting};
use crate::engine::Redrive;
use crate::error::Error;
use crate::handler::http::decoded;
use crate::handler::http::extract::{Extractor, Rules};
use crate::vault::Vault;

/// The longest page that is looked into, in bytes.
const BYTES_MAX: u64 = 4 << 20;

/// How long two pages may keep their reader busy.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many are read at once.
static READERS: Semaphore = Semaphore::const_new(2);

/// Good pages that are looked through for the one to compare with.
const PAGES_MAX: u32 = 200;

/// The most hours in which others were done while tasks died.
const HOURS_MAX: usize = 500;

/// One of two pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedPage {
    /// Its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// When it came.
    pub at: Timestamp,
    /// The page.
    pub payload: Payload,
    /// The version of the rules that it was read with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
}

/// A page that broke beside the last one that worked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The letter whose page broke.
    pub letter: JobId,
    /// The page that broke, if it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broke: Option<ComparedPage>,
    /// The page that worked, if one was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worked: Option<ComparedPage>,
    /// Why it is this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pairing: Option<Pairing>,
    /// What rules find on both.
    pub fields: Vec<ComparedField>,
    /// What the handler said is amiss, where rules are not known here.
    pub misses: Vec<Miss>,
    /// What differs between the pages, near rules that find nothing first.
    pub hunks: Vec<Hunk>,
    /// How many hunks there are in all.
    pub hunks_count: u64,
    /// Why the pages could not be looked into, if they could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

/// What is different about those who died of a cause.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Differences {
    /// How many died, as far as they were counted.
    pub failures: u64,
    /// How many were done, with whom they are compared.
    pub successes: u64,
    /// Who those are.
    pub baseline: Baseline,
    /// What is different, the widest gap first.
    pub found: Vec<Difference>,
    /// What was compared and is alike.
    pub alike: Vec<String>,
    /// What is counted of those who died, and not of those who were done: of each kind the most frequent value.
    #[serde(default)]
    pub uncompared: Vec<Uncompared>,
}

/// What many of those who died have, of which nothing is known of those who were done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uncompared {
    /// What is counted.
    pub kind: String,
    /// The value; empty for those that have none.
    pub value: String,
    /// Of those who died, those with the value.
    pub failures: Share,
}

/// Which of two pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The page that broke.
    Broke,
    /// The page that worked.
    Worked,
}

/// Who compares: what rules there are, and where pages lie.
pub struct Comparing<'a> {
    /// The configuration.
    pub setting: &'a Setting,
    /// Where pages lie.
    pub vault: Option<&'a Vault>,
}

/// Rules as they are written, and ready for use.
struct Known {
    extractor: Extractor,
    shown: Vec<Shown>,
}

impl Redrive {
    /// Compares the page of a letter with the last one that worked. What differs line by line is told if it is asked for.
    pub async fn compare(&self, with: &Comparing<'_>, letter: &DeadLetter, lines: bool) -> Result<Comparison, Error> {
        let (broke, worked, pairing) = self.two_pages(with, letter).await?;
        let last = letter.failures.iter().flatten().last();
        let mut comparison = Comparison {
            letter: letter.id,
            fields: Vec::new(),
            misses: last.map(|failure| failure.misses.clone()).unwrap_or_default(),
            hunks: Vec::new(),
            hunks_count: 0,
            why_not: None,
            broke,
            worked,
            pairing,
        };
        let read = match self.texts(with, &comparison).await {
            Ok((broke, worked, content_type)) => {
                let known = known(with.setting, letter);
                let wanted = if lines { Wanted::All } else { Wanted::Fields };
                aside(move |stop| {
                    let rules = known.as_ref().map(|known| (&known.extractor, known.shown.as_slice()));
                    pages::compare(rules, (&broke, worked.as_deref()), (content_type.as_deref(), wanted), stop)
                })
                .await
            }
            Err(why) => Err(why),
        };
        match read {
            Ok(Beside { fields, hunks, hunks_count, broken }) => {
                (comparison.fields, comparison.hunks, comparison.hunks_count) = (fields, hunks, hunks_count);
                comparison.why_not = broken;
            }
            Err(why) => comparison.why_not = Some(why),
        }
        Ok(comparison)
    }

    /// One of the two pages of a letter as a document that does nothing, with what rules find outlined. Nothing if it is none.
    pub async fn render_page(
        &self,
        with: &Comparing<'_>,
        letter: &DeadLetter,
        hash: PayloadHash,
    ) -> Result<Option<String>, Error> {
        let (broke, worked, _) = self.two_pages(with, letter).await?;
        let Some(page) = [broke, worked].into_iter().flatten().find(|page| page.payload.hash == hash) else {
            return Ok(None);
        };
        let Ok(text) = text_of(with.vault, &page.payload).await else { return Ok(None) };
        let (known, content_type) = (known(with.setting, letter), content_type(&page.payload));
        let made = aside(move |stop| {
            let rules = known.as_ref().map(|known| (&known.extractor, known.shown.as_slice()));
            pages::rendered(rules, &text, content_type.as_deref(), stop)
        });
        Ok(made.await.ok().flatten())
    }

    async fn two_pages(
        &self,
        with: &Comparing<'_>,
        letter: &DeadLetter,
    ) -> Result<(Option<ComparedPage>, Option<ComparedPage>, Option<Pairing>), Error> {
        let failed = letter.failures.iter().flatten().rev();
        let failed = failed.filter_map(|failure| Some((failure, failure.kept_payload()?))).next();
        let url = url_of(with.setting, letter, failed.map(|(_, payload)| payload));
        let broke = failed.map(|(failure, payload)| broke(failure, payload, url.clone()));
        let find = FindGood {
            pipeline: letter.pipeline.clone(),
            target: letter.target.clone(),
            cause: letter.cause.clone(),
            limit: PAGES_MAX,
        };
        let good = self.store.good_pages(find).await?;
        let paired = url.as_deref().and_then(|url| pair(url, letter.died_at, &good));
        let (pairing, worked) = paired.map(|(why, page)| (why, worked(page))).unzip();
        Ok((broke, worked, pairing))
    }

    async fn texts(
        &self,
        with: &Comparing<'_>,
        comparison: &Comparison,
    ) -> Result<(String, Option<String>, Option<String>), String> {
        let Some(broke) = &comparison.broke else { return Err("the page that broke was not kept".to_owned()) };
        let text = text_of(with.vault, &broke.payload).await?;
        let worked = match &comparison.worked {
            Some(page) => text_of(with.vault, &page.payload).await.ok(),
            None => None,
        };
        Ok((text, worked, content_type(&broke.payload)))
    }

    /// What is different about those who died of a cause: compared with those who were done in the same hours, or, if those are too few,
    /// in the 24 hours before.
    pub async fn differences(&self, cause: &CauseView) -> Result<Differences, Error> {
        let died = self.store.cause_facets(cause.id.clone()).await?;
        let mut hours: Vec<i64> = self
            .store
            .cause_hours(vec![cause.id.clone()], cause.first_seen)
            .await?
            .iter()
            .filter(|hour| hour.count > hour.imported)
            .map(|hour| hour.hour.hour())
            .collect();
        hours.sort_unstable_by_key(|hour| std::cmp::Reverse(*hour));
        hours.truncate(HOURS_MAX);
        let done_in = async |hours: Vec<i64>| {
            let params = DoneIn { pipeline: cause.pipeline.clone(), hours };
            Ok::<_, Error>(self.store.done_facets(params).await?)
        };
        let (mut baseline, mut done) = (Baseline::SameHours, done_in(hours).await?);
        if counted(&done) < BASELINE_MIN {
            let first = cause.first_seen.hour();
            (baseline, done) = (Baseline::DayBefore, done_in((first - 24..first).collect()).await?);
        }
        let found = differences(&died, &done);
        let uncompared = uncompared(&died, &done);
        let is_compared = |kind: &String| done.iter().any(|count| count.kind == *kind);
        let mut alike: Vec<String> = died.iter().map(|count| count.kind.clone()).filter(is_compared).collect();
        alike.dedup();
        alike.retain(|kind| !found.iter().any(|different| different.kind == *kind));
        Ok(Differences { failures: counted(&died), successes: counted(&done), baseline, found, alike, uncompared })
    }
}

/// The most frequent value of each kind that is counted of those who died only. A task that is done has no stage at which it failed.
fn uncompared(died: &[FacetCount], done: &[FacetCount]) -> Vec<Uncompared> {
    let mut found: BTreeMap<&str, (&FacetCount, u64)> = BTreeMap::new();
    for count in died.iter().filter(|count| !done.iter().any(|done| done.kind == count.kind)) {
        let (most, all) = found.entry(&count.kind).or_insert((count, 0));
        *all += count.count;
        if count.count > most.count {
            *most = count;
        }
    }
    let one = |(kind, (most, all)): (&str, (&FacetCount, u64))| Uncompared {
        kind: kind.to_owned(),
        value: most.value.clone(),
        failures: Share::new(most.count, all),
    };
    found.into_iter().map(one).filter(|one| !one.value.is_empty()).collect()
}

/// How many were counted: each has a target, if only none.
fn counted(counts: &[FacetCount]) -> u64 {
    counts.iter().filter(|count| count.kind == facets::kinds::TARGET).map(|count| count.count).sum()
}

fn broke(failure: &Failure, payload: &Payload, url: Option<String>) -> ComparedPage {
    let rules = failure.definition.as_ref().map(|version| version.as_str().to_owned());
    ComparedPage { url, at: failure.at, payload: payload.clone(), rules }
}

fn worked(page: &GoodPage) -> ComparedPage {
    ComparedPage { url: Some(page.url.clone()), at: page.at, payload: page.payload.clone(), rules: page.rules.clone() }
}

/// The address that a letter is about, as it was when pages that worked were kept.
fn url_of(setting: &Setting, letter: &DeadLetter, payload: Option<&Payload>) -> Option<String> {
    let built = setting.pipeline(letter.pipeline.clone(), &Overrides::default());
    let asked = match built {
        Ok((pipeline, _)) => pipeline.page_url(&letter.input),
        Err(_) => letter.input.get("url").and_then(|url| url.as_str()).map(ToOwned::to_owned),
    };
    asked.or_else(|| payload?.response.url.clone())
}

/// The rules of a letter's pipeline, if it has some that can be read.
fn known(setting: &Setting, letter: &DeadLetter) -> Option<Known> {
    let rules = setting.config.pipeline.get(&letter.pipeline)?.extract.clone()?;
    let shown = shown(&rules);
    Some(Known { extractor: rules.compile().ok()?, shown })
}

fn shown(rules: &Rules) -> Vec<Shown> {
    let one = |(name, field): &(String, crate::handler::http::extract::Field)| {
        let kind = match (field.list, &field.fields, field.kind.as_deref()) {
            (true, ..) => "list",
            (false, Some(_), _) => "object",
            (false, None, Some(kind)) => kind,
            (false, None, None) => "text",
        };
        let optional = if field.required { "" } else { ", optional" };
        let rule = field.select.clone().or_else(|| field.pointer.clone()).unwrap_or_default();
        Shown { field: name.clone(), rule, kind: format!("{kind}{optional}") }
    };
    rules.fields.0.iter().map(one).collect()
}

async fn text_of(vault: Option<&Vault>, payload: &Payload) -> Result<String, String> {
    let Some(vault) = vault else { return Err("this store has no vault".to_owned()) };
    if payload.size_bytes > BYTES_MAX {
        return Err(format!("the page is longer than {} MiB", BYTES_MAX >> 20));
    }
    let bytes = vault.bytes(payload.hash, payload.size_bytes).await.map_err(|error| error.to_string())?;
    Ok(decoded(&bytes, content_type(payload).as_deref()).into_owned())
}

fn content_type(payload: &Payload) -> Option<String> {
    let mut headers = payload.response.headers.iter();
    headers.find(|(name, _)| name.eq_ignore_ascii_case("content-type")).map(|(_, value)| value.clone())
}

/// The fields that two sets of rules read differently on a page that worked; nothing if it cannot be read, or gives no record by the first.
pub(crate) async fn differ(vault: Option<&Vault>, page: &Payload, before: Rules, after: Rules) -> Option<Vec<String>> {
    let (text, content_type) = (text_of(vault, page).await.ok()?, content_type(page));
    let (before, after) = (before.compile().ok()?, after.compile().ok()?);
    let read = move |stop: &CancellationToken| pages::differ((&before, &after), &text, content_type.as_deref(), stop);
    aside(read).await.ok().flatten()
}

/// Reads on a thread of its own, for so long at most; says why nothing came of it.
async fn aside<T: Send + 'static>(read: impl FnOnce(&CancellationToken) -> T + Send + 'static) -> Result<T, String> {
    let turn = tokio::time::timeout(PATIENCE, READERS.acquire()).await;
    let Ok(Ok(_turn)) = turn else { return Err("too many pages are being looked into: try again".to_owned()) };
    let stop = CancellationToken::new();
    let _stops_it = stop.clone().drop_guard();
    let (told, answer) = oneshot::channel();
    let run = move || {
        let _ = told.send(read(&stop));
    };
    std::thread::Builder::new().name("redrive-compare".into()).spawn(run).map_err(|error| error.to_string())?;
    match tokio::time::timeout(PATIENCE, answer).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(_)) => Err("the page could not be read".to_owned()),
        Err(_) => Err(format!("the page was not read within {} seconds", PATIENCE.as_secs())),
    }
}
