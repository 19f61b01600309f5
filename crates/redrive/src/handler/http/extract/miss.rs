//! What a document lacks, and how a rule's findings become a value or the lack of one.
//!
//! Selectors and pointers share this, so that "required", "list" and "empty" mean the same for both.

use std::fmt;

use redrive_core::failures;
use redrive_core::secrets::Secrets;
use serde_json::Value;

use super::number::Readings;

/// The most of a wrong value that is quoted.
const QUOTED_CHARS_MAX: usize = 80;

/// The most of a wrong value that is kept until it is quoted: secrets are looked for in more than what is shown of it.
const FOUND_CHARS_MAX: usize = 16 * 1024;

/// The most fields that one document is said to lack.
const MISSES_MAX: usize = 32;

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
    /// The selector finds nothing.
    SelectorNotFound,
    /// The selector finds elements, but none of them has the attribute.
    AttributeNotFound,
    /// The pointer leads nowhere.
    PointerNotFound,
    /// There is something, but it is empty, blank or null.
    Empty,
    /// It is of another type.
    WrongType {
        /// The type that was asked for.
        expected: &'static str,
        /// What is there, or its beginning.
        found: String,
    },
    /// It is a number with two readings, and the rule does not say which.
    Ambiguous {
        /// What is there, or its beginning.
        found: String,
        /// What it may be.
        readings: Readings,
    },
}

impl MissKind {
    /// A value that cannot be had as the type that was asked for.
    pub(super) fn wrong(expected: &'static str, found: &str) -> Self {
        Self::WrongType { expected, found: found.chars().take(FOUND_CHARS_MAX).collect() }
    }

    /// A number that `decimal` would settle.
    pub(super) fn ambiguous(found: &str, readings: Readings) -> Self {
        Self::Ambiguous { found: found.chars().take(FOUND_CHARS_MAX).collect(), readings }
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
            MissKind::AttributeNotFound => "AttributeNotFound",
            MissKind::PointerNotFound => "PointerNotFound",
            MissKind::Empty => "FieldEmpty",
            MissKind::WrongType { .. } => "WrongType",
            MissKind::Ambiguous { .. } => "AmbiguousNumber",
        }
    }

    /// What is kept of it beside the message.
    pub fn kept(&self) -> failures::Miss {
        let (why, found) = match &self.kind {
            MissKind::WrongType { expected, found } => (Some(format!("expected {expected}")), Some(quoted(found))),
            MissKind::Ambiguous { found, readings: Readings { point, comma } } => {
                (Some(format!("it may be {point} or {comma}")), Some(quoted(found)))
            }
            _ => (None, None),
        };
        let (field, rule) = (self.field.clone(), self.rule.clone());
        failures::Miss { field, rule, code: self.code().to_owned(), why, found }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = if self.rule.is_empty() { "\"\"" } else { &self.rule };
        write!(f, "{}: {rule} (field {})", self.code(), self.field)?;
        match &self.kind {
            MissKind::WrongType { expected, found } => {
                write!(f, ": expected {expected}, found {:?}", quoted(found))
            }
            MissKind::Ambiguous { found, readings: Readings { point, comma } } => write!(
                f,
                ": {:?} is {point} with decimal = \".\" and {comma} with decimal = \",\": say which for this field",
                quoted(found)
            ),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Miss {}

/// All that a document lacks, in the order of the rules; never nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misses {
    /// The first. It is what the failure is recognised by.
    pub first: Miss,
    /// The others. Those of a list's items are there once, however many items have them.
    pub others: Vec<Miss>,
}

impl From<Miss> for Misses {
    fn from(first: Miss) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl Misses {
    /// The first and the others.
    pub fn iter(&self) -> impl Iterator<Item = &Miss> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn into_iter(self) -> impl Iterator<Item = Miss> {
        std::iter::once(self.first).chain(self.others)
    }

    /// The same without secrets in what was found. Only then is it cut and quoted: half a secret would not be known as one.
    pub(in crate::handler::http) fn masked(mut self, secrets: &Secrets) -> Self {
        for miss in std::iter::once(&mut self.first).chain(&mut self.others) {
            if let MissKind::WrongType { found, .. } | MissKind::Ambiguous { found, .. } = &mut miss.kind {
                *found = secrets.mask(found);
            }
        }
        self
    }

    /// Puts those that were found later behind those before.
    pub(super) fn join(before: &mut Option<Self>, later: Self) {
        let Some(all) = before else { return *before = Some(later) };
        for miss in later.into_iter() {
            let is_new = !all.iter().any(|known| known.is_like(&miss));
            if is_new && all.others.len() < MISSES_MAX {
                all.others.push(miss);
            }
        }
    }
}

impl Miss {
    /// Whether it is the same miss, of the same or another item of a list.
    fn is_like(&self, other: &Self) -> bool {
        let is_path = |c: &char| !c.is_ascii_digit();
        self.rule == other.rule
            && self.code() == other.code()
            && self.field.chars().filter(is_path).eq(other.field.chars().filter(is_path))
    }
}

impl fmt::Display for Misses {
    /// The others stand on a line that says so, so that they do not part failures with the same first one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        for (index, miss) in self.others.iter().enumerate() {
            f.write_str(if index == 0 { "\nDETAIL: also " } else { "; " })?;
            write!(f, "{miss}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Misses {}

/// Why something that was found gives no value.
pub(super) enum Lack {
    /// It is as good as missing, which an optional field may be.
    Absent(MissKind),
    /// It is there and of another type, which an optional field may be too.
    Wrong(MissKind),
    /// The rules do not say what it is: no field may be that.
    Unclear(MissKind),
    /// Some of its own fields are amiss.
    Inner(Misses),
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
    ) -> Result<Value, Misses> {
        if self.list {
            return self.settle_list(found, none);
        }
        match found.next().unwrap_or(Err(Lack::Absent(none))) {
            Ok(value) => Ok(value),
            Err(lack) => self.lacking(lack, None),
        }
    }

    /// What the field is if there is nothing, or nothing of its type: an error, null or an empty list.
    pub(super) fn absent(&self, kind: MissKind) -> Result<Value, Misses> {
        self.lacking(Lack::Absent(kind), None)
    }

    fn lacking(&self, lack: Lack, index: Option<usize>) -> Result<Value, Misses> {
        match (lack, self.list) {
            (Lack::Absent(_) | Lack::Wrong(_), true) if !self.required => Ok(Value::Array(Vec::new())),
            (Lack::Absent(_) | Lack::Wrong(_), false) if !self.required => Ok(Value::Null),
            (lack, _) => Err(self.misses(lack, index)),
        }
    }

    /// A list leaves out what is blank; only a list of nothing but blanks counts as missing. One item of another type
    /// makes it a list of another type.
    fn settle_list(
        &self,
        found: impl Iterator<Item = Result<Value, Lack>>,
        mut none: MissKind,
    ) -> Result<Value, Misses> {
        let (mut values, mut wrong, mut misses) = (Vec::new(), false, None);
        for (index, item) in found.enumerate() {
            match item {
                Ok(value) => values.push(value),
                Err(Lack::Absent(kind)) => none = kind,
                Err(Lack::Wrong(_)) if !self.required => wrong = true,
                Err(lack) => Misses::join(&mut misses, self.misses(lack, Some(index))),
            }
        }
        match misses {
            Some(misses) => Err(misses),
            None if wrong => Ok(Value::Array(Vec::new())),
            None if values.is_empty() => self.absent(none),
            None => Ok(Value::Array(values)),
        }
    }

    fn misses(&self, lack: Lack, index: Option<usize>) -> Misses {
        let path = index.map_or_else(|| self.name.clone(), |index| format!("{}[{index}]", self.name));
        let within = |inner: Miss| Miss { field: format!("{path}.{}", inner.field), ..inner };
        match lack {
            Lack::Absent(kind) | Lack::Wrong(kind) | Lack::Unclear(kind) => {
                Miss { field: path, rule: self.rule.clone(), kind }.into()
            }
            Lack::Inner(Misses { first, others }) => {
                Misses { first: within(first), others: others.into_iter().map(within).collect() }
            }
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

    fn settle(head: &Head, found: Vec<Result<Value, Lack>>) -> Result<Value, Misses> {
        head.settle(found.into_iter(), MissKind::SelectorNotFound)
    }

    #[test]
    fn misses_read_well_and_have_a_code() {
        let miss = settle(&head(true, false), vec![]).expect_err("a miss");
        assert_eq!(miss.to_string(), "SelectorNotFound: .price-tag-main (field price)");
        let wrong = Lack::Wrong(MissKind::wrong("number", "Sold out"));
        let miss = settle(&head(true, true), vec![Ok(json!(1)), Err(wrong)]).expect_err("a miss");
        assert_eq!(
            miss.to_string(),
            "WrongType: .price-tag-main (field price[1]): expected number, found \"Sold out\""
        );
        let empty = settle(&head(true, false), vec![Err(Lack::Absent(MissKind::Empty))]).expect_err("a miss");
        assert_eq!(
            (empty.first.code(), empty.to_string().as_str()),
            ("FieldEmpty", "FieldEmpty: .price-tag-main (field price)")
        );
    }

    #[test]
    fn inner_misses_keep_their_rule_and_gain_a_path() {
        let inner = settle(&head(true, false), vec![]).expect_err("a miss");
        let outer = Head { name: "offers".into(), rule: ".offer".into(), required: true, list: true };
        let miss = settle(&outer, vec![Ok(json!({})), Err(Lack::Inner(inner))]).expect_err("a miss");
        assert_eq!((miss.first.field.as_str(), miss.first.rule.as_str()), ("offers[1].price", ".price-tag-main"));
    }

    #[test]
    fn optional_fields_may_be_missing_or_wrong_but_not_unclear() {
        let wrong = || Err(Lack::Wrong(MissKind::wrong("number", "x")));
        assert_eq!(settle(&head(false, false), vec![]), Ok(Value::Null));
        assert_eq!(settle(&head(false, true), vec![]), Ok(json!([])));
        assert_eq!(settle(&head(false, false), vec![wrong()]), Ok(Value::Null));
        assert_eq!(settle(&head(false, true), vec![Ok(json!(1)), wrong()]), Ok(json!([])), "no half of a list");
        let readings = Readings { point: "1.299".into(), comma: "1299".into() };
        let unclear = Err(Lack::Unclear(MissKind::ambiguous("1.299", readings)));
        assert_eq!(settle(&head(false, false), vec![unclear]).expect_err("a miss").first.code(), "AmbiguousNumber");
    }

    #[test]
    fn misses_of_items_are_there_once() {
        let inner = || settle(&head(true, false), vec![]).expect_err("a miss");
        let outer = Head { name: "offers".into(), rule: ".offer".into(), required: true, list: true };
        let wrong = Err(Lack::Wrong(MissKind::wrong("number", "x")));
        let items = vec![Err(Lack::Inner(inner())), Err(Lack::Inner(inner())), wrong];
        let misses = settle(&outer, items).expect_err("misses");
        assert_eq!(
            misses.to_string(),
            "SelectorNotFound: .price-tag-main (field offers[0].price)\n\
             DETAIL: also WrongType: .offer (field offers[2]): expected number, found \"x\""
        );
    }

    #[test]
    fn lists_leave_out_what_is_blank() {
        let blank = || Err(Lack::Absent(MissKind::Empty));
        assert_eq!(settle(&head(true, true), vec![blank(), Ok(json!(1))]), Ok(json!([1])));
        assert_eq!(settle(&head(true, true), vec![blank()]).expect_err("a miss").first.code(), "FieldEmpty");
        assert_eq!(settle(&head(true, true), vec![]).expect_err("a miss").first.code(), "SelectorNotFound");
    }

    #[test]
    fn quotes_are_cut() {
        let wrong = |found: &str| {
            settle(&head(true, false), vec![Err(Lack::Wrong(MissKind::wrong("number", found)))]).expect_err("a miss")
        };
        assert_eq!(wrong(&"é".repeat(500)).to_string().matches('é').count(), QUOTED_CHARS_MAX);
        let mut secrets = Secrets::default();
        secrets.add_value("s3cret-value-of-some-length");
        for before in 0..QUOTED_CHARS_MAX {
            let said =
                wrong(&format!("{}s3cret-value-of-some-length", "x".repeat(before))).masked(&secrets).to_string();
            assert!(!said.contains("s3"), "{said}");
        }
    }
}
