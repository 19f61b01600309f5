//! Getting into a PostgreSQL server as users of libpq expect it: encryption and certificates, passwords, rights, and SQL that somebody
//! else applies.

#[path = "../../../../redrive/tests/support/servers/authority.rs"]
mod authority;
mod operating;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use redrive_store::contract::{Health, LedgerStore};
use redrive_store::postgres::PostgresStore;
use redrive_store::{Options, Store, StoreError};
use tokio_postgres::NoTls;

use self::authority::{Authority, self_signed};
use crate::support::server::{self, OwnServer, address, schema};

/// A connection to a server by the first way that it can be reached; one that begins is waited for.
async fn connected(ways: &[&str]) -> tokio_postgres::Client {
    let since = Instant::now();
    loop {
        for way in ways {
            if let Ok((client, connection)) = tokio_postgres::connect(way, NoTls).await {
                tokio::spawn(connection);
                return client;
            }
        }
        assert!(since.elapsed() < Duration::from_secs(60), "the server is reached");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A server that is reached over the network, with certificates.
struct Reached {
    server: OwnServer,
    folder: tempfile::TempDir,
    port: u16,
}

impl Reached {
    async fn start() -> Self {
        let server = OwnServer::start();
        let folder = tempfile::tempdir().expect("a folder");
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let reached = Self { server, folder, port };
        reached.sql("ALTER SYSTEM SET listen_addresses = 'localhost'").await;
        reached.sql(&format!("ALTER SYSTEM SET port = {port}")).await;
        reached.server.stop();
        connected(&[&reached.over_network("redrive")]).await;
        reached
    }

    fn over_network(&self, user: &str) -> String {
        format!("host=127.0.0.1 port={} user={user} dbname=postgres sslmode=disable", self.port)
    }

    /// Runs statements as the server's owner, by whichever way it has now.
    async fn sql(&self, sql: &str) {
        let ways = [self.over_network("redrive"), self.server.address()];
        connected(&ways.each_ref().map(String::as_str)).await.batch_execute(sql).await.expect(sql);
    }

    /// Gives the server a file of its own.
    fn give(&self, from: &Path, name: &str) -> PathBuf {
        let data = self.server.folder().join("data");
        let to = data.join(name);
        fs::copy(from, &to).expect("copied");
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).expect("set");
        let owned = Command::new("chown").arg("--reference").args([&data, &to]).status().expect("chown runs");
        assert!(owned.success());
        to
    }

    /// Takes settings that were changed into force.
    async fn reload(&self) {
        self.sql("SELECT pg_reload_conf()").await;
    }

    /// Uses a certificate, or none.
    async fn use_certificate(&self, file: Option<&str>) {
        if let Some(file) = file {
            self.give(&self.path(&format!("{file}.pem")), "server.crt");
            self.give(&self.path(&format!("{file}.key")), "server.key");
        }
        let on = if file.is_some() { "on" } else { "off" };
        self.sql(&format!("ALTER SYSTEM SET ssl = {on}")).await;
        self.reload().await;
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Opens the store as users write it.
    async fn open(&self, host: &str, rest: &str) -> Result<Health, StoreError> {
        let url = format!("postgres://redrive@{host}:{}/postgres?{rest}", self.port);
        PostgresStore::open(&url, None, Options::create()).await?.health().await
    }

    /// Whether a connection is encrypted. What was changed takes a moment to be in force.
    async fn encrypts(&self, host: &str, rest: &str, expected: Result<bool, &str>) {
        let since = Instant::now();
        loop {
            let opened = self.open(host, rest).await;
            let found =
                opened.map(|health| health.server.expect("facts").tls.is_some()).map_err(|error| error.to_string());
            let fits = match (&found, expected) {
                (Ok(found), Ok(expected)) => *found == expected,
                (Err(found), Err(expected)) => found.contains(expected),
                _ => false,
            };
            if fits {
                return;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "{host} {rest}: {found:?}, expected {expected:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_encrypted_and_servers_known_as_libpq_does() {
    let reached = Reached::start().await;
    let folder = reached.folder.path();
    let authority = Authority::new(folder, "authority");
    let stranger = Authority::new(folder, "stranger");
    authority.sign(folder, "server", "localhost", 2090);
    authority.sign(folder, "expired", "localhost", 2020);
    authority.sign(folder, "client", "somebody", 2090);
    self_signed(folder, "alone", true);
    let (right, wrong) = (authority.pem.display().to_string(), stranger.pem.display().to_string());

    // A server that does not speak TLS.
    reached.encrypts("localhost", "sslmode=prefer", Ok(false)).await;
    reached.encrypts("localhost", "", Ok(false)).await;
    reached.encrypts("localhost", "sslmode=require", Err("does not speak TLS")).await;

    reached.use_certificate(Some("server")).await;
    reached.encrypts("localhost", "", Ok(true)).await;
    reached.encrypts("localhost", "sslmode=disable", Ok(false)).await;
    reached.encrypts("localhost", "sslmode=allow", Ok(false)).await;
    reached.encrypts("127.0.0.1", "sslmode=require", Ok(true)).await;
    reached.encrypts("localhost", &format!("sslmode=require&sslrootcert={right}"), Ok(true)).await;
    reached.encrypts("localhost", &format!("sslmode=require&sslrootcert={wrong}"), Err("sslrootcert")).await;
    // Who prefers encryption does without rather than encrypt towards a stranger.
    reached.encrypts("localhost", &format!("sslmode=prefer&sslrootcert={wrong}"), Ok(false)).await;
    reached.encrypts("127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={right}"), Ok(true)).await;
    reached.encrypts("localhost", &format!("sslmode=verify-ca&sslrootcert={wrong}"), Err("not trusted")).await;
    reached.encrypts("localhost", &format!("sslmode=verify-full&sslrootcert={right}"), Ok(true)).await;
    reached.encrypts("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={right}"), Err("not valid for name")).await;
    reached.encrypts("localhost", "sslmode=verify-full", Err("sslrootcert=FILE")).await;
    reached.encrypts("localhost", "sslrootcert=system", Err("refuses")).await;
    reached.encrypts("localhost", "sslmode=verify-ca&sslrootcert=/no/such/file", Err("cannot be read")).await;

    // Certificates of clients.
    reached.give(&authority.pem, "root.crt");
    let rules = reached.path("pg_hba.conf");
    let text = "hostssl all guest all trust clientcert=verify-ca\nhost all guest all reject\nlocal all all trust\nhost all all all trust\n";
    fs::write(&rules, text).expect("written");
    reached.give(&rules, "pg_hba.conf");
    reached.sql("ALTER SYSTEM SET ssl_ca_file = 'root.crt'").await;
    reached.sql("CREATE ROLE guest LOGIN; GRANT CREATE ON DATABASE postgres TO guest").await;
    reached.reload().await;
    let (certificate, key) = (reached.path("client.pem"), reached.path("client.key"));
    let shown = format!("user=guest&schema=of_guest&sslcert={}&sslkey={}", certificate.display(), key.display());
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("set");
    reached.encrypts("localhost", &format!("sslmode=require&{shown}"), Err("0600")).await;
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("set");
    reached.encrypts("localhost", "sslmode=require&user=guest&schema=of_guest", Err("certificate")).await;
    reached.encrypts("localhost", &format!("sslmode=require&{shown}"), Ok(true)).await;
    // The server takes this user only encrypted: who allows it is encrypted then.
    reached.encrypts("localhost", &format!("sslmode=allow&{shown}"), Ok(true)).await;

    reached.use_certificate(Some("expired")).await;
    reached.encrypts("localhost", &format!("sslmode=verify-ca&sslrootcert={right}"), Err("expired")).await;
    reached.use_certificate(Some("alone")).await;
    let alone = reached.path("alone.pem");
    reached.encrypts("localhost", &format!("sslmode=verify-full&sslrootcert={}", alone.display()), Ok(true)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_let_in_is_told_why_and_never_the_password() {
    let reached = Reached::start().await;
    reached.sql("CREATE ROLE worker LOGIN PASSWORD 'r1ght'").await;
    reached.sql("CREATE DATABASE taken").await;
    let rules = reached.path("pg_hba.conf");
    let text = "host all redrive all trust\nhost nobody all all trust\nhost postgres worker all scram-sha-256\n";
    fs::write(&rules, text).expect("written");
    reached.give(&rules, "pg_hba.conf");
    reached.reload().await;
    let file = reached.path("pgpass");
    fs::write(&file, format!("127.0.0.1:{}:postgres:worker:r1ght\n", reached.port)).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("set");
    let (port, file) = (reached.port, file.display());
    let at = |user: &str, rest: &str| format!("postgres://{user}@127.0.0.1:{port}/{rest}");
    for (url, why) in [
        (at("worker:wr0ng", "postgres"), "password authentication failed"),
        (at("worker", "postgres?passfile=/no/such/file"), "a password is needed"),
        (at("worker:r1ght", "postgres"), "store migrate --print"),
        (at("worker", &format!("postgres?passfile={file}")), "store migrate --print"),
        (at("worker:r1ght", "taken"), "pg_hba.conf"),
        (at("redrive:wr0ng", "nowhere"), "CREATE DATABASE"),
    ] {
        let since = Instant::now();
        // What was changed takes a moment to be in force.
        let said = loop {
            let error = PostgresStore::open(&url, None, Options::create()).await.err().map(|error| error.to_string());
            match error {
                Some(error) if error.contains(why) => break error,
                other => assert!(since.elapsed() < Duration::from_secs(60), "{url}: {other:?}, expected {why}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        assert!(!said.contains("wr0ng") && !said.contains("r1ght"), "{said}");
    }
}

/// Runs statements in the shared server, past the store.
async fn sql(sql: &str) {
    connected(&[&address()]).await.batch_execute(sql).await.expect(sql);
}

/// The version of this build.
async fn newest(schema: &str) -> i64 {
    PostgresStore::migration(&server::url(schema)).await.expect("looked").to
}

#[tokio::test]
async fn a_role_that_may_create_nothing_works_with_what_somebody_else_applied() {
    let schema = schema();
    let role = format!("role_{schema}");
    sql(&format!("CREATE ROLE {role} LOGIN")).await;
    let folder = server::server().display();
    let url = format!("postgres://{role}@/postgres?host={folder}&schema={schema}");
    let refused = PostgresStore::open(&url, None, Options::create()).await.err().expect("refused");
    assert!(matches!(refused, StoreError::Refused { .. }), "{refused}");
    let migration = PostgresStore::migration(&url).await.expect("looked");
    let newest = migration.to;
    assert_eq!(migration.from, None);
    let script = tempfile::NamedTempFile::new().expect("a file");
    fs::write(script.path(), &migration.sql).expect("written");
    let applied = Command::new("psql")
        .args(["-v", "ON_ERROR_STOP=1", "-q", "-d", &address(), "-f"])
        .arg(script.path())
        .output()
        .expect("psql runs");
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    let again = PostgresStore::migration(&url).await.expect("looked");
    assert_eq!((again.from, again.sql.as_str()), (Some(newest), ""));
    let store: std::sync::Arc<dyn Store> =
        std::sync::Arc::new(PostgresStore::open(&url, None, Options::create()).await.expect("opened"));
    use redrive_store::conformance::script::{assert_sound, at, attach, enqueue, job, lease_all, plain, settle};
    enqueue(&store, vec![job(1, plain()), job(2, plain())]).await;
    attach(&store, 1).await;
    for leased in &lease_all(&store, 10, at(0)).await.jobs {
        settle(&store, leased, redrive_core::settlements::Outcome::Done, at(1)).await;
    }
    assert_sound(&store).await;
    assert!(!store.health().await.expect("looked").server.expect("facts").may_migrate);
}

#[tokio::test]
async fn a_worker_goes_on_beside_a_newer_version_that_says_it_may() {
    let schema = schema();
    let url = server::url(&schema);
    let open = || PostgresStore::open(&url, None, Options::create());
    drop(open().await.expect("made"));
    let newest = newest(&schema).await;
    sql(&format!("UPDATE {schema}.meta SET version = {}, oldest = {newest}", newest + 1)).await;
    let store = open().await.expect("a version that adds, and takes nothing away");
    assert_eq!(store.health().await.expect("looked").schema_version, newest + 1);
    sql(&format!("UPDATE {schema}.meta SET version = {}, oldest = {}", newest + 2, newest + 1)).await;
    let refused = open().await.err().expect("refused");
    assert!(
        matches!(refused, StoreError::NewerSchema { found, known, .. } if (found, known) == (newest + 2, newest)),
        "{refused}"
    );
}
