//! What went wrong, as a page: what, and the way out.

use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use redrive::StoreError;

use super::confirm::entry;
use super::parts::{name, with_query};
use super::shell::{self, Place};
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;

/// The most values of a query that are shown.
const FILTERS_MAX: usize = 100;

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

impl Problem {
    fn title(&self) -> &'static str {
        match self.error.status() {
            StatusCode::NOT_FOUND => "Nothing is here",
            StatusCode::FORBIDDEN => "Not for you",
            StatusCode::BAD_REQUEST if self.form.is_some() => "Nothing was done yet",
            StatusCode::BAD_REQUEST => "That makes no sense",
            StatusCode::CONFLICT => "It changed meanwhile",
            StatusCode::SERVICE_UNAVAILABLE => "The store does not answer",
            StatusCode::INTERNAL_SERVER_ERROR => "Something failed",
            _ => "That cannot be done",
        }
    }

    /// What it is, and the way out. A form that was sent cannot be asked for again by its address.
    fn body(&self, visitor: Option<&Visitor>) -> Markup {
        let status = self.error.status();
        let is_form = visitor.is_some_and(|visitor| visitor.is_form);
        let can_retry = status == StatusCode::SERVICE_UNAVAILABLE;
        html! {
            div.head { h1 { (self.title()) } }
            p.headline.(if status.is_server_error() { "bad" } else { "warn" }) {
                bdi { (self.message()) }
                @if let Some(label) = self.label { span.fact { "It is about “" (label) "”." } }
                @else if let Some(field) = self.error.field() { span.fact { "It is about " code { (field) } "." } }
                @if can_retry && is_form { span.fact { "Go back and send the form again: it is done once, however often it is sent." } }
            }
            @if let Some(form) = &self.form { (form) }
            @else {
                @if let Some(visitor) = visitor.filter(|visitor| !visitor.is_form && status.is_client_error()) {
                    (self.filters(visitor))
                }
                p.actions {
                    @if can_retry && !is_form { a.button href="" { "Retry" } }
                    @if let Some(place) = visitor.map(|visitor| Place::of(&visitor.here)).filter(|place| *place != Place::Overview) {
                        a.button href=(place.path()) { "All " (place.name().to_lowercase()) }
                    }
                    a.button href="/" { "Overview" }
                }
            }
        }
    }

    /// The query of an address that makes no sense: each value can be dropped, and the one that is wrong can be changed.
    fn filters(&self, visitor: &Visitor) -> Markup {
        let (here, query) = (&*visitor.here, visitor.query());
        let field = self.error.field().and_then(|field| Some((field, query.one(field)?)));
        let others =
            query.kept().filter(|(other, value)| !value.is_empty() && field.is_none_or(|(wrong, _)| wrong != *other));
        let others: Vec<_> = others.take(FILTERS_MAX).collect();
        html! {
            @if !others.is_empty() {
                div.filters {
                    @for (other, value) in &others {
                        span.chip {
                            span { (name(other)) } " " (name(value))
                            a href=(with_query(here, other, None)) aria-label={ "Drop the filter " (other) } { "×" }
                        }
                    }
                }
            }
            @if let Some((field, value)) = field {
                form.ask action=(here.split('?').next().unwrap_or_default()) {
                    @for (other, value) in &others { input type="hidden" name=(other) value=(value); }
                    (entry(field, field, value, false))
                    p.actions {
                        button.primary { "Look again" }
                        a.button href=(with_query(here, field, None)) { "Drop the filter " (field) }
                    }
                }
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let seen_by = self.seen_by.as_deref();
        let body = self.body(seen_by);
        // It may come from outside of all pages, where no style is let in.
        let policy = [(header::CONTENT_SECURITY_POLICY, super::POLICY)];
        let page = shell::bare(self.title(), seen_by, &body);
        let mut response = (self.error.status(), policy, page).into_response();
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}

/// An answer to somebody who is known: what went wrong has around it what every page has. Where the store does not answer, that is places only.
pub async fn framed(app: &App, visitor: &Visitor, mut response: Response) -> Response {
    // What is read of an address is refused as the API does it.
    if let Some(error) = response.extensions_mut().remove::<ApiError>() {
        response = Problem::from(error).into_response();
    }
    let Some(problem) = response.extensions_mut().remove::<Arc<Problem>>() else { return response };
    let (title, body) = (problem.title(), problem.body(Some(visitor)));
    let page = match problem.is_ours() {
        true => Ok(shell::bare(title, Some(visitor), &body).into_response()),
        false => shell::show_problem(app, visitor, title, body).await,
    };
    match page {
        Ok(page) => Response::from_parts(response.into_parts().0, page.into_body()),
        Err(_) => response,
    }
}
