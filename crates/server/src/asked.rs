//! Reading what was asked: queries, JSON bodies, names in paths. What is wrong is told with the field where it is.

use std::fmt;
use std::io::Read;
use std::str::FromStr;

use axum::body::{Bytes, HttpBody, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use flate2::read::MultiGzDecoder;
use http_body_util::LengthLimitError;
use redrive::config::meant;
use redrive_core::jobs::{count_values, values_max};
use redrive_core::paths::of_path;
use redrive_core::time::Timestamp;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::error::ApiError;
use crate::held::{Held, Room};

/// The most that a body may have, in bytes.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The most that a form may have, in bytes: ten thousand letters may be chosen one by one.
const FORM_BYTES_MAX: usize = 1024 * 1024;

/// A longer body is parsed on another thread, so that nobody waits for that.
const READ_AT_ONCE_MAX: usize = 64 * 1024;

/// Memory that is set aside for a JSON value of a body whose text is shorter, in bytes: a tenth of what it becomes.
/// An object with one field is two values and takes some 1,100 bytes.
const BYTES_PER_VALUE: u64 = 60;

/// What stands after the question mark. A name that comes several times has all of its values, with commas between them.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Fields::of(parts).read().map(Self)
    }
}

/// The fields of a query, to be read in parts.
pub struct Fields(Map<String, Value>);

impl Fields {
    fn of(parts: &Parts) -> Self {
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
        Self(fields)
    }

    /// Takes a field out.
    pub fn take(&mut self, name: &str) -> Option<String> {
        match self.0.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Reads what is left.
    pub fn read<T: DeserializeOwned>(self) -> Result<T, ApiError> {
        serde_path_to_error::deserialize(Value::Object(self.0)).map_err(|error| mistake(&error))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Fields {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self::of(parts))
    }
}

/// A JSON body.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for Body<T> {
    type Rejection = ApiError;

    /// Reads a body. The memory that it takes is set aside until the request is answered.
    async fn from_request(request: Request, app: &App) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let held = parts.extensions.get::<Held>().cloned().unwrap_or_default();
        let (bytes, room) = whole(app, &parts.headers, body).await?;
        held.keep(room);
        if bytes.len() <= READ_AT_ONCE_MAX {
            return read(app, &bytes, &held).map(Self);
        }
        let app = app.clone();
        let reading = tokio::task::spawn_blocking(move || read(&app, &bytes, &held));
        reading.await.map_err(|_| ApiError::senseless("the body could not be read"))?.map(Self)
    }
}

/// Reads JSON, unless it has too many values for its length.
fn read<T: DeserializeOwned>(app: &App, bytes: &[u8], held: &Held) -> Result<T, ApiError> {
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    let values = check_values(count_values(bytes), bytes.len())?;
    held.keep(app.bodies().take((values * BYTES_PER_VALUE).saturating_sub(bytes.len() as u64))?);
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| mistake(&error))?;
    json.end().map_err(|error| ApiError::senseless(format!("the body is not one JSON value: {error}")))?;
    Ok(read)
}

/// Refuses more JSON values than so many bytes may have; else says how many they are.
pub fn check_values(values: u64, bytes: usize) -> Result<u64, ApiError> {
    match values_max(bytes) {
        most if values > most => Err(ApiError::too_large(format!(
            "a body of {bytes} bytes has at most {most} JSON values: send less at once"
        ))),
        _ => Ok(values),
    }
}

/// Reads and unpacks a body that is no longer than may be and comes in time. Returns it with the room that it takes.
pub async fn whole(
    app: &App,
    headers: &HeaderMap,
    body: axum::body::Body,
) -> Result<(Bytes, OwnedSemaphorePermit), ApiError> {
    read_within(app, headers, body, (BODY_BYTES_MAX, app.bodies())).await
}

/// Reads the body of a form in the same way.
pub async fn form(
    app: &App,
    headers: &HeaderMap,
    body: axum::body::Body,
    room: &Room,
) -> Result<(Bytes, OwnedSemaphorePermit), ApiError> {
    let read = read_within(app, headers, body, (FORM_BYTES_MAX, room)).await;
    read.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::too_large("this form has too much in it: choose fewer letters at once")
        }
        _ => error,
    })
}

async fn read_within(
    app: &App,
    headers: &HeaderMap,
    body: axum::body::Body,
    (bytes_max, room): (usize, &Room),
) -> Result<(Bytes, OwnedSemaphorePermit), ApiError> {
    let length = body.size_hint();
    // What says how long it is need not be read.
    if length.lower() > bytes_max as u64 {
        return Err(too_large(bytes_max));
    }
    let most = bytes_max as u64;
    let packed =
        headers.get(header::CONTENT_ENCODING).is_some_and(|coded| coded.as_bytes().eq_ignore_ascii_case(b"gzip"));
    // What is packed may become as long as any.
    let expected = if packed { most } else { length.upper().unwrap_or(most).min(most) };
    let room = room.take(expected)?;
    let bytes = match tokio::time::timeout(app.options().patience.body, to_bytes(body, bytes_max)).await {
        Ok(read) => read.map_err(|error| unread(&error, bytes_max))?,
        Err(_) => return Err(ApiError::too_slow("the body did not arrive in time")),
    };
    if !packed {
        return Ok((bytes, room));
    }
    let unpacked = tokio::task::spawn_blocking(move || unpack(&bytes, bytes_max)).await;
    let unpacked = unpacked.map_err(|_| ApiError::senseless("the body could not be unpacked"))??;
    Ok((unpacked.into(), room))
}

fn too_large(bytes_max: usize) -> ApiError {
    ApiError::too_large(format!("a body has at most {bytes_max} bytes: send less at once"))
}

/// Why a body was not read: it has no end, or ended too soon.
fn unread(error: &axum::Error, bytes_max: usize) -> ApiError {
    let cut = std::error::Error::source(error).is_some_and(|inner| inner.is::<LengthLimitError>());
    if cut {
        too_large(bytes_max)
    } else {
        ApiError::senseless("the body ended too soon, or is not sent as it should be")
    }
}

/// Unpacks a body, no further than a body may be long.
fn unpack(bytes: &[u8], bytes_max: usize) -> Result<Vec<u8>, ApiError> {
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(bytes_max as u64 + 1).read_to_end(&mut unpacked);
    match read {
        Ok(length) if length > bytes_max => Err(too_large(bytes_max)),
        Ok(_) => Ok(unpacked),
        Err(error) => {
            Err(ApiError::senseless(format!("the body is not packed with gzip: {error}")).at("Content-Encoding"))
        }
    }
}

fn mistake(error: &serde_path_to_error::Error<serde_json::Error>) -> ApiError {
    let (path, mut why) = (error.path().to_string(), error.inner().to_string());
    if let Some(meant) = meant(&why) {
        why = format!("{why}; did you mean `{meant}`?");
    }
    match path.as_str() {
        "." | "" => ApiError::senseless(why),
        _ => ApiError::invalid(path, why),
    }
}

/// A name in the path; one of dots alone is written as `~.` or `~..`.
pub struct Named<T>(pub T);

impl<T: FromStr, S: Send + Sync> FromRequestParts<S> for Named<T>
where
    T::Err: fmt::Display,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let wrong = |why: String| ApiError::invalid("id", why);
        let Path(text) = Path::<String>::from_request_parts(parts, state).await.map_err(|e| wrong(e.to_string()))?;
        of_path(&text).parse().map(Self).map_err(|error: T::Err| wrong(error.to_string()))
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

/// A text that may be left out.
pub trait Lengthy {
    /// How long it is, in bytes.
    fn bytes(&self) -> usize;
}

impl Lengthy for String {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Lengthy for Option<String> {
    fn bytes(&self) -> usize {
        self.as_ref().map_or(0, String::len)
    }
}

/// The longest that somebody or something is called, in bytes.
const CALLED_BYTES_MAX: usize = 255;

/// The longest that people say why, in bytes.
const SAID_BYTES_MAX: usize = 4_000;

/// Reads what something is called: a target, a group, a host.
pub fn called<'de, T: Deserialize<'de> + Lengthy, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    at_most(CALLED_BYTES_MAX, T::deserialize(deserializer)?)
}

/// Reads what people say: why, or a note.
pub fn said<'de, T: Deserialize<'de> + Lengthy, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    at_most(SAID_BYTES_MAX, T::deserialize(deserializer)?)
}

/// Reads why something is done, for the record: it says something.
pub fn reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text: String = said(deserializer)?;
    match text.trim() {
        "" => Err(D::Error::custom("it is empty: say why, for the record")),
        _ => Ok(text),
    }
}

fn at_most<T: Lengthy, E: serde::de::Error>(most: usize, text: T) -> Result<T, E> {
    match text.bytes() {
        bytes if bytes > most => Err(E::custom(format!("it has {bytes} bytes: expected at most {most}"))),
        _ => Ok(text),
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
