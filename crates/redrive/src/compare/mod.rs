//! A page that broke beside the last one that worked, and what is different about those who died: for who wants to know why.
//!
//! Pages are hostile. They are read below the caps of the `http` handler's documents, on a thread of its own and for a short time, few at
//! once.
//!
//! - `pages`: two pages, read by the same rules; `lines`: a page as lines; `hunks`: what differs between those
//! - `candidates`: how often rules that could be meant match; `different`: shares of those who died, and of those who were done
//! - `safe`: a page that can be shown, `allowed`: what of it; `aside`: threads on which pages are read

mod allowed;
mod aside;
mod candidates;
mod different;
mod hunks;
mod lines;
mod pages;
mod safe;

use redrive_core::dead::DeadLetter;
use redrive_core::failures::{Failure, Miss};
use redrive_core::good::{GoodPage, Pairing, pair};
use redrive_core::ids::JobId;
use redrive_core::payloads::{Payload, PayloadHash};
use redrive_core::time::Timestamp;
use redrive_store::contract::FindGood;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use self::aside::aside;
pub use self::candidates::{COUNTED_MAX, CandidateCounts};
pub use self::different::{Differences, Uncompared};
pub use self::hunks::{Hunk, HunkLine, HunkRow};
use self::pages::{Beside, Body, Shown, Then, Wanted};
pub use self::pages::{ComparedField, Found};
use crate::config::{Overrides, Setting};
use crate::engine::Redrive;
use crate::error::Error;
use crate::handler::http::decoded;
use crate::handler::http::extract::{Extractor, Rules};
use crate::pipeline::Pipeline;
use crate::replays::rules_of;
use crate::vault::{Keep, Vault};

/// The longest page that is looked into, in bytes.
const BYTES_MAX: u64 = 4 << 20;

/// Good pages that are looked through for the one to compare with.
const PAGES_MAX: u32 = 200;

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
    /// The version of the definition by which it died, or worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
    /// Of the page that broke: in which attempt it came, counted over all replays from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attempt: Option<u32>,
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
    /// Why no page that works will be kept either, if none will.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub none_kept: Option<String>,
    /// The version of the definition that is in force now: by its rules the page that broke is read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rules_now: Option<String>,
    /// The version by whose rules the page that worked is read: the one it was saved under, or that of now if those are no longer known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub worked_rules: Option<String>,
    /// What rules find on both.
    pub fields: Vec<ComparedField>,
    /// What the handler said is amiss, where rules are not known here.
    pub misses: Vec<Miss>,
    /// What differs between the pages, near rules that find nothing first.
    pub hunks: Vec<Hunk>,
    /// How many hunks there are in all.
    pub hunks_count: u64,
    /// Why it is not told what differs, though there is a page that worked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub no_diff: Option<String>,
    /// Why the page that broke could not be looked into, if it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
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

/// The rules that the page that worked is read by.
struct Judge {
    known: Option<Known>,
    is_own: bool,
    version: Option<String>,
}

/// The two pages of a letter, and what is known of them without reading them.
struct Pair {
    broke: Option<ComparedPage>,
    worked: Option<ComparedPage>,
    pairing: Option<Pairing>,
    none_kept: Option<String>,
    rules_now: Option<String>,
}

impl Redrive {
    /// Compares the page of a letter with the last one that worked. What differs line by line is told if it is asked for.
    pub async fn compare(&self, with: &Comparing<'_>, letter: &DeadLetter, lines: bool) -> Result<Comparison, Error> {
        let Pair { broke, worked, pairing, none_kept, rules_now } = self.two_pages(with, letter).await?;
        let last = letter.failures.iter().flatten().last();
        let judge = match &worked {
            Some(page) => self.judge(with, letter, (page, rules_now.as_deref())).await?,
            None => Judge { known: None, is_own: false, version: None },
        };
        let mut comparison = Comparison {
            letter: letter.id,
            fields: Vec::new(),
            misses: last.map(|failure| failure.misses.clone()).unwrap_or_default(),
            hunks: Vec::new(),
            hunks_count: 0,
            no_diff: None,
            why_not: None,
            broke,
            worked,
            pairing,
            none_kept,
            rules_now,
            worked_rules: judge.version.clone(),
        };
        match read(with, letter, (&comparison, judge), lines).await {
            Ok(Beside { fields, hunks, hunks_count, broken, no_diff }) => {
                (comparison.fields, comparison.hunks, comparison.hunks_count) = (fields, hunks, hunks_count);
                (comparison.why_not, comparison.no_diff) = (broken, no_diff);
            }
            Err(why) => comparison.why_not = Some(why),
        }
        Ok(comparison)
    }

    /// One of the two pages of a letter as a document that does nothing, with what rules find outlined, or one that says why it cannot be
    /// shown. Nothing if it is not its page.
    pub async fn render_page(
        &self,
        with: &Comparing<'_>,
        letter: &DeadLetter,
        hash: PayloadHash,
    ) -> Result<Option<String>, Error> {
        let Pair { broke, worked, rules_now, .. } = self.two_pages(with, letter).await?;
        let is_meant = |page: &ComparedPage| page.payload.hash == hash;
        let (page, known) = match (broke.filter(is_meant), worked.filter(is_meant)) {
            (Some(page), _) => (page, known(with.setting, letter)),
            (None, Some(page)) => {
                let judge = self.judge(with, letter, (&page, rules_now.as_deref())).await?;
                (page, judge.known)
            }
            (None, None) => return Ok(None),
        };
        let made = async {
            let body = body_of(with.vault, &page.payload).await?;
            aside(move |stop| pages::rendered(known.as_ref().map(Known::parts), &body, stop)).await?
        };
        Ok(Some(made.await.unwrap_or_else(|why| safe::why_none(&why))))
    }

    /// The rules that a page that worked is read by: it was saved under others than those of now, if it was before they were changed.
    async fn judge(
        &self,
        with: &Comparing<'_>,
        letter: &DeadLetter,
        (page, rules_now): (&ComparedPage, Option<&str>),
    ) -> Result<Judge, Error> {
        let then = page.rules.as_deref();
        if let Some(then) = then.filter(|then| Some(*then) != rules_now) {
            let kept = self.store.list_definitions(Some(letter.pipeline.clone())).await?;
            let rules = kept.iter().find(|kept| kept.version.as_str() == then).and_then(|kept| rules_of(&kept.text));
            if let Some(known) = rules.and_then(ready) {
                return Ok(Judge { known: Some(known), is_own: true, version: Some(then.to_owned()) });
            }
        }
        let version = rules_now.map(ToOwned::to_owned);
        Ok(Judge { known: known(with.setting, letter), is_own: then.is_some() && then == rules_now, version })
    }

    async fn two_pages(&self, with: &Comparing<'_>, letter: &DeadLetter) -> Result<Pair, Error> {
        let failed = letter.failures.iter().flatten().rev();
        let failed = failed.filter_map(|failure| Some((failure, failure.kept_payload()?))).next();
        let built = with.setting.pipeline(letter.pipeline.clone(), &Overrides::default());
        let pipeline = built.ok().map(|(pipeline, _)| pipeline);
        let url = url_of(pipeline.as_ref(), letter, failed.map(|(_, payload)| payload));
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
        let none_kept = none_kept(with, letter, pipeline.as_ref()).map(ToOwned::to_owned);
        let is_known = with.setting.config.pipeline.contains_key(&letter.pipeline);
        let in_force = pipeline.as_ref().filter(|_| is_known).and_then(Pipeline::definition);
        let rules_now = in_force.map(|version| version.as_str().to_owned());
        Ok(Pair { broke, worked, pairing, none_kept, rules_now })
    }
}

/// Reads the page that broke by the rules of now, and the one that worked by those of `judge`.
async fn read(
    with: &Comparing<'_>,
    letter: &DeadLetter,
    (of, judge): (&Comparison, Judge),
    lines: bool,
) -> Result<Beside, String> {
    let Some(broke) = &of.broke else { return Err("the page that broke was not kept".to_owned()) };
    let broke = body_of(with.vault, &broke.payload).await?;
    let worked = match &of.worked {
        Some(page) => Some(body_of(with.vault, &page.payload).await),
        None => None,
    };
    let known = known(with.setting, letter);
    let wanted = if lines { Wanted::All } else { Wanted::Fields };
    aside(move |stop| {
        let then = Then { rules: judge.known.as_ref().map(Known::parts), is_own: judge.is_own };
        pages::compare((known.as_ref().map(Known::parts), then), &broke, worked.as_ref(), wanted, stop)
    })
    .await
}

impl Known {
    fn parts(&self) -> (&Extractor, &[Shown]) {
        (&self.extractor, &self.shown)
    }
}

/// Why pages that work are not kept for a letter like this one, if they are not.
fn none_kept(with: &Comparing<'_>, letter: &DeadLetter, pipeline: Option<&Pipeline>) -> Option<&'static str> {
    match (with.vault, pipeline) {
        (None, _) => Some("this store has no vault"),
        (Some(_), Some(pipeline)) if pipeline.keep == Keep::Never => Some("the pipeline has payload = \"never\""),
        (Some(_), Some(pipeline)) if !pipeline.wants_good_pages() => Some("the pipeline has good_pages = false"),
        (Some(_), Some(pipeline)) if pipeline.page_url(&letter.input).is_none() => {
            Some("the input of this task names no address")
        }
        _ => None,
    }
}

fn broke(failure: &Failure, payload: &Payload, url: Option<String>) -> ComparedPage {
    let rules = failure.definition.as_ref().map(|version| version.as_str().to_owned());
    ComparedPage { url, at: failure.at, payload: payload.clone(), rules, attempt: Some(failure.attempt) }
}

fn worked(page: &GoodPage) -> ComparedPage {
    let (url, rules) = (Some(page.url.clone()), page.rules.clone());
    ComparedPage { url, at: page.at, payload: page.payload.clone(), rules, attempt: None }
}

/// The address that a letter is about, as it was when pages that worked were kept.
fn url_of(pipeline: Option<&Pipeline>, letter: &DeadLetter, payload: Option<&Payload>) -> Option<String> {
    let asked = match pipeline {
        Some(pipeline) => pipeline.page_url(&letter.input),
        None => letter.input.get("url").and_then(|url| url.as_str()).map(ToOwned::to_owned),
    };
    asked.or_else(|| payload?.response.url.clone())
}

/// The rules of a letter's pipeline, if it has some that can be read.
fn known(setting: &Setting, letter: &DeadLetter) -> Option<Known> {
    ready(setting.config.pipeline.get(&letter.pipeline)?.extract.clone()?)
}

fn ready(rules: Rules) -> Option<Known> {
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

async fn body_of(vault: Option<&Vault>, payload: &Payload) -> Result<Body, String> {
    let Some(vault) = vault else { return Err("this store has no vault".to_owned()) };
    if payload.size_bytes > BYTES_MAX {
        return Err(format!("the page is longer than {} MiB", BYTES_MAX >> 20));
    }
    let bytes = vault.bytes(payload.hash, payload.size_bytes).await.map_err(|error| error.to_string())?;
    let content_type = content_type(payload);
    Ok(Body { text: decoded(&bytes, content_type.as_deref()).into_owned(), content_type })
}

fn content_type(payload: &Payload) -> Option<String> {
    let mut headers = payload.response.headers.iter();
    headers.find(|(name, _)| name.eq_ignore_ascii_case("content-type")).map(|(_, value)| value.clone())
}

/// The fields that two sets of rules read differently on a page that worked; nothing if it cannot be read, or gives no record by the first.
pub(crate) async fn differ(vault: Option<&Vault>, page: &Payload, before: Rules, after: Rules) -> Option<Vec<String>> {
    let body = body_of(vault, page).await.ok()?;
    let (before, after) = (before.compile().ok()?, after.compile().ok()?);
    aside(move |stop: &CancellationToken| pages::differ((&before, &after), &body, stop)).await.ok().flatten()
}
