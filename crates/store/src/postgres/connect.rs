//! Opening connections.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Config, NoTls};

use super::fault::Fault;
use super::sql::Conn;
use crate::error::StoreError;

/// The schema that has the store, unless another is named.
pub(super) const NAMESPACE: &str = "redrive";

/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long what was sent may stay without an answer of the other end's network.
const UNHEARD_MAX: Duration = Duration::from_secs(10);

/// A connection, and what others tell on it.
pub(super) struct Heard {
    pub(super) conn: Conn,
    pub(super) messages: mpsc::UnboundedReceiver<AsyncMessage>,
}

/// Which server, database and schema.
#[derive(Clone)]
pub(super) struct Target {
    config: Config,
    /// The schema, as it is written in statements.
    pub(super) schema: String,
    /// The place in words, for messages.
    pub(super) place: String,
}

impl Target {
    /// A schema of a database; its name needs no quotes.
    pub(super) fn new(mut config: Config, namespace: &str) -> Result<Self, StoreError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if namespace.is_empty() || namespace.len() > 63 || !namespace.chars().all(plain) {
            let text = format!("schema {namespace}");
            return Err(StoreError::InvalidLocation {
                text,
                known: "a schema of small letters, digits and _".to_owned(),
            });
        }
        config
            .application_name("redrive")
            .connect_timeout(CONNECT_MAX)
            .keepalives(true)
            .keepalives_idle(UNHEARD_MAX)
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3)
            .tcp_user_timeout(UNHEARD_MAX);
        let place = place(&config, namespace);
        Ok(Self { config, schema: namespace.to_owned(), place })
    }

    /// A number that stands for the store, for locks that it has in common with nothing else in its database.
    pub(super) fn lock(&self) -> i64 {
        let hash = blake3::derive_key("redrive: the lock of a schema", self.schema.as_bytes());
        let [a, b, c, d, e, f, g, h, ..] = hash;
        i64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// Opens a connection. Nothing is set on it that outlasts a transaction: there may be a pooler between.
    pub(super) async fn connect(&self) -> Result<Conn, Fault> {
        let (client, connection) = self.config.connect(NoTls).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL ended");
            }
        });
        Ok(Conn::new(client))
    }

    /// Opens a connection that also hears what others tell.
    pub(super) async fn connect_to_hear(&self) -> Result<Heard, Fault> {
        let (client, mut connection) = self.config.connect(NoTls).await?;
        let (heard, messages) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut next = std::future::poll_fn(|cx| connection.poll_message(cx));
            while let Some(Ok(message)) = (&mut next).await {
                if heard.send(message).is_err() {
                    return;
                }
            }
        });
        Ok(Heard { conn: Conn::new(client), messages })
    }

    /// Begins to read, in one view of the database.
    pub(super) fn begin_reading(&self) -> String {
        format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}", self.here())
    }

    /// Begins to write. Plans depend neither on values nor on statistics, which are of another time where queues fill and empty.
    pub(super) fn begin_writing(&self) -> String {
        let here = self.here();
        format!(
            "BEGIN; {here}; SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_generic_plan"
        )
    }

    /// Which schema is meant; and who stops in the middle of a transaction does not stop others for long.
    fn here(&self) -> String {
        let schema = &self.schema;
        format!("SET LOCAL search_path = {schema}, pg_temp; SET LOCAL idle_in_transaction_session_timeout = '60s'")
    }
}

/// The place in words, without a password.
fn place(config: &Config, namespace: &str) -> String {
    use tokio_postgres::config::Host;
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(folder)) => folder.display().to_string(),
        None => "localhost".to_owned(),
    };
    let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
    let schema = if namespace == NAMESPACE { String::new() } else { format!(", schema {namespace}") };
    format!("PostgreSQL at {host}, database {database}{schema}")
}
