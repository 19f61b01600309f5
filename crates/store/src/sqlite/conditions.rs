//! From a filter to the `WHERE` of a statement. Values are always bound, never written into the text.

use std::fmt;

use redrive_core::dead::LetterSort;
use redrive_core::ids::JobId;
use redrive_core::tokens::PipelinePattern;
use rusqlite::types::Value;
use rusqlite::{ParamsFromIter, params_from_iter};

use super::fault::Fault;
use crate::lists::{like, within};

/// Conditions that must all hold.
#[derive(Default)]
pub(super) struct Conditions {
    clauses: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    fn compare(&mut self, column: &str, operator: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.values.push(value.into());
            self.clauses.push(format!("{column} {operator} ?{}", self.values.len()));
        }
    }

    pub(super) fn equal(&mut self, column: &str, value: Option<impl Into<Value>>) {
        self.compare(column, "=", value);
    }

    pub(super) fn at_least(&mut self, column: &str, value: Option<impl Into<Value>>) {
        self.compare(column, ">=", value);
    }

    pub(super) fn less_than(&mut self, column: &str, value: Option<impl Into<Value>>) {
        self.compare(column, "<", value);
    }

    pub(super) fn more_than(&mut self, column: &str, value: Option<impl Into<Value>>) {
        self.compare(column, ">", value);
    }

    /// The column has one of the values; no values mean any.
    pub(super) fn one_of(&mut self, column: &str, values: impl Iterator<Item = &'static str>) {
        let places: Vec<String> = values
            .map(|value| {
                self.values.push(value.to_owned().into());
                format!("?{}", self.values.len())
            })
            .collect();
        if !places.is_empty() {
            self.clauses.push(format!("{column} IN ({})", places.join(", ")));
        }
    }

    /// The pair of columns comes before the pair of values.
    pub(super) fn less_than_pair(&mut self, columns: (&str, &str), values: (i64, i64)) {
        self.compare_pair(columns, "<", values);
    }

    /// The letter comes after the one that died then and has that number, on `dead d`.
    pub(super) fn after_letter(&mut self, letter: (i64, i64), sort: LetterSort) {
        match sort {
            LetterSort::Newest => self.less_than_pair(("d.died_at", "d.seq"), letter),
            LetterSort::Oldest => self.more_than_pair(("d.died_at", "d.seq"), letter),
        }
    }

    /// The pair of columns comes after the pair of values.
    pub(super) fn more_than_pair(&mut self, columns: (&str, &str), values: (i64, i64)) {
        self.compare_pair(columns, ">", values);
    }

    fn compare_pair(&mut self, columns: (&str, &str), operator: &str, values: (i64, i64)) {
        self.values.extend([values.0.into(), values.1.into()]);
        let n = self.values.len();
        self.clauses.push(format!("({}, {}) {operator} (?{}, ?{n})", columns.0, columns.1, n - 1));
    }

    /// The column has the value that a query finds for `value`.
    pub(super) fn equal_to_query(&mut self, column: &str, query: &str, value: String) {
        self.values.push(value.into());
        self.clauses.push(format!("{column} = ({query} ?{})", self.values.len()));
    }

    /// At least one of the columns contains the text.
    pub(super) fn contains(&mut self, columns: &[&str], text: Option<&str>) {
        if let Some(text) = text {
            self.values.push(like(text).into());
            let n = self.values.len();
            let any: Vec<String> = columns.iter().map(|column| format!("{column} LIKE ?{n} ESCAPE '\\'")).collect();
            self.clauses.push(format!("({})", any.join(" OR ")));
        }
    }

    /// The column has one of the ids; no ids mean any.
    pub(super) fn ids(&mut self, column: &str, ids: &[JobId]) -> Result<(), Fault> {
        if !ids.is_empty() {
            let hex: Vec<String> = ids.iter().map(|id| id.to_string().replace('-', "")).collect();
            let place = self.bind(serde_json::to_string(&hex)?);
            self.clauses.push(format!("{column} IN (SELECT unhex(value) FROM json_each({place}))"));
        }
        Ok(())
    }

    /// The column has one of the numbers.
    pub(super) fn one_of_numbers(&mut self, column: &str, numbers: &[i64]) {
        if let [number] = numbers {
            return self.equal(column, Some(*number));
        }
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        self.clauses.push(format!("{column} IN ({})", numbers.join(", ")));
    }

    /// The column has the name of a pipeline that one of the patterns means; no patterns mean any.
    pub(super) fn within(&mut self, column: &str, patterns: &[PipelinePattern]) {
        if !patterns.is_empty() {
            let clause = within(column, patterns, |value| self.bind(value));
            self.clauses.push(clause);
        }
    }

    /// Each of the names that the column lists is one of a pipeline that one of the patterns means; no patterns mean any.
    pub(super) fn each_within(&mut self, column: &str, patterns: &[PipelinePattern]) {
        if !patterns.is_empty() {
            let clause = within("named.value", patterns, |value| self.bind(value));
            self.clauses.push(format!("NOT EXISTS (SELECT 1 FROM json_each({column}) named WHERE NOT {clause})"));
        }
    }

    /// A condition without a value.
    pub(super) fn holds(&mut self, clause: &str) {
        self.clauses.push(clause.to_owned());
    }

    /// Binds a value; says by what name.
    pub(super) fn bind(&mut self, value: impl Into<Value>) -> String {
        self.values.push(value.into());
        format!("?{}", self.values.len())
    }

    pub(super) fn values(&self) -> ParamsFromIter<&[Value]> {
        params_from_iter(self.values.as_slice())
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clauses.as_slice() {
            [] => Ok(()),
            clauses => write!(f, "WHERE {}", clauses.join(" AND ")),
        }
    }
}
