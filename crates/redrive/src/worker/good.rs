//! Pages that worked: which of them this worker keeps. Whether one is due is known before its job begins, from memory alone, so that most
//! jobs that succeed cost nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::good::{GoodKeeper, GoodPage, url_shape};
use redrive_core::ids::PipelineName;
use redrive_core::jobs::LeasedJob;
use redrive_core::time::Timestamp;

use crate::pipeline::Pipeline;
use crate::vault::Kept;

/// What was kept lately, by pipeline.
#[derive(Default)]
pub(super) struct GoodPages(Mutex<HashMap<PipelineName, GoodKeeper>>);

/// The page that a job is about.
pub(super) struct Page {
    url: String,
    target: String,
    shape: String,
    /// Whether it is kept if the job succeeds.
    pub(super) is_due: bool,
}

impl GoodPages {
    /// The page that a job is about, if its pipeline keeps pages that worked and the job is about one.
    pub(super) fn page_of(&self, pipeline: &Pipeline, job: &LeasedJob, now: Timestamp) -> Option<Page> {
        if !pipeline.keeps_good_pages() {
            return None;
        }
        let url = pipeline.page_url(&job.input)?;
        let (shape, target) = (url_shape(&url)?, job.target.clone().unwrap_or_default());
        // What is worked on from a saved page has none to show for it.
        let is_due = job.saved.is_none() && self.claim(pipeline, (&target, &shape), now);
        Some(Page { url, target, shape, is_due })
    }

    /// What comes of the page of a job that ended: one to be kept, and the shape of its address.
    pub(super) fn end(
        &self,
        pipeline: &Pipeline,
        page: Option<Page>,
        kept: Option<&Kept>,
        now: Timestamp,
    ) -> (Option<Box<GoodPage>>, Option<String>) {
        let Some(Page { url, target, shape, is_due }) = page else { return (None, None) };
        let whole = kept.map(|kept| &kept.payload).filter(|payload| !payload.truncated && payload.lost.is_none());
        let Some(payload) = whole.filter(|_| is_due).cloned() else {
            if is_due {
                let mut kept = self.kept();
                kept.entry(pipeline.name.clone()).or_default().give_back(&target, &shape);
            }
            return (None, Some(shape));
        };
        let rules = pipeline.definition().map(|version| version.as_str().to_owned());
        let good = GoodPage { target, shape: shape.clone(), url, payload, at: now, rules };
        (Some(Box::new(good)), Some(shape))
    }

    fn claim(&self, pipeline: &Pipeline, (target, shape): (&str, &str), now: Timestamp) -> bool {
        self.kept().entry(pipeline.name.clone()).or_default().claim(target, shape, now)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<PipelineName, GoodKeeper>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
