//! What can be done to causes that are ticked, and doing it.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use redrive_core::causes::CauseId;
use redrive_core::tokens::Role;
use serde_json::json;

use super::super::acts::filled;
use super::super::fields::{Done, Fields, once, own_path, with_said};
use super::super::parts::{commands_of_ticked, flag};
use super::super::problem::Problem;
use super::super::visitor::Visitor;
use super::did::{Did, one, take_back, told_at, without_told};
use super::read;
use crate::app::App;
use crate::error::ApiError;

/// What can be done to those that are ticked.
pub fn bar(visitor: &Visitor) -> Markup {
    let [lacks, admin] = [Role::Operator, Role::Admin].map(|role| visitor.lacks(role));
    let press = |verb: &str, label: &str, counted: &str, key: Option<&str>, in_more: bool| {
        let lacks = if verb == "discard" { admin.as_deref() } else { lacks.as_deref() };
        // What is not taken back at once is asked for.
        let asks = Some("/causes/ask").filter(|_| !matches!(verb, "assign" | "resolve"));
        html! {
            button.small.in-more[in_more] name="verb" value=(verb) formaction=[asks] disabled[lacks.is_some()] title=[lacks] data-key=[key] data-label=(counted) data-joins=[(verb == "merge" && lacks.is_none()).then_some("")] {
                (label)
            }
        }
    };
    let further = [
        ("resolve", "Resolve", "Resolve #", "e"),
        ("mute", "Mute…", "Mute #…", "m"),
        ("discard", "Discard their letters…", "Discard the letters of #…", ""),
        ("merge", "Merge…", "Merge #…", ""),
    ];
    html! {
        div.bulk data-selection="" {
            b data-count="" { "Tick causes, then:" }
            span.actions {
                (press("assign", "Assign me", "Assign me #", Some("a"), false))
                (press("replay", "Try or replay…", "Try or replay #…", Some("t r"), false))
                @for (verb, label, counted, key) in further {
                    (press(verb, label, counted, Some(key).filter(|key| !key.is_empty()), true))
                }
                // What has no room in the bar of a phone.
                details.menu.narrow { summary.button.small { "More" } ul {
                    @for (verb, label, counted, _) in further { li { (press(verb, label, counted, None, false)) } }
                } }
            }
            @match (&lacks, &admin) {
                (Some(lacks), _) => span.fact { (lacks) },
                (None, Some(admin)) => span.fact { "Discard " (admin) },
                (None, None) => {}
            }
            (commands_of_ticked(visitor, &[
                ("Assign me", format!("redrive cause assign{}", flag("to", visitor.caller.name()))),
                ("Resolve", "redrive cause resolve".to_owned()),
            ], "CAUSE…"))
        }
    }
}

/// Does something to all that are ticked.
pub async fn change(State(app): State<App>, visitor: Visitor, fields: Fields) -> Result<Response, Problem> {
    once(&app, &visitor, &fields, async || {
        let ids: Vec<CauseId> = fields.all("id").map(read).collect::<Result<_, _>>()?;
        let (verb, back) = (fields.one("verb").unwrap_or_default(), own_path(fields.one("back").unwrap_or("/causes")));
        let did = match (verb, ids.split_first()) {
            ("undo", _) => return take_back(&app, &visitor, &fields).await,
            (_, None) => return Ok(Done::At(with_said(&without_told(back), &[("said", "none")]))),
            ("merge", Some((into, others))) => merge(&app, &visitor, into, others).await?,
            ("assign" | "mute" | "resolve", _) => all(&app, &visitor, &ids, &fields).await?,
            _ => return Err(ApiError::invalid("verb", "expected assign, mute, resolve or merge").into()),
        };
        Ok(Done::At(told_at(back, verb, &did)))
    })
    .await
}

async fn all(app: &App, visitor: &Visitor, ids: &[CauseId], fields: &Fields) -> Result<Vec<Did>, Problem> {
    let verb = fields.one("verb").unwrap_or_default();
    let mut said = match verb {
        "mute" => filled(fields, &["until"]),
        "assign" => [("owner".to_owned(), json!(visitor.caller.name()))].into_iter().collect(),
        _ => serde_json::Map::new(),
    };
    said.insert("verb".to_owned(), json!(verb));
    if verb == "mute" {
        said.extend(per_hour(fields)?.map(|rate| ("per_hour".to_owned(), json!(rate))));
    }
    let mut did = Vec::new();
    for id in ids {
        did.push(one(app, visitor, id, said.clone().into()).await?.0);
    }
    Ok(did)
}

/// How often a cause must kill for it to be heard of again, as a form has it.
pub fn per_hour(fields: &Fields) -> Result<Option<u32>, Problem> {
    let Some(rate) = fields.one("per_hour") else { return Ok(None) };
    let wrong = |_| ApiError::invalid("per_hour", format!("{rate:?} is not a number of tasks"));
    Ok(Some(rate.parse::<u32>().map_err(wrong)?))
}

/// All become part of the first.
async fn merge(app: &App, visitor: &Visitor, into: &CauseId, others: &[CauseId]) -> Result<Vec<Did>, Problem> {
    let mut merged = None;
    for id in others {
        merged = Some(one(app, visitor, id, json!({ "verb": "merge", "into": into })).await?.0);
    }
    Ok(merged.into_iter().collect())
}
