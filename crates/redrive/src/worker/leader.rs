//! Leads, if nobody else does: what is to be done once is done by one worker, not by each of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use redrive_core::leader::{LEADS_FOR, RENEW_EVERY};
use redrive_core::time::Timestamp;
use redrive_store::contract::Lead;

use super::context::Context;

/// What this worker leads, by which term, and until when that is to be trusted.
#[derive(Default)]
pub(super) struct Leads(Mutex<HashMap<String, (u64, Timestamp)>>);

impl Leads {
    /// The term by which this worker leads something now.
    pub(super) fn term(&self, led: &str, now: Timestamp) -> Option<u64> {
        let leads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leads.get(led).filter(|(_, until)| now < *until && *until <= now + LEADS_FOR).map(|(term, _)| *term)
    }

    fn set(&self, names: &[String], terms: Vec<Option<u64>>, until: Timestamp) {
        let leads = names.iter().zip(terms).filter_map(|(name, term)| Some((name.clone(), (term?, until))));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = leads.collect();
    }
}

/// Asks again and again to lead these.
pub(super) async fn run(context: Arc<Context>, names: Vec<String>) {
    // A worker that ends leaves the lead to others.
    while !context.stop.is_cancelled() {
        ask(&context, &names).await;
        context.redrive.clock.sleep(RENEW_EVERY).await;
    }
}

/// Asks once to lead these.
pub(super) async fn ask(context: &Context, names: &[String]) {
    // Trusted from here: the answer may be slow.
    let now = context.now();
    let until = now + LEADS_FOR;
    let lead = Lead { names: names.to_vec(), holder: context.id, until, now };
    match context.redrive.store.lead(lead).await {
        Ok(terms) => context.leads.set(names, terms, until),
        Err(error) => tracing::debug!(%error, "nobody knows who leads"),
    }
}
