//! A request is the same as JSON, as a query, as a form and in the parts of an HTTP request.

use redrive_api::breakers::{CloseBreaker, HoldBreaker, ListBreakers, ProbeBreaker};
use redrive_api::wire::{self, Fields};
use redrive_api::{Operation, RequestError};
use serde_json::{Value, json};

fn fields(value: Value) -> Fields {
    value.as_object().expect("an object").clone()
}

fn text<O: Operation>(pairs: &[(&str, &str)]) -> Result<O, RequestError> {
    let (mut fields, schema) = (Fields::new(), wire::schema::<O>());
    let pairs = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    wire::add_text(&mut fields, &schema, pairs);
    wire::check_required(&schema, &fields)?;
    wire::decode(fields).map_err(RequestError::flat)
}

#[test]
fn flat_text_is_the_same_request_as_nested_json() {
    let list: ListBreakers = text(&[("pipeline", "shop"), ("limit", "20"), ("cursor", "")]).expect("a request");
    assert_eq!(wire::fields(&list), fields(json!({ "pipeline": "shop", "page": { "limit": 20, "cursor": null } })));
    let form = [("target", "shop.example"), ("pipeline", "shop"), ("until", "2h"), ("why", "they asked us to")];
    let hold: HoldBreaker = text(&form).expect("a request");
    let from_json = serde_json::from_str::<HoldBreaker>(HoldBreaker::EXAMPLE).expect("a request");
    assert_eq!(wire::fields(&hold), wire::fields(&from_json));
}

#[test]
fn error_names_the_field_as_it_was_written() {
    let limit = |text_of_limit: &str| text::<ListBreakers>(&[("limit", text_of_limit)]).expect_err("refused").field;
    assert_eq!(
        (limit("0").as_deref(), limit("1001").as_deref(), limit("many").as_deref()),
        (Some("limit"), Some("limit"), Some("limit"))
    );
    assert_eq!(text::<ListBreakers>(&[("colour", "red")]).expect_err("refused").field.as_deref(), Some("colour"));
    let twice = text::<ListBreakers>(&[("pipeline", "a"), ("pipeline", "b")]).expect_err("refused");
    assert_eq!(twice.field.as_deref(), Some("pipeline"), "neither is believed");
    let nested = wire::decode::<ListBreakers>(fields(json!({ "page": { "limit": 0 } }))).expect_err("refused");
    assert_eq!(nested.field.as_deref(), Some("page.limit"));
    for (body, field) in [
        (json!({}), "target"),
        (json!({ "target": null }), "target"),
        (json!({ "target": "" }), "target"),
        (json!({ "target": 7 }), "target"),
        (json!({ "target": "t", "until": "soon" }), "until"),
        (json!({ "target": "t", "why": "x".repeat(4_001) }), "why"),
        (json!({ "target": "t", "pipeline": "a b" }), "pipeline"),
        (json!({ "target": "t", "whom": "x" }), "whom"),
    ] {
        let body = fields(body);
        let read = wire::check_required(&wire::schema::<HoldBreaker>(), &body);
        let error = read.and_then(|()| wire::decode::<HoldBreaker>(body)).expect_err("refused");
        assert_eq!(error.field.as_deref(), Some(field), "{error}");
    }
}

#[test]
fn field_that_is_written_twice_is_refused() {
    let read = |text: &str| serde_json::from_str::<wire::Object>(text);
    assert!(read(r#"{ "target": "a", "target": "b" }"#).is_err_and(|error| error.to_string().contains("`target`")));
    assert!(read("[]").is_err() && read(r#"{ "target": "a" }"#).is_ok());
}

#[test]
fn request_survives_its_parts() {
    fn check<O: Operation>() {
        let sent = wire::fields(&serde_json::from_str::<O>(O::EXAMPLE).expect("an example is a request"));
        let parts = wire::split(&O::ROUTE, sent.clone());
        let mut read = parts.body.map(fields).unwrap_or_default();
        wire::add_text(&mut read, &wire::schema::<O>(), parts.query);
        assert_eq!(wire::fields(&wire::decode::<O>(read).expect("a request")), sent);
        let path: Vec<_> = O::ROUTE.path.split('/').skip(1).collect();
        assert_eq!(parts.path, path);
    }
    check::<ListBreakers>();
    check::<HoldBreaker>();
    check::<CloseBreaker>();
    check::<ProbeBreaker>();
}

#[test]
fn limit_of_a_page_is_documented() {
    let schema = wire::schema::<ListBreakers>();
    let limit = wire::text_fields(&schema).into_iter().find(|field| field.name == "limit").expect("a field");
    assert_eq!((&limit.schema["minimum"], &limit.schema["maximum"]), (&json!(1), &json!(1_000)));
    assert_eq!((&limit.schema["default"], limit.is_required), (&json!(50), false));
}
