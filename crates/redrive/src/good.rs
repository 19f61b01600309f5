//! Pages that worked: which of them this process keeps, of its own workers and of those that bring jobs back from elsewhere. Whether one
//! is due is known before its job begins, from memory alone, so that most jobs that succeed cost nothing.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::good::{GoodKeeper, GoodPage, url_shape};
use redrive_core::ids::PipelineName;
use redrive_core::jobs::LeasedJob;
use redrive_core::payloads::Payload;
use redrive_core::time::Timestamp;

use crate::pipeline::Pipeline;

/// What was kept lately, by pipeline.
#[derive(Default)]
pub struct GoodPages(Mutex<HashMap<PipelineName, GoodKeeper>>);

/// The page that a job is about.
pub(crate) struct Page {
    url: String,
    target: String,
    shape: String,
    /// Whether it is kept if the job succeeds.
    pub(crate) is_due: bool,
}

impl GoodPages {
    /// The page that a job is about, if its pipeline keeps pages that worked and the job is about one. It is not due where none can be
    /// kept.
    pub(crate) fn page_of(
        &self,
        pipeline: &Pipeline,
        job: &LeasedJob,
        can_be_kept: bool,
        now: Timestamp,
    ) -> Option<Page> {
        if !pipeline.wants_good_pages() {
            return None;
        }
        let url = pipeline.page_url(&job.input)?;
        let (shape, target) = (url_shape(&url)?, job.target.clone().unwrap_or_default());
        // What is worked on from a saved page has none to show for it.
        let is_due = can_be_kept && job.saved.is_none() && self.claim(pipeline, (&target, &shape), now);
        Some(Page { url, target, shape, is_due })
    }

    /// What comes of the page of a job that ended: one to be kept, and the shape of its address.
    pub(crate) fn end(
        &self,
        pipeline: &Pipeline,
        page: Option<Page>,
        kept: Option<&Payload>,
        now: Timestamp,
    ) -> (Option<Box<GoodPage>>, Option<String>) {
        let Some(Page { url, target, shape, is_due }) = page else { return (None, None) };
        // A status may be an error though a rule calls its job done.
        let is_error = |payload: &Payload| payload.response.status.is_some_and(|status| status >= 400);
        let whole = kept.filter(|payload| !payload.truncated && payload.lost.is_none() && !is_error(payload));
        let Some(payload) = whole.filter(|_| is_due).cloned() else {
            self.give_back(pipeline, is_due, (&target, &shape));
            return (None, Some(shape));
        };
        let rules = pipeline.definition().map(|version| version.as_str().to_owned());
        let good = GoodPage { target, shape: shape.clone(), url, payload, at: now, rules };
        (Some(Box::new(good)), Some(shape))
    }

    /// The page of a job is brought elsewhere, or nothing came of it: then the next one is due.
    pub(crate) fn brought(&self, pipeline: &Pipeline, page: Option<Page>, is_brought: bool) {
        if let Some(Page { target, shape, is_due, .. }) = page {
            self.give_back(pipeline, is_due && !is_brought, (&target, &shape));
        }
    }

    fn give_back(&self, pipeline: &Pipeline, was_due: bool, (target, shape): (&str, &str)) {
        if was_due {
            self.kept().entry(pipeline.name.clone()).or_default().give_back(target, shape);
        }
    }

    fn claim(&self, pipeline: &Pipeline, (target, shape): (&str, &str), now: Timestamp) -> bool {
        self.kept().entry(pipeline.name.clone()).or_default().claim(target, shape, now)
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<PipelineName, GoodKeeper>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
