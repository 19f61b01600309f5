//! `redrive activity`: what people did.

use std::io;

use anyhow::Result;
use redrive::config::units;
use redrive::contract::{ActivityView, ListActivity};
use redrive_core::time::Timestamp;
use serde_json::Value;

use super::filter;
use crate::args::ActivityArgs;
use crate::exit::{Exit, usage};
use crate::output::print::out;
use crate::output::table;
use crate::output::times::from_now;
use crate::setting::Setting;

pub async fn run(setting: &Setting, args: ActivityArgs) -> Result<Exit> {
    let redrive = setting.desk().await?;
    let since = args.since.as_deref().map(|text| units::instant(text, redrive.now())).transpose().map_err(usage)?;
    let fetch = async |limit, cursor| {
        let (who, pipeline) = (args.who.clone(), args.pipeline.clone());
        let (verb, object) = (args.verb.clone(), args.object.clone());
        redrive.list_activity(ListActivity { who, pipeline, verb, object, since, limit, cursor }).await
    };
    let now = redrive.now();
    filter::print(&args.page, fetch, |done| print(done, now)).await
}

fn print(done: &[ActivityView], now: Timestamp) -> io::Result<()> {
    if done.is_empty() {
        return out!("nobody did anything");
    }
    let row = |done: &ActivityView| {
        let who = format!("{} ({})", done.by.name, done.by.via.as_str());
        vec![from_now(done.at, now), who, done.verb.clone(), done.object.clone(), detail(&done.detail)]
    };
    table::print_titled(&[">when", "~who", "did", "~to", "detail"], &done.iter().map(row).collect::<Vec<_>>())
}

/// Numbers and reasons, as `name: value`.
fn detail(detail: &Value) -> String {
    let paired = |(name, value): (&String, &Value)| Some(format!("{name} {}", value.as_str()?));
    let written = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => fields.iter().filter_map(paired).collect::<Vec<_>>().join(", "),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    let fields = detail.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    fields.map(|(name, value)| format!("{name}: {}", written(value))).collect::<Vec<_>>().join("; ")
}
