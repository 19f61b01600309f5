//! Where the bytes of a payload lie in the vault: `STORE/ab/HASH-SALT.zst`; and the marks that hosts leave there, `STORE/hosts/NAME`.
//! These are the only names that are ever written, and places the only ones that are listed or removed, so that whatever else lives in
//! the same folder or bucket is nobody's business.
//!
//! Each store keeps its payloads under an id of its own. Places without one were written before stores had ids.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::PayloadHash;

/// The id that a store made for itself: 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreId(u128);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for StoreId {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        let read = u128::from_str_radix(text, 16).ok().map(Self);
        read.filter(|id| id.to_string() == text).ok_or_else(|| InvalidPlace(text.to_owned()))
    }
}

/// Where the bytes of a payload lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PayloadPlace {
    /// The store whose payload it is; none in the older layout.
    pub store: Option<StoreId>,
    /// What lies there.
    pub hash: PayloadHash,
    /// Chance, so that two who bring the same bytes never write to the same place.
    pub salt: u32,
}

impl PayloadPlace {
    /// The name of the file, without the folders it lies in.
    pub fn file_name(&self) -> String {
        format!("{}-{:08x}.zst", self.hash, self.salt)
    }

    /// The full address of what lies here, in a vault at an address: a folder or a URL.
    pub fn within(&self, vault: &str) -> String {
        format!("{}/{self}", vault.trim_end_matches('/'))
    }

    /// The place that a file in the folders of a store is, if it is one.
    pub fn in_folders(store: Option<StoreId>, folder: &str, file_name: &str) -> Option<Self> {
        let (hash, salt) = file_name.strip_suffix(".zst")?.split_once('-')?;
        let place = Self { store, hash: hash.parse().ok()?, salt: u32::from_str_radix(salt, 16).ok()? };
        // Written out again it must be the same: no other case, sign or length.
        (place.file_name() == file_name && hash.get(..2) == Some(folder)).then_some(place)
    }
}

impl fmt::Display for PayloadPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(store) = self.store {
            write!(f, "{store}/")?;
        }
        let name = self.file_name();
        write!(f, "{}/{name}", &name[..2])
    }
}

impl FromStr for PayloadPlace {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        let mut parts = text.rsplitn(3, '/');
        let mut read = || {
            let (name, folder) = (parts.next()?, parts.next()?);
            let store = parts.next().map(str::parse).transpose().ok()?;
            Self::in_folders(store, folder, name)
        };
        read().ok_or_else(|| InvalidPlace(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for PayloadPlace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for PayloadPlace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The mark that a host leaves beside the payloads of a store, so that others can tell whether they have the same vault.
#[derive(Clone, Copy, Debug)]
pub struct HostMark<'a> {
    /// The store.
    pub store: StoreId,
    /// The name of the host.
    pub host: &'a str,
}

impl HostMark<'_> {
    /// The longest name that is told apart, in bytes: files have names of 255.
    const NAME_MAX: usize = 120;
}

impl fmt::Display for HostMark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/hosts/", self.store)?;
        // Whatever a host is called, it leads nowhere else.
        self.host.bytes().take(Self::NAME_MAX).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text that names no place that a payload could have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a place of a payload")]
pub struct InvalidPlace(String);

#[cfg(test)]
mod tests {
    use super::*;

    fn place(store: Option<&str>) -> PayloadPlace {
        let store = store.map(|text| text.parse().expect("an id"));
        PayloadPlace { store, hash: PayloadHash::from_bytes([0xab; 32]), salt: 0x1f }
    }

    #[test]
    fn places_survive_text() {
        let id = "00112233445566778899aabbccddeeff";
        for place in [place(None), place(Some(id))] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        assert_eq!(place(Some(id)).to_string(), format!("{id}/ab/{}-0000001f.zst", "ab".repeat(32)));
    }

    #[test]
    fn a_place_has_a_full_address_in_its_vault() {
        let place = place(Some("00112233445566778899aabbccddeeff"));
        for vault in ["s3://bucket/prefix", "s3://bucket/prefix/", "/srv/payloads"] {
            assert_eq!(place.within(vault), format!("{}/{place}", vault.trim_end_matches('/')));
        }
    }

    #[test]
    fn nothing_but_what_is_written_is_read() {
        let name = place(None).file_name();
        for bad in [
            name.clone(),
            format!("cd/{name}"),
            format!("ab/{}", name.to_uppercase()),
            format!("ab/{name}#1"),
            format!("ab/x{name}"),
            format!("ab/{}", name.replace("0000001f", "1f")),
            format!("ab/{}", name.replace("0000001f", "+000001f")),
            format!("short/ab/{name}"),
            format!("{}/ab/{name}", "G".repeat(32)),
            format!("x/{}/ab/{name}", "0".repeat(32)),
            format!("/ab/{name}"),
            "invoice.pdf".to_owned(),
        ] {
            assert!(bad.parse::<PayloadPlace>().is_err(), "{bad}");
        }
    }
}
