//! What was filled into a form, and doing what it asks for once, however often it is sent.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use redrive::answers::KeyedRequest;
use redrive::config::nearest;
use redrive::contract::KeptAnswer;

use super::mended::mended;
use super::problem::Problem;
use super::visitor::Visitor;
use crate::app::App;
use crate::error::ApiError;

/// The longest key of a form, in bytes.
const KEY_BYTES_MAX: usize = 100;

/// What was filled into a form, in its order.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads a form.
    pub fn read(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// What a field has, if there is something in it.
    pub fn one(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
        found.filter(|value| !value.is_empty())
    }

    /// Everything that has a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Refuses fields that nobody reads, with what was probably meant: a filter that is passed over would show too much.
    pub fn check_names(&self, known: &[&str]) -> Result<(), ApiError> {
        let Some((unknown, _)) = self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) else { return Ok(()) };
        let meant = nearest(unknown, known).map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        Err(ApiError::invalid(unknown, format!("there is no filter `{unknown}`{meant}")))
    }

    /// The fields but those that were made for somebody who is no longer signed in, to be sent again.
    pub fn kept(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter(|(name, _)| name != "form").map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// All of it as text.
    pub fn to_text(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(self.kept()).finish()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Fields {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let read = parts.extensions.get::<Self>().cloned();
        read.ok_or_else(|| ApiError::senseless("this is where forms are sent to").into())
    }
}

/// What every form carries: by whom it was made, and a key by which it is known if it is sent twice.
pub fn carried(visitor: &Visitor) -> Markup {
    html! {
        input type="hidden" name="form" value=(visitor.form_token());
        input type="hidden" name="key" value=(new_key());
    }
}

fn new_key() -> String {
    redrive::tokens::new_secret("").unwrap_or_default()
}

/// The key by which a form is known if it is sent twice.
pub fn key_of(fields: &Fields) -> Result<&str, Problem> {
    let key = fields.one("key").filter(|key| key.len() <= KEY_BYTES_MAX);
    key.ok_or_else(|| ApiError::senseless("this form has no key: load its page again").into())
}

/// Does what a form asks for, and leads to where that can be seen; a form that is sent again leads there, and does nothing.
pub async fn once<F>(app: &App, visitor: &Visitor, fields: &Fields, act: F) -> Result<Response, Problem>
where
    F: AsyncFnOnce() -> Result<Done, Problem>,
{
    let key = key_of(fields)?;
    let path = visitor.here.split('?').next().unwrap_or_default();
    let (who, key) = (visitor.caller.name(), format!("form {path} {key}"));
    let _turn = app.alone(who, &key).await;
    let request = format!("{}?{}", visitor.here, blake3::hash(fields.to_text().as_bytes()).to_hex());
    let keyed = match app.redrive().begin_request(who, &key, &request).await? {
        KeyedRequest::Answered(kept) => {
            let address = String::from_utf8_lossy(&kept.body);
            return Ok(Redirect::to(if address.is_empty() { path } else { &address }).into_response());
        }
        KeyedRequest::Open(keyed) => keyed,
    };
    let answering = async {
        match act().await {
            Ok(Done::At(address)) => {
                let answer = KeptAnswer { request, status: 303, body: address.clone().into_bytes() };
                Ok((Redirect::to(&address).into_response(), Some(answer)))
            }
            Ok(Done::Asks(page)) => Ok((page, None)),
            Err(problem) => Err(mended(visitor, fields, problem).seen_by(visitor)),
        }
    };
    keyed.run(answering).await
}

/// What came of a form.
pub enum Done {
    /// It is done, and can be seen there.
    At(String),
    /// Something has to be asked first: the form comes back.
    Asks(Response),
}

/// An address of this server with something said on it: what was done, for the page to show.
pub fn with_said(address: &str, said: &[(&str, &str)]) -> String {
    let said: Vec<_> = said.iter().filter(|(_, value)| !value.is_empty()).collect();
    if said.is_empty() {
        return address.to_owned();
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(said);
    let glue = if address.contains('?') { '&' } else { '?' };
    format!("{address}{glue}{}", query.finish())
}

/// An address to come back to, if it is a path of this server: a browser would take `//host` and `/\host` for another one's.
pub fn own_path(address: &str) -> &str {
    let is_own = address.starts_with('/')
        && !address.starts_with("//")
        && !address.contains('\\')
        && !address.chars().any(|c| c.is_control() || c.is_whitespace());
    if is_own { address } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_led_to_another_server() {
        for own in ["/", "/causes?tab=all", "/letters/7"] {
            assert_eq!(own_path(own), own);
        }
        for foreign in
            ["", "//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example", "javascript:x"]
        {
            assert_eq!(own_path(foreign), "/", "{foreign:?}");
        }
    }

    #[test]
    fn fields_are_read_in_their_order() {
        let fields = Fields::read(b"id=1&id=2&why=+a+b+&form=x&empty=");
        assert_eq!(fields.all("id").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!((fields.one("why"), fields.one("empty"), fields.one("none")), (Some("a b"), None, None));
        assert_eq!(fields.to_text(), "id=1&id=2&why=+a+b+&empty=");
    }
}
