//! Whether the workers of other hosts have the same vault, where a store is shared: each host leaves a mark there before it is on the list
//! of workers, and looks for those of the others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use redrive_core::failures::with_sources;

use super::context::Context;
use super::uploader::vaults;
use crate::pipeline::Pipeline;

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(600);

/// Leaves the mark of this host. A vault that is away gets it later.
pub(super) async fn leave(context: &Context, pipelines: &[Pipeline]) {
    for vault in vaults(pipelines).filter(|_| is_shared(context)) {
        if let Err(error) = vault.leave_mark().await {
            tracing::debug!(vault = vault.address(), error = with_sources(&error), "no mark was left in the vault");
        }
    }
}

/// Looks for the marks of others, and says which are not there, once each.
pub(super) async fn run(context: Arc<Context>, pipelines: Vec<Pipeline>) {
    let mut told = BTreeSet::new();
    if !is_shared(&context) {
        return;
    }
    loop {
        for vault in vaults(&pipelines) {
            let unmarked = vault.unmarked(context.now()).await.unwrap_or_default();
            for host in unmarked.into_iter().filter(|host| told.insert((vault.address().to_owned(), host.clone()))) {
                tracing::warn!(
                    vault = vault.address(),
                    host,
                    "workers on that host keep payloads elsewhere: this vault is no folder or bucket that all of them share; see `redrive doctor`"
                );
            }
        }
        tokio::time::sleep(EVERY).await;
        leave(&context, &pipelines).await;
    }
}

/// Whether workers on other hosts share the store.
fn is_shared(context: &Context) -> bool {
    !context.redrive.store.capabilities().instant_presence
}
