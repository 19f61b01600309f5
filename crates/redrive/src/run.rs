//! The `Run` trait, and the list of operations without their types.

use std::borrow::Cow;
use std::pin::Pin;

use redrive_api::wire::{self, Fields};
use redrive_api::{Caller, List, Operation, Route};
use serde_json::Value;

use crate::access::{Authorized, authorize};
use crate::breakers;
use crate::engine::Redrive;
use crate::error::Error;

/// Runs one operation. Implementations write `async fn run`.
pub trait Run<O: Operation>: Listed<O> {
    /// Runs a request of a caller whose role and scope were checked.
    fn run(&self, request: O, caller: &Authorized<'_>) -> impl Future<Output = Result<O::Response, Error>> + Send;
}

/// Marks an operation that is in the list of its noun, so that `Run` alone does not compile:
///
/// ```compile_fail,E0277
/// # use redrive::api::{Operation, Route, Scope};
/// # use redrive_core::tokens::Role;
/// #[derive(serde::Serialize, serde::Deserialize, redrive_core::schemars::JsonSchema)]
/// #[schemars(crate = "redrive_core::schemars")]
/// struct Ping {}
/// # impl Operation for Ping {
/// #     type Response = ();
/// #     const ROUTE: Route = Route::get("/ping", Role::Viewer);
/// #     const EXAMPLE: &'static str = "{}";
/// #     fn scope(&self) -> Scope<'_> {
/// #         Scope::List(None)
/// #     }
/// # }
///
/// impl redrive::Run<Ping> for redrive::Redrive {
///     async fn run(&self, _: Ping, _: &redrive::access::Authorized<'_>) -> Result<(), redrive::Error> {
///         Ok(())
///     }
/// }
/// ```
///
/// It compiles with the mark:
///
/// ```
/// # use redrive::api::{Operation, Route, Scope};
/// # use redrive_core::tokens::Role;
/// # #[derive(serde::Serialize, serde::Deserialize, redrive_core::schemars::JsonSchema)]
/// # #[schemars(crate = "redrive_core::schemars")]
/// # struct Ping {}
/// # impl Operation for Ping {
/// #     type Response = ();
/// #     const ROUTE: Route = Route::get("/ping", Role::Viewer);
/// #     const EXAMPLE: &'static str = "{}";
/// #     fn scope(&self) -> Scope<'_> {
/// #         Scope::List(None)
/// #     }
/// # }
/// # impl redrive::Run<Ping> for redrive::Redrive {
/// #     async fn run(&self, _: Ping, _: &redrive::access::Authorized<'_>) -> Result<(), redrive::Error> {
/// #         Ok(())
/// #     }
/// # }
/// impl redrive::Listed<Ping> for redrive::Redrive {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{O}` is in no `list_operations![…]`",
    note = "add it to the list of its noun"
)]
pub trait Listed<O> {}

/// Declares `OPERATIONS`, the list of a noun.
macro_rules! list_operations {
    ($($operation:ty),* $(,)?) => {
        $(impl $crate::run::Listed<$operation> for $crate::engine::Redrive {})*
        /// The operations on this noun.
        pub(crate) const OPERATIONS: &[$crate::run::Entry] = &[$($crate::run::Entry::new::<$operation>()),*];
    };
}
pub(crate) use list_operations;

/// Returns every operation. The router, the OpenAPI document, the commands and the access tests read this list.
pub fn operations() -> impl Iterator<Item = &'static Entry> {
    [breakers::OPERATIONS].into_iter().flatten()
}

impl Redrive {
    /// Checks and runs a request.
    pub async fn ask<O: Operation>(&self, request: O, caller: &Caller) -> Result<O::Response, Error>
    where
        Self: Run<O>,
    {
        let caller = authorize(O::ROUTE.role, request.scope(), caller)?;
        self.run(request, &caller).await
    }

    /// Requests all items of a list.
    pub async fn ask_all<L: List>(&self, request: L, caller: &Caller) -> Result<Vec<L::Item>, Error>
    where
        Self: Run<L>,
    {
        Ok(self.ask(request.on_one_page(), caller).await?.items)
    }
}

/// Response as JSON.
type Response<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, Error>> + Send + 'a>>;

/// An operation without its type. All generic code is instantiated here, once per operation, so that the server has none.
pub struct Entry {
    /// Method, path and least role.
    pub route: Route,
    /// A request in JSON.
    pub example: &'static str,
    /// Returns the name of the type, for example `HoldBreaker`.
    pub name: fn() -> Cow<'static, str>,
    /// Returns the schema of the request, without references.
    pub schema: fn() -> Value,
    /// Returns the schema of the response, and those that it refers to by name.
    pub response: fn() -> (Value, Fields),
    /// Decodes, checks and runs a request, and returns the response as JSON.
    pub run: for<'a> fn(&'a Redrive, Fields, &'a Caller) -> Response<'a>,
}

impl Entry {
    /// Returns the entry of an operation.
    pub const fn new<O: Operation>() -> Self
    where
        Redrive: Run<O>,
    {
        Self {
            route: O::ROUTE,
            example: O::EXAMPLE,
            name: O::schema_name,
            schema: wire::schema::<O>,
            response: wire::response_schema::<O>,
            run: |redrive, fields, caller| {
                Box::pin(async move {
                    let response = redrive.ask(wire::decode::<O>(fields)?, caller).await?;
                    serde_json::to_vec(&response).map_err(|error| Error::Internal(format!("no JSON: {error}")))
                })
            },
        }
    }
}
