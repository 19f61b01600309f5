//! Reading, on connections of its own, each time in one view of the database.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use super::Run;
use super::connect::Target;
use super::fault::Fault;
use super::patience::Patience;
use super::sql::Conn;
use crate::erased::{Erased, restore};
use crate::error::{Result, StoreError};

/// Connections to read on, opened as needed and kept.
pub(super) struct Readers {
    target: Target,
    idle: Mutex<Vec<Conn>>,
    free: Semaphore,
    patience: Duration,
}

/// The body of a verb that reads.
pub(super) type Read = Box<dyn for<'a> Run<'a, &'a Conn>>;

impl Readers {
    pub(super) fn new(target: Target, patience: Duration) -> Self {
        let free = Semaphore::new(target.readers_max);
        Self { target, idle: Mutex::default(), free, patience }
    }

    async fn take(&self) -> Result<Conn, Fault> {
        let kept = loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(conn) if conn.is_closed() => {}
                found => break found,
            }
        };
        match kept {
            Some(conn) => Ok(conn),
            None => self.target.connect().await,
        }
    }

    /// Runs `run` on one view of the database. What is lost on the way is asked again.
    pub(super) async fn read<T: 'static>(&self, run: Read) -> Result<T> {
        self.read_erased(run).await.map(restore)
    }

    fn read_erased(&self, run: Read) -> BoxFuture<'_, Result<Erased>> {
        Box::pin(async move {
            let _free = self.free.acquire().await.map_err(|_| StoreError::Closed)?;
            let mut patience = Patience::of(self.patience);
            loop {
                let fault = match self.try_read(&run).await {
                    Ok(value) => return Ok(value),
                    Err(fault) => fault,
                };
                if fault.is_cancelled() {
                    let what = "what was asked, which takes longer than the server's statement_timeout,".to_owned();
                    return Err(StoreError::TooBroad { what });
                }
                if !patience.rest_after(&fault).await {
                    return Err(fault.into_store_error(&self.target.place));
                }
            }
        })
    }

    async fn try_read(&self, run: &Read) -> Result<Erased, Fault> {
        let conn = self.take().await?;
        let leaves = conn.cancel_on_drop();
        let (value, is_ended) = self.read_on(&conn, run).await;
        leaves.disarm();
        if is_ended {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(conn);
        }
        value
    }

    /// Value that was read, and whether the transaction was ended after it.
    async fn read_on(&self, conn: &Conn, run: &Read) -> (Result<Erased, Fault>, bool) {
        if let Err(fault) = conn.script(&self.target.begin_reading()).await {
            return (Err(fault), false);
        }
        let value = run.run(conn).await;
        if value.as_ref().is_err_and(Fault::is_lost) {
            return (value, false);
        }
        // Nothing was written: who cannot say so is let go of, and what was read holds.
        let ended = conn.script(if value.is_ok() { "COMMIT" } else { "ROLLBACK" }).await;
        (value, ended.is_ok())
    }
}
