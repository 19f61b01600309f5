//! `redrive payload list`.

use std::io;

use anyhow::Result;
use redrive::Redrive;
use redrive::contract::{ListPayloads, PayloadView};

use super::super::filter;
use crate::args::PageArgs;
use crate::exit::Exit;
use crate::output::print::out;
use crate::output::table;

pub async fn run(redrive: &Redrive, args: PageArgs) -> Result<Exit> {
    let fetch = async |limit, cursor| redrive.store().list_payloads(ListPayloads { prefix: None, limit, cursor }).await;
    filter::print(&args, fetch, print).await
}

fn print(payloads: &[PayloadView]) -> io::Result<()> {
    if payloads.is_empty() {
        return out!("no payloads");
    }
    let row = |payload: &PayloadView| {
        vec![
            payload.hash.to_string(),
            payload.size_bytes.to_string(),
            payload.stored_bytes.to_string(),
            payload.uses.to_string(),
            payload.created_at.to_string(),
            whereabouts(payload),
        ]
    };
    table::print(
        &["payload", ">bytes", ">stored", ">jobs", "kept since", "where"],
        &payloads.iter().map(row).collect::<Vec<_>>(),
    )
}

fn whereabouts(payload: &PayloadView) -> String {
    match &payload.spooled_on {
        Some(host) => format!("on its way (spooled on {host})"),
        None => "vault".to_owned(),
    }
}
