//! Values whose type only the caller knows.
//!
//! Every verb of a store is a closure of its own. If the writer and the readers were generic over these closures, they would be compiled
//! anew for each verb. A closure is boxed instead, its value travels as [`Erased`], and the caller takes the value out again.

use std::any::Any;

/// A value of any type.
pub(crate) type Erased = Box<dyn Any + Send>;

/// Forgets the type of a value.
pub(crate) fn erase<T: Send + 'static>(value: T) -> Erased {
    Box::new(value)
}

/// Returns the value that was erased.
pub(crate) fn restore<T: 'static>(value: Erased) -> T {
    *value.downcast().expect("a call is answered with the type that its closure returns")
}
