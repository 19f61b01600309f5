//! Opening a bucket, at AWS or any other endpoint, by the options that the tools of AWS take from the environment, under their names.

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::{Certificate, ClientOptions, RetryConfig};

use super::objects::{ENDPOINTS, Patience, VaultPlace};

/// A file with certificate authorities that are trusted beside the system's, under the name that the tools of AWS know.
const AUTHORITIES: &str = "aws_ca_bundle";

/// Opens the bucket that a URL names.
pub(super) fn open(url: &url::Url, place: &VaultPlace, patience: Patience) -> Result<AmazonS3, String> {
    let client = match place.option(AUTHORITIES) {
        Some(path) => trusting(path)?,
        None => ClientOptions::new(),
    };
    let mut builder = AmazonS3Builder::new().with_url(url.as_str()).with_client_options(client);
    for (name, value) in &place.options {
        let name = name.to_ascii_lowercase();
        // Other services have options with names of the same kind.
        if let Ok(key) = name.parse::<AmazonS3ConfigKey>()
            && !ENDPOINTS.contains(&name.as_str())
        {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(endpoint) = place.endpoint() {
        if !url::Url::parse(endpoint).is_ok_and(|url| url.has_host() && url.scheme().starts_with("http")) {
            return Err(format!("its endpoint {endpoint:?} is no address: write http://host:9000 or https://host"));
        }
        builder = builder.with_endpoint(endpoint);
        // Who names an endpoint without TLS means it.
        if endpoint.starts_with("http://") && place.option("aws_allow_http").is_none() {
            builder = builder.with_allow_http(true);
        }
    }
    if patience == Patience::None {
        builder = builder.with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() });
    }
    builder.build().map_err(|error| error.to_string())
}

/// A client that trusts the authorities in a file beside the system's.
fn trusting(path: &str) -> Result<ClientOptions, String> {
    let pem = std::fs::read(path).map_err(|error| format!("the authorities {path} cannot be read: {error}"))?;
    let all = Certificate::from_pem_bundle(&pem).map_err(|error| format!("the authorities {path}: {error}"))?;
    match all.is_empty() {
        true => Err(format!("the authorities {path}: there is no certificate in it")),
        false => Ok(all.into_iter().fold(ClientOptions::new(), ClientOptions::with_root_certificate)),
    }
}
