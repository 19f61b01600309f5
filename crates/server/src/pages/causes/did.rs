//! What was just done to causes: it is said once, with a way to take it back, as long as nobody did anything to them since.

use axum::Json;
use axum::extract::State;
use maud::{Markup, html};
use redrive_core::causes::changes::taken_back;
use redrive_core::causes::{CauseChange, CauseId, Mute, Said};
use redrive_core::tokens::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::acts::asked;
use super::super::fields::{Done, Fields, own_path, with_said};
use super::super::parts::{Button, button, with_query};
use super::super::problem::Problem;
use super::super::shell::number_of;
use super::super::visitor::Visitor;
use crate::app::App;
use crate::asked::{Body, Named};
use crate::error::ApiError;
use crate::routes::causes::change;

/// Causes that an address carries so that what was done to them can be taken back.
const CARRIED_MAX: usize = 30;

/// A cause that something was done to, with what people said of it before, as addresses and forms carry it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Did {
    /// The cause that is seen then.
    pub id: CauseId,
    /// Its version since.
    version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mute: Option<Mute>,
}

impl Did {
    fn all(fields: &Fields) -> Vec<Self> {
        fields.all("did").filter_map(|text| serde_json::from_str(text).ok()).take(CARRIED_MAX).collect()
    }

    fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Changes one cause, as the API would; says what it was before. What is split off is another cause: it is named beside.
pub async fn one(app: &App, visitor: &Visitor, id: &CauseId, said: Value) -> Result<(Did, CauseId), Problem> {
    let redrive = app.redrive();
    let before = redrive.store().get_cause(id.clone(), redrive.now()).await?;
    let splits = said["verb"] == "split";
    let asked = Body(asked(said)?);
    let Json(changed) = change::run(State(app.clone()), visitor.caller.clone(), Named(id.clone()), asked).await?;
    let (seen, version) = match splits {
        true => (before.cause.id.clone(), redrive.cause_version(&before.cause.id).await?),
        false => (changed.id().clone(), changed.version()),
    };
    Ok((Did { id: seen, version, owner: before.cause.owner, mute: before.mute }, changed.id().clone()))
}

/// An address that says what was done to causes.
pub fn told_at(address: &str, verb: &str, did: &[Did]) -> String {
    let (number, carried) = (did.len().to_string(), did.iter().take(CARRIED_MAX).map(Did::to_text));
    let carried: Vec<String> = carried.collect();
    let mut said = vec![("said", verb), ("about", number.as_str())];
    said.extend(carried.iter().map(|text| ("did", text.as_str())));
    with_said(&without_told(address), &said)
}

/// An address that says nothing any more of what was done.
pub fn without_told(address: &str) -> String {
    let gone = ["said", "about", "did", "left", "part"];
    gone.iter().fold(address.to_owned(), |address, name| with_query(&address, name, None))
}

/// What was just done, for the page that it leads to; `owner` is who looks after its cause, where it is about one.
pub async fn told(app: &App, visitor: &Visitor, owner: Option<Option<&str>>) -> Result<Markup, Problem> {
    let query = visitor.query();
    let Some(verb) = query.one("said") else { return Ok(html! {}) };
    let did = Did::all(&query);
    for one in &did {
        // What was said once is not true for ever: addresses are kept, and sent to others.
        if app.redrive().cause_version(&one.id).await.ok() != Some(one.version) {
            return Ok(html! {});
        }
    }
    let number = query.one("about").and_then(|about| about.parse().ok()).unwrap_or(1);
    let left = query.one("left").and_then(|left| left.parse::<usize>().ok()).filter(|left| *left > 0);
    let Some(what) = in_words(verb, number, owner) else { return Ok(html! {}) };
    let part = query.one("part").and_then(|part| part.parse::<CauseId>().ok()).filter(|_| verb == "split");
    Ok(html! {
        div.said role="status" {
            (what)
            @if let Some(part) = part { " The rest is here; " a href={ "/causes/" (part) } { "the new cause " code { (part) } } }
            @if let Some(left) = left { " " (number_of(left, "was", "were")) " changed by somebody since: they stay as they are." }
            @if can_take_back(verb) && did.len() == number { " " (undo(visitor, verb, &did)) }
        }
    })
}

fn in_words(verb: &str, number: usize, owner: Option<Option<&str>>) -> Option<String> {
    let causes = number_of(number, "cause", "causes");
    Some(match (verb, owner) {
        ("assign", Some(Some(owner))) => format!("Assigned to {owner}."),
        ("assign", Some(None)) => "Given back: nobody looks after it.".to_owned(),
        ("assign", None) => format!("{causes} assigned to you."),
        ("mute", Some(_)) => "Muted.".to_owned(),
        ("mute", None) => format!("{causes} muted."),
        ("unmute", _) => "No longer muted.".to_owned(),
        ("resolve", Some(_)) => "Resolved; if it comes back, it is regressed.".to_owned(),
        ("resolve", None) => format!("{causes} resolved; what comes back is regressed."),
        ("reopen", _) => "Open again.".to_owned(),
        ("note", _) => "Noted; what was said stays.".to_owned(),
        ("merge", _) => "Merged.".to_owned(),
        ("split", _) => "Split.".to_owned(),
        ("undo", Some(_)) => "Taken back.".to_owned(),
        ("undo", None) => format!("Taken back for {causes}."),
        ("changed", _) => "Somebody changed it since you looked: nothing was done. This is how it is now.".to_owned(),
        ("none", _) => "No cause is ticked: nothing was done.".to_owned(),
        _ => return None,
    })
}

fn can_take_back(verb: &str) -> bool {
    verb_change(verb).is_some()
}

fn undo(visitor: &Visitor, verb: &str, did: &[Did]) -> Markup {
    let (back, texts): (_, Vec<String>) = (without_told(&visitor.here), did.iter().map(Did::to_text).collect());
    let mut fields = vec![("verb", "undo"), ("of", verb), ("back", back.as_str())];
    fields.extend(texts.iter().map(|text| ("did", text.as_str())));
    let (action, role, class) = ("/causes/change", Role::Operator, "small plainly");
    button(visitor, &Button { action, label: "Undo", role, fields: &fields, class, key: None })
}

/// A change that can be taken back, by its name.
fn verb_change(verb: &str) -> Option<CauseChange> {
    Some(match verb {
        "assign" => CauseChange::Assign(None),
        "mute" => CauseChange::Mute(Mute::default()),
        "unmute" => CauseChange::Unmute,
        "resolve" => CauseChange::Resolve(None),
        "reopen" => CauseChange::Reopen,
        _ => return None,
    })
}

/// Takes back what was done to causes, but to those that somebody changed since.
pub async fn take_back(app: &App, visitor: &Visitor, fields: &Fields) -> Result<Done, Problem> {
    let change = fields.one("of").and_then(verb_change);
    let change = change.ok_or_else(|| ApiError::invalid("of", "expected what can be taken back"))?;
    let (mut done, mut left) = (Vec::new(), 0_usize);
    for Did { id, version, owner, mute } in Did::all(fields) {
        let was = Said { owner, resolved_at: None, mute };
        let mut seen = Some(version);
        for back in taken_back(&change, &was, app.redrive().now()) {
            match one(app, visitor, &id, to_json(&back, seen.take())).await {
                Ok((did, _)) => {
                    done.retain(|known: &Did| known.id != did.id);
                    done.push(did);
                }
                Err(problem) if problem.is_changed_meanwhile() => left += 1,
                Err(problem) => return Err(problem),
            }
        }
    }
    let told = told_at(own_path(fields.one("back").unwrap_or("/causes")), "undo", &done);
    Ok(Done::At(if left == 0 { told } else { with_said(&told, &[("left", &left.to_string())]) }))
}

/// A change as the API would be told.
fn to_json(change: &CauseChange, version: Option<u64>) -> Value {
    let mut said = match change {
        CauseChange::Assign(owner) => json!({ "verb": "assign", "owner": owner }),
        CauseChange::Mute(mute) => {
            json!({ "verb": "mute", "until": mute.until.map(|until| until.to_string()), "per_hour": mute.per_hour })
        }
        CauseChange::Unmute => json!({ "verb": "unmute" }),
        CauseChange::Resolve(why) => json!({ "verb": "resolve", "why": why }),
        CauseChange::Reopen => json!({ "verb": "reopen" }),
        CauseChange::Note(text) => json!({ "verb": "note", "text": text }),
        CauseChange::MergeInto(into) => json!({ "verb": "merge", "into": into }),
        CauseChange::Split(_) => json!({ "verb": "split" }),
    };
    said["version"] = json!(version);
    said
}
