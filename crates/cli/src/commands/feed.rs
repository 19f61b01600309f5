//! What `run` and `push` say of the file they feed.

use std::io;
use std::path::Path;

use anyhow::Result;
use redrive::Redrive;
use redrive::tasks::{BrokenLine, Tasks};

use crate::args::TaskArgs;

/// Broken lines that are shown; the rest is only counted.
const BROKEN_SHOWN: u64 = 20;

/// Opens the file that was named; `-` is standard input.
pub fn open(args: &TaskArgs) -> Result<Tasks> {
    let format = args.format.of_tasks();
    Ok(match args.file == Path::new("-") {
        true => Tasks::copied("standard input", io::stdin().lock(), format)?,
        false => Tasks::open(&args.file, format)?,
    })
}

/// Refuses the file if it has broken lines, where that was asked for.
pub fn check(args: &TaskArgs, tasks: &Tasks, redrive: &Redrive) -> Result<()> {
    if args.strict {
        tasks.check(redrive)?;
    }
    Ok(())
}

/// Says which lines are broken, but not too many of them.
pub fn say_broken<S: Fn(&str)>(tasks: &Tasks, say: S) -> impl FnMut(BrokenLine) + use<S> {
    let (place, mut shown) = (tasks.name().to_owned(), 0);
    move |line| {
        shown += 1;
        if shown <= BROKEN_SHOWN {
            say(&format!("{place}:{line}"));
        }
    }
}

/// How many broken lines were not said.
pub fn unsaid(broken: u64) -> Option<String> {
    (broken > BROKEN_SHOWN).then(|| format!("and {} more broken lines", broken - BROKEN_SHOWN))
}
