//! The rules as a user writes them in `redrive.toml`.
//!
//! Only their shape is checked here; `compile` says what is wrong with their content, where it can name the field.
//! Fields keep the order in which the deserializer gives them (for TOML, that of the file needs its `preserve_order`);
//! it is the order of the record.

use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::handler::http::document::Format;

/// What to take from a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// How the body is read; by default the fields and the `Content-Type` say it.
    pub format: Option<Format>,
    /// The fields of the record; without any, the document itself is the record.
    #[serde(default)]
    pub fields: Fields,
}

/// Fields by name, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(pub Vec<(String, Field)>);

/// How one field is found. Its short form is a text: a pointer if it starts with `/`, or else a selector.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Field {
    /// A CSS selector, with `::text`, `::attr(name)` or nothing at its end.
    pub select: Option<String>,
    /// A JSON pointer.
    pub pointer: Option<String>,
    /// `string`, `number`, `integer`, `boolean`, `json` or `html`. By default a selected text is a string, and a JSON
    /// value stays what it is.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The decimal mark of a number, `"."` or `","`; without it, `1.299` and `1,299` are refused as ambiguous.
    pub decimal: Option<String>,
    /// Whether it is an error if it is missing, empty or of another type; otherwise it is null then, or an empty list.
    #[serde(default = "yes")]
    pub required: bool,
    /// Whether all that is found is taken, instead of the first.
    #[serde(default)]
    pub list: bool,
    /// Makes it an object, whose fields are found relative to it.
    pub fields: Option<Fields>,
}

const fn yes() -> bool {
    true
}

impl Field {
    /// The short form.
    fn short(rule: &str) -> Self {
        let rule = rule.to_owned();
        // `//h1` could be a pointer to an empty name, but is XPath, and refused as such.
        let is_pointer = rule.starts_with('/') && !rule.starts_with("//");
        let (select, pointer) = if is_pointer { (None, Some(rule)) } else { (Some(rule), None) };
        Self { select, pointer, kind: None, decimal: None, required: true, list: false, fields: None }
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor)
    }
}

/// Not an untagged enum: that would hide what is wrong behind "did not match any variant".
struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a selector, a JSON pointer or a table with `select` or `pointer`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Field, E> {
        Ok(Field::short(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Field, A::Error> {
        Field::deserialize(de::value::MapAccessDeserializer::new(map))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields: Vec<(String, Field)> = Vec::new();
        while let Some((name, field)) = map.next_entry::<String, Field>()? {
            // TOML refuses this by itself, JSON does not.
            if fields.iter().any(|(other, _)| *other == name) {
                return Err(de::Error::custom(format!("field {name} is there twice")));
            }
            fields.push((name, field));
        }
        Ok(Fields(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(toml: &str) -> String {
        toml::from_str::<Rules>(toml).expect_err("refused").to_string()
    }

    #[test]
    fn short_and_long_forms() {
        let rules: Rules = toml::from_str(
            r#"
            format = "html"
            [fields]
            title = "h1.title::text"
            sku = "/product/sku"
            image = { select = "img.main::attr(src)", required = false }
            [fields.offers]
            select = ".offer"
            list = true
            fields = { seller = ".seller::text", price = { select = ".p", type = "number", decimal = "," } }
            "#,
        )
        .expect("rules");
        assert_eq!(rules.format, Some(Format::Html));
        let field = |name: &str| &rules.fields.0.iter().find(|(other, _)| other == name).expect("a field").1;
        assert_eq!((field("title").select.as_deref(), field("title").required), (Some("h1.title::text"), true));
        assert_eq!((field("sku").pointer.as_deref(), field("sku").select.as_deref()), (Some("/product/sku"), None));
        assert!(!field("image").required && !field("image").list);
        assert!(field("offers").required && field("offers").list);
        assert_eq!(field("offers").fields.as_ref().map(|fields| fields.0.len()), Some(2));
    }

    #[test]
    fn json_does_as_well() {
        let rules: Rules = serde_json::from_str(r#"{"fields": {"b": "/b", "a": {"pointer": "/a"}}}"#).expect("rules");
        let names: Vec<_> = rules.fields.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["b", "a"], "in the order in which they are written");
        let twice = serde_json::from_str::<Rules>(r#"{"fields": {"b": "/b", "b": "/c"}}"#).expect_err("refused");
        assert!(twice.to_string().contains("field b is there twice"));
    }

    #[test]
    fn what_is_not_known_is_refused_with_its_line() {
        let unknown = refused("[fields]\ntitle = { selct = \"h1\" }");
        assert!(unknown.contains("line 2") && unknown.contains("unknown field `selct`"), "{unknown}");
        assert!(refused("format = \"pdf\"").contains("unknown variant `pdf`"));
        assert!(refused("feilds = {}").contains("unknown field `feilds`"));
        assert!(refused("[fields]\ntitle = 3").contains("a selector, a JSON pointer or a table"));
        assert!(refused("[fields]\na = { select = \"p\", required = \"no\" }").contains("boolean"));
    }
}
