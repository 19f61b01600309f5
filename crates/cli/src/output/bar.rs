//! The bar that is on the terminal, if one is: whatever else is printed, results, what is said and the log, has it step aside, so
//! that no line is torn.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;

/// The bar that is shown.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

thread_local! {
    /// Whether this thread had the bar step aside already.
    static ASIDE: Cell<bool> = const { Cell::new(false) };
}

/// Notes that a bar is on the terminal from now on.
pub fn shown(bar: &ProgressBar) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
}

/// Takes the bar away.
pub fn gone() {
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// Prints something while the bar is aside.
pub fn beside<T>(print: impl FnOnce() -> T) -> T {
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match bar {
        Some(bar) if !ASIDE.get() => {
            ASIDE.set(true);
            let printed = bar.suspend(print);
            ASIDE.set(false);
            printed
        }
        _ => print(),
    }
}
