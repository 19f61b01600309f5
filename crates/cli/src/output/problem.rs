//! The engine's errors in words for who typed something: what could be typed instead.

use anyhow::{Error, anyhow};
use redrive::config::ConfigError;
use redrive::copies::CopyError;
use redrive::dead::{DeadError, NotDead};
use redrive::jobs::JobError;
use redrive::pipelines::PipelineError;
use redrive::replays::ReplayError;
use redrive::tasks::TasksError;
use redrive::{Error as EngineError, ErrorKind};
use redrive_core::copies::CopyRefused;
use redrive_core::ids::PipelineName;

use super::typed::in_text;
use crate::advice;
use crate::setting::Setting;

/// What an error says, and whether it is the user's own mistake.
pub fn explain(error: &Error) -> (String, bool) {
    let (said, mistaken) = if let Some(error) = error.downcast_ref::<ConfigError>() {
        (of_config(error), !matches!(error, ConfigError::Unreadable { .. }))
    } else if let Some(error) = error.downcast_ref::<ReplayError>() {
        (of_replay(error), error.kind() == ErrorKind::Invalid)
    } else if let Some(error) = error.downcast_ref::<EngineError>() {
        (of_engine(error), error.kind() == ErrorKind::Invalid)
    } else if let Some(error) = error.downcast_ref::<TasksError>() {
        (of_tasks(error), error.kind() == ErrorKind::Invalid)
    } else {
        (None, false)
    };
    let said = said.unwrap_or_else(|| format!("{error:#}{}", advice::of(error)));
    (in_text(&said).into_owned(), mistaken)
}

/// An error about something that is not in the store, with the store in which it was looked for.
pub fn within(setting: &Setting, error: EngineError) -> Error {
    match &error {
        EngineError::Job(JobError::Unknown(_) | JobError::NoNumber(_) | JobError::NoEnding(_))
        | EngineError::Dead(DeadError::NotDead(NotDead { state: None, .. })) => {
            anyhow!("{error} in {}", setting.place())
        }
        _ => error.into(),
    }
}

fn of_engine(error: &EngineError) -> Option<String> {
    match error {
        EngineError::Config(error) => of_config(error),
        EngineError::Replay(error) => of_replay(error),
        EngineError::Tasks(error) => of_tasks(error),
        EngineError::NothingChosen => {
            Some("say which dead letters: --cause, filters such as --reason or --pipeline, or their ids".to_owned())
        }
        EngineError::Pipeline(PipelineError::Paused { name, .. }) => {
            Some(format!("{error}; `redrive pipeline resume {name}` lets it go on"))
        }
        EngineError::Copy(error) => of_copy(error),
        EngineError::Server { code, message, .. } => Some(of_server(code, message)),
        EngineError::ChosenTwice => Some("give ids or filters, not both".to_owned()),
        _ => None,
    }
}

/// What a server said, with the way out.
fn of_server(code: &str, message: &str) -> String {
    let way_out = match code {
        "unauthenticated" => {
            "; set REDRIVE_TOKEN, or name a file with --token-file: `redrive token create` makes a new one where the store is"
        }
        "role_required" | "foreign_pipeline" | "payloads_refused" => {
            ": use another token, `redrive token list` shows which there are"
        }
        "pipeline_required" => ", with --pipeline",
        "other_version" => ": bring the older one forward",
        "unreadable" => ": bring the older one forward, or report it",
        "not_own" => "; if it is the right one, name the token with REDRIVE_TOKEN or --token-file",
        "not_redrive" | "redirected" => ": look at --server, or REDRIVE_SERVER",
        "tls" => return message.replace("`ca`", "REDRIVE_CA"),
        _ => "",
    };
    format!("{message}{way_out}")
}

fn of_copy(error: &CopyError) -> Option<String> {
    let way_out = match error {
        CopyError::AtWork { .. } => "stop them first, then run the same command again",
        CopyError::NoVault { .. } => {
            "name one that every machine reaches with --vault: s3://bucket/prefix, or a shared folder"
        }
        CopyError::OnTheirWay { .. } => {
            "let `redrive work` run there until they have arrived, or go on without them with --allow-missing"
        }
        CopyError::WrongVault { .. } => {
            "name the right one with --from-vault, or go on without payloads with --allow-missing"
        }
        CopyError::Refused(CopyRefused::Elsewhere { .. }) => {
            "go on with that one, or give it up with --abort instead of the second store"
        }
        CopyError::Refused(CopyRefused::Released { .. }) => "remove it and take a new one",
        CopyError::Refused(CopyRefused::OfAnother { .. }) => "take a new one",
        CopyError::Refused(CopyRefused::OtherVault { .. }) => "name the same one with --vault",
        CopyError::Refused(CopyRefused::Itself(_) | CopyRefused::TargetIsCopied { .. }) => return None,
        CopyError::Differs { .. } => "nothing was finished; please report it",
    };
    Some(format!("{error}: {way_out}"))
}

fn of_tasks(error: &TasksError) -> Option<String> {
    match error {
        TasksError::Full { source, .. } => {
            Some(format!("{error}; the same command goes on later: {}", advice::told(source)))
        }
        TasksError::Changed { .. } => {
            Some(format!("{error}; nothing was enqueued: --yes runs them, once; --dry-run shows them"))
        }
        _ => None,
    }
}

fn of_config(error: &ConfigError) -> Option<String> {
    let listed = |names: &[PipelineName]| names.iter().map(PipelineName::as_str).collect::<Vec<_>>().join(", ");
    Some(match error {
        ConfigError::SeveralNamed => "name one pipeline with --pipeline, not several".to_owned(),
        ConfigError::NoneNamed { known } => format!("name one of the pipelines with --pipeline: {}", listed(known)),
        ConfigError::NothingToRun => {
            "nothing to run: give a command after --, or define a pipeline in redrive.toml (`redrive init` writes one)"
                .to_owned()
        }
        ConfigError::CommandOfOthers { .. } => {
            format!("{error}: repeat it after --, or run it as it is with --trust-stored")
        }
        ConfigError::CommandHasSecrets { .. } => format!("{error}: repeat it after --"),
        ConfigError::SeveralCommands { .. } => {
            format!("{error}: choose letters of one of them, or give the command for all of them after -- (`-- CMD`)")
        }
        ConfigError::NoCommand { pipeline, known } => {
            let known = if known.is_empty() { String::new() } else { format!(" (it has: {})", listed(known)) };
            format!("pipeline {pipeline} has no command: give one after --, or define it in redrive.toml{known}")
        }
        _ => return None,
    })
}

fn of_replay(error: &ReplayError) -> Option<String> {
    match error {
        ReplayError::NoEnding(_) => Some(format!("{error}: `redrive replay list` shows which there are")),
        ReplayError::Unknown(id) => Some(format!("no replay {id}: `redrive replay list` shows which there are")),
        ReplayError::SavedUnusable { pipeline, edited } => {
            let why = match edited {
                true => "its saved pages are those of the inputs as they were: --set needs --refetch",
                false => "an http handler can, and a command that declares `pure = true` (or --pure)",
            };
            Some(format!("pipeline {pipeline} cannot work from saved payloads: {why}"))
        }
        ReplayError::NoTry | ReplayError::TryTooOld(_) => {
            Some(format!("{error}: `redrive replay try` with the same choice tries them"))
        }
        ReplayError::TriedOtherwise(_) => Some(format!("{error}: `redrive replay try` tries them again")),
        _ => None,
    }
}
