//! From a filter to the `WHERE` of a statement. Values are always bound, never written into the text.

use std::fmt;

use redrive_core::dead::LetterSort;
use redrive_core::ids::JobId;
use redrive_core::tokens::PipelinePattern;

use super::sql::{Bind, Value};
use crate::lists::{like, within};

/// Conditions that must all hold.
#[derive(Default)]
pub(super) struct Conditions {
    clauses: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// Binds a value; says by what name.
    pub(super) fn bind<T: Bind>(&mut self, value: T) -> String {
        self.values.push(Value::new(&value));
        format!("${}", self.values.len())
    }

    fn compare<T: Bind>(&mut self, column: &str, operator: &str, value: Option<T>) {
        if let Some(value) = value {
            let place = self.bind(value);
            self.clauses.push(format!("{column} {operator} {place}"));
        }
    }

    pub(super) fn equal<T: Bind>(&mut self, column: &str, value: Option<T>) {
        self.compare(column, "=", value);
    }

    pub(super) fn at_least<T: Bind>(&mut self, column: &str, value: Option<T>) {
        self.compare(column, ">=", value);
    }

    pub(super) fn less_than<T: Bind>(&mut self, column: &str, value: Option<T>) {
        self.compare(column, "<", value);
    }

    pub(super) fn more_than<T: Bind>(&mut self, column: &str, value: Option<T>) {
        self.compare(column, ">", value);
    }

    /// The column has one of the values; no values mean any.
    pub(super) fn one_of(&mut self, column: &str, values: impl Iterator<Item = &'static str>) {
        let values: Vec<&str> = values.collect();
        if !values.is_empty() {
            let place = self.bind(values);
            self.clauses.push(format!("{column} = ANY({place})"));
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
        let (first, second) = (self.bind(values.0), self.bind(values.1));
        self.clauses.push(format!("({}, {}) {operator} ({first}, {second})", columns.0, columns.1));
    }

    /// At least one of the columns contains the text, in whatever case.
    pub(super) fn contains(&mut self, columns: &[&str], text: Option<&str>) {
        if let Some(text) = text {
            let place = self.bind(like(text));
            let any: Vec<String> = columns.iter().map(|column| format!("{column} ILIKE {place} ESCAPE '\\'")).collect();
            self.clauses.push(format!("({})", any.join(" OR ")));
        }
    }

    /// The column has one of the ids; no ids mean any.
    pub(super) fn ids(&mut self, column: &str, ids: &[JobId]) {
        if !ids.is_empty() {
            let place = self.bind(ids);
            self.clauses.push(format!("{column} = ANY({place})"));
        }
    }

    /// The column has one of the numbers. Of a single one the rows come in the order of an index that begins with it.
    pub(super) fn one_of_numbers(&mut self, column: &str, numbers: &[i64]) {
        if let [number] = numbers {
            return self.equal(column, Some(*number));
        }
        let place = self.bind(numbers);
        self.clauses.push(format!("{column} = ANY({place})"));
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
            self.clauses.push(format!(
                "NOT EXISTS (SELECT 1 FROM json_array_elements_text({column}::json) named (value) WHERE NOT {clause})"
            ));
        }
    }

    /// A condition that is written out.
    pub(super) fn holds(&mut self, clause: &str) {
        self.clauses.push(clause.to_owned());
    }

    /// The values, in their order.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
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
