//! Where a store in PostgreSQL is and how it is reached, as users of libpq write it: an address, and what the environment adds.
//!
//! - `text`: taking an address apart, and showing it without its password; `parameters`: which there are
//! - `values`: numbers, times and choices among the parameters; `user`: who is asking; `passfile`: their passwords; `tls`: encryption

mod parameters;
mod passfile;
mod text;
mod tls;
mod user;
mod values;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, TargetSessionAttrs};

use self::parameters::Given;
use self::passfile::Login;
pub(crate) use self::text::shown;
pub(super) use self::tls::Tls;
use self::tls::Wanted;
use self::values::Values;
use crate::error::StoreError;
use crate::host::host;

/// The schema that has the store, unless another is named.
const NAMESPACE: &str = "redrive";

/// How long a connection may take to be made, unless something else is said.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// How long what was sent may stay without an answer of the other end's network.
const UNHEARD_MAX: Duration = Duration::from_secs(10);

/// The port of a server that names none.
const PORT: u16 = 5432;

/// Where servers of this machine have their sockets.
const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The most connections of a process, unless something else is said.
const POOL: usize = 7;

/// Connections that are not for reading: one writes, one listens, one tells.
const NOT_READING: usize = 3;

/// From so many connections on, one of them helps to write where many enqueue.
const HELPED: usize = 6;

/// Where a store is, resolved.
pub(super) struct Address {
    /// The servers, to be tried in this order.
    pub(super) servers: Vec<Config>,
    pub(super) tls: Tls,
    pub(super) schema: String,
    /// How long a connection may take to be made.
    pub(super) connect_max: Duration,
    pub(super) shares: Shares,
    /// Whether statements are kept prepared.
    pub(super) keeps_statements: bool,
    /// The way to the server itself, past a pooler, for what needs one.
    pub(super) direct: Option<Box<Self>>,
    /// The place in words, for messages.
    pub(super) place: String,
}

/// One server, as it is named.
struct Server {
    /// A name, or the folder of a socket.
    host: String,
    port: u16,
}

/// Says what is wrong with an address, as far as that can be told without looking at the environment.
pub(crate) fn check(text: &str) -> Result<(), StoreError> {
    let checked = text::parse(text).and_then(|given| {
        given.get("direct_url").map_or(Ok(()), |direct| check(direct).map_err(|error| error.to_string()))?;
        Plan::of(&given, None).map(drop)
    });
    checked.map_err(|why| wrong(text, why))
}

impl Address {
    /// An address as the environment completes it; a schema that is named apart comes before that of the address.
    pub(super) fn of(text: &str, schema: Option<&str>) -> Result<Self, StoreError> {
        let environment = |variable: &str| std::env::var(variable).ok();
        let home = environment("HOME").map(PathBuf::from);
        Self::within(text, schema, environment, home.as_deref()).map_err(|why| wrong(text, why))
    }

    fn within(
        text: &str,
        schema: Option<&str>,
        environment: impl Fn(&str) -> Option<String>,
        home: Option<&Path>,
    ) -> Result<Self, String> {
        Self::of_given(&text::parse(text)?.filled_by(environment), schema, home)
    }

    fn of_given(given: &Given, schema: Option<&str>, home: Option<&Path>) -> Result<Self, String> {
        let plan = Plan::of(given, schema)?;
        let direct = given.get("direct_url").map(|direct| {
            // It is another way to the same: what it does not say besides the way is as here.
            let direct = text::parse(direct)?.completed_by(given, &["host", "port", "direct_url"]);
            Self::of_given(&direct, Some(&plan.schema), home).map(Box::new)
        });
        let direct = direct.transpose().map_err(|why: String| format!("direct_url: {why}"))?;
        let passwords = passfile::path(given.get("passfile"), home);
        let tls = plan.tls.read(home)?;
        let servers = plan.servers.iter().map(|server| server.config(&plan, passwords.as_deref())).collect();
        let place = place(&plan.servers, &plan.database, &plan.schema);
        let Plan { schema, connect_max, shares, keeps_statements, .. } = plan;
        Ok(Self { servers, tls, schema, connect_max, shares, keeps_statements, direct, place })
    }
}

fn wrong(text: &str, why: String) -> StoreError {
    StoreError::InvalidAddress { address: shown(text), why }
}

/// What an address says, before anything is looked up.
struct Plan {
    servers: Vec<Server>,
    common: Config,
    user: Option<String>,
    database: String,
    tls: Wanted,
    schema: String,
    connect_max: Duration,
    shares: Shares,
    keeps_statements: bool,
}

impl Plan {
    fn of(given: &Given, schema: Option<&str>) -> Result<Self, String> {
        let values = Values(given);
        values.check_ignored()?;
        let schema = schema.or(given.get("schema")).unwrap_or(NAMESPACE).to_owned();
        check_schema(&schema)?;
        let connect_max = values.seconds("connect_timeout")?.unwrap_or(CONNECT_MAX);
        let user = given.get("user").map(str::to_owned).or_else(user::name);
        let database = given.get("dbname").map(str::to_owned).or_else(|| user.clone()).unwrap_or("postgres".to_owned());
        let tls = Wanted::of(&values)?;
        let mut common = Config::new();
        common.dbname(&database).connect_timeout(connect_max).ssl_negotiation(tls.negotiation);
        common.application_name(application(given.get("application_name")));
        if let Some(options) = given.get("options") {
            common.options(options);
        }
        if let Some(password) = given.get("password") {
            common.password(password);
        }
        session(&values, &mut common)?;
        keep_alive(&values, &mut common)?;
        let keeps_statements = values.choice("statement_cache", &[("on", true), ("off", false)])?.unwrap_or(true);
        let shares = Shares::of(&values)?;
        let servers = servers(&values)?;
        Ok(Self { servers, common, user, database, tls, schema, connect_max, shares, keeps_statements })
    }
}

/// What the connections of a process are for, besides the ones that every process has.
#[derive(Clone, Copy)]
pub(super) struct Shares {
    /// At most so many read.
    pub(super) readers_max: usize,
    /// Whether one helps to write where many enqueue.
    pub(super) has_helper: bool,
}

impl Shares {
    fn of(values: &Values<'_>) -> Result<Self, String> {
        let pool = values.number("pool")?.unwrap_or(POOL);
        if pool <= NOT_READING || pool > 100 {
            let least = NOT_READING + 1;
            return Err(format!("pool is {pool}: expected the most connections of a process, from {least} to 100"));
        }
        let has_helper = pool >= HELPED;
        Ok(Self { readers_max: pool - NOT_READING - usize::from(has_helper), has_helper })
    }
}

/// At most so many bytes of a name, so that the mark of a connection has room after it.
const NAME_BYTES_MAX: usize = 46;

/// The name under which the server lists this process: the one that was given, or which host and process it is.
fn application(given: Option<&str>) -> String {
    let of_process = || format!("redrive {} {}", host(), std::process::id());
    let name = given.map_or_else(of_process, str::to_owned);
    // A server keeps no other characters.
    name.chars().filter(|c| matches!(c, ' '..='~')).take(NAME_BYTES_MAX).collect()
}

/// A schema's name is written into statements, and needs no quotes.
fn check_schema(schema: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = schema.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    match begins && schema.len() <= 50 && schema.chars().all(plain) && !schema.starts_with("pg_") {
        true => Ok(()),
        false => Err(format!(
            "{schema:?} cannot be the schema: expected at most 50 small letters, digits and _, not beginning with pg_"
        )),
    }
}

fn session(values: &Values<'_>, config: &mut Config) -> Result<(), String> {
    let bindings = [
        ("disable", ChannelBinding::Disable),
        ("prefer", ChannelBinding::Prefer),
        ("require", ChannelBinding::Require),
    ];
    if let Some(binding) = values.choice("channel_binding", &bindings)? {
        config.channel_binding(binding);
    }
    // Only what can be written is a store; the words that ask for less are taken as well.
    let sessions = [
        ("any", TargetSessionAttrs::Any),
        ("read-write", TargetSessionAttrs::ReadWrite),
        ("primary", TargetSessionAttrs::ReadWrite),
    ];
    if let Some(attrs) = values.choice("target_session_attrs", &sessions)? {
        config.target_session_attrs(attrs);
    }
    Ok(())
}

fn keep_alive(values: &Values<'_>, config: &mut Config) -> Result<(), String> {
    config
        .keepalives(values.choice("keepalives", &[("0", false), ("1", true)])?.unwrap_or(true))
        .keepalives_idle(values.seconds("keepalives_idle")?.unwrap_or(UNHEARD_MAX))
        .keepalives_interval(values.seconds("keepalives_interval")?.unwrap_or(Duration::from_secs(2)))
        .keepalives_retries(values.number("keepalives_count")?.unwrap_or(3))
        .tcp_user_timeout(values.millis("tcp_user_timeout")?.unwrap_or(UNHEARD_MAX));
    Ok(())
}

/// The servers that are named, each with its port.
fn servers(values: &Values<'_>) -> Result<Vec<Server>, String> {
    let ports: Vec<u16> = match values.0.get("port") {
        Some(ports) => ports.split(',').map(port).collect::<Result<_, _>>()?,
        None => vec![PORT],
    };
    let hosts: Vec<&str> = values.0.get("host").map_or_else(Vec::new, |hosts| hosts.split(',').collect());
    let count = hosts.len().max(1);
    if ports.len() > 1 && ports.len() != count {
        return Err(format!("{} ports are named for {count} hosts", ports.len()));
    }
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
    let named = |at: usize| hosts.get(at).copied().filter(|host| !host.is_empty());
    Ok((0..count)
        .map(|at| Server { port: port(at), host: named(at).map_or_else(|| local(port(at)), str::to_owned) })
        .collect())
}

fn port(text: &str) -> Result<u16, String> {
    match text.trim() {
        "" => Ok(PORT),
        text => text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
            // It may be something else that came here by mistake.
            "the port is not a number from 1 to 65535".to_owned()
        }),
    }
}

/// The server of this machine.
fn local(port: u16) -> String {
    let has_socket = |folder: &&&str| std::path::Path::new(folder).join(format!(".s.PGSQL.{port}")).exists();
    SOCKETS.iter().find(has_socket).map_or_else(|| "localhost".to_owned(), |folder| (*folder).to_owned())
}

impl Server {
    /// How it is reached; the password is of the address or the environment, or else of the password file.
    fn config(&self, plan: &Plan, passwords: Option<&Path>) -> Config {
        let mut config = plan.common.clone();
        config.host(&self.host).port(self.port);
        let user = plan.user.as_deref().unwrap_or_default();
        config.user(user);
        let login = Login { host: &self.host, port: self.port, database: &plan.database, user };
        let known = || passfile::password(passwords?, &login);
        if let Some(password) = Some(()).filter(|()| config.get_password().is_none()).and_then(|()| known()) {
            config.password(password);
        }
        config
    }
}

/// The place in words, without a password.
fn place(servers: &[Server], database: &str, schema: &str) -> String {
    let named = |server: &Server| match server.port {
        PORT => server.host.clone(),
        port => format!("{}:{port}", server.host),
    };
    let hosts: Vec<_> = servers.iter().map(named).collect();
    let schema = if schema == NAMESPACE { String::new() } else { format!(", schema {schema}") };
    format!("PostgreSQL at {}, database {database}{schema}", hosts.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str, environment: &[(&str, &str)]) -> Address {
        let variable =
            |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Address::within(text, None, variable, None).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn the_environment_says_what_the_address_does_not() {
        let environment =
            [("PGHOST", "db"), ("PGPORT", "6000"), ("PGUSER", "me"), ("PGPASSWORD", "s3cret"), ("PGDATABASE", "jobs")];
        let address = resolved("postgres://", &environment);
        assert_eq!(address.place, "PostgreSQL at db:6000, database jobs");
        assert_eq!(address.servers[0].get_user(), Some("me"));
        assert_eq!(address.servers[0].get_password(), Some(&b"s3cret"[..]));
        let address = resolved("postgres://you@other/x?schema=one", &environment[..1]);
        assert_eq!(address.place, "PostgreSQL at other, database x, schema one");
        assert_eq!(address.servers[0].get_user(), Some("you"));
    }

    #[test]
    fn the_way_past_a_pooler_is_another_host_and_else_the_same() {
        let direct = "direct_url=postgres%3A%2F%2Fdb%3A6000";
        let address = resolved(&format!("postgres://me:s3cret@pool:6432/x?schema=one&{direct}"), &[]);
        let direct = address.direct.expect("the way");
        assert_eq!(direct.place, "PostgreSQL at db:6000, database x, schema one");
        assert_eq!(direct.servers[0].get_password(), Some(&b"s3cret"[..]));
        assert!(direct.direct.is_none());
    }

    #[test]
    fn several_servers_are_tried_each_at_its_own_port() {
        let address = resolved("postgres://a,b:6000,[::1]/x?target_session_attrs=read-write", &[]);
        let ports: Vec<_> = address.servers.iter().map(|config| config.get_ports()[0]).collect();
        assert_eq!((ports.as_slice(), address.servers.len()), (&[5432, 6000, 5432][..], 3));
        assert_eq!(address.place, "PostgreSQL at a or b:6000 or ::1, database x");
    }

    #[test]
    fn values_that_cannot_be_are_named_with_those_that_can() {
        for (address, why) in [
            ("postgres://db/x?sslmode=requir", "`require`"),
            ("postgres://db/x?sslrootcert=system&sslmode=require", "verify-full"),
            ("postgres://db/x?sslnegotiation=direct", "sslmode=require"),
            ("postgres://db/x?pool=2", "from 4 to 100"),
            ("postgres://db/x?statement_cache=no", "`off`"),
            ("postgres://db/x?direct_url=postgres%3A%2F%2Fdb%3Fpol%3D1", "`pool`"),
            ("postgres://db/x?connect_timeout=soon", "connect_timeout"),
            ("postgres://db/x?target_session_attrs=standby", "read-write"),
            ("postgres://db/x?schema=A%3B%20DROP", "cannot be the schema"),
            ("postgres://db/x?schema=pg_temp", "cannot be the schema"),
            ("postgres://a,b,c/x?port=1,2", "2 ports are named for 3 hosts"),
            ("postgres://db/x?gssencmode=require", "gssencmode"),
        ] {
            let error = check(address).expect_err(address).to_string();
            assert!(error.contains(why), "{address}: {error}");
        }
    }
}
