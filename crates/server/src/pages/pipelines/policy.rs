//! What a pipeline effectively is: each value, and where it came from.

use maud::{Markup, html};
use redrive::config::{Explained, From};
use redrive_core::time::Timestamp;
use serde_json::Value;

use super::super::parts::{column, columns, instant, text};

/// The values; those of the file are as it was `loaded`.
pub fn section(values: &[Explained], (loaded, now): (Timestamp, Timestamp)) -> Markup {
    let is_of_file = values.iter().any(|value| matches!(value.from, From::File { .. }));
    html! {
        section aria-labelledby="policy" {
            div.section-head {
                h2 #policy { "Policy as effective" }
                span.fact {
                    "secrets are not shown"
                    @if is_of_file { "; the file as this server loaded it at " (instant(loaded, now)) }
                }
            }
            @if values.is_empty() { p.empty { "Not known: the configuration of this server does not have this pipeline, and no worker told what it is. The programs that run its tasks decide." } }
            @else {
                table.policy role="table" {
                    (columns(&[column("Key"), column("Value"), column("From")]))
                    tbody role="rowgroup" {
                        @for value in values {
                            tr role="row" {
                                th role="rowheader" scope="row" { code { (value.key) } }
                                td role="cell" { span.cut title=(shown(&value.value)) { (text(&shown(&value.value))) } }
                                td.muted role="cell" { @match &value.from {
                                    From::File { file, line }
                                    => {
                                        (file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default())
                                        ", line " (line)
                                    }
                                    From::Store { version, last_seen }
                                    => {
                                        "command, version " code { (version.as_str()) } ", last run "
                                        (instant(*last_seen, now))
                                    }
                                    From::Default => { "default" }
                                } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
