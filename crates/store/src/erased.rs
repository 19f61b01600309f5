//! Type erasure for the results of store verbs.
//!
//! Each verb is a closure. If the writer and the readers were generic over the closure, they would be compiled once per verb. Instead the
//! closure is boxed and its result is sent as [`Erased`]; the caller restores the type.

use std::any::Any;

/// A value of any type.
pub(crate) type Erased = Box<dyn Any + Send>;

/// Erases the type of a value.
pub(crate) fn erase<T: Send + 'static>(value: T) -> Erased {
    Box::new(value)
}

/// Returns the value that was erased.
pub(crate) fn restore<T: 'static>(value: Erased) -> T {
    *value.downcast().expect("a call is answered with the type that its closure returns")
}
