//! Requests made of the document: what it allows, and what it does not. Whatever is asked, the server answers in time, with no failure of
//! its own, and with nothing that the document does not describe.

use std::time::{Duration, Instant};

use redrive_core::tokens::Role;
use redrive_server::{all_routes, openapi};
use serde_json::{Map, Value, json};

use crate::running::Running;

/// Requests to each route, unless REDRIVE_TEST_FUZZ names another number.
const EACH: usize = 5;

/// How long an answer may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// The deepest that a body is made.
const DEPTH_MAX: usize = 6;

/// Numbers that follow each other without order, the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).expect("it is small")
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// What requests are made of.
struct Made {
    chance: Chance,
    /// Texts: names and ids that there are, and others.
    texts: Vec<String>,
}

impl Made {
    fn text(&mut self) -> String {
        self.chance.of(&self.texts).clone()
    }

    fn number(&mut self) -> Value {
        let numbers = [
            json!(0),
            json!(1),
            json!(7),
            json!(-1),
            json!(1_000),
            json!(4_294_967_296_u64),
            json!(i64::MIN),
            json!(0.5),
        ];
        self.chance.of(&numbers).clone()
    }

    /// Anything at all.
    fn anything(&mut self) -> Value {
        match self.chance.below(6) {
            0 => Value::Null,
            1 => json!(self.chance.one_in(2)),
            2 => self.number(),
            3 => json!([self.text()]),
            4 => json!({ self.text(): self.text() }),
            _ => self.text().into(),
        }
    }

    /// A value as a schema wants it, most of the time.
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if self.chance.one_in(25) || depth > DEPTH_MAX {
            return self.anything();
        }
        if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
            return self.value(&openapi::document()["components"]["schemas"][name].clone(), depth + 1);
        }
        for several in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[several].as_array() {
                let choice = self.chance.of(choices).clone();
                return self.value(&choice, depth + 1);
            }
        }
        if let Some(all) = schema["allOf"].as_array() {
            let parts: Vec<_> = all.iter().map(|part| self.value(part, depth + 1)).collect();
            return parts
                .into_iter()
                .filter_map(|part| part.as_object().cloned())
                .flatten()
                .collect::<Map<_, _>>()
                .into();
        }
        if let Some(values) = schema["enum"].as_array() {
            return self.chance.of(values).clone();
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) => self.chance.of(kinds).clone(),
            kind => kind.clone(),
        };
        match kind.as_str() {
            Some("string") => self.text().into(),
            Some("integer" | "number") => self.number(),
            Some("boolean") => json!(self.chance.one_in(2)),
            Some("array") => (0..self.chance.below(4)).map(|_| self.value(&schema["items"], depth + 1)).collect(),
            Some("object") => self.object(schema, depth),
            _ => self.anything(),
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut fields = Map::new();
        let always = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let wanted = if always.contains(&json!(name)) { !self.chance.one_in(12) } else { self.chance.one_in(3) };
            if wanted && name != "wait" {
                let value = self.value(field, depth + 1);
                fields.insert(name.clone(), value);
            }
        }
        if fields.is_empty() || self.chance.one_in(20) {
            let (name, value) = (self.text(), self.anything());
            fields.insert(name, value);
        }
        fields.into()
    }

    /// A request to an operation: its address, and its body.
    fn request(&mut self, path: &str, operation: &Value) -> (String, Option<Value>) {
        let mut address = path.to_owned();
        let mut query = form_urlencoded::Serializer::new(String::new());
        for param in operation["parameters"].as_array().into_iter().flatten() {
            let name = param["name"].as_str().expect("a name");
            match param["in"].as_str() {
                Some("path") => {
                    let encoded: String = form_urlencoded::byte_serialize(self.text().as_bytes()).collect();
                    address = address.replace(&format!("{{{name}}}"), if encoded.is_empty() { "-" } else { &encoded });
                }
                Some("query") if param["required"] == true || self.chance.one_in(4) => {
                    let value = self.value(&param["schema"], 0);
                    query.append_pair(name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
                }
                _ => {}
            }
        }
        let query = query.finish();
        if !query.is_empty() {
            address = format!("{address}?{query}");
        }
        let body =
            operation.get("requestBody").map(|body| self.value(&body["content"]["application/json"]["schema"], 0));
        (address, body)
    }
}

/// A store with something of everything in it, and texts by which it is found.
async fn filled(server: &Running, token: &str) -> Vec<String> {
    let post =
        async |path: &str, body: Value| server.ask_as(Some(token), &format!("POST {path}"), &[], Some(body)).await.ok();
    let jobs = json!({ "pipeline": "shop", "jobs": [{ "input": { "n": 1 } }, { "input": { "url": "https://shop.example/1" } }] });
    let jobs = post("/jobs", jobs).await;
    let letter = json!({ "pipeline": "shop", "input": { "n": 3 }, "message": "no", "payload": { "text": "<p>" } });
    let letter = post("/letters", letter).await["letters"][0]["id"].clone();
    let shown =
        server.ask_as(Some(token), &format!("GET /letters/{}", letter.as_str().expect("an id")), &[], None).await.ok();
    let leased = post("/leases", json!({ "pipelines": ["shop"] })).await;
    let known = [
        &jobs["jobs"][0]["id"],
        &jobs["jobs"][1]["id"],
        &letter,
        &shown["cause"],
        &leased["worker"],
        &leased["leases"][0]["lease"],
    ];
    let known = known.into_iter().filter_map(|id| id.as_str().map(str::to_owned));
    let others = [
        "shop",
        "cart",
        "shop.example",
        "1",
        "2",
        "last",
        "2h",
        "2026-01-01",
        "timeout",
        "dead",
        "worker",
        "25%",
        "20/s",
        "/n",
        "reason",
        "",
        "a b",
        "ä\u{202e}",
        "%",
        "\u{0}",
        "../../x",
        "'; DROP TABLE job; --",
        "{\"a\":1}",
    ];
    known.chain(others.into_iter().map(str::to_owned)).chain(["x".repeat(600)]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_asked_is_answered_as_the_document_says() {
    let server = Running::start().await;
    let token = server.token("fuzz", Role::Admin, &[]).await;
    let server = server.restart().await;
    let each =
        std::env::var("REDRIVE_TEST_FUZZ").map_or(EACH, |text| text.parse().expect("REDRIVE_TEST_FUZZ is a number"));
    let texts = filled(&server, &token).await;
    let mut made = Made { chance: Chance(0x5eed_2026_1116), texts };
    let document = openapi::document();
    // What is followed has no end.
    for route in all_routes().into_iter().filter(|route| route.path != "/events") {
        let method = route.method.as_str().to_ascii_lowercase();
        let operation = &document["paths"][format!("/api/v1{}", route.path)][&method];
        for _ in 0..each {
            let (address, body) = made.request(route.path, operation);
            let (request, begun) = (format!("{} {address}", route.method), Instant::now());
            let answer = server.ask_as(Some(&token), &request, &[], body.clone()).await;
            assert!(answer.status < 500, "{request} {body:?}: {answer:?}");
            assert!(begun.elapsed() < ANSWERED_WITHIN, "{request} {body:?} took {:?}", begun.elapsed());
        }
    }
    server.audit().await;
}
