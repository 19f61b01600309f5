//! What all routes share. Cheap to clone.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redrive::config::{Setting, TokenFile};
use redrive::contract::KnownToken;
use redrive::vault::Vault;
use redrive::{CancellationToken, Pipeline, Redrive};
use redrive_core::egress::Egress;
use redrive_core::ids::{PipelineName, TokenName};
use redrive_core::time::Timestamp;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::counted::Counted;
use crate::error::ApiError;
use crate::held::Room;
use crate::local::Local;
use crate::measured::Measured;
use crate::shown::Shown;
use crate::tls::TlsFiles;
use crate::trying::Trying;

/// How long tokens are believed: one that is revoked is no good after that.
const TOKENS_HOLD: Duration = Duration::from_secs(1);

/// How long they are believed at least, where somebody comes with another.
const TOKENS_ANEW_AFTER: Duration = Duration::from_millis(50);

/// Requests of one token that are under way at once, unless something else is said.
const IN_FLIGHT_MAX: usize = 256;

/// After how much silence a page takes what it shows for stale, unless something else is said.
const SILENCE: Duration = Duration::from_secs(30);

/// How often a server that stops checks whether requests with keys have ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Pipelines that are remembered though no configuration has them.
const PIPELINES_KEPT: usize = 1_000;

/// Remote workers above which a lease that names none is refused: each of them would be one more.
const WORKERS_MAX: usize = 1_000;

/// Pipelines above which no more come into being over the network, unless something else is said.
pub const PIPELINES_MAX: usize = 1_000;

/// The most that is held of bodies that are being read at once, in bytes.
const BODIES_BYTES_MAX: u64 = 64 << 20;

/// Limits forms of visitors who are not signed in, unless they are short.
const STRANGERS_BYTES_MAX: u64 = 8 << 20;

/// A form of who is not signed in that is no longer takes no room: nobody can keep others from signing in.
const SHORT_BYTES_MAX: u64 = 64 << 10;

/// What a server is told besides its configuration.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Further hosts by which it is reached, through a proxy for example; each with its port, where it has one of its own.
    pub public_hosts: Vec<String>,
    /// Those of them that browsers reach by `https`: cookies are sent to them no other way.
    pub secure_hosts: Vec<String>,
    /// The paths below which the server is reached by some of its hosts, without a slash at their end.
    pub prefixes: Vec<(String, String)>,
    /// Where the proxies are through which alone it is reached from other machines, if it is.
    pub proxies: Option<Egress>,
    /// Its certificate and key, if it speaks TLS itself.
    pub tls: Option<TlsFiles>,
    /// The token file by which people and programs of this machine are let in while the store has no token; without one, nobody is.
    pub token_file: Option<TokenFile>,
    /// The arguments by which commands on this machine find what it serves, each after a space.
    pub place: String,
    /// How long it waits for whom.
    pub patience: Patience,
    /// Requests of one token that are under way at once, those that wait for jobs included.
    pub in_flight_max: usize,
    /// Pipelines above which no more come into being over the network; those of the configuration are not counted.
    pub pipelines_max: usize,
    /// Remote workers above which a lease without `worker` is refused.
    pub workers_max: usize,
    /// After how much silence a page takes what it shows for stale.
    pub silence: Duration,
}

/// How long a server waits for those who ask.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the head of a request to arrive.
    pub head: Duration,
    /// For a body to arrive.
    pub body: Duration,
    /// For more bytes of a payload to arrive.
    pub more: Duration,
    /// For who reads an answer to take anything of it.
    pub taken: Duration,
    /// For letters that are looked through for a text: the rest is for the next page.
    pub letters: Duration,
    /// For jobs that are looked through.
    pub jobs: Duration,
    /// For the first bytes of a payload to come out of the vault.
    pub vault: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            head: secs(15),
            body: secs(60),
            more: secs(30),
            taken: secs(30),
            letters: secs(1),
            jobs: secs(10),
            vault: secs(10),
        }
    }
}

impl Options {
    /// A server that is reached on this machine alone, or by nobody yet.
    pub fn listening(listen: SocketAddr) -> Self {
        Self {
            listen,
            public_hosts: Vec::new(),
            secure_hosts: Vec::new(),
            prefixes: Vec::new(),
            proxies: None,
            tls: None,
            token_file: None,
            place: String::new(),
            patience: Patience::default(),
            in_flight_max: IN_FLIGHT_MAX,
            pipelines_max: PIPELINES_MAX,
            workers_max: WORKERS_MAX,
            silence: SILENCE,
        }
    }
}

/// What all routes share.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    redrive: Redrive,
    /// The configuration, and when it was loaded: another one when its file changed.
    setting: RwLock<(Arc<Setting>, Timestamp)>,
    vault: Option<Vault>,
    options: Options,
    /// Lets clients in while the store has no token.
    local: Option<Local>,
    /// Cancelled when the server stops: who waits for something is answered.
    stopping: CancellationToken,
    /// Somebody wants the files that were read to be read again.
    reread: Notify,
    /// The tokens as they were last read.
    tokens: Mutex<Option<(Instant, Arc<Vec<KnownToken>>)>>,
    /// Held by who has them read anew.
    token_reads: tokio::sync::Mutex<()>,
    /// The minute in which each token was last noted to be used.
    used: Mutex<HashMap<TokenName, i64>>,
    /// Pipelines are made once: some have connections of their own.
    pipelines: Mutex<HashMap<PipelineName, Pipeline>>,
    /// Pipelines of the store that the configuration does not define, as they were when last read.
    existing: Mutex<BTreeSet<PipelineName>>,
    /// Who has how many requests under way.
    in_flight: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Room for bodies that are being read.
    bodies: Room,
    /// Limits those who are not signed in.
    bodies_of_strangers: Room,
    /// How long requests take.
    measured: Measured,
    /// Requests with a key that are under way: another with the same waits for their answer.
    under_way: Mutex<HashMap<(String, String), Turn>>,
    /// Tries that run here.
    trying: Trying,
    /// How often rules that could be meant match.
    counted: Counted,
    /// What came of forms a moment ago, where it stands nowhere else.
    shown: Shown,
}

/// Whoever holds it is the only one who does something.
type Turn = Arc<tokio::sync::Mutex<()>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl App {
    /// Over a store that is open.
    pub fn new(redrive: Redrive, setting: Setting, options: Options) -> Result<Self, redrive::Error> {
        // Who asks is told soon that the store does not answer, whoever works here.
        let redrive = redrive.answering();
        let (vault, now) = (setting.vault(&redrive)?, redrive.now());
        let redrive = redrive.with_vault_at(vault.as_ref().map(Vault::address));
        redrive.alerts().replace(Some(setting.watched_by_server()));
        let setting = Arc::new(setting);
        redrive.configure(Arc::clone(&setting));
        Ok(Self(Arc::new(Shared {
            redrive,
            setting: RwLock::new((setting, now)),
            vault,
            local: options.token_file.as_ref().map(Local::new),
            options,
            stopping: CancellationToken::new(),
            reread: Notify::new(),
            tokens: Mutex::default(),
            token_reads: tokio::sync::Mutex::default(),
            used: Mutex::default(),
            pipelines: Mutex::default(),
            existing: Mutex::default(),
            in_flight: Mutex::default(),
            bodies: Room::new(BODIES_BYTES_MAX, 0),
            bodies_of_strangers: Room::new(STRANGERS_BYTES_MAX, SHORT_BYTES_MAX),
            measured: Measured::logging(),
            under_way: Mutex::default(),
            trying: Trying::default(),
            counted: Counted::default(),
            shown: Shown::default(),
        })))
    }

    /// The engine.
    pub fn redrive(&self) -> &Redrive {
        &self.0.redrive
    }

    /// The configuration as it is now.
    pub fn setting(&self) -> Arc<Setting> {
        Arc::clone(&self.0.setting.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// When that was loaded.
    pub fn setting_since(&self) -> Timestamp {
        self.0.setting.read().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Takes up a configuration that changed, unless one of its pipelines cannot be made; where the store and the vault are stays.
    pub fn follow(&self, changed: &Setting) -> Result<(), String> {
        let next = self.setting().with(changed);
        for name in next.config.pipeline.keys() {
            next.served_pipeline(name.clone(), self.vault()).map_err(|error| error.to_string())?;
        }
        self.redrive().alerts().replace(Some(next.watched_by_server()));
        let next = Arc::new(next);
        self.redrive().configure(Arc::clone(&next));
        *self.0.setting.write().unwrap_or_else(PoisonError::into_inner) = (next, self.redrive().now());
        // After that: who makes a pipeline of the former one meanwhile has put it here by then.
        lock(&self.0.pipelines).clear();
        Ok(())
    }

    /// The vault, if there is one.
    pub fn vault(&self) -> Option<&Vault> {
        self.0.vault.as_ref()
    }

    /// What is measured of requests.
    pub fn measured(&self) -> &Measured {
        &self.0.measured
    }

    /// How often rules that could be meant match.
    pub fn counted(&self) -> &Counted {
        &self.0.counted
    }

    /// What came of forms a moment ago.
    pub fn shown(&self) -> &Shown {
        &self.0.shown
    }

    /// The tries that run here.
    pub fn trying(&self) -> &Trying {
        &self.0.trying
    }

    /// What it was told besides its configuration.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// Lets clients in while the store has no token; none without a token file.
    pub(crate) fn local(&self) -> Option<&Local> {
        self.0.local.as_ref()
    }

    /// The path of a page that signs in whoever opens it first, while the store has no token and there is a token file.
    pub async fn one_time_link(&self) -> Result<Option<String>, redrive::Error> {
        match &self.0.local {
            Some(local) if self.redrive().list_tokens().await?.is_empty() => {
                Ok(Some(format!("/login?link={}", local.make_link(self.redrive().now())?)))
            }
            _ => Ok(None),
        }
    }

    /// Has the configuration and the certificate looked at now, rather than in a moment.
    pub fn reread(&self) {
        self.0.reread.notify_one();
    }

    /// Returns when somebody wants that.
    pub(crate) async fn asked_to_reread(&self) {
        self.0.reread.notified().await;
    }

    /// Cancelled when the server stops.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// The tokens there are, as they were a moment ago at most. That there is none is never believed: it would let everybody in.
    pub async fn tokens(&self) -> Result<Arc<Vec<KnownToken>>, ApiError> {
        if let Some((at, known)) = lock(&self.0.tokens).as_ref()
            && at.elapsed() < TOKENS_HOLD
            && !known.is_empty()
        {
            return Ok(Arc::clone(known));
        }
        let at = Instant::now();
        let known = Arc::new(self.redrive().known_tokens().await?);
        *lock(&self.0.tokens) = Some((at, Arc::clone(&known)));
        Ok(known)
    }

    /// The tokens there are, read since a moment: one that is not known may have been made just now. Who asks for what is not there has
    /// them read now and then only, however often.
    pub async fn tokens_since(&self, moment: Instant) -> Result<Arc<Vec<KnownToken>>, ApiError> {
        let _turn = self.0.token_reads.lock().await;
        let read = lock(&self.0.tokens).clone();
        if let Some((at, known)) = read {
            if at >= moment {
                return Ok(known);
            }
            tokio::time::sleep(TOKENS_ANEW_AFTER.saturating_sub(at.elapsed())).await;
        }
        self.forget_tokens();
        self.tokens().await
    }

    /// Has tokens read anew: somebody made or revoked one here.
    pub fn forget_tokens(&self) {
        *lock(&self.0.tokens) = None;
    }

    /// Notes that a token was used, once a minute; nobody waits for it.
    pub fn note_used(&self, name: &TokenName) {
        let now = self.redrive().now();
        let minute = now.minute();
        if lock(&self.0.used).insert(name.clone(), minute) == Some(minute) {
            return;
        }
        let (redrive, used) = (self.redrive().clone(), vec![(name.clone(), now)]);
        tokio::spawn(async move {
            if let Err(error) = redrive.note_tokens_used(used).await {
                tracing::debug!(%error, "it could not be noted when a token was used");
            }
        });
    }

    /// A pipeline whose jobs are leased through here, whether the configuration has it or not.
    pub fn pipeline(&self, name: &PipelineName) -> Result<Pipeline, ApiError> {
        let mut known = lock(&self.0.pipelines);
        if let Some(pipeline) = known.get(name) {
            return Ok(pipeline.clone());
        }
        let setting = self.setting();
        let made = setting.served_pipeline(name.clone(), self.vault()).map_err(redrive::Error::from)?;
        // Whoever asks for one name after the other has none of them remembered.
        if setting.config.pipeline.contains_key(name) || known.len() < PIPELINES_KEPT {
            known.insert(name.clone(), made.clone());
        }
        Ok(made)
    }

    /// Pipelines, as far as they can be made.
    pub fn pipelines<'a>(&self, names: impl IntoIterator<Item = &'a PipelineName>) -> Vec<Pipeline> {
        names.into_iter().filter_map(|name| self.pipeline(name).ok()).collect()
    }

    /// Refuses pipelines that do not exist yet if there are as many as may come into being over the network.
    pub async fn admit_pipelines(&self, names: impl IntoIterator<Item = &PipelineName>) -> Result<(), ApiError> {
        let setting = self.setting();
        let is_defined = |name: &PipelineName| setting.config.pipeline.contains_key(name);
        let mut new: BTreeSet<&PipelineName> = names.into_iter().filter(|name| !is_defined(name)).collect();
        {
            let existing = lock(&self.0.existing);
            new.retain(|name| !existing.contains(*name));
        }
        if new.is_empty() {
            return Ok(());
        }
        let names = self.redrive().store().ledgers().await.map_err(redrive::Error::from)?.into_keys();
        let existing: BTreeSet<PipelineName> = names.filter(|name| !is_defined(name)).collect();
        new.retain(|name| !existing.contains(*name));
        let (most, wanted) = (self.options().pipelines_max, existing.len() + new.len());
        let refused = new.first().filter(|_| wanted > most).map(|name| ApiError::too_many_pipelines(name, most));
        *lock(&self.0.existing) = existing;
        refused.map_or(Ok(()), Err)
    }

    /// Counts a pipeline as a new one if it comes again.
    pub fn forget_existing(&self, name: &PipelineName) {
        lock(&self.0.existing).remove(name);
    }

    /// A place among the requests of somebody that may be under way at once.
    pub fn enter(&self, who: &str) -> Result<OwnedSemaphorePermit, ApiError> {
        let most = self.options().in_flight_max;
        let places = {
            let mut all = lock(&self.0.in_flight);
            Arc::clone(all.entry(who.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(most))))
        };
        let full = |_| ApiError::too_many(format!("{most} requests of this token are under way already"));
        places.try_acquire_owned().map_err(full)
    }

    /// Room for bodies that are being read.
    pub fn bodies(&self) -> &Room {
        &self.0.bodies
    }

    /// Room for forms of who is not signed in: they are in nobody else's way.
    pub fn bodies_of_strangers(&self) -> &Room {
        &self.0.bodies_of_strangers
    }

    /// Waits until all requests with keys have ended.
    pub async fn all_done(&self) {
        while lock(&self.0.under_way).values().any(|turn| Arc::strong_count(turn) > 1) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until no other request with this key is under way.
    pub async fn alone(&self, who: &str, key: &str) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut all = lock(&self.0.under_way);
            // What nobody holds or waits for any more is forgotten.
            all.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(all.entry((who.to_owned(), key.to_owned())).or_default())
        };
        turn.lock_owned().await
    }
}
