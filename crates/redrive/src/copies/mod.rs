//! Copying a whole store to another, with its payloads: `Setting::copy_store`.
//!
//! - `rest`: nobody works on the source, and nobody can begin to
//! - `rows`: what comes over, piece by piece, going on where it was
//! - `payloads`: bytes of the vault, checked on their way
//!
//! Definitions and commands that a store remembers come over as what was; what runs is decided by the configuration, and by the
//! commands that a user ran on this machine.

mod payloads;
mod rest;
mod rows;

use redrive_core::actors::Actor;
use redrive_core::copies::{CopyNote, CopyRefused, CopySide, CopyStep, next};
use redrive_core::ids::CopyId;
use redrive_core::time::Timestamp;
use redrive_store::contract::{EndCopy, TakeCounters};
use redrive_store::{Location, Options, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::rows::Copying;
use crate::Redrive;
use crate::config::{ConfigError, Setting};
use crate::error::{Error, ErrorKind};
use crate::vault::Vault;

/// Why a store is not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// What is noted on both sides does not allow it.
    #[error(transparent)]
    Refused(#[from] CopyRefused),
    /// Somebody works on one of the stores.
    #[error("{place} is worked on by {}", .workers.join(", "))]
    AtWork {
        /// Which store.
        place: String,
        /// Who.
        workers: Vec<String>,
    },
    /// The source has payloads, and nobody said where they are to come to.
    #[error("{from} has {payloads} payloads, and {to} has no vault for them")]
    NoVault {
        /// The source.
        from: String,
        /// The target.
        to: String,
        /// How many payloads there are.
        payloads: u64,
    },
    /// The source has payloads, and they are not where they were looked for.
    #[error("{from} has {payloads} payloads, and not one of them is in {vault}")]
    WrongVault {
        /// The source.
        from: String,
        /// How many payloads there are.
        payloads: u64,
        /// Where they were looked for.
        vault: String,
    },
    /// Payloads of the source wait on other machines for their vault.
    #[error("{payloads} payloads of {from} are on their way to its vault: they wait on {}", .hosts.join(", "))]
    OnTheirWay {
        /// The source.
        from: String,
        /// How many.
        payloads: u64,
        /// Where they wait.
        hosts: Vec<String>,
    },
    /// Both sides were counted, and differ.
    #[error("the copy is not what {from} is: {}", .problems.join("; "))]
    Differs {
        /// The source.
        from: String,
        /// What differs.
        problems: Vec<String>,
    },
}

impl CopyError {
    /// What it means to who asked.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(CopyRefused::Itself(_)) | Self::NoVault { .. } => ErrorKind::Invalid,
            Self::Refused(_) | Self::AtWork { .. } | Self::WrongVault { .. } | Self::OnTheirWay { .. } => {
                ErrorKind::Refused
            }
            Self::Differs { .. } => ErrorKind::Failed,
        }
    }
}

impl From<CopyError> for Error {
    fn from(error: CopyError) -> Self {
        Self::Copy(Box::new(error))
    }
}

/// Which store is copied where.
#[derive(Clone, Debug)]
pub struct StoreCopy {
    /// The source.
    pub from: String,
    /// The target.
    pub to: String,
    /// The vault that payloads come to; by default the one that the target has.
    pub vault: Option<String>,
    /// The vault that payloads are in; by default the one that the source has.
    pub from_vault: Option<String>,
    /// Whether it is right that no payload is found.
    pub allow_missing: bool,
    /// Who wants it.
    pub by: Actor,
}

/// How far a copy is.
#[derive(Clone, Debug)]
pub enum CopyProgress {
    /// It is watched whether these workers live.
    Watching(Vec<String>),
    /// So many rows and payloads of so many have come over.
    At {
        /// What is copied now.
        part: &'static str,
        /// Rows that have come over.
        done: u64,
        /// Rows there are.
        total: u64,
    },
    /// Both sides are counted.
    Counting,
}

/// A part on both sides.
#[derive(Clone, Debug, Serialize)]
pub struct CopiedPart {
    /// Its name.
    pub part: &'static str,
    /// What it has.
    pub label: &'static str,
    /// Rows of the source.
    pub source: u64,
    /// Rows of the target.
    pub target: u64,
}

/// What became of the payloads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedPayloads {
    /// Brought to the target's vault.
    pub brought: u64,
    /// The bytes of those, as they lie there.
    pub bytes: u64,
    /// Found where they are to be.
    pub found: u64,
    /// Not in the vault of the source, and so not in that of the target.
    pub missing: u64,
    /// Not what they were, and so not brought.
    pub damaged: u64,
    /// The first of those that are missing or damaged, with what is wrong.
    pub named: Vec<String>,
}

/// A copy that is finished.
#[derive(Clone, Debug, Serialize)]
pub struct Copied {
    /// Where from.
    pub from: String,
    /// Where to.
    pub to: String,
    /// The vault of the target, if there are payloads.
    pub vault: Option<String>,
    /// When all had come over, if that was before this command.
    pub finished_before: Option<Timestamp>,
    /// Leases that were given back before.
    pub given_back: u64,
    /// Each part on both sides.
    pub parts: Vec<CopiedPart>,
    /// The payloads.
    pub payloads: CopiedPayloads,
    /// What the audit finds, on both sides alike.
    pub problems: Vec<String>,
}

/// A store, opened, with its vault.
struct Side {
    setting: Setting,
    redrive: Redrive,
    place: String,
    vault: Option<Vault>,
}

impl Setting {
    /// Copies all that a store has to another, which must be empty; goes on where an earlier one stopped. `shown` hears how far it is.
    pub async fn copy_store(
        &self,
        asked: &StoreCopy,
        mut shown: impl FnMut(CopyProgress) + Send,
    ) -> Result<Copied, Error> {
        let from = self.copy_side(&asked.from, asked.from_vault.as_deref(), Options::default()).await?;
        let to = self.copy_side(&asked.to, asked.vault.as_deref(), Options::create().unfinished()).await?;
        let (from_side, to_side) = (from.side().await?, to.side().await?);
        let vault = to.vault.as_ref().map(|vault| vault.address().to_owned());
        let step = next(&from_side, &to_side, vault.as_deref()).map_err(CopyError::from)?;
        let mut given_back = 0;
        let id = match step {
            CopyStep::GoOn(id) => {
                check_vaults(&from, &to).await?;
                id
            }
            CopyStep::Begin => {
                check_vaults(&from, &to).await?;
                if !asked.allow_missing {
                    from.refuse_spooled_elsewhere().await?;
                }
                let id = CopyId::new(from.redrive.now(), from.redrive.chance.bits());
                let note = |other: &CopySide| CopyNote {
                    id,
                    place: other.place.clone(),
                    store: other.store,
                    vault: vault.clone(),
                    begun_at: from.redrive.now(),
                    finished_at: None,
                };
                to.refuse_workers(&mut shown).await?;
                given_back = from.bring_to_rest(note(&to_side), &mut shown).await?;
                to.begin_to(&from, note(&from_side), &asked.by).await?;
                id
            }
            CopyStep::Release(note) => {
                from.release(note.id, &asked.by).await?;
                return Ok(before(from, to, &note));
            }
            CopyStep::Over(note) => return Ok(before(from, to, &note)),
        };
        let mut copying = Copying::new(id, &from, &to, asked.allow_missing).await?;
        copying.run(&mut shown).await?;
        shown(CopyProgress::Counting);
        let counters = from.redrive.store.copy_counters().await?;
        let (inherited, inherits_older) = from.inherited(copying.payloads_stay()).await?;
        to.redrive.store.take_counters(TakeCounters { id, counters, inherited, inherits_older }).await?;
        let payloads = copying.payloads();
        let (parts, problems) = compare(&from, &to).await?;
        let rows: u64 = parts.iter().map(|part| part.source).sum();
        let detail = json!({"from": from.place, "to": to.place, "rows": rows, "payloads": payloads});
        let ended = EndCopy { id, detail, by: asked.by.clone(), now: from.redrive.now() };
        to.redrive.store.end_copy_to(ended.clone()).await?;
        from.redrive.store.end_copy_from(ended).await?;
        let vault = vault.filter(|_| payloads != CopiedPayloads::default());
        let (from, to) = (from.place, to.place);
        Ok(Copied { from, to, vault, finished_before: None, given_back, parts, payloads, problems })
    }

    /// Gives a copy of a store up: it can be written again. Says where it was being copied to, if it was.
    pub async fn abort_copy(&self, from: &str, by: &Actor) -> Result<Option<String>, Error> {
        let from = self.copy_side(from, None, Options::default()).await?;
        let Some(note) = from.redrive.store.copies().await?.to else { return Ok(None) };
        from.release(note.id, by).await?;
        Ok(Some(note.place))
    }

    /// Opens one side. The vault of the configuration is that of the configuration's store, and of no other.
    async fn copy_side(&self, address: &str, vault: Option<&str>, options: Options) -> Result<Side, Error> {
        let location: Location = address.parse().map_err(ConfigError::Location)?;
        let mut setting = self.clone();
        let is_own = self.is_at(&location);
        setting.location = location;
        setting.config.vault = match vault {
            Some(url) => Some(self.vault_section(url)),
            None => setting.config.vault.filter(|_| is_own),
        };
        let redrive = Redrive::over(setting.location.open(options).await?);
        let vault = setting.vault(&redrive)?;
        Ok(Side { place: setting.location.to_string(), setting, redrive, vault })
    }
}

impl Side {
    async fn side(&self) -> Result<CopySide, Error> {
        let store = &self.redrive.store;
        let (own, copies) = (store.store_ids().await?.own, store.copies().await?);
        Ok(CopySide { place: self.place.clone(), store: own, copies })
    }

    /// How many rows a part has.
    async fn count(&self, part: &str) -> Result<u64, Error> {
        let counts = self.redrive.store.count_parts().await?;
        let at = redrive_store::contract::PARTS.iter().position(|found| found.name == part);
        Ok(at.and_then(|at| counts.get(at)).copied().unwrap_or(0))
    }

    /// Marks the target. If that is refused the source is as it was.
    async fn begin_to(&self, from: &Self, note: CopyNote, by: &Actor) -> Result<(), Error> {
        let id = note.id;
        match self.redrive.store.begin_copy_to(note).await {
            Err(error @ StoreError::NotEmpty { .. }) => {
                from.release(id, by).await?;
                Err(error.into())
            }
            begun => Ok(begun?),
        }
    }

    async fn release(&self, id: CopyId, by: &Actor) -> Result<(), Error> {
        let now = self.redrive.now();
        Ok(self.redrive.store.end_copy_from(EndCopy { id, detail: json!({}), by: by.clone(), now }).await?)
    }

    /// The ids under which the payloads of the source lie, if the target reads them there.
    async fn inherited(&self, payloads_stay: bool) -> Result<(Vec<redrive_core::payloads::StoreId>, bool), Error> {
        if !payloads_stay {
            return Ok((Vec::new(), false));
        }
        let ids = self.redrive.store.store_ids().await?;
        Ok((std::iter::once(ids.own).chain(ids.adopted).chain(ids.inherited).collect(), ids.older))
    }
}

/// Payloads have a place on both sides.
async fn check_vaults(from: &Side, to: &Side) -> Result<(), Error> {
    let payloads = from.count("payload").await?;
    let (place, target) = (from.place.clone(), to.place.clone());
    match (payloads, &from.vault, &to.vault) {
        (0, _, _) | (_, Some(_), Some(_)) => Ok(()),
        (_, None, _) => Err(CopyError::WrongVault { from: place, payloads, vault: "no vault".to_owned() }.into()),
        (_, _, None) => Err(CopyError::NoVault { from: place, to: target, payloads }.into()),
    }
}

/// A copy that was finished before.
fn before(from: Side, to: Side, note: &CopyNote) -> Copied {
    Copied {
        from: from.place,
        to: to.place,
        vault: note.vault.clone(),
        finished_before: note.finished_at,
        given_back: 0,
        parts: Vec::new(),
        payloads: CopiedPayloads::default(),
        problems: Vec::new(),
    }
}

/// Counts both sides, compares their ledgers and audits both.
async fn compare(from: &Side, to: &Side) -> Result<(Vec<CopiedPart>, Vec<String>), Error> {
    let (source, target) = (&from.redrive.store, &to.redrive.store);
    let counts = source.count_parts().await?.into_iter().zip(target.count_parts().await?);
    let named = redrive_store::contract::PARTS.iter().zip(counts);
    let parts: Vec<_> = named
        .map(|(part, (source, target))| CopiedPart { part: part.name, label: part.label, source, target })
        .collect();
    let mut differ: Vec<String> = parts
        .iter()
        .filter(|part| part.source != part.target)
        .map(|part| format!("{} {} instead of {}", part.target, part.label, part.source))
        .collect();
    if source.ledgers().await? != target.ledgers().await? {
        differ.push("the ledgers are not equal".to_owned());
    }
    let (before, after) = (source.audit().await?.problems, target.audit().await?.problems);
    differ.extend(after.iter().filter(|problem| !before.contains(problem)).cloned());
    match differ.is_empty() {
        true => Ok((parts, before)),
        false => Err(CopyError::Differs { from: from.place.clone(), problems: differ }.into()),
    }
}
