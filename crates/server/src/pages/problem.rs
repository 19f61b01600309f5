//! What went wrong, as a page: what, and the way out.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use redrive::StoreError;

use super::shell;
use super::visitor::Visitor;
use crate::error::ApiError;

/// A page that cannot be shown, or a form that cannot be done.
#[derive(Debug)]
pub struct Problem {
    error: ApiError,
    seen_by: Option<Box<Visitor>>,
    /// The form that was sent, to be mended.
    form: Option<Markup>,
    /// What the field that it is about is called there.
    label: Option<&'static str>,
}

impl Problem {
    /// What it is, for people.
    pub fn message(&self) -> &str {
        self.error.message()
    }

    /// Whether it is the server, or its store, that cannot; not who asked.
    pub fn is_ours(&self) -> bool {
        self.error.status().is_server_error()
    }

    /// Whether what was filled in makes no sense.
    pub fn is_mistake(&self) -> bool {
        self.error.status() == StatusCode::BAD_REQUEST
    }

    /// Whether somebody else changed what it is about since it was looked at.
    pub fn is_changed_meanwhile(&self) -> bool {
        self.error.code() == "changed_meanwhile"
    }

    /// The field that it is about, if it is about one.
    pub fn field(&self) -> Option<&str> {
        self.error.field()
    }

    /// What it is for who asked by HTTP.
    pub const fn status(&self) -> StatusCode {
        self.error.status()
    }

    /// The same with the form that was sent, to be mended, and what the field that it is about is called there.
    pub fn with_form(self, form: Markup, label: Option<&'static str>) -> Self {
        Self { form: Some(form), label, ..self }
    }

    /// The same as a page for somebody who is known.
    pub fn seen_by(self, visitor: &Visitor) -> Self {
        Self { seen_by: Some(Box::new(visitor.clone())), ..self }
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        Self { error, seen_by: None, form: None, label: None }
    }
}

impl From<redrive::Error> for Problem {
    fn from(error: redrive::Error) -> Self {
        ApiError::from(error).into()
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        ApiError::from(error).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.error.status();
        let title = match status {
            StatusCode::NOT_FOUND => "Nothing is here",
            StatusCode::FORBIDDEN => "Not for you",
            StatusCode::BAD_REQUEST if self.form.is_some() => "Nothing was done yet",
            StatusCode::BAD_REQUEST => "That makes no sense",
            StatusCode::CONFLICT => "It changed meanwhile",
            StatusCode::SERVICE_UNAVAILABLE => "The store does not answer",
            StatusCode::INTERNAL_SERVER_ERROR => "Something failed",
            _ => "That cannot be done",
        };
        let message = self.error.message();
        let body = html! {
            div.head { h1 { (title) } }
            p.headline.(if status.is_server_error() { "bad" } else { "warn" }) {
                bdi { (message) }
                @if let Some(label) = self.label { span.fact { "It is about “" (label) "”." } }
                @else if let Some(field) = self.error.field() { span.fact { "It is about " code { (field) } "." } }
            }
            @if let Some(form) = &self.form { (form) }
            @else { p.actions {
                @if status == StatusCode::SERVICE_UNAVAILABLE { a.button href="" { "Retry" } }
                a.button href="/" { "Overview" }
            } }
        };
        // It may come from outside of all pages, where no style is let in.
        let policy = [(header::CONTENT_SECURITY_POLICY, super::POLICY)];
        (status, policy, shell::bare(title, self.seen_by.as_deref(), &body)).into_response()
    }
}
