//! The words that the rules know. They are words of failures in general: nothing in here comes from one site or
//! program.

/// Whether a table has a word, however it is capitalised.
pub(super) fn has(table: &[&str], word: &str) -> bool {
    table.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The number after these means something. They may be the end of a longer name: `WinError`, `exit_code`.
pub(super) const CODES: &[&str] = &["errno", "error", "code", "status", "signal", "exit", "sqlstate", "hresult"];

/// Units of time and size. A quantity is masked with its unit, because `850 ms` and `1.2 s` are the same thing.
#[rustfmt::skip]
pub(super) const UNITS: &[&str] = &[
    "ns", "us", "usec", "ms", "msec", "millis", "s", "sec", "secs", "m", "min", "mins", "h", "hour", "hours", "d",
    "day", "days", "microseconds", "millisecond", "milliseconds", "second", "seconds", "minute", "minutes", "b",
    "byte", "bytes", "k", "kb", "kib", "mb", "mib", "g", "gb", "gib", "tb", "tib", "hz", "mhz", "ghz",
];

/// Belong to the number after them.
#[rustfmt::skip]
pub(super) const CALENDAR: &[&str] = &[
    "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep",
    "Oct", "Nov", "Dec",
];

/// Belong to the number before them.
#[rustfmt::skip]
pub(super) const CLOCK: &[&str] = &[
    "AM", "PM", "UTC", "GMT", "CET", "CEST", "BST", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT", "JST",
];

/// Last labels that make a dotted name a host rather than an identifier. Those that are also file extensions or common
/// names in code are left out.
#[rustfmt::skip]
pub(super) const TOP_LEVELS: &[&str] = &[
    "com", "net", "org", "edu", "gov", "mil", "io", "dev", "biz", "example", "invalid", "local", "localdomain",
    "internal", "lan", "corp", "arpa", "ar", "at", "au", "be", "br", "ca", "ch", "cn", "cz", "de", "dk", "es", "eu",
    "fi", "fr", "gr", "hk", "it", "jp", "kr", "mx", "nl", "pl", "pt", "ru", "se", "tr", "tw", "ua", "uk", "us",
];

/// Names that are spelled with digits: a character set or an algorithm is not one of many.
#[rustfmt::skip]
pub(super) const SPELLED_WITH_DIGITS: &[&str] = &[
    "utf", "latin", "iso-8859", "cp125", "windows-125", "ipv", "x86", "sha", "md5", "base64",
];

/// Tags that make angle brackets a snippet of a page.
#[rustfmt::skip]
pub(super) const TAGS: &[&str] = &[
    "head", "title", "meta", "link", "body", "div", "span", "p", "a", "h1", "h2", "h3", "h4", "h5", "h6", "button",
    "iframe", "img", "script", "style", "form", "input", "table", "tr", "td", "th", "ul", "ol", "li", "dl", "dt", "dd",
    "section", "label", "select", "svg", "center",
];

/// What stands in quotes after these is a name.
#[rustfmt::skip]
pub(super) const NAMED_AFTER: &[&str] = &[
    "argument", "attribute", "class", "column", "command", "constraint", "cookie", "element", "field", "function",
    "header", "index", "invoke", "key", "keyword", "method", "module", "name", "named", "of", "option", "parameter",
    "properties", "property", "reading", "relation", "selector", "setting", "table", "tag", "type", "until",
    "variable",
];

/// Parts of the names of errors that say which name is missing.
#[rustfmt::skip]
pub(super) const MISSING: &[&str] = &[
    "KeyError", "KeyNotFound", "AttributeError", "NameError", "LookupError", "MissingField", "FieldNotFound",
    "ColumnNotFound", "NoSuchElement", "NoSuchKey", "SelectorNotFound",
];

/// A word after these is a name, whatever digits it has.
pub(super) const NAMES: &[&str] = &["attribute", "column", "field", "key", "property", "selector", "variable"];

/// A word before these is a name.
pub(super) const NAME_GOES_ON: &[&str] = &[" is not defined", " is not a function", " is undefined"];

/// What stands in quotes before these is a name.
#[rustfmt::skip]
pub(super) const NAMED_BEFORE: &[&str] = &[
    "object", "codec", "attribute", "property", "field", "column", "parameter", "argument", "header", "is a required",
];

/// What stands in quotes after these is a value: a piece of data, or one of the many things that data is about.
#[rustfmt::skip]
pub(super) const VALUED_AFTER: &[&str] = &[
    "article", "author", "book", "brand", "byte", "category", "character", "city", "country", "customer", "data", "entity",
    "entry", "file", "host", "input", "item", "near", "product", "seller", "string", "title", "token", "url", "user",
    "value",
];

/// Types are few, so they mean something wherever they are quoted.
#[rustfmt::skip]
pub(super) const TYPES: &[&str] = &[
    "NoneType", "array", "bool", "boolean", "bytes", "dict", "float", "int", "integer", "list", "null", "number",
    "object", "str", "string", "tuple", "undefined",
];

/// Keys of an object whose values say something.
#[rustfmt::skip]
pub(super) const TELLING_KEYS: &[&str] = &[
    "code", "description", "detail", "error", "errors", "field", "message", "msg", "param", "parameter", "property",
    "reason", "selector", "status", "type",
];

/// Parts of the names of functions that look for something on a page.
pub(super) const FINDERS: &[&str] = &["locator", "elector", "xpath", "query", "find", "css", "frame"];

/// `Invalid date: …` and the like announce a value: one of these, and then one of [`KINDS`].
#[rustfmt::skip]
pub(super) const WRONG: &[&str] = &[
    "bad", "convert", "illegal", "invalid", "malformed", "parse", "parsing", "unexpected", "unknown", "unrecognised",
    "unrecognized", "unsupported",
];

/// Kinds of values.
#[rustfmt::skip]
pub(super) const KINDS: &[&str] = &[
    "address", "date", "datetime", "decimal", "email", "float", "format", "int", "integer", "literal", "number",
    "price", "string", "time", "timestamp", "uri", "url", "value",
];

/// What validators say about a value that stands before it.
#[rustfmt::skip]
pub(super) const COMPLAINTS: &[&str] = &[
    " is not of type", " is not one of", " does not match ", " is too short", " is too long", " is less than",
    " is greater than", " has non-unique", " is not valid under", " is not a multiple", " is not a '", " is not a \"",
];
