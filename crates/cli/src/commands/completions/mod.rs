//! `redrive completions`: a completion script for a shell. What is fixed is in it; pipelines, causes and rounds it asks for as they are, by
//! `redrive complete`.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;
use redrive::causes::CausesAsked;
use redrive_core::ids::PipelineName;

use crate::args::{Cli, Global, Known};
use crate::exit::Exit;
use crate::output::foreign::cut;
use crate::output::print::out;
use crate::setting;

/// Causes and rounds that are proposed.
const CAUSES_MAX: u32 = 50;
const ROUNDS_MAX: u32 = 50;

/// The widest title of a cause beside its id.
const TITLE_WIDTH: usize = 60;

pub fn run(shell: Shell) -> Result<Exit> {
    std::io::stdout().write_all(script(shell).as_bytes())?;
    Ok(Exit::Ok)
}

fn script(shell: Shell) -> String {
    let mut fixed = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "redrive", &mut fixed);
    let fixed = String::from_utf8_lossy(&fixed).into_owned();
    match shell {
        Shell::Bash => fixed + include_str!("values.bash"),
        Shell::Fish => fixed + include_str!("values.fish"),
        Shell::Zsh => zsh(&fixed),
        _ => fixed,
    }
}

/// The script for zsh, which names what completes each value: for those of which we know more it names our own functions.
fn zsh(fixed: &str) -> String {
    let (first, rest) = fixed.split_once('\n').unwrap_or((fixed, ""));
    let asks = |line: &str| {
        let is = |parts: &[&str]| parts.iter().any(|part| line.contains(part));
        let function = match () {
            () if is(&["'--pipeline=", "'*--pipeline=", "'-p+[", "'*-p+[", "':name -- The pipeline"]) => {
                "_redrive_pipelines"
            }
            () if is(&["'--round="]) => "_redrive_rounds",
            () if is(&[
                "'--cause=",
                "'*--cause=",
                "':id -- The cause",
                "':from -- The cause",
                "':into -- The cause",
            ]) =>
            {
                "_redrive_causes"
            }
            () => return line.to_owned(),
        };
        line.replace(":_default'", &format!(":{function}'"))
    };
    let rest: String = rest.lines().map(|line| asks(line) + "\n").collect();
    format!("{first}\n\n{}\n{rest}", include_str!("values.zsh"))
}

/// Prints what there is, one per line, for a script. Whatever stands in the way, nothing is said: somebody is typing.
pub async fn known(global: &Global, known: Known) -> Result<Exit> {
    let lines = match known {
        Known::Pipelines => pipelines(global).await,
        Known::Causes => causes(global).await,
        Known::Rounds => rounds(global).await,
    };
    lines.unwrap_or_default().iter().try_for_each(|line| out!("{line}"))?;
    Ok(Exit::Ok)
}

async fn pipelines(global: &Global) -> Result<Vec<String>> {
    let setting = setting::load(global)?;
    let mut names: Vec<PipelineName> = setting.config.pipeline.keys().cloned().collect();
    if let Ok(redrive) = setting.desk().await {
        names.extend(redrive.ledgers().await?.into_keys());
    }
    names.sort();
    names.dedup();
    Ok(names.iter().map(ToString::to_string).collect())
}

async fn rounds(global: &Global) -> Result<Vec<String>> {
    let redrive = setting::load(global)?.desk().await?;
    let rounds = redrive.rounds(None, ROUNDS_MAX).await?;
    let names: BTreeSet<_> = rounds.into_iter().map(|round| round.round.to_string()).collect();
    Ok(names.into_iter().collect())
}

async fn causes(global: &Global) -> Result<Vec<String>> {
    let redrive = setting::load(global)?.desk().await?;
    let asked = CausesAsked { limit: CAUSES_MAX, ..CausesAsked::default() };
    let causes = redrive.list_causes(asked).await?.causes;
    Ok(causes.iter().map(|cause| format!("{}\t{}", cause.id, cut(&cause.title, TITLE_WIDTH))).collect())
}
