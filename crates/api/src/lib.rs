//! One request type and one response type per operation, without logic.
//!
//! A request is written once. The API field, the flag, the form field and their help text are one line with one doc comment.
//!
//! | module | what it holds |
//! |---|---|
//! | `operation` | the trait, routes, scopes, callers |
//! | [`wire`] | path, query, form and JSON body of a request |
//! | `page` | lists: `Paging` in a request, `Page` in a response |
//! | `types` | limits, deadlines and texts with one form for flags, fields and forms |
//! | [`breakers`] | the operations, one module per noun |

pub mod breakers;
mod operation;
mod page;
mod types;
pub mod wire;

pub use operation::{Caller, Method, Operation, Route, Scope};
pub use page::{List, Page, Paging, Row};
pub use types::{Deadline, Limit, Note, Target};
pub use wire::RequestError;
