//! Reading JSON by JSON pointers (RFC 6901), which are split into their steps once.
//!
//! They read whole documents as well as JSON that stands inside of a page.

use serde_json::{Map, Value};

use super::convert::Kind;
use super::miss::{Head, Lack, MissKind, Misses};
use super::record::{self, Partial};

/// The steps to a value; none lead to the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    /// Reads a pointer; `None` if it is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let Some(steps) = text.strip_prefix('/') else {
            return text.is_empty().then(|| Self(Vec::new()));
        };
        let is_escaped = |step: &str| step.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        steps
            .split('/')
            .map(|step| is_escaped(step).then(|| step.replace("~1", "/").replace("~0", "~")))
            .collect::<Option<Vec<_>>>()
            .map(Self)
    }

    fn find<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(root, |value, step| match value {
            Value::Object(fields) => fields.get(step),
            Value::Array(items) => items.get(index(step)?),
            _ => None,
        })
    }
}

/// An index as the RFC writes it: no sign, no leading zero.
fn index(step: &str) -> Option<usize> {
    let is_plain = step == "0" || (step.starts_with(|c: char| c.is_ascii_digit()) && !step.starts_with('0'));
    is_plain.then(|| step.parse().ok())?
}

/// What a value becomes.
#[derive(Clone, Debug)]
pub(super) enum Take {
    /// Itself.
    Value,
    /// One of the types.
    Kind(Kind),
    /// An object made of what these find in it.
    Fields(JsonFields),
    /// The same, in a text that holds JSON.
    TextFields(JsonFields),
}

/// A field that a pointer finds.
#[derive(Clone, Debug)]
pub(super) struct JsonField {
    pub(super) head: Head,
    pub(super) pointer: Pointer,
    pub(super) take: Take,
}

/// The fields of an object.
#[derive(Clone, Debug)]
pub(super) struct JsonFields(pub(super) Vec<JsonField>);

impl JsonFields {
    /// The record that a value gives; `None` stands for a document that is not JSON.
    pub(super) fn extract(&self, root: Option<&Value>) -> Result<Map<String, Value>, Partial> {
        record::collect(self.0.iter().map(|field| (field.head.name.as_str(), field.read(root))))
    }
}

impl JsonField {
    /// How often its pointer leads to something: of a list, how many items there are.
    pub(super) fn matches(&self, root: &Value) -> usize {
        match self.pointer.find(root) {
            Some(Value::Array(items)) if self.head.list => items.len(),
            found => usize::from(found.is_some()),
        }
    }

    fn read(&self, root: Option<&Value>) -> Result<Value, Misses> {
        let Some(found) = root.and_then(|root| self.pointer.find(root)) else {
            return self.head.absent(MissKind::PointerNotFound);
        };
        let none = MissKind::Empty;
        match (self.head.list, found) {
            (true, Value::Array(items)) => self.head.settle(items.iter().map(|item| self.take.value(item)), none),
            (true, Value::Null) => self.head.absent(none),
            (true, other) => self.head.absent(MissKind::wrong("list", &other.to_string())),
            (false, value) => self.head.settle(std::iter::once_with(|| self.take.value(value)), none),
        }
    }
}

impl Take {
    fn value(&self, found: &Value) -> Result<Value, Lack> {
        let blank = match found {
            Value::Null => true,
            Value::String(text) => text.trim().is_empty(),
            _ => false,
        };
        if blank {
            return Err(Lack::Absent(MissKind::Empty));
        }
        match self {
            Self::Value => Ok(found.clone()),
            Self::Kind(kind) => kind.of_json(found),
            Self::Fields(fields) => fields.extract(Some(found)).map(Value::Object).map_err(Lack::from),
            Self::TextFields(fields) => {
                let inner = Kind::Json.of_json(found)?;
                fields.extract(Some(&inner)).map(Value::Object).map_err(Lack::from)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pointers_follow_the_rfc() {
        let document = json!({"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, " ": 7, "0": {"01": 5}});
        let find = |pointer: &str| Pointer::parse(pointer).expect("a pointer").find(&document).cloned();
        for pointer in ["", "/foo", "/foo/0", "/", "/a~1b", "/m~0n", "/ ", "/0/01"] {
            assert_eq!(find(pointer), document.pointer(pointer).cloned(), "{pointer}");
            assert!(find(pointer).is_some(), "{pointer}");
        }
        for pointer in ["/foo/00", "/foo/+1", "/foo/-", "/foo/2", "/bar", "/foo/0/x", "//"] {
            assert_eq!(find(pointer), None, "{pointer}");
        }
    }

    #[test]
    fn what_is_no_pointer_is_refused() {
        for text in ["foo", "/a~", "/a~2", "#/a", " /a"] {
            assert_eq!(Pointer::parse(text), None, "{text}");
        }
    }
}
