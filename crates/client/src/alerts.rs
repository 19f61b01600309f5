//! Alerts, and the sinks that are told of them. A server has both in its own configuration.

use redrive::Error;
use redrive::alerts::{AlertList, Watching};
use redrive_core::alerts::Alert;

use crate::ask::LONG;
use crate::desk::Desk;
use crate::page::Listed;

impl Desk {
    /// See [`redrive::Redrive::list_alerts`].
    pub async fn list_alerts(&self, watching: &Watching) -> Result<AlertList, Error> {
        match self {
            Self::Here(redrive) => redrive.list_alerts(watching).await,
            Self::There(server) => server.get(&["alerts"]).read().await,
        }
    }

    /// See [`redrive::Redrive::preview_alerts`].
    pub async fn preview_alerts(&self, watching: &Watching) -> Result<Vec<Alert>, Error> {
        match self {
            Self::Here(redrive) => redrive.preview_alerts(watching).await,
            Self::There(server) => {
                Ok(server.get(&["alerts", "preview"]).within(Some(LONG)).read::<Listed<_>>().await?.items)
            }
        }
    }

    /// See [`redrive::Redrive::check_alerts`].
    pub async fn check_alerts(&self, watching: &Watching) -> Result<AlertList, Error> {
        match self {
            Self::Here(redrive) => redrive.check_alerts(watching).await,
            Self::There(server) => server.post(&["alerts", "check"]).within(Some(LONG)).read().await,
        }
    }
}
