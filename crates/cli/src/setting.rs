//! The configuration, as the global arguments name it, and where everything is asked for: in a store of this machine, or at a server.

use std::ops::Deref;
use std::path::Path;

use anyhow::{Context, Result};
use redrive::Redrive;
use redrive::config::{RanCommands, Setting as Configured, TokenFile, isolation};
use redrive::tls::Authorities;
use redrive::vault::Vault;
use redrive_client::access::AccessError;
use redrive_client::{Access, AddressError, Desk, Server, ServerAddress};

use crate::args::Global;
use crate::exit::usage;

/// The command that runs one job in a process of its own.
pub const ISOLATED_JOB: &str = "isolated-job";

/// The variable with the token for a server. It is never an argument: others on the machine could read it.
const TOKEN: &str = "REDRIVE_TOKEN";

/// The variable with the PEM file of authorities that are believed beside the system's.
const AUTHORITIES: &str = "REDRIVE_CA";

/// The variable with the proxy through which a server is reached.
const PROXY: &str = "REDRIVE_PROXY";

/// The configuration, and the server that is asked instead of a store, if one is.
#[derive(Clone)]
pub struct Setting {
    configured: Configured,
    server: Option<Server>,
}

impl Deref for Setting {
    type Target = Configured;

    fn deref(&self) -> &Configured {
        &self.configured
    }
}

/// Reads the configuration; the command line comes before it.
pub fn load(global: &Global) -> Result<Setting> {
    let server = server(global)?;
    let store = global.store.as_deref().filter(|_| server.is_none());
    let configured = Configured::load(global.config.as_deref(), store)?;
    let configured = configured.isolated_by(isolation::this_program(&[ISOLATED_JOB]));
    let configured = configured.remembering(RanCommands::of_this_user());
    let configured = match &server {
        Some(server) => configured.for_server(server.address().to_string()),
        None => configured,
    };
    Ok(Setting { configured, server })
}

/// Refuses to do on this machine what was asked of a server.
pub fn only_here(global: &Global) -> Result<()> {
    match global.server.as_deref().filter(|address| !address.is_empty() && global.store.is_none()) {
        Some(address) => Err(elsewhere(address)),
        None => Ok(()),
    }
}

fn elsewhere(address: &str) -> anyhow::Error {
    usage(format!(
        "this is done on the machine that has the store, not over the network at {address}: leave out --server (or unset REDRIVE_SERVER)"
    ))
}

impl Setting {
    /// Where what is there already is asked for.
    pub async fn desk(&self) -> Result<Desk, redrive::Error> {
        match &self.server {
            Some(server) => Ok(Desk::There(server.clone())),
            None => Ok(Desk::Here(self.configured.redrive_existing().await?)),
        }
    }

    /// The same, with a store that is made if need be.
    pub async fn desk_or_new(&self) -> Result<Desk, redrive::Error> {
        match &self.server {
            Some(server) => Ok(Desk::There(server.clone())),
            None => Ok(Desk::Here(self.configured.redrive().await?)),
        }
    }

    /// The same for who is to work: a store, or a server, that does not answer is waited for.
    pub async fn desk_to_work(&self) -> Result<Desk, redrive::Error> {
        match &self.server {
            Some(server) => Ok(Desk::There(server.clone())),
            None => Ok(Desk::Here(self.configured.redrive_to_work().await?)),
        }
    }

    /// The server that is asked, if one is.
    pub const fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// Where everything is.
    pub fn place(&self) -> String {
        match &self.server {
            Some(server) => server.address().to_string(),
            None => self.location.to_string(),
        }
    }

    /// The configuration of this machine, for what is done to a store itself and cannot be asked of a server.
    pub fn here(&self) -> Result<&Configured> {
        match &self.server {
            None => Ok(&self.configured),
            Some(server) => Err(elsewhere(&server.address().to_string())),
        }
    }

    /// Opens the store that is there.
    pub async fn redrive_existing(&self) -> Result<Redrive> {
        Ok(self.here()?.redrive_existing().await?)
    }

    /// The vault of this machine; none where a server has its own.
    pub fn vault_of(&self, desk: &Desk) -> Result<Option<Vault>, redrive::Error> {
        match desk {
            Desk::Here(redrive) => self.configured.vault(redrive),
            Desk::There(_) => Ok(None),
        }
    }
}

/// Where something was said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Nowhere,
    InVariable,
    AsArgument,
}

impl Said {
    /// An argument that says what the variable says is taken for the variable: it makes no difference.
    fn of(value: Option<&str>, variable: &str) -> Self {
        match (value, std::env::var(variable)) {
            (None, _) => Self::Nowhere,
            (Some(value), Ok(in_variable)) if in_variable == value => Self::InVariable,
            (Some(_), _) => Self::AsArgument,
        }
    }
}

/// The server that is named, if one is and no store is named nearer by.
fn server(global: &Global) -> Result<Option<Server>> {
    let Some(address) = global.server.as_deref().filter(|address| !address.is_empty()) else { return Ok(None) };
    match (Said::of(global.store.as_deref(), "REDRIVE_STORE"), Said::of(Some(address), "REDRIVE_SERVER")) {
        (Said::AsArgument, Said::AsArgument) => {
            return Err(usage("--store and --server are both given: where is it to be asked for?"));
        }
        (Said::InVariable, Said::InVariable) => {
            return Err(usage(
                "REDRIVE_STORE and REDRIVE_SERVER are both set: unset one of them, or say --store or --server",
            ));
        }
        (Said::AsArgument, _) => return Ok(None),
        _ => {}
    }
    let address: ServerAddress = address.parse().map_err(|error: AddressError| usage(error.to_string()))?;
    let named = token(global.token_file.as_deref())?;
    let found = if named.is_none() { token_here(&address, global) } else { None };
    let mut access = Access::new(address, named.as_deref().or(found.as_deref())).map_err(refused)?;
    access.own_server_only = found.is_some();
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(path) = variable(AUTHORITIES) {
        access.authorities =
            Authorities::read(Path::new(&path)).map_err(|why| usage(format!("{AUTHORITIES}: {why}")))?;
    }
    access.proxy = variable(PROXY);
    Ok(Some(Server::new(access).map_err(refused)?))
}

/// The token: of the file that is named, or of the variable.
fn token(file: Option<&Path>) -> Result<Option<String>> {
    let Some(path) = file else { return Ok(std::env::var(TOKEN).ok().filter(|token| !token.is_empty())) };
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read the token in {}", path.display()))?;
    match text.trim() {
        "" => Err(usage(format!("{} has no token in it", path.display()))),
        token => Ok(Some(token.to_owned())),
    }
}

/// The token of the token file, for a server on this machine whose store has no token yet.
fn token_here(address: &ServerAddress, global: &Global) -> Option<String> {
    let port = address.port().filter(|_| address.is_loopback())?;
    let configured = || Configured::load(global.config.as_deref(), global.store.as_deref()).ok();
    TokenFile::find(port, || configured().map(|configured| configured.location))
}

fn refused(error: AccessError) -> anyhow::Error {
    usage(match error {
        AccessError::NoProxy => format!("{PROXY}: {error}"),
        AccessError::NoToken => format!("{error}: look at {TOKEN}, or the file of --token-file"),
        AccessError::Address(AddressError::InPlainText(_)) => {
            format!("{error}; use its https address, or a tunnel (ssh -L) and http://127.0.0.1")
        }
        other => other.to_string(),
    })
}
