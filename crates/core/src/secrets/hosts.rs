//! Where configured secrets may go with jobs that others wrote: to hosts that somebody who may know the secrets has named.

/// Hosts that are named: by name, as `*.shop.example` for all below one, or `*` for all there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretHosts(Vec<String>);

/// A text that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host: expected one such as shop.example, *.shop.example for all below it, or * for all")]
pub struct InvalidHost(String);

impl SecretHosts {
    /// Adds a host, or hosts.
    pub fn add(&mut self, written: &str) -> Result<(), InvalidHost> {
        let name = written.strip_prefix("*.").unwrap_or(written);
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let is_host = !name.is_empty() && !name.starts_with('.') && name.chars().all(fits);
        if !is_host && written != "*" {
            return Err(InvalidHost(written.to_owned()));
        }
        self.0.push(bare(written));
        Ok(())
    }

    /// Whether a host is among them.
    pub fn contains(&self, host: &str) -> bool {
        let host = bare(host);
        !host.is_empty()
            && self.0.iter().any(|named| match named.strip_prefix('*') {
                Some(below) => host.len() > below.len() && host.ends_with(below),
                None => *named == host,
            })
    }
}

/// A host as it is compared: without the brackets of an IPv6 address, and the dot that may end a name.
fn bare(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_one_by_one_or_by_what_is_above_them() {
        let named = |written: &[&str]| {
            let mut hosts = SecretHosts::default();
            written.iter().for_each(|written| hosts.add(written).expect("a host"));
            hosts
        };
        let hosts = named(&["Shop.example", "*.bank.example", "[::1]"]);
        for host in ["shop.example", "SHOP.example.", "a.bank.example", "a.b.bank.example", "::1", "[::1]"] {
            assert!(hosts.contains(host), "{host}");
        }
        for host in ["bank.example", "evilbank.example", "shop.example.evil.example", "a.shop.example", "", "."] {
            assert!(!hosts.contains(host), "{host}");
        }
        assert!(named(&["*"]).contains("any.example") && !named(&[]).contains("any.example"));
        for wrong in ["", "https://shop.example", "shop.example/x", "*.", "*shop", "a b", "user@shop.example"] {
            assert!(SecretHosts::default().add(wrong).is_err(), "{wrong}");
        }
    }
}
