//! Looks whether everything that the configuration names is there and well: its commands, the store, its disk, the vault, the
//! spool.

use std::path::{Path, PathBuf};

use redrive_core::ids::PipelineName;
use redrive_core::payloads::PayloadReads;
use redrive_core::servers::{self, Judged, Verdict};
use redrive_store::StoreError;
use serde::Serialize;

use crate::alerts::SinkState;
use crate::config::{HandlerKind, PipelineConfig, Setting, isolation};
use crate::engine::Redrive;
use crate::error::Error;
use crate::handler::exec::Command;
use crate::vault::{Checked, VaultError, check};

/// Free disk space below which it warns.
const FREE_BYTES_MIN: u64 = 256 * 1024 * 1024;

/// What was found about one thing.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub check: &'static str,
    /// Whether it is well.
    pub ok: bool,
    /// Whether it works all the same, and will hurt.
    pub warning: bool,
    /// What was found.
    pub found: String,
    /// The error that stood in the way, if one did.
    #[serde(skip)]
    pub error: Option<Error>,
}

impl Finding {
    /// What was found, or what is wrong.
    pub fn new(check: &'static str, result: Result<String, String>) -> Self {
        let ok = result.is_ok();
        let (Ok(found) | Err(found)) = result;
        Self { check, ok, warning: false, found, error: None }
    }

    fn failed(check: &'static str, error: Error) -> Self {
        let found = error.to_string();
        Self { check, ok: false, warning: false, found, error: Some(error) }
    }

    const fn warning(check: &'static str, found: String) -> Self {
        Self { check, ok: true, warning: true, found, error: None }
    }
}

/// Looks at everything that the configuration names.
pub async fn examine(setting: &Setting) -> Vec<Finding> {
    let config = match &setting.config.path {
        Some(path) => match setting.config.pipeline.len() {
            1 => format!("{}, 1 pipeline", path.display()),
            pipelines => format!("{}, {pipelines} pipelines", path.display()),
        },
        None => "no redrive.toml, defaults hold".to_owned(),
    };
    let mut findings = vec![Finding::new("configuration", Ok(config))];
    findings.extend(setting.config.pipeline.iter().filter_map(|(name, pipeline)| look_at_handler(name, pipeline)));
    findings.extend(
        setting.config.pipeline.iter().filter_map(|(name, pipeline)| {
            Some(look_at_results_file(name, setting.config.beside(pipeline.out.clone()?)))
        }),
    );
    let watching = setting.watching();
    let broken = watching.sinks().iter().filter_map(|sink| Some((sink.name(), sink.broken()?)));
    findings.extend(broken.map(|(name, why)| Finding::new("alert sink", Err(format!("{name}: {why}")))));
    let redrive = match setting.redrive_existing().await {
        Ok(redrive) => {
            findings.extend(look_at_store(&redrive).await);
            findings.extend(look_at_spool(setting));
            findings.extend(look_at_sinks(&redrive, setting).await);
            Some(redrive)
        }
        Err(Error::Store(StoreError::Missing { place })) => {
            let found = format!("{place} is not there yet; the first run makes it");
            findings.push(Finding::new("store", Ok(found)));
            None
        }
        Err(error) => {
            findings.push(Finding::failed("store", error));
            None
        }
    };
    findings.extend(look_at_vault(setting, redrive).await);
    findings
}

/// The command of a pipeline, or the handler that is made of its sections, with all that they take from outside.
fn look_at_handler(name: &PipelineName, pipeline: &PipelineConfig) -> Option<Finding> {
    let about = |why: String| format!("pipeline {name}: {why}");
    let kind = match pipeline.handler {
        HandlerKind::Exec => {
            let [program, args @ ..] = pipeline.command.as_slice() else { return None };
            let mut command = Command::new(program, args.iter().map(Into::into));
            command.folder = pipeline.folder.clone();
            let found = command.check().map(|()| format!("{program} (pipeline {name})"));
            return Some(Finding::new("command", found.map_err(about)));
        }
        HandlerKind::Http => "http",
        HandlerKind::SubmitPoll => "submit-poll",
        HandlerKind::Remote => "remote",
    };
    let made = isolation::handler(pipeline).map(|_| format!("{kind} (pipeline {name})"));
    Some(Finding::new("handler", made.map_err(about)))
}

async fn look_at_store(redrive: &Redrive) -> Vec<Finding> {
    let store = &redrive.store;
    let health = match store.health().await {
        Ok(health) => health,
        Err(error) => return vec![Finding::failed("store", error.into())],
    };
    let mib = |bytes: u64| bytes / (1024 * 1024);
    let location = format!("{}, {} MiB", health.location, mib(health.size_bytes));
    let free = match health.free_bytes {
        Some(free) if free < FREE_BYTES_MIN => Err(format!("only {} MiB are free: make room", mib(free))),
        Some(free) => Ok(format!("{} MiB are free", mib(free))),
        None => Ok("not on a disk".to_owned()),
    };
    let whole = match health.problems.is_empty() {
        true => Ok("nothing is damaged".to_owned()),
        false => Err(health.problems.join("; ")),
    };
    let workers = store.list_workers().await.map(|workers| {
        let gone = workers.iter().filter(|worker| !worker.alive).count();
        let note = if gone > 0 { "; the next worker takes over from those that are gone" } else { "" };
        format!("{} at work, {gone} gone{note}", workers.len() - gone)
    });
    let mut findings = vec![
        Finding::new("store", Ok(location)),
        Finding::new("version", Ok(format!("schema {}, {}", health.schema_version, health.engine))),
    ];
    match &health.server {
        Some(facts) => findings.extend(servers::judge(facts).into_iter().map(of_server)),
        None => findings.extend([Finding::new("integrity", whole), Finding::new("disk", free)]),
    }
    findings.push(Finding::new("workers", workers.map_err(|error| error.to_string())));
    findings.extend(look_at_results(redrive).await);
    findings.extend(look_at_payload_reads(redrive).await);
    findings.extend(look_at_copies(redrive).await);
    findings
}

/// Results that the store keeps, and those that it had to remove. Nothing is said if there are none.
async fn look_at_results(redrive: &Redrive) -> Option<Finding> {
    let ledgers = match redrive.store.ledgers().await {
        Ok(ledgers) => ledgers,
        Err(error) => return Some(Finding::failed("results", error.into())),
    };
    let (kept, dropped) = ledgers
        .values()
        .fold((0, 0), |(kept, dropped), ledger| (kept + ledger.results.kept, dropped + ledger.results.dropped));
    match (kept, dropped) {
        (0, 0) => None,
        (kept, 0) => Some(Finding::new("results", Ok(format!("{kept} are kept")))),
        (kept, dropped) => {
            let found = format!(
                "{kept} are kept, {dropped} were removed before their time: raise kept_results_max, or name a file with out"
            );
            Some(Finding::warning("results", found))
        }
    }
}

/// Says how many reads found saved responses; nothing if there were no reads.
async fn look_at_payload_reads(redrive: &Redrive) -> Option<Finding> {
    match redrive.store.payload_reads().await {
        Ok(reads) if reads == PayloadReads::default() => None,
        Ok(reads) if reads.unreadable == 0 => Some(Finding::new("saved responses", Ok(reads.to_string()))),
        Ok(reads) => Some(Finding::warning("saved responses", format!("{reads}: `redrive payload verify` names them"))),
        Err(error) => Some(Finding::failed("saved responses", error.into())),
    }
}

/// Looks whether the file that results of a pipeline go to can be in its folder.
fn look_at_results_file(name: &PipelineName, file: PathBuf) -> Finding {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() && !found.permissions().readonly() => {
            Ok(format!("{} (pipeline {name})", file.display()))
        }
        Ok(_) => Err(format!("pipeline {name}: {} is no folder that can be written to", folder.display())),
        Err(error) => Err(format!("pipeline {name}: {}: {error}", folder.display())),
    };
    Finding::new("results file", found)
}

/// A copy that was begun and is not over, from which on nothing can be written here; nothing is said if there is none.
async fn look_at_copies(redrive: &Redrive) -> Option<Finding> {
    let copies = match redrive.store.copies().await {
        Ok(copies) => copies,
        Err(error) => return Some(Finding::failed("copy", error.into())),
    };
    copies.to.map(|note| {
        let found = format!(
            "it is being copied to {} since {}, and takes nothing until that is over: `redrive store copy` with the same stores goes on \
             with it, and with --abort instead of the second store gives it up",
            note.place, note.begun_at
        );
        Finding::warning("copy", found)
    })
}

fn of_server(judged: Judged) -> Finding {
    let Judged { check, verdict, found } = judged;
    match verdict {
        Verdict::Well => Finding::new(check, Ok(found)),
        Verdict::Warning => Finding::warning(check, found),
        Verdict::Bad => Finding::new(check, Err(found)),
    }
}

/// Tries the vault. One that is named is tried before there is a store, too.
async fn look_at_vault(setting: &Setting, redrive: Option<Redrive>) -> Option<Finding> {
    if redrive.is_none() && setting.config.vault.is_none() && !setting.location.is_shared() {
        return None;
    }
    let place = match setting.vault_place() {
        Ok(None) if setting.location.is_shared() => {
            return Some(Finding::warning("vault", format!("payloads are not kept: {}", setting.no_vault())));
        }
        Ok(place) => place?,
        Err(VaultError::Address { address, why }) => {
            return Some(Finding::new("vault", Err(format!("{address}: it cannot be opened: {why}"))));
        }
        Err(error) => return Some(Finding::failed("vault", error.into())),
    };
    if place.folder().is_some_and(|folder| !folder.exists()) {
        let found = format!("{} is not there yet; the first run makes it", place.shown());
        return Some(Finding::new("vault", Ok(found)));
    }
    let redrive = match redrive {
        Some(redrive) => redrive,
        None => match Redrive::open("memory:").await {
            Ok(redrive) => redrive,
            Err(error) => return Some(Finding::failed("vault", error)),
        },
    };
    Some(match check(&place, &redrive).await {
        Err(failed) => Finding::new("vault", Err(failed.to_string())),
        Ok(checked) => of_vault(&checked, setting.location.is_shared()),
    })
}

/// What a vault that can be written and read is worth to others.
fn of_vault(checked: &Checked, is_shared: bool) -> Finding {
    let Checked { address, endpoint, missing, unmarked, is_of_this_machine } = checked;
    let at = endpoint.as_ref().map(|endpoint| format!(" (at {endpoint})")).unwrap_or_default();
    let well = format!("{address}{at}: a payload was written, read and removed");
    match missing.filter(|_| is_shared) {
        Some(missing) => Finding::new(
            "vault",
            Err(format!(
                "{address}{at} does not have payload {missing}, which the store knows: other workers have another vault, or a folder of \
                 their own machine under this name"
            )),
        ),
        None if is_shared && !unmarked.is_empty() => Finding::new(
            "vault",
            Err(format!(
                "{address}{at} has no mark of the workers on {}: they have another vault, or a folder of their own machine under this name \
                 (or an older version, which leaves none)",
                unmarked.join(", ")
            )),
        ),
        None if is_shared && *is_of_this_machine => Finding::warning(
            "vault",
            format!(
                "{well}, but it is a folder of this machine, which workers on others do not see: name an S3 bucket, or a folder that all \
                 of them share"
            ),
        ),
        None => Finding::new("vault", Ok(well)),
    }
}

/// The sinks of alerts: those that fail, and how many are well.
async fn look_at_sinks(redrive: &Redrive, setting: &Setting) -> Vec<Finding> {
    let sinks = match redrive.list_alerts(&setting.watching()).await {
        Ok(list) => list.sinks,
        Err(error) => return vec![Finding::failed("alert sinks", error)],
    };
    let told = |sink: &SinkState| match sink.trouble() {
        Some(why) => {
            let since = sink.view.failing_since.map(|since| format!(" since {since}")).unwrap_or_default();
            Err(format!("{} cannot be told{since}: {why} ({} notices wait)", sink.view.name, sink.view.waiting))
        }
        None => Ok(match sink.view.told_at {
            Some(told_at) => format!("{} was last told something at {told_at}", sink.view.name),
            None => format!("{} was not told anything yet", sink.view.name),
        }),
    };
    // Those that cannot be made were told of already.
    let made = sinks.iter().filter(|sink| sink.broken.is_none());
    made.map(|sink| Finding::new("alert sink", told(sink))).collect()
}

/// What waits for a vault that is away; nothing is said of an empty spool.
fn look_at_spool(setting: &Setting) -> Option<Finding> {
    let spool = setting.spool()?;
    let found = match spool.waiting() {
        Ok(waiting) if waiting.payloads == 0 => return None,
        Ok(waiting) => Ok(format!(
            "{} payloads, {} KiB, wait in {} for the vault; the next worker brings them",
            waiting.payloads,
            waiting.bytes.div_ceil(1024),
            spool.folder().display()
        )),
        Err(error) => Err(format!("{}: {error}", spool.folder().display())),
    };
    Some(Finding::new("spool", found))
}
