//! Opening the object store that a vault keeps payloads in: a folder, or a bucket that a URL names.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreScheme};
use redrive_core::secrets::Secrets;

use super::{VaultError, s3};

/// Options begin with this; other variables of the environment are not about the vault.
const PREFIX: &str = "AWS_";

/// By these it is said by which key requests are signed.
const KEYS: [&str; 4] = [
    "aws_access_key_id",
    "aws_web_identity_token_file",
    "aws_container_credentials_relative_uri",
    "aws_container_credentials_full_uri",
];

/// The names of an endpoint.
pub(super) const ENDPOINTS: [&str; 3] = ["aws_endpoint_url_s3", "aws_endpoint_url", "aws_endpoint"];

/// Where a vault is, and how it is reached.
#[derive(Clone, Default)]
pub struct VaultPlace {
    /// A folder, or a URL such as `s3://bucket/prefix`.
    pub address: String,
    /// Options by the names that they have in the environment: `AWS_ENDPOINT_URL_S3` and so on.
    pub options: BTreeMap<String, String>,
}

/// Not derived: options are secret.
impl std::fmt::Debug for VaultPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VaultPlace({})", self.shown())
    }
}

impl VaultPlace {
    /// An address, reached by what the environment says.
    pub fn of_environment(address: &str) -> Self {
        Self { address: address.to_owned(), options: of_variables(std::env::vars_os()) }
    }

    /// The folder, if it is one.
    pub fn folder(&self) -> Option<&Path> {
        (!self.address.contains("://")).then(|| Path::new(&self.address))
    }

    /// Its address as it may be told, in errors and rows: without credentials.
    pub fn shown(&self) -> String {
        match self.folder() {
            Some(_) => self.address.clone(),
            None => Secrets::default().mask(&self.address),
        }
    }

    /// Where requests go, if somebody said so; the most specific name counts.
    pub fn endpoint(&self) -> Option<&str> {
        ENDPOINTS.iter().find_map(|name| self.option(name))
    }

    /// Whether two addresses are one vault.
    pub fn is_same(&self, other: &Self) -> bool {
        let found = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        match (self.folder(), other.folder()) {
            (Some(a), Some(b)) => found(a) == found(b),
            (None, None) => {
                let plain = |place: &Self| place.address.trim_end_matches('/').to_owned();
                (plain(self), self.endpoint()) == (plain(other), other.endpoint())
            }
            _ => false,
        }
    }

    /// Whether it is said by which key requests are signed; else the machine's own is asked for, as clouds have it.
    pub fn has_key(&self) -> bool {
        self.options.keys().any(|name| KEYS.iter().any(|key| name.eq_ignore_ascii_case(key)))
    }

    /// An option, by its name in lowercase.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// An object store, and how it is spoken of.
pub(super) struct Objects {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The folder, if it is one.
    pub(super) folder: Option<Arc<Path>>,
    /// Its address, without credentials.
    pub(super) shown: String,
}

/// The longest code of an error that is told.
const CODE_CHARS_MAX: usize = 64;

/// How often a request that failed is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// As often as is usual.
    Usual,
    /// Never: whoever waits wants to know what is wrong.
    None,
}

/// The options among variables. What is no text is no option.
fn of_variables(variables: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let texts = variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.filter(|(name, _)| name.starts_with(PREFIX)).collect()
}

/// Opens what a place names.
pub(super) fn open(place: &VaultPlace, patience: Patience) -> Result<Objects, VaultError> {
    let shown = place.shown();
    let wrong = |why: String| VaultError::Address { address: shown.clone(), why: Secrets::default().mask(&why) };
    if let Some(folder) = place.folder() {
        let objects = Arc::new(open_folder(folder).map_err(wrong)?);
        return Ok(Objects { objects, folder: Some(folder.into()), shown });
    }
    crate::tls::ensure_provider();
    let url = url::Url::parse(&place.address).map_err(|error| wrong(error.to_string()))?;
    let (scheme, prefix) = ObjectStoreScheme::parse(&url).map_err(|_| wrong(elsewhere()))?;
    let objects: Arc<dyn ObjectStore> = match scheme {
        ObjectStoreScheme::AmazonS3 => {
            Arc::new(PrefixStore::new(s3::open(&url, place, patience).map_err(wrong)?, prefix))
        }
        _ => {
            let (objects, prefix) = object_store::parse_url(&url).map_err(|_| wrong(elsewhere()))?;
            Arc::new(PrefixStore::new(objects, prefix))
        }
    };
    Ok(Objects { objects, folder: None, shown })
}

/// What is said of an address of another kind.
fn elsewhere() -> String {
    "expected a folder, or s3://bucket/prefix; a server of your own is named as its endpoint".to_owned()
}

fn open_folder(folder: &Path) -> Result<LocalFileSystem, String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let local = LocalFileSystem::new_with_prefix(folder).map_err(|error| error.to_string())?;
    Ok(local.with_fsync(true))
}

/// What is at the bottom of an error, whose layers say the same again and again: the status and the code that a server answered
/// with, or what the system says.
pub(super) fn root_cause(error: &object_store::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let said = cause.to_string();
    let Some((_, answer)) = said.split_once("status code: ") else { return said };
    let status = answer.split(':').next().unwrap_or_default();
    // Of the body only the code is told: the rest is whatever the server likes.
    let code = answer.split_once("<Code>").map(|(_, rest)| rest).unwrap_or_default();
    let code: String = code.chars().take_while(char::is_ascii_alphanumeric).take(CODE_CHARS_MAX).collect();
    if code.is_empty() { status.to_owned() } else { format!("{status} ({code})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(address: &str, options: &[(&str, &str)]) -> VaultPlace {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        VaultPlace { address: address.to_owned(), options: options.collect() }
    }

    fn refused(address: &str, options: &[(&str, &str)]) -> String {
        open(&place(address, options), Patience::None).err().expect("refused").to_string()
    }

    #[test]
    fn what_is_not_about_the_vault_is_left_in_the_environment() {
        let variables = ["TOKEN", "BUCKET", "ENDPOINT", "REGION", "AWS_REGION", "TIMEOUT"];
        let found = of_variables(variables.into_iter().map(|name| (name.into(), "x".into())));
        assert_eq!(found.into_keys().collect::<Vec<_>>(), ["AWS_REGION"]);
    }

    #[test]
    fn an_address_of_another_kind_is_refused_with_what_to_write() {
        for address in ["http://minio.lan:9000/bucket", "https://minio.lan/bucket", "ftp://x/y", "s9://x/y", "gs://x/y"]
        {
            let said = refused(address, &[]);
            assert!(said.contains("expected a folder, or s3://bucket/prefix"), "{said}");
        }
    }

    #[test]
    #[cfg_attr(not(feature = "s3"), ignore = "needs the feature s3")]
    fn options_that_cannot_be_are_refused() {
        for (options, expected) in [
            (&[("AWS_ENDPOINT", "minio.lan:9000")][..], "write http://host:9000 or https://host"),
            (&[("AWS_ENDPOINT_URL_S3", "ftp://minio.lan")], "write http://host:9000 or https://host"),
            (&[("AWS_CA_BUNDLE", "/no/such/file")], "the authorities /no/such/file cannot be read"),
            (&[("AWS_CA_BUNDLE", "/dev/null")], "there is no certificate in it"),
            (&[("AWS_ACCESS_KEY_ID", "a")], "Missing SecretAccessKey"),
        ] {
            let said = refused("s3://bucket/x", options);
            assert!(said.contains(expected), "{options:?}: {said}");
        }
    }

    #[cfg(not(feature = "s3"))]
    #[test]
    fn a_build_without_s3_refuses_a_bucket_and_says_how_to_rebuild() {
        let said = refused("s3://bucket/x", &[]);
        assert!(said.contains("this build has no S3; rebuild with --features s3"), "{said}");
    }

    #[test]
    fn errors_are_told_by_their_root() {
        let of = |said: &str| {
            root_cause(&object_store::Error::Generic { store: "S3", source: Box::new(std::io::Error::other(said)) })
        };
        assert_eq!(of("connection refused"), "connection refused");
        let answer =
            "Server returned non-2xx status code: 403 Forbidden: <?xml?><Error><Code>AccessDenied</Code></Error>";
        assert_eq!(of(answer), "403 Forbidden (AccessDenied)");
        assert_eq!(of(&answer.replace("AccessDenied", "\u{1b}[2J")), "403 Forbidden");
        assert_eq!(of("Server returned non-2xx status code: 502 Bad Gateway: <html>"), "502 Bad Gateway");
    }

    #[test]
    fn the_most_specific_endpoint_counts() {
        let of = |options: &[(&str, &str)]| place("s3://b", options).endpoint().map(str::to_owned);
        assert_eq!(of(&[("AWS_ENDPOINT", "http://a"), ("AWS_ENDPOINT_URL_S3", "http://b")]), Some("http://b".into()));
        assert_eq!(of(&[("aws_endpoint", "http://a")]), Some("http://a".into()));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn one_vault_is_known_by_several_addresses() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display().to_string();
        let at = |address: &str| place(address, &[]);
        assert!(at(&path).is_same(&at(&format!("{path}/."))) && !at(&path).is_same(&at("/")));
        assert!(at("s3://b/x").is_same(&at("s3://b/x/")) && !at("s3://b/x").is_same(&at("s3://b/y")));
        let elsewhere = place("s3://b/x", &[("AWS_ENDPOINT", "http://minio.lan:9000")]);
        assert!(!at("s3://b/x").is_same(&elsewhere) && !at("s3://b/x").is_same(&at(&path)));
    }

    #[test]
    fn what_is_shown_has_no_secret() {
        let place = place("s3://key:s3cr3t@bucket/x", &[("AWS_SECRET_ACCESS_KEY", "s3cr3t")]);
        assert!(!format!("{place:?}{}", place.shown()).contains("s3cr3t"), "{place:?}");
        assert!(!place.has_key(), "a secret alone is no key");
    }
}
