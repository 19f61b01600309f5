//! On how many of the saved pages of a cause a rule that could be meant finds something: the more, the likelier it is the one.

use std::collections::BTreeMap;

use redrive_core::dead::DeadLetter;
use redrive_core::payloads::Payload;
use tokio_util::sync::CancellationToken;

use super::pages::Body;
use super::{Comparing, Comparison, aside, body_of};
use crate::engine::Redrive;
use crate::handler::http::document::Document;
use crate::handler::http::extract::{Extractor, Rules};

/// Pages that are read, at most.
pub const COUNTED_MAX: usize = 60;

/// On how many pages each rule that could be meant finds something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CandidateCounts {
    /// Pages that were read.
    pub of: u64,
    /// Of those: where a rule of a field gives a value of its type.
    matches: BTreeMap<(String, String), u64>,
}

impl CandidateCounts {
    /// On how many pages a rule of a field gives a value, if that was counted.
    pub fn of_rule(&self, field: &str, rule: &str) -> Option<u64> {
        self.matches.get(&(field.to_owned(), rule.to_owned())).copied()
    }
}

/// A rule that could be meant, ready for use.
type Ready = ((String, String), Extractor);

impl Redrive {
    /// Reads the saved pages of letters by the rules that a comparison named. What could not be read in the time that pages are given is
    /// left out of both numbers.
    pub async fn count_candidates(
        &self,
        with: &Comparing<'_>,
        comparison: &Comparison,
        letters: &[DeadLetter],
    ) -> CandidateCounts {
        let mut counts = CandidateCounts::default();
        let pages: Vec<&Payload> = letters.iter().filter_map(DeadLetter::saved_payload).take(COUNTED_MAX).collect();
        let Some(letter) = letters.first().filter(|_| !pages.is_empty()) else { return counts };
        let known = with.setting.config.pipeline.get(&letter.pipeline).and_then(|known| known.extract.as_ref());
        let Some(rules) = known else { return counts };
        let ready = ready(rules, comparison);
        counts.matches = ready.iter().map(|(rule, _)| (rule.clone(), 0)).collect();
        let ready = std::sync::Arc::new(ready);
        for page in pages {
            let Ok(body) = body_of(with.vault, page).await else { continue };
            let ready = std::sync::Arc::clone(&ready);
            let found = aside(move |stop| matched(&ready, &body, stop)).await;
            let Ok(Some(found)) = found else { continue };
            counts.of += 1;
            for rule in found {
                *counts.matches.entry(rule).or_default() += 1;
            }
        }
        counts
    }
}

/// An extractor for each rule that was named, which reads its field alone.
fn ready(rules: &Rules, comparison: &Comparison) -> Vec<Ready> {
    let mut ready = Vec::new();
    for field in &comparison.fields {
        let of_field = rules.fields.0.iter().find(|(name, _)| *name == field.field);
        let candidates = field.help.iter().flat_map(|help| &help.candidates);
        for (candidate, (name, known)) in candidates.zip(of_field.into_iter().cycle()) {
            let mut one = known.clone();
            (one.select, one.pointer, one.required) = (Some(candidate.rule.clone()), None, true);
            let mut alone = rules.clone();
            alone.fields.0 = vec![(name.clone(), one)];
            if let Ok(extractor) = alone.compile() {
                ready.push(((name.clone(), candidate.rule.clone()), extractor));
            }
        }
    }
    ready
}

/// The rules that give a value on a page; nothing if it cannot be read.
fn matched(ready: &[Ready], body: &Body, stop: &CancellationToken) -> Option<Vec<(String, String)>> {
    let format = ready.first()?.1.format(body.content_type.as_deref());
    let document = Document::parse_until(format, &body.text, stop).ok()?;
    let gives = |(_, extractor): &&Ready| extractor.extract_until(&document, stop).is_ok();
    let found = ready.iter().filter(gives).map(|(rule, _)| rule.clone()).collect();
    // Whoever was told to stop has not looked at all of it.
    (!stop.is_cancelled()).then_some(found)
}
