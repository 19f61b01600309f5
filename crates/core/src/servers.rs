//! What is known of the database server that keeps a store, and what of it hurts: judged here, with the way out.

use std::time::Duration;

use serde::Serialize;

/// A transaction or a slot that keeps the server from removing rows that nobody needs any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// What it is, in words.
    pub what: String,
    /// For how long, if that is known.
    pub held_secs: Option<u64>,
}

/// Facts about a server, as its catalogs have them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerFacts {
    /// How the connection is encrypted; none if it is not.
    pub tls: Option<String>,
    /// Whether the connection leaves the machine.
    pub is_remote: bool,
    /// Whether it is a standby, on which nothing can be written.
    pub is_standby: bool,
    /// Whether connections go through a pooler that gives each transaction another one.
    pub is_pooled: bool,
    /// Whether this role may change the schema when a new version needs it.
    pub may_migrate: bool,
    /// Whether what is written reaches the disk.
    pub fsync: bool,
    /// Whether pages that were torn by a crash can be mended.
    pub full_page_writes: bool,
    /// Whether a commit waits for the disk, as sessions begin.
    pub synchronous_commit: bool,
    /// Whether rows that nobody needs are removed without being asked for.
    pub autovacuum: bool,
    /// Rows of the store that nobody needs any more, and the table that has most of them.
    pub dead_rows: u64,
    /// Rows of the store.
    pub live_rows: u64,
    /// The table with the most dead rows.
    pub worst_table: Option<String>,
    /// What keeps dead rows from being removed.
    pub holders: Vec<Holder>,
    /// Connections that the server has.
    pub connections: u64,
    /// Connections that it takes.
    pub connections_max: u64,
    /// By how much its clock is ahead of this machine's, in milliseconds.
    pub clock_ahead_ms: i64,
    /// How far off that may be.
    pub clock_error_ms: u64,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Well.
    Well,
    /// It works, and will hurt.
    Warning,
    /// What is answered may be lost, or nothing can be written.
    Bad,
}

/// What was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What was looked at.
    pub check: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was found, with the way out.
    pub found: String,
}

/// Who holds the horizon for longer is named.
const HELD_MAX: Duration = Duration::from_secs(300);

/// Dead rows are spoken of from here on, if they are more than the rest.
const DEAD_ROWS_MIN: u64 = 50_000;

/// Clocks may be apart by so much before anybody notices in what they do.
const APART_MAX_MS: u64 = 1_000;

/// Judges what is known of a server.
pub fn judge(facts: &ServerFacts) -> Vec<Judged> {
    vec![
        rights(facts),
        encryption(facts),
        durability(facts),
        dead_rows(facts),
        horizon(facts),
        pooler(facts),
        clock(facts),
        connections(facts),
    ]
}

const fn judged(check: &'static str, verdict: Verdict, found: String) -> Judged {
    Judged { check, verdict, found }
}

fn rights(facts: &ServerFacts) -> Judged {
    if facts.is_standby {
        let found = "it is a standby, which can be read only: name the primary, or all servers with target_session_attrs=read-write";
        return judged("rights", Verdict::Bad, found.to_owned());
    }
    let found = match facts.may_migrate {
        true => "this role may bring the schema forward",
        false => {
            "this role may work and not change the schema: before an upgrade, somebody who may runs what `redrive store migrate --print` prints"
        }
    };
    judged("rights", Verdict::Well, found.to_owned())
}

fn encryption(facts: &ServerFacts) -> Judged {
    match (&facts.tls, facts.is_remote) {
        (Some(tls), _) => judged("encryption", Verdict::Well, tls.clone()),
        (None, false) => judged("encryption", Verdict::Well, "none, within this machine".to_owned()),
        (None, true) => {
            let found =
                "the connection is not encrypted: set sslmode=verify-full and sslrootcert in the store's address";
            judged("encryption", Verdict::Warning, found.to_owned())
        }
    }
}

fn durability(facts: &ServerFacts) -> Judged {
    let off: Vec<_> = [(facts.fsync, "fsync"), (facts.full_page_writes, "full_page_writes")]
        .into_iter()
        .filter_map(|(on, name)| (!on).then_some(name))
        .collect();
    if !off.is_empty() {
        let found = format!(
            "{} is off: a crash of the server's machine destroys what was answered; turn it on",
            off.join(" and ")
        );
        return judged("durability", Verdict::Bad, found);
    }
    let found = match facts.synchronous_commit {
        true => "what is answered is on the server's disk",
        false => {
            "what is answered is on the server's disk (synchronous_commit is off there, and turned on for what the store writes)"
        }
    };
    judged("durability", Verdict::Well, found.to_owned())
}

fn dead_rows(facts: &ServerFacts) -> Judged {
    let ServerFacts { dead_rows, live_rows, .. } = facts;
    let table = facts.worst_table.as_ref().map(|table| format!(", most of them in {table}")).unwrap_or_default();
    if !facts.autovacuum {
        let found = "autovacuum is off: dead rows slow everything down; turn it on".to_owned();
        return judged("vacuum", Verdict::Warning, found);
    }
    if *dead_rows >= DEAD_ROWS_MIN && dead_rows > live_rows {
        let found = format!(
            "{dead_rows} dead rows beside {live_rows} live ones{table}: see what holds the horizon, or run VACUUM on them"
        );
        return judged("vacuum", Verdict::Warning, found);
    }
    judged("vacuum", Verdict::Well, format!("{dead_rows} dead rows beside {live_rows} live ones"))
}

fn horizon(facts: &ServerFacts) -> Judged {
    let long = |holder: &&Holder| holder.held_secs.is_none_or(|held| held >= HELD_MAX.as_secs());
    let told = |holder: &Holder| match holder.held_secs {
        Some(held) => format!("{} for {} minutes", holder.what, held / 60),
        None => holder.what.clone(),
    };
    let holders: Vec<_> = facts.holders.iter().filter(long).map(told).collect();
    match holders.is_empty() {
        true => judged("horizon", Verdict::Well, "nothing keeps dead rows from being removed".to_owned()),
        false => {
            let found = format!("dead rows cannot be removed while this is there: {}; end it", holders.join("; "));
            judged("horizon", Verdict::Warning, found)
        }
    }
}

fn pooler(facts: &ServerFacts) -> Judged {
    match facts.is_pooled {
        false => judged("pooler", Verdict::Well, "none between: changes by others are heard at once".to_owned()),
        true => {
            let found = "a pooler gives each transaction another connection: changes by others are looked for each second; name the server \
                         itself with direct_url to hear of them at once";
            judged("pooler", Verdict::Warning, found.to_owned())
        }
    }
}

fn clock(facts: &ServerFacts) -> Judged {
    let (ahead, error) = (facts.clock_ahead_ms, facts.clock_error_ms);
    let side = if ahead < 0 { "behind" } else { "ahead of" };
    let found = format!("the server's clock is {} ms {side} this machine's (± {error} ms)", ahead.unsigned_abs());
    match ahead.unsigned_abs() > APART_MAX_MS.saturating_add(error) {
        true => judged("clock", Verdict::Warning, format!("{found}: have both set by NTP")),
        false => judged("clock", Verdict::Well, found),
    }
}

fn connections(facts: &ServerFacts) -> Judged {
    let found = format!("{} of {} are in use", facts.connections, facts.connections_max);
    match facts.connections.saturating_mul(10) >= facts.connections_max.saturating_mul(9) {
        true => {
            let found =
                format!("{found}: raise max_connections, lower pool in the store's address, or put a pooler between");
            judged("connections", Verdict::Warning, found)
        }
        false => judged("connections", Verdict::Well, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn well() -> ServerFacts {
        ServerFacts {
            tls: Some("TLSv1.3".to_owned()),
            is_remote: true,
            is_standby: false,
            is_pooled: false,
            may_migrate: true,
            fsync: true,
            full_page_writes: true,
            synchronous_commit: true,
            autovacuum: true,
            dead_rows: 10,
            live_rows: 1_000,
            worst_table: None,
            holders: Vec::new(),
            connections: 7,
            connections_max: 97,
            clock_ahead_ms: -3,
            clock_error_ms: 2,
        }
    }

    #[test]
    fn a_server_that_is_well_gets_no_warning() {
        assert!(judge(&well()).iter().all(|judged| judged.verdict == Verdict::Well), "{:?}", judge(&well()));
    }

    #[test]
    fn each_thing_that_hurts_is_named_with_the_way_out() {
        let holder = |held_secs| Holder { what: "a transaction of me".to_owned(), held_secs };
        for (facts, check, verdict, words) in [
            (ServerFacts { is_standby: true, ..well() }, "rights", Verdict::Bad, "target_session_attrs"),
            (ServerFacts { may_migrate: false, ..well() }, "rights", Verdict::Well, "store migrate --print"),
            (ServerFacts { tls: None, ..well() }, "encryption", Verdict::Warning, "sslmode"),
            (ServerFacts { tls: None, is_remote: false, ..well() }, "encryption", Verdict::Well, "this machine"),
            (ServerFacts { fsync: false, ..well() }, "durability", Verdict::Bad, "fsync"),
            (ServerFacts { full_page_writes: false, ..well() }, "durability", Verdict::Bad, "full_page_writes"),
            (ServerFacts { synchronous_commit: false, ..well() }, "durability", Verdict::Well, "turned on"),
            (ServerFacts { autovacuum: false, ..well() }, "vacuum", Verdict::Warning, "turn it on"),
            (ServerFacts { dead_rows: 60_000, ..well() }, "vacuum", Verdict::Warning, "VACUUM"),
            (ServerFacts { dead_rows: 60_000, live_rows: 90_000, ..well() }, "vacuum", Verdict::Well, "60000"),
            (ServerFacts { holders: vec![holder(Some(301))], ..well() }, "horizon", Verdict::Warning, "5 minutes"),
            (ServerFacts { holders: vec![holder(Some(10))], ..well() }, "horizon", Verdict::Well, "nothing"),
            (ServerFacts { holders: vec![holder(None)], ..well() }, "horizon", Verdict::Warning, "end it"),
            (ServerFacts { is_pooled: true, ..well() }, "pooler", Verdict::Warning, "direct_url"),
            (ServerFacts { clock_ahead_ms: -61_000, ..well() }, "clock", Verdict::Warning, "61000 ms behind"),
            (ServerFacts { connections: 95, ..well() }, "connections", Verdict::Warning, "max_connections"),
        ] {
            let judged = judge(&facts).into_iter().find(|judged| judged.check == check).expect(check);
            assert_eq!(judged.verdict, verdict, "{judged:?}");
            assert!(judged.found.contains(words), "{judged:?}");
        }
    }
}
