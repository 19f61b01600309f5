//! What a document lacks, and how a rule's findings become a value or the lack of one.
//!
//! Selectors and pointers share this, so that "required", "list" and "empty" mean the same for both.

use std::fmt;

use serde_json::Value;

use super::number::Readings;

/// The most of a wrong value that is quoted.
const QUOTED_CHARS_MAX: usize = 80;

/// A field that a document does not have as its rule asks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// The field, with its path: `offers[2].price`. An index counts what the rule found, from 0.
    pub field: String,
    /// The selector or pointer.
    pub rule: String,
    /// What is amiss.
    pub kind: MissKind,
}

/// What is amiss with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissKind {
    /// The selector finds nothing, or what it finds lacks the attribute.
    SelectorNotFound,
    /// The pointer leads nowhere.
    PointerNotFound,
    /// There is something, but it is empty, blank or null.
    Empty,
    /// It is of another type.
    WrongType {
        /// The type that was asked for.
        expected: &'static str,
        /// The beginning of what is there.
        found: String,
    },
    /// It is a number with two readings, and the rule does not say which.
    Ambiguous {
        /// The beginning of what is there.
        found: String,
        /// What it may be.
        readings: Readings,
    },
}

impl MissKind {
    /// A value that cannot be had as the type that was asked for.
    pub(super) fn wrong(expected: &'static str, found: &str) -> Self {
        Self::WrongType { expected, found: quoted(found) }
    }

    /// A number that `decimal` would settle.
    pub(super) fn ambiguous(found: &str, readings: Readings) -> Self {
        Self::Ambiguous { found: quoted(found), readings }
    }
}

fn quoted(found: &str) -> String {
    match found.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &found[..end]),
        None => found.to_owned(),
    }
}

impl Miss {
    /// A stable name to group failures by.
    pub const fn code(&self) -> &'static str {
        match self.kind {
            MissKind::SelectorNotFound => "SelectorNotFound",
            MissKind::PointerNotFound => "PointerNotFound",
            MissKind::Empty => "FieldEmpty",
            MissKind::WrongType { .. } => "WrongType",
            MissKind::Ambiguous { .. } => "AmbiguousNumber",
        }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = if self.rule.is_empty() { "\"\"" } else { &self.rule };
        write!(f, "{}: {rule} (field {})", self.code(), self.field)?;
        match &self.kind {
            MissKind::WrongType { expected, found } => write!(f, ": expected {expected}, found {found:?}"),
            MissKind::Ambiguous { found, readings: Readings { point, comma } } => write!(
                f,
                ": {found:?} is {point} with decimal = \".\" and {comma} with decimal = \",\": say which for this field"
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Miss {}

/// Why something that was found gives no value.
pub(super) enum Lack {
    /// It is as good as missing, which an optional field may be.
    Absent(MissKind),
    /// It is there and wrong, which no field may be.
    Wrong(MissKind),
    /// One of its own fields is amiss.
    Inner(Miss),
}

/// What all fields have, however they are found.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) name: String,
    pub(super) rule: String,
    pub(super) required: bool,
    pub(super) list: bool,
}

impl Head {
    /// The field's value from all that its rule found, in order; `none` is what is amiss if that is nothing.
    pub(super) fn settle(
        &self,
        mut found: impl Iterator<Item = Result<Value, Lack>>,
        none: MissKind,
    ) -> Result<Value, Miss> {
        if self.list {
            return self.settle_list(found, none);
        }
        match found.next().unwrap_or(Err(Lack::Absent(none))) {
            Ok(value) => Ok(value),
            Err(Lack::Absent(kind)) => self.absent(kind),
            Err(lack) => Err(self.miss(lack, None)),
        }
    }

    /// What the field is if there is nothing: an error, null or an empty list.
    pub(super) fn absent(&self, kind: MissKind) -> Result<Value, Miss> {
        match (self.required, self.list) {
            (true, _) => Err(self.miss(Lack::Absent(kind), None)),
            (false, true) => Ok(Value::Array(Vec::new())),
            (false, false) => Ok(Value::Null),
        }
    }

    /// What the rule leads to is not what it should be.
    pub(super) fn wrong(&self, kind: MissKind) -> Miss {
        self.miss(Lack::Wrong(kind), None)
    }

    /// A list leaves out what is blank; only a list of nothing but blanks counts as missing.
    fn settle_list(&self, found: impl Iterator<Item = Result<Value, Lack>>, mut none: MissKind) -> Result<Value, Miss> {
        let mut values = Vec::new();
        for (index, item) in found.enumerate() {
            match item {
                Ok(value) => values.push(value),
                Err(Lack::Absent(kind)) => none = kind,
                Err(lack) => return Err(self.miss(lack, Some(index))),
            }
        }
        if values.is_empty() { self.absent(none) } else { Ok(Value::Array(values)) }
    }

    fn miss(&self, lack: Lack, index: Option<usize>) -> Miss {
        let path = index.map_or_else(|| self.name.clone(), |index| format!("{}[{index}]", self.name));
        match lack {
            Lack::Absent(kind) | Lack::Wrong(kind) => Miss { field: path, rule: self.rule.clone(), kind },
            Lack::Inner(inner) => Miss { field: format!("{path}.{}", inner.field), ..inner },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn head(required: bool, list: bool) -> Head {
        Head { name: "price".into(), rule: ".price-tag-main".into(), required, list }
    }

    fn settle(head: &Head, found: Vec<Result<Value, Lack>>) -> Result<Value, Miss> {
        head.settle(found.into_iter(), MissKind::SelectorNotFound)
    }

    #[test]
    fn misses_read_well_and_have_a_code() {
        let miss = settle(&head(true, false), vec![]).expect_err("a miss");
        assert_eq!(miss.to_string(), "SelectorNotFound: .price-tag-main (field price)");
        let wrong = Lack::Wrong(MissKind::wrong("number", "Sold out"));
        let miss = settle(&head(false, true), vec![Ok(json!(1)), Err(wrong)]).expect_err("a miss");
        assert_eq!(
            miss.to_string(),
            "WrongType: .price-tag-main (field price[1]): expected number, found \"Sold out\""
        );
        let empty = settle(&head(true, false), vec![Err(Lack::Absent(MissKind::Empty))]).expect_err("a miss");
        assert_eq!(
            (empty.code(), empty.to_string().as_str()),
            ("FieldEmpty", "FieldEmpty: .price-tag-main (field price)")
        );
    }

    #[test]
    fn inner_misses_keep_their_rule_and_gain_a_path() {
        let inner = settle(&head(true, false), vec![]).expect_err("a miss");
        let outer = Head { name: "offers".into(), rule: ".offer".into(), required: true, list: true };
        let miss = settle(&outer, vec![Ok(json!({})), Err(Lack::Inner(inner))]).expect_err("a miss");
        assert_eq!((miss.field.as_str(), miss.rule.as_str()), ("offers[1].price", ".price-tag-main"));
    }

    #[test]
    fn optional_fields_may_be_missing_but_not_wrong() {
        assert_eq!(settle(&head(false, false), vec![]), Ok(Value::Null));
        assert_eq!(settle(&head(false, true), vec![]), Ok(json!([])));
        let wrong = Lack::Wrong(MissKind::wrong("number", "x"));
        assert!(settle(&head(false, false), vec![Err(wrong)]).is_err());
    }

    #[test]
    fn lists_leave_out_what_is_blank() {
        let blank = || Err(Lack::Absent(MissKind::Empty));
        assert_eq!(settle(&head(true, true), vec![blank(), Ok(json!(1))]), Ok(json!([1])));
        assert_eq!(settle(&head(true, true), vec![blank()]).expect_err("a miss").code(), "FieldEmpty");
        assert_eq!(settle(&head(true, true), vec![]).expect_err("a miss").code(), "SelectorNotFound");
    }

    #[test]
    fn quotes_are_cut() {
        let MissKind::WrongType { found, .. } = MissKind::wrong("number", &"é".repeat(500)) else { panic!() };
        assert_eq!(found.chars().count(), QUOTED_CHARS_MAX + 1);
    }
}
