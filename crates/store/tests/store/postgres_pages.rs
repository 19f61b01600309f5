//! Pages of letters are found by indexes, however many letters there are: the server itself says whether it read a whole table.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redrive_core::dead::Gate;
use redrive_core::failures::Reason;
use redrive_store::Options;
use redrive_store::conformance::script::{Shared, at, attach, bury, job, pipeline, plain};
use redrive_store::contract::{CountDead, DeadBy, DeadFilter, ListCauses, ListDead};
use redrive_store::postgres::PostgresStore;
use tokio_postgres::{Client, NoTls};

use crate::support::server::{address, schema};

/// So many letters there are.
const LETTERS: u32 = 30_000;

/// A database of this test's own, so that nobody else's reading is counted.
struct Database {
    address: String,
    client: Client,
    name: String,
}

impl Database {
    async fn make() -> Self {
        let name = schema();
        let (maker, connection) = tokio_postgres::connect(&address(), NoTls).await.expect("connected");
        tokio::spawn(connection);
        maker.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("made");
        let address = address().replace("dbname=postgres", &format!("dbname={name}"));
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await.expect("connected");
        tokio::spawn(connection);
        Self { address, client, name }
    }

    async fn open(&self) -> Shared {
        Arc::new(PostgresStore::open(&self.address, None, Options::create()).await.expect("opened"))
    }

    async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(sql, &[]).await.expect(sql).get(0)
    }

    /// How often the whole table of letters was read, once all other connections have ended: they say so at their end.
    async fn whole_reads(&self) -> i64 {
        let others = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = '{}' AND pid <> pg_backend_pid()
             AND backend_type = 'client backend'",
            self.name
        );
        let since = Instant::now();
        while self.number(&others).await > 0 {
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "connections of a store that was dropped are still there"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.number("SELECT seq_scan FROM pg_stat_all_tables WHERE schemaname = 'redrive' AND relname = 'dead'").await
    }

    /// Letters of three reasons, fifty targets and eight proxies, a second apart.
    async fn fill(&self) {
        let store = self.open().await;
        attach(&store, 1).await;
        for (n, (reason, message)) in
            [(Reason::Blocked, "blocked"), (Reason::Timeout, "slow"), (Reason::ServerError, "broken")]
                .into_iter()
                .enumerate()
        {
            bury(&store, job(n as u128, plain()), reason, message, at(0)).await;
        }
        drop(store);
        let many = format!(
            "INSERT INTO redrive.dead (seq, id, pipeline, target, accepted_at, died_at, kept_from, attempts, crashes, replays, gate,
                                       reason, code, http_status, proxy, message, input, cause_key)
             SELECT 1000 + n, md5(n::text)::uuid, d.pipeline, 'shop' || n % 50, d.accepted_at, d.died_at + n * 1000, d.kept_from + n,
                    1, 0, 0, 'review', d.reason, 'E' || n % 20, 200, 'p' || n % 8, d.message || ' ' || n, d.input, d.cause_key
             FROM generate_series(1, {LETTERS}) n
             JOIN (SELECT *, row_number() OVER (ORDER BY seq) - 1 AS k FROM redrive.dead) d ON d.k = n % 3;
             UPDATE redrive.cause_key k SET dead = (SELECT count(*) FROM redrive.dead d WHERE d.cause_key = k.id);
             ANALYZE"
        );
        // On a connection of its own: what a connection read may be told as late as at its end.
        let (filler, connection) = tokio_postgres::connect(&self.address, NoTls).await.expect("connected");
        tokio::spawn(connection);
        filler.batch_execute(&many).await.expect("filled");
    }
}

fn filters() -> Vec<(&'static str, DeadFilter)> {
    let all = DeadFilter::default;
    let later = Some(at(i64::from(LETTERS) / 2));
    vec![
        ("all", all()),
        ("a pipeline", DeadFilter { pipeline: Some(pipeline()), ..all() }),
        ("a reason", DeadFilter { reason: Some(Reason::Timeout), ..all() }),
        ("a code", DeadFilter { code: Some("E7".to_owned()), ..all() }),
        ("a target", DeadFilter { target: Some("shop7".to_owned()), ..all() }),
        ("a proxy", DeadFilter { proxy: Some("p3".to_owned()), ..all() }),
        ("a gate", DeadFilter { gate: Some(Gate::Review), ..all() }),
        ("since", DeadFilter { since: later, ..all() }),
        ("until", DeadFilter { until: later, ..all() }),
        ("a text that is found", DeadFilter { text: Some("slow".to_owned()), ..all() }),
        (
            "a pipeline, a reason and a target",
            DeadFilter {
                pipeline: Some(pipeline()),
                reason: Some(Reason::Blocked),
                target: Some("shop3".to_owned()),
                ..all()
            },
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_and_no_kept_count_reads_all_letters() {
    let database = Database::make().await;
    database.fill().await;
    let before = database.whole_reads().await;
    for (named, filter) in filters() {
        let store = database.open().await;
        let first = ListDead::newest(filter, 50);
        let page = store.list_dead(first.clone()).await.expect("listed");
        assert_eq!(page.items.len(), 50, "{named}");
        let next = store.list_dead(ListDead { cursor: page.next, ..first }).await.expect("listed");
        assert_eq!(next.items.len(), 50, "{named}");
        drop(store);
        assert_eq!(database.whole_reads().await, before, "letters of {named} are listed by an index");
    }
    let store = database.open().await;
    for by in [DeadBy::Pipeline, DeadBy::Reason, DeadBy::Code, DeadBy::Cause, DeadBy::Target, DeadBy::Hour] {
        let counted =
            store.count_dead(CountDead { by, filter: DeadFilter::default(), limit: 10 }).await.expect("counted");
        assert_eq!(counted.first().map(|count| count.of), Some(i64::from(LETTERS) + 3));
    }
    let causes = ListCauses { with_empty: false, ..ListCauses::all(50, at(i64::from(LETTERS))) };
    let causes = store.list_causes(causes).await.expect("listed");
    assert_eq!(causes.len(), 3);
    for cause in causes {
        let filter = DeadFilter { cause: Some(cause.id), ..DeadFilter::default() };
        let page = ListDead::newest(filter, 50);
        assert_eq!(store.list_dead(page).await.expect("listed").items.len(), 50);
    }
    store.ledgers().await.expect("read");
    drop(store);
    assert_eq!(database.whole_reads().await, before, "kept counts, causes and their letters are read by indexes");
}
