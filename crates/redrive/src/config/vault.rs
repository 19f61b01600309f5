//! `vault`: an address, or `[vault]` with how it is reached.

use std::fmt;

use redrive_core::secrets::Secrets;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::secrets::expand;
use crate::vault::{VaultError, VaultPlace};

/// Where payloads are kept. Its short form is a text: the address.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct VaultSection {
    /// A folder, or a URL such as `s3://bucket/prefix`.
    pub url: String,
    /// The server that the bucket is on, `http` or `https`; by default that of AWS.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// The key by which requests are signed.
    pub access_key_id: Option<String>,
    /// The secret of the key.
    pub secret_access_key: Option<String>,
    /// The token of a key that does not last.
    pub session_token: Option<String>,
    /// A PEM file with certificate authorities that are trusted beside the system's.
    pub ca: Option<String>,
}

impl VaultSection {
    /// The vault at an address.
    pub(crate) fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            endpoint: None,
            region: None,
            access_key_id: None,
            secret_access_key: None,
            session_token: None,
            ca: None,
        }
    }

    /// Where it is and how it is reached: by what it says, and else by what the environment says.
    pub fn place(&self) -> Result<VaultPlace, VaultError> {
        let wrong = |why| VaultError::Address { address: Secrets::default().mask(&self.url), why };
        let mut place = VaultPlace::of_environment(&expand(&self.url, &mut Secrets::default()).map_err(wrong)?);
        if self.access_key_id.is_some() {
            // A token belongs to one key.
            place.options.remove("AWS_SESSION_TOKEN");
            place.options.remove("AWS_TOKEN");
        }
        for (name, value) in self.options() {
            let value = expand(value, &mut Secrets::default()).map_err(wrong)?;
            place.options.insert(name.to_owned(), value);
        }
        Ok(place)
    }

    /// What it says, by the names that it has in the environment.
    fn options(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let said = [
            ("AWS_ENDPOINT_URL_S3", &self.endpoint),
            ("AWS_REGION", &self.region),
            ("AWS_ACCESS_KEY_ID", &self.access_key_id),
            ("AWS_SECRET_ACCESS_KEY", &self.secret_access_key),
            ("AWS_SESSION_TOKEN", &self.session_token),
            ("AWS_CA_BUNDLE", &self.ca),
        ];
        said.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

impl<'de> Deserialize<'de> for VaultSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SectionVisitor)
    }
}

/// Not an untagged enum: that would hide what is wrong behind "did not match any variant".
struct SectionVisitor;

impl<'de> Visitor<'de> for SectionVisitor {
    type Value = VaultSection;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address such as \"s3://bucket/prefix\", or a table with `url`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<VaultSection, E> {
        Ok(VaultSection::at(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<VaultSection, A::Error> {
        VaultSection::deserialize(de::value::MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(toml: &str) -> VaultSection {
        #[derive(Deserialize)]
        struct File {
            vault: VaultSection,
        }
        toml::from_str::<File>(toml).expect("a section").vault
    }

    #[test]
    fn an_address_is_enough() {
        let place = section("vault = \"payloads\"").place().expect("a place");
        assert_eq!(place.address, "payloads");
    }

    #[test]
    fn what_is_said_comes_before_the_environment() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        std::fs::write(&path, "s3cr3t\n").expect("written");
        let text = format!(
            "[vault]\nurl = \"s3://bucket/x\"\nendpoint = \"http://minio.lan:9000\"\nregion = \"home\"\n\
             access_key_id = \"id\"\nsecret_access_key = \"${{file:{}}}\"\nca = \"ca.pem\"\n",
            path.display()
        );
        let place = section(&text).place().expect("a place");
        assert_eq!(place.endpoint(), Some("http://minio.lan:9000"));
        let option = |name: &str| place.options.get(name).map(String::as_str);
        assert_eq!((option("AWS_SECRET_ACCESS_KEY"), option("AWS_REGION")), (Some("s3cr3t"), Some("home")));
        assert_eq!((option("AWS_CA_BUNDLE"), option("AWS_SESSION_TOKEN")), (Some("ca.pem"), None));
        assert!(place.has_key());
    }

    #[test]
    fn what_it_needs_from_outside_must_be_there() {
        let text = "[vault]\nurl = \"s3://b\"\nsecret_access_key = \"${env:REDRIVE_NO_SUCH_VARIABLE}\"\n";
        let error = section(text).place().expect_err("refused").to_string();
        assert!(error.contains("REDRIVE_NO_SUCH_VARIABLE") && error.contains("s3://b"), "{error}");
    }
}
