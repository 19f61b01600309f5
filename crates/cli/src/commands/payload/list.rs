//! `redrive payload list`.

use std::io;

use anyhow::Result;
use redrive::contract::{ListPayloads, PayloadView};
use redrive_client::Desk;
use redrive_core::time::Timestamp;

use super::super::filter;
use crate::args::PageArgs;
use crate::exit::Exit;
use crate::output::print::out;
use crate::output::table;
use crate::output::times::ago;

/// Digits of a hash that are shown.
const SHORT: usize = 16;

pub async fn run(redrive: &Desk, args: PageArgs) -> Result<Exit> {
    let fetch = async |limit, cursor| redrive.list_payloads(ListPayloads { prefix: None, limit, cursor }).await;
    let now = redrive.now();
    filter::print(&args, fetch, |payloads| print(payloads, now)).await
}

fn print(payloads: &[PayloadView], now: Timestamp) -> io::Result<()> {
    if payloads.is_empty() {
        return out!("no payloads");
    }
    let row = |payload: &PayloadView| {
        vec![
            short(&payload.hash.to_string()),
            payload.size_bytes.to_string(),
            payload.stored_bytes.to_string(),
            payload.uses.to_string(),
            ago(payload.created_at, now),
            whereabouts(payload),
        ]
    };
    table::print(
        &["payload", ">bytes", "?>stored", ">tasks", ">kept since", "~where"],
        &payloads.iter().map(row).collect::<Vec<_>>(),
    )
}

/// The beginning of a hash: enough to name it by.
fn short(hash: &str) -> String {
    hash.get(..SHORT).unwrap_or(hash).to_owned()
}

fn whereabouts(payload: &PayloadView) -> String {
    match (&payload.spooled_on, payload.unreadable) {
        (_, Some(unreadable)) => unreadable.why.as_str().to_owned(),
        (Some(host), None) => format!("on its way (spooled on {host})"),
        (None, None) => "vault".to_owned(),
    }
}
