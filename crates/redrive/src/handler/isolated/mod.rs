//! A job in a process of its own, for handlers that otherwise run inside the worker.
//!
//! When a worker dies, the jobs that it ran are suspects: any of them may have killed it. A suspect runs again in a process of
//! its own, with a memory limit, so that only the death of that process counts against it, and killing the worker blames nobody.
//!
//! The process is started by a command that the embedder hands over with [`Pipeline::isolate_with`]; its `main` calls
//! [`serve`]. It gets the job and the handler's definition, secrets included, by a pipe: never as arguments or in its
//! environment. It opens neither the store nor the vault: what it wants noted or kept it asks its parent for.
//!
//! - `parent`: starts the process, answers it, and judges its end
//! - `child`: what runs in the process
//! - `wire`: what the two say to each other
//!
//! [`Pipeline::isolate_with`]: crate::Pipeline::isolate_with

mod child;
mod parent;
mod wire;

pub(crate) use self::child::Parent;
pub use self::child::serve;
pub(crate) use self::parent::Isolated;

/// The most memory that an isolated job may use unless something else is said, in bytes.
pub const MEMORY_BYTES_MAX: u64 = 1 << 30;
