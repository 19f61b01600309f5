//! The parameters of an address, by the names that libpq gives them, and a few of our own.

use std::collections::BTreeMap;

/// A parameter and the variable of the environment that has its value if the address does not.
const KNOWN: &[(&str, Option<&str>)] = &[
    ("host", Some("PGHOST")),
    ("port", Some("PGPORT")),
    ("user", Some("PGUSER")),
    ("password", Some("PGPASSWORD")),
    ("passfile", Some("PGPASSFILE")),
    ("dbname", Some("PGDATABASE")),
    ("options", Some("PGOPTIONS")),
    ("application_name", Some("PGAPPNAME")),
    ("connect_timeout", Some("PGCONNECT_TIMEOUT")),
    ("sslmode", Some("PGSSLMODE")),
    ("sslrootcert", Some("PGSSLROOTCERT")),
    ("sslcert", Some("PGSSLCERT")),
    ("sslkey", Some("PGSSLKEY")),
    ("sslnegotiation", Some("PGSSLNEGOTIATION")),
    ("channel_binding", Some("PGCHANNELBINDING")),
    ("target_session_attrs", Some("PGTARGETSESSIONATTRS")),
    ("keepalives", None),
    ("keepalives_idle", None),
    ("keepalives_interval", None),
    ("keepalives_count", None),
    ("tcp_user_timeout", None),
    ("schema", None),
    ("pool", None),
    ("direct_url", None),
    ("statement_cache", None),
    // Taken, so that addresses written for other programs can be used; a value that would change something is refused.
    ("gssencmode", None),
    ("client_encoding", None),
    ("sslcompression", None),
];

/// Parameters of libpq that mean something that is not done here. To ignore them would be to promise it.
const NOT_HERE: &[&str] = &[
    "fallback_application_name",
    "gssdelegation",
    "gsslib",
    "hostaddr",
    "krbsrvname",
    "load_balance_hosts",
    "max_protocol_version",
    "min_protocol_version",
    "oauth_client_id",
    "oauth_issuer",
    "replication",
    "require_auth",
    "requirepeer",
    "scram_client_key",
    "scram_server_key",
    "service",
    "servicefile",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcertmode",
    "sslcrl",
    "sslcrldir",
    "sslpassword",
    "sslsni",
];

/// What an address says, by the names of the parameters. Not printed: one of them is the password.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Given(BTreeMap<usize, String>);

impl Given {
    /// Says something; what is said last counts.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        if let Some(at) = KNOWN.iter().position(|(known, _)| *known == name) {
            self.0.insert(at, value.to_owned());
        }
    }

    pub(super) fn set_if_any(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.set(name, value);
        }
    }

    /// What is said about a parameter; nothing if it is empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let at = KNOWN.iter().position(|(known, _)| *known == name)?;
        self.0.get(&at).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// What the address does not say is said by the environment.
    pub(super) fn filled_by(mut self, environment: impl Fn(&str) -> Option<String>) -> Self {
        for (at, (_, variable)) in KNOWN.iter().enumerate() {
            let value = variable.filter(|_| !self.0.contains_key(&at)).and_then(&environment);
            self.0.extend(value.map(|value| (at, value)));
        }
        self
    }

    /// What this does not say is said by another, but for some.
    pub(super) fn completed_by(mut self, other: &Self, except: &[&str]) -> Self {
        for (at, value) in other.0.iter().filter(|(at, _)| !except.contains(&KNOWN[**at].0)) {
            self.0.entry(*at).or_insert_with(|| value.clone());
        }
        self
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let order = ["user", "password", "host", "port", "dbname"];
        let place = |name: &str| order.iter().position(|first| *first == name).unwrap_or(order.len());
        let mut all: Vec<_> = self.0.iter().map(|(at, value)| (KNOWN[*at].0, value.as_str())).collect();
        all.sort_by_key(|(name, _)| place(name));
        all.into_iter()
    }
}

/// A parameter by its name; else an error that names the nearest one, but never a value.
pub(super) fn known(name: &str) -> Result<&'static str, String> {
    if let Some((known, _)) = KNOWN.iter().find(|(known, _)| *known == name) {
        return Ok(known);
    }
    if NOT_HERE.contains(&name) {
        return Err(format!("`{name}` is a parameter that redrive does not have: leave it out"));
    }
    // Something without its name may be a password.
    match meant(name) {
        meant if meant.is_empty() => Err(format!("a parameter is not known; there are {}", names())),
        meant => Err(format!("the parameter `{name}` is not known{meant}")),
    }
}

/// The nearest name as a question, if any is like it.
pub(super) fn meant(name: &str) -> String {
    let alike = |known: &str| strsim::jaro_winkler(name, known);
    let nearest = KNOWN.iter().map(|(known, _)| *known).max_by(|a, b| alike(a).total_cmp(&alike(b)));
    nearest
        .filter(|nearest| alike(nearest) > 0.8)
        .map_or_else(String::new, |nearest| format!(": is `{nearest}` meant?"))
}

fn names() -> String {
    KNOWN.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
