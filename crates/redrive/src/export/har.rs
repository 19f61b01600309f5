//! The attempts of one dead letter as a browser's network log (HAR 1.2), for the tools that show such logs.
//!
//! What HAR has no field for stands under names with a leading `_`, as the format asks. A log is whole in memory: it is
//! for one letter, not for many.

use std::collections::HashMap;

use data_encoding::BASE64;
use redrive_core::dead::DeadLetter;
use redrive_core::failures::Failure;
use redrive_core::payloads::{Payload, PayloadHash, Response};
use serde_json::{Map, Value, json};
use url::Url;

use super::request::{HttpRequest, began_at, header};

/// What browsers write for a type that nobody said.
const TYPE_UNKNOWN: &str = "x-unknown";

/// Makes the log of a letter: an entry for each failure it comes with, and the request that `request` has for it. `bodies` are the
/// payloads that are to be in it.
pub fn har(
    letter: &DeadLetter,
    mut request: impl FnMut(&Failure) -> Option<HttpRequest>,
    bodies: &HashMap<PayloadHash, Vec<u8>>,
) -> Value {
    let failures = letter.failures.as_deref().unwrap_or_default();
    let entries: Vec<_> =
        failures.iter().map(|failure| entry(letter, failure, request(failure).as_ref(), bodies)).collect();
    json!({
        "log": {
            "version": "1.2",
            "creator": {"name": "Redrive", "version": env!("CARGO_PKG_VERSION")},
            "pages": [],
            "entries": entries,
        }
    })
}

fn entry(
    letter: &DeadLetter,
    failure: &Failure,
    request: Option<&HttpRequest>,
    bodies: &HashMap<PayloadHash, Vec<u8>>,
) -> Value {
    let payload = failure.payload.as_ref();
    let response = payload.map(|payload| &payload.response);
    let millis = response.and_then(|response| response.elapsed_ms).or(failure.duration_ms).unwrap_or(0);
    let request = match request {
        Some(request) => request_value(request),
        None => unknown_request(letter, response),
    };
    json!({
        "startedDateTime": began_at(failure),
        "time": millis,
        "request": request,
        "response": response_value(failure, payload.and_then(|payload| bodies.get(&payload.hash))),
        "cache": {},
        "timings": {"send": 0, "wait": millis, "receive": 0},
        "_failure": {
            "attempt": failure.attempt,
            "reason": failure.reason,
            "code": failure.code,
            "message": failure.message,
        },
    })
}

fn request_value(request: &HttpRequest) -> Value {
    let url = Url::parse(&request.url).ok();
    let query = url.iter().flat_map(Url::query_pairs).map(|(name, value)| json!({"name": name, "value": value}));
    let mut value = json!({
        "method": request.method,
        "url": url.as_ref().map_or(request.url.as_str(), Url::as_str),
        "httpVersion": "unknown",
        "cookies": [],
        "headers": headers_value(&request.headers),
        "queryString": query.collect::<Vec<_>>(),
        "headersSize": -1,
        "bodySize": request.body.as_ref().map_or(0, Vec::len),
    });
    if let Some(body) = &request.body {
        // The format has an encoding for what came, but none for what was sent.
        let mut data = text_fields(body, "_encoding");
        data.insert("mimeType".into(), header(&request.headers, "Content-Type").unwrap_or(TYPE_UNKNOWN).into());
        value["postData"] = data.into();
    }
    value
}

/// The fields that a log must have, where nothing is known but where the answer came from, or not even that.
fn unknown_request(letter: &DeadLetter, response: Option<&Response>) -> Value {
    let url = response.and_then(|response| response.url.clone());
    let url = url.unwrap_or_else(|| format!("urn:redrive:dead-letter:{}", letter.id));
    let mut value = request_value(&HttpRequest { url, ..HttpRequest::default() });
    value["bodySize"] = (-1).into();
    value["comment"] = "the request is not known".into();
    value
}

fn response_value(failure: &Failure, body: Option<&Vec<u8>>) -> Value {
    let nothing = Response::default();
    let payload = failure.payload.as_ref();
    let response = payload.map_or(&nothing, |payload| &payload.response);
    let status = response.status.or(failure.http_status);
    let mut value = json!({
        "status": status.unwrap_or(0),
        "statusText": "",
        "httpVersion": "unknown",
        "cookies": [],
        "headers": headers_value(&response.headers),
        "content": content_value(payload, &response.headers, body),
        "redirectURL": header(&response.headers, "Location").unwrap_or_default(),
        "headersSize": -1,
        "bodySize": -1,
    });
    if status.is_none() {
        value["_error"] = failure.message.clone().into();
    }
    // The entry's own address is the one before redirects.
    if let Some(url) = &response.url {
        value["_url"] = url.clone().into();
    }
    value
}

fn content_value(payload: Option<&Payload>, headers: &[(String, String)], body: Option<&Vec<u8>>) -> Value {
    let mut content = body.map(|body| text_fields(body, "encoding")).unwrap_or_default();
    content.insert("size".into(), payload.map_or(0, |payload| payload.size_bytes).into());
    content.insert("mimeType".into(), header(headers, "Content-Type").unwrap_or(TYPE_UNKNOWN).into());
    match payload {
        Some(_) if body.is_none() => content.insert("comment".into(), "the payload is not part of this log".into()),
        Some(payload) if payload.truncated => content.insert("comment".into(), "only its beginning was kept".into()),
        _ => None,
    };
    content.into()
}

/// The bytes as text, or as base64, which the field called `encoding` then says.
fn text_fields(bytes: &[u8], encoding: &str) -> Map<String, Value> {
    let mut fields = Map::new();
    match std::str::from_utf8(bytes) {
        Ok(text) => fields.insert("text".into(), text.into()),
        Err(_) => {
            fields.insert(encoding.into(), "base64".into());
            fields.insert("text".into(), BASE64.encode(bytes).into())
        }
    };
    fields
}

fn headers_value(headers: &[(String, String)]) -> Vec<Value> {
    headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::fixture::{letter, request, response};

    fn log(request: Option<&HttpRequest>, body: &[u8]) -> Value {
        let letter = letter(&response(), body.len());
        har(&letter, |_| request.cloned(), &HashMap::from([(PayloadHash::from_bytes([0x11; 32]), body.to_vec())]))
    }

    #[test]
    fn every_attempt_is_an_entry() {
        let log = log(Some(&request()), b"<html>");
        let entries = log["log"]["entries"].as_array().expect("entries");
        let status = |at: usize| &entries[at]["response"]["status"];
        assert_eq!((entries.len(), status(0), status(1), status(2)), (3, &json!(0), &json!(403), &json!(0)));
        assert_eq!(entries[0]["response"]["_error"], "it failed\r\nfor timeout");
        assert_eq!(entries[1]["response"].get("_error"), None);
        assert_eq!(entries[1]["startedDateTime"], "2025-11-15T14:02:02.250Z");
        assert_eq!((&entries[0]["time"], &entries[1]["time"]), (&json!(250), &json!(200)));
        let failure =
            json!({"attempt": 2, "reason": "blocked", "code": "code_2", "message": "it failed\r\nfor blocked"});
        assert_eq!(entries[1]["_failure"], failure);
    }

    #[test]
    fn bodies_are_text_or_base64() {
        let content = |body: &[u8]| log(None, body)["log"]["entries"][1]["response"]["content"].clone();
        let truncated = "only its beginning was kept";
        let text = json!({"text": "ü\0", "size": 3, "mimeType": "text/html", "comment": truncated});
        assert_eq!(content("ü\0".as_bytes()), text);
        let bytes = json!({
            "encoding": "base64", "text": "/wA=", "size": 2, "mimeType": "text/html", "comment": truncated,
        });
        assert_eq!(content(b"\xff\0"), bytes);
        let absent = &log(None, b"")["log"]["entries"][2]["response"]["content"];
        let expected = json!({"size": 4, "mimeType": "x-unknown", "comment": "the payload is not part of this log"});
        assert_eq!(*absent, expected);
    }

    #[test]
    fn a_request_is_whole_or_said_to_be_unknown() {
        let known = &log(Some(&request()), b"")["log"]["entries"][0]["request"];
        let query = json!([{"name": "key", "value": "***"}, {"name": "q", "value": "ü"}]);
        assert_eq!((&known["queryString"], &known["bodySize"]), (&query, &json!(7)));
        assert_eq!(known["postData"], json!({"_encoding": "base64", "text": "YT3/DQoNCg==", "mimeType": "x-unknown"}));
        let entries = &log(None, b"")["log"]["entries"];
        assert_eq!(entries[0]["request"]["url"], "urn:redrive:dead-letter:0198f2c5-7d3e-7a10-9c51-0242ac120002");
        assert_eq!(entries[1]["request"]["url"], "https://h.example/%C3%BC?q=1#part");
        assert_eq!(entries[1]["request"]["comment"], "the request is not known");
    }

    #[test]
    fn a_letter_without_its_failures_has_no_entries() {
        let letter = DeadLetter { failures: None, ..letter(&response(), 0) };
        assert_eq!(har(&letter, |_| None, &HashMap::new())["log"]["entries"], json!([]));
    }
}
