//! Opening connections.
//!
//! Each has a name of its own, by which the server lists it, and a mark: a setting that it brings along when it is made. Where the mark
//! is not found, somebody else made the connection that answers: a pooler, which may give each transaction another one.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redrive_core::ids::WorkerId;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, CancelToken, Client, Config, Connection, SimpleQueryMessage, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{Address, Tls};
use super::conn::Conn;
use super::fault::Fault;
use super::watch::Watch;

/// How long a transaction may rest between two statements. One that writes has locks that others wait for, and rests when who began it was
/// cut off: it is sent again then, once.
const WRITING_RESTS_MAX: &str = "10s";
const READING_RESTS_MAX: &str = "60s";

/// How much longer than the network may take for a connection it may take until it can be used.
const GREET_MAX: Duration = Duration::from_secs(5);

/// A connection as the library has it, encrypted or not.
type Encrypted = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// A connection, and what others tell on it.
pub(super) struct Heard {
    pub(super) conn: Conn,
    pub(super) messages: mpsc::UnboundedReceiver<AsyncMessage>,
}

/// Which server, database and schema.
#[derive(Clone)]
pub(super) struct Target {
    /// The servers, to be tried in this order.
    servers: Arc<Vec<Config>>,
    tls: Tls,
    connect_max: Duration,
    /// At most so many connections read.
    pub(super) readers_max: usize,
    /// Whether a second connection may write where many enqueue.
    pub(super) has_helper: bool,
    /// Whether statements are kept prepared, where the server's end stays the same.
    keeps_statements: bool,
    /// The way past a pooler, if it is known.
    direct: Option<Arc<Self>>,
    /// The schema, as it is written in statements.
    pub(super) schema: String,
    /// The place in words, for messages.
    pub(super) place: String,
    /// Whether connections are refused that bring a mark along.
    is_unmarked: Arc<AtomicBool>,
}

/// The task that reads and writes for a connection. The connection ends with it, whatever is under way.
pub(super) struct Task(AbortHandle);

impl Task {
    pub(super) fn end(&self) {
        self.0.abort();
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.end();
    }
}

/// A connection that was made.
struct Made {
    client: Client,
    task: Task,
    messages: mpsc::UnboundedReceiver<AsyncMessage>,
    /// Under which name the server lists it.
    name: String,
    is_pooled: bool,
}

impl From<Address> for Target {
    fn from(address: Address) -> Self {
        let Address { servers, tls, schema, connect_max, shares, keeps_statements, direct, place } = address;
        Self {
            servers: Arc::new(servers),
            tls,
            connect_max,
            readers_max: shares.readers_max,
            has_helper: shares.has_helper,
            keeps_statements,
            direct: direct.map(|direct| Arc::new(Self::from(*direct))),
            schema,
            place,
            is_unmarked: Arc::default(),
        }
    }
}

impl Target {
    /// A number that stands for the store, for locks that it has in common with nothing else in its database.
    pub(super) fn lock(&self) -> i64 {
        let hash = blake3::derive_key("redrive: the lock of a schema", self.schema.as_bytes());
        let [a, b, c, d, e, f, g, h, ..] = hash;
        i64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// Whether a way past a pooler is known.
    pub(super) const fn has_direct(&self) -> bool {
        self.direct.is_some()
    }

    /// The same past a pooler, for what needs the server itself: listening, and changing the schema.
    pub(super) fn direct(&self) -> &Self {
        self.direct.as_deref().unwrap_or(self)
    }

    /// Opens a connection. Nothing is set on it that outlasts a transaction: there may be a pooler between.
    pub(super) async fn connect(&self) -> Result<Conn, Fault> {
        Ok(self.connect_to_hear().await?.conn)
    }

    /// Opens a connection that also hears what others tell.
    pub(super) async fn connect_to_hear(&self) -> Result<Heard, Fault> {
        let Made { client, task, messages, name, is_pooled } = self.make().await?;
        let watch = Watch::new(self.clone(), name, is_pooled);
        Ok(Heard {
            conn: Conn::new(client, task, watch, is_pooled).keeping_statements(self.keeps_statements && !is_pooled),
            messages,
        })
    }

    /// Asks the server to end what is under way on a connection. It does not say whether it did.
    pub(super) async fn cancel(self, token: CancelToken) {
        let asked = tokio::time::timeout(self.connect_max, token.cancel_query(self.tls.connector)).await;
        if let Ok(Err(error)) = asked {
            tracing::debug!(%error, "a query that nobody waits for could not be cancelled");
        }
    }

    /// Whether there is only one server to connect to.
    pub(super) fn is_one_server(&self) -> bool {
        self.servers.len() == 1
    }

    /// The first column of what a statement finds, on a connection that is made for it.
    pub(super) async fn ask_apart(&self, sql: &str) -> Result<Vec<Option<String>>, Fault> {
        let made = self.make().await?;
        first_column(&made.client, sql).await
    }

    /// Makes a connection to the first server that takes it. One that refuses the user or the database refuses for all.
    async fn make(&self) -> Result<Made, Fault> {
        let mut last = Fault::Broken("no server is named".to_owned());
        for server in self.servers.iter() {
            let made = tokio::time::timeout(self.connect_max + GREET_MAX, self.make_marked(server)).await;
            match made.unwrap_or(Err(Fault::Silent)) {
                Err(fault) if fault.is_lost() => last = fault,
                made => return made,
            }
        }
        Err(last)
    }

    async fn make_marked(&self, server: &Config) -> Result<Made, Fault> {
        let mark = format!("{:016x}", RandomState::new().hash_one(&self.schema));
        if !self.is_unmarked.load(Ordering::Relaxed) {
            match self.dial(server, &mark, true).await {
                Ok(mut made) => {
                    let found = first_column(&made.client, "SELECT current_setting('redrive.mark', true)").await?;
                    made.is_pooled = !found.contains(&Some(mark));
                    return Ok(made);
                }
                Err(fault) if !fault.is_unsupported() => return Err(fault),
                Err(_) => {}
            }
        }
        let made = self.dial(server, &mark, false).await?;
        self.is_unmarked.store(true, Ordering::Relaxed);
        Ok(made)
    }

    /// Makes a connection; it is taken for one of a pooler.
    async fn dial(&self, server: &Config, mark: &str, is_marked: bool) -> Result<Made, Fault> {
        let name = format!("{} {mark}", server.get_application_name().unwrap_or_default());
        let mut config = server.clone();
        config.application_name(&name);
        if is_marked {
            let options = config.get_options().map(|given| format!("{given} ")).unwrap_or_default();
            config.options(format!("{options}-c redrive.mark={mark}"));
        }
        let (client, mut connection) = self.greet(config).await?;
        let (heard, messages) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut next = std::future::poll_fn(|cx| connection.poll_message(cx));
            while let Some(message) = (&mut next).await {
                match message {
                    // Most do not listen.
                    Ok(message) => drop(heard.send(message)),
                    Err(error) => return tracing::debug!(%error, "a connection to PostgreSQL ended"),
                }
            }
        });
        Ok(Made { client, task: Task(task.abort_handle()), messages, name, is_pooled: true })
    }

    /// Connects, encrypted or not as it is wanted. What is refused for how it was tried is tried the other way, if that is wanted too.
    async fn greet(&self, mut config: Config) -> Result<(Client, Encrypted), Fault> {
        let is_local = matches!(config.get_hosts(), [Host::Unix(_)]);
        let (last, before) = self.tls.tries(is_local).split_last().unwrap_or((&SslMode::Disable, &[]));
        for mode in before {
            let connected = config.ssl_mode(*mode).connect(self.tls.connector.clone()).await.map_err(Fault::from);
            match connected {
                Err(fault) if fault.is_about_encryption() => {}
                connected => return connected,
            }
        }
        Ok(config.ssl_mode(*last).connect(self.tls.connector.clone()).await?)
    }

    /// Begins to read, in one view of the database.
    pub(super) fn begin_reading(&self) -> String {
        format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}", self.here(READING_RESTS_MAX))
    }

    /// Begins to write. Plans depend neither on values nor on statistics, which are of another time where queues fill and empty. What
    /// is written comes in bounded pieces, so a limit that is meant for questions does not hold for it; who holds a lock for long is
    /// named. The commit lets go of all locks at once, before it is on disk: nobody waits for a disk that another waits for. What was
    /// written is brought there by [`Target::flush`] before it is answered, whatever the server is used to.
    pub(super) fn begin_writing(&self) -> String {
        let here = self.here(WRITING_RESTS_MAX);
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; {here};
             SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_generic_plan;
             SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'; SET LOCAL synchronous_commit = off"
        )
    }

    /// Brings all that was committed so far to the disk, and to the standbys that the server waits for: whoever commits something waits
    /// until everything before it is there, too. What is committed here is that its writer was seen.
    pub(super) fn flush(&self, writer: WorkerId) -> String {
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0;
             SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off';
             UPDATE {}.sender SET seen_at = clock_timestamp() WHERE id = '{writer}'; END",
            self.schema
        )
    }

    /// Which schema is meant; and who stops in the middle of a transaction does not stop others for long.
    fn here(&self, rests_max: &str) -> String {
        let schema = &self.schema;
        format!(
            "SET LOCAL search_path = {schema}, pg_temp; SET LOCAL idle_in_transaction_session_timeout = '{rests_max}'"
        )
    }
}

async fn first_column(client: &Client, sql: &str) -> Result<Vec<Option<String>>, Fault> {
    let answers = client.simple_query(sql).await?;
    let first = |answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
        _ => None,
    };
    Ok(answers.into_iter().filter_map(first).collect())
}
