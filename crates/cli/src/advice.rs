//! The way out of an error of the store: what to type, or to do, about it. The store itself names only places.

use redrive::StoreError;
use redrive::vault::VaultError;

/// What is said after an error, if the store is behind it; begins with a semicolon or a colon.
pub fn of(error: &anyhow::Error) -> &'static str {
    error.chain().find_map(store_error).map_or("", way_out)
}

/// An error of the store with its way out.
pub fn told(error: &StoreError) -> String {
    format!("{error}{}", way_out(error))
}

/// Errors that pass the store's on are not causes of it: they are looked into.
fn store_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e StoreError> {
    let of_vault = |vault: &'e VaultError| match vault {
        VaultError::Store(error) => Some(error),
        _ => None,
    };
    if let Some(error) = cause.downcast_ref::<StoreError>() {
        return Some(error);
    }
    match cause.downcast_ref::<redrive::Error>() {
        Some(redrive::Error::Store(error)) => Some(error),
        Some(redrive::Error::Vault(vault)) => of_vault(vault),
        _ => cause.downcast_ref::<VaultError>().and_then(of_vault),
    }
}

fn way_out(error: &StoreError) -> &'static str {
    match error {
        StoreError::QueueFull { .. } => "; work on them, or raise max_queued",
        StoreError::LettersFull { .. } => ": replay or discard some, or raise letters_max",
        StoreError::Missing { .. } => ": `redrive run` or `redrive push` makes one; name another with --store",
        StoreError::NewerSchema { .. } => ": upgrade redrive",
        StoreError::NotAStore { .. } => "; name another file with --store",
        StoreError::Busy { .. } => ": try again, or find it with `fuser`",
        StoreError::Unavailable { .. } => {
            "; look after it and run the same command again, nothing that was acknowledged is lost"
        }
        StoreError::Unanswered { .. } => "; look after it and run the same command again, no task is taken in twice",
        StoreError::DiskFull { .. } => {
            "; make room and run the same command again, nothing that was acknowledged is lost"
        }
        StoreError::NoRoom { .. } => ": make room first",
        StoreError::Gone { .. } => ": put it back if you can, then run the same command again",
        StoreError::BeingCopied { .. } => {
            "; `redrive store copy` with the same stores goes on with it, and with --abort instead of the second store gives it up"
        }
        StoreError::Unfinished { .. } => {
            "; `redrive store copy` with the same stores goes on with it, or remove it and take another"
        }
        StoreError::NotEmpty { .. } => ": name a new one",
        StoreError::Leased { .. } => ": stop the workers first",
        StoreError::Conflict { .. } => ": try again",
        StoreError::TooBroad { .. } => ": narrow it down, with --since or --pipeline",
        StoreError::NoCause(_) => ": `redrive cause list --all` shows which there are",
        StoreError::NoReplay(_) => ": `redrive replay list` shows which there are",
        StoreError::CannotMigrate { why, .. } => way_out(why),
        StoreError::Emptied { .. }
        | StoreError::Unsafe { .. }
        | StoreError::Unsupported { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Refused { .. }
        | StoreError::AmbiguousCause(_)
        | StoreError::InvalidLocation { .. }
        | StoreError::InvalidAddress { .. }
        | StoreError::InvalidCursor(_)
        | StoreError::IllegalMove(_)
        | StoreError::Closed
        | StoreError::Database { .. } => "",
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn the_way_out_is_told_wherever_the_error_comes_from() {
        let missing = || StoreError::Missing { place: "a.db".into() };
        let passed_on = [
            anyhow::Error::from(missing()),
            anyhow::Error::from(redrive::Error::from(missing())),
            anyhow::Error::from(VaultError::from(missing())),
            Err::<(), _>(redrive::Error::from(missing())).context("reading letters").expect_err("an error"),
        ];
        for error in passed_on {
            assert!(of(&error).contains("`redrive push` makes one"), "{error:#}");
        }
        assert_eq!(of(&anyhow::anyhow!("something else")), "");
    }
}
