//! Reading what was asked: queries, JSON bodies, names in paths. What is wrong is told with the field where it is.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use axum::body::{Bytes, HttpBody, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use redrive_core::time::Timestamp;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::error::ApiError;

/// The most that a body may have, in bytes.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(60);

/// What stands after the question mark. A name that comes several times has all of its values, with commas between them.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let mut fields: Map<String, Value> = Map::new();
        for (name, value) in form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
            match fields.get_mut(name.as_ref()) {
                Some(Value::String(known)) => {
                    known.push(',');
                    known.push_str(&value);
                }
                _ => drop(fields.insert(name.into_owned(), value.into_owned().into())),
            }
        }
        let read = serde_path_to_error::deserialize(Value::Object(fields));
        read.map(Self).map_err(|error| mistake(&error))
    }
}

/// A JSON body.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (bytes, _room) = whole(app, request.into_body()).await?;
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let read = serde_path_to_error::deserialize(&mut json).map_err(|error| mistake(&error))?;
        json.end().map_err(|error| ApiError::senseless(format!("the body is not one JSON value: {error}")))?;
        Ok(Self(read))
    }
}

/// A whole body, if it is no longer than may be and comes in time, with the room that it takes.
pub async fn whole(app: &App, body: axum::body::Body) -> Result<(Bytes, OwnedSemaphorePermit), ApiError> {
    let too_large = || ApiError::too_large(format!("a body has at most {BODY_BYTES_MAX} bytes: send less at once"));
    let length = body.size_hint();
    // What says how long it is need not be read.
    if length.lower() > BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let room = app.room(length.upper().unwrap_or(BODY_BYTES_MAX as u64).min(BODY_BYTES_MAX as u64))?;
    match tokio::time::timeout(BODY_WITHIN, to_bytes(body, BODY_BYTES_MAX)).await {
        Ok(read) => read.map(|bytes| (bytes, room)).map_err(|_| too_large()),
        Err(_) => Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body did not arrive in time")),
    }
}

fn mistake(error: &serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let (path, why) = (error.path().to_string(), error.inner().to_string());
    match path.as_str() {
        "." | "" => ApiError::senseless(why),
        _ => ApiError::invalid(path, why),
    }
}

/// A name in the path.
pub struct Named<T>(pub T);

impl<T: FromStr, S: Send + Sync> FromRequestParts<S> for Named<T>
where
    T::Err: fmt::Display,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let wrong = |why: String| ApiError::invalid("id", why);
        let Path(text) = Path::<String>::from_request_parts(parts, state).await.map_err(|e| wrong(e.to_string()))?;
        text.parse().map(Self).map_err(|error: T::Err| wrong(error.to_string()))
    }
}

/// A number in a query.
#[derive(Clone, Copy, Debug)]
pub struct Number(pub u32);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|_| D::Error::custom(format!("{text:?} is not a number from 0 to {}", u32::MAX)))
    }
}

/// Yes or no in a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flag(pub bool);

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "" | "true" | "1" => Ok(Self(true)),
            "false" | "0" => Ok(Self(false)),
            text => Err(D::Error::custom(format!("{text:?} is neither true nor false"))),
        }
    }
}

/// Values with commas between them.
#[derive(Clone, Debug)]
pub struct Several<T>(pub Vec<T>);

impl<T> Default for Several<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: FromStr> Deserialize<'de> for Several<T>
where
    T::Err: fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let values = text.split(',').filter(|value| !value.is_empty());
        values.map(|value| value.parse().map_err(D::Error::custom)).collect::<Result<_, _>>().map(Self)
    }
}

/// A time as people write it: how long ago, a day, or a time.
pub fn instant(field: &'static str, text: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
    let read = |text| redrive::config::units::instant(text, now).map_err(|why| ApiError::invalid(field, why));
    text.map(read).transpose()
}

/// The same of a time to come: how long from now, a day, or a time.
pub fn future(field: &'static str, text: Option<&str>, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let at = redrive::config::units::future(text, now).map_err(|why| ApiError::invalid(field, why))?;
    match at > now {
        true => Ok(Some(at)),
        false => Err(ApiError::invalid(field, format!("{text:?} names a time that is over"))),
    }
}

/// Something that is written as text.
#[derive(Clone, Debug)]
pub struct Text<T>(pub T);

impl<'de, T: FromStr> Deserialize<'de> for Text<T>
where
    T::Err: fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A number is as good: jobs have numbers, and many programs would write one.
        let text = match Value::deserialize(deserializer)? {
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            _ => return Err(D::Error::custom("expected text")),
        };
        text.parse().map(Self).map_err(D::Error::custom)
    }
}
