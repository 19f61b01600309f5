//! The keys of a request, `[pipeline.NAME.request]`, and of one whose answer is read for a task, `submit` and `poll`.

use std::collections::BTreeMap;

use crate::handler::http::request::{Body, Request, Template};
use crate::handler::submit_poll::{Condition, Reading};
use redrive_core::secrets::Secrets;
use serde::Deserialize;
use serde_json::Value;

use super::secrets::expand_template;

/// A request with placeholders.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestSection {
    /// The address.
    pub url: String,
    /// GET, POST and so on; by default POST if something is sent.
    pub method: Option<String>,
    /// Headers.
    pub headers: BTreeMap<String, String>,
    /// Parameters added to the address.
    pub query: BTreeMap<String, String>,
    /// A text to send.
    pub body: Option<String>,
    /// Form fields to send.
    pub form: Option<BTreeMap<String, String>>,
    /// JSON to send.
    pub json: Option<Value>,
    /// How the answer is read; for `submit` and `poll`.
    pub read: Option<ReadSection>,
}

impl Default for RequestSection {
    fn default() -> Self {
        Self {
            url: "{url}".into(),
            method: None,
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
            body: None,
            form: None,
            json: None,
            read: None,
        }
    }
}

/// How an answer is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadSection {
    /// When it has the value.
    pub ready: ConditionSection,
    /// Where the value is: the task id of `submit`, the result of `poll`.
    pub value: String,
    /// When it is not ready yet.
    pub pending: Option<ConditionSection>,
    /// Where the code is, if it is neither.
    pub code: String,
    /// Where the code is explained.
    pub message: Option<String>,
}

/// A place in an answer and the values it may have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionSection {
    /// A JSON pointer.
    pub pointer: String,
    /// The values.
    pub equals: Vec<Value>,
}

impl From<ConditionSection> for Condition {
    fn from(section: ConditionSection) -> Self {
        Self { pointer: section.pointer, equals: section.equals }
    }
}

impl From<ReadSection> for Reading {
    fn from(section: ReadSection) -> Self {
        Self {
            ready: section.ready.into(),
            value: section.value,
            pending: section.pending.map(Into::into),
            code: section.code,
            message: section.message,
        }
    }
}

impl RequestSection {
    /// Makes the request; values from outside become secrets.
    pub fn request(&self, secrets: &mut Secrets) -> Result<Request, String> {
        let body = match (&self.body, &self.form, &self.json) {
            (None, None, None) => Body::None,
            (Some(text), None, None) => Body::Text(template(text, secrets)?),
            (None, Some(fields), None) => Body::Form(templates(fields, secrets)?),
            (None, None, Some(value)) => Body::Json(expand_json(value, secrets)?),
            _ => return Err("it has more than one of body, form and json: keep one".into()),
        };
        let default = if matches!(body, Body::None) { "GET" } else { "POST" };
        let method = self.method.as_deref().unwrap_or(default).to_ascii_uppercase();
        Ok(Request {
            method: method.parse().map_err(|_| format!("{method:?} is not a method"))?,
            url: template(&self.url, secrets)?,
            query: templates(&self.query, secrets)?,
            headers: templates(&self.headers, secrets)?,
            body,
        })
    }
}

fn template(text: &str, secrets: &mut Secrets) -> Result<Template, String> {
    Template::parse(&expand_template(text, secrets)?)
}

fn templates(texts: &BTreeMap<String, String>, secrets: &mut Secrets) -> Result<BTreeMap<String, Template>, String> {
    texts.iter().map(|(name, text)| Ok((name.clone(), template(text, secrets)?))).collect()
}

fn expand_json(value: &Value, secrets: &mut Secrets) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(expand_template(text, secrets)?),
        Value::Array(items) => items.iter().map(|item| expand_json(item, secrets)).collect::<Result<_, _>>()?,
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| Ok((name.clone(), expand_json(field, secrets)?)));
            Value::Object(fields.collect::<Result<_, String>>()?)
        }
        other => other.clone(),
    })
}
