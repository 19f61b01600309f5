//! A certificate authority for tests, and the certificates it signs.

use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// An authority with its certificate in a file.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, in PEM.
    pub pem: PathBuf,
}

impl Authority {
    /// A new authority whose certificate is written into a folder.
    pub fn new(folder: &Path, name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let pem = folder.join(format!("{name}.pem"));
        let certificate = params.self_signed(&key).expect("signed");
        fs::write(&pem, encoded("CERTIFICATE", certificate.der())).expect("written");
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Signs a certificate for a name, whose last year is given, and writes `FILE.pem` and `FILE.key`.
    pub fn sign(&self, folder: &Path, file: &str, name: &str, last_year: i32) {
        let mut params = CertificateParams::new([name.to_owned()]).expect("names");
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(last_year, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        write(folder, file, certificate.der(), &key);
    }
}

/// Writes a certificate for `localhost` that signed itself, as an authority's or as a plain one.
pub fn self_signed(folder: &Path, file: &str, is_authority: bool) {
    let mut params = CertificateParams::new(["localhost".to_owned()]).expect("names");
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().expect("a key");
    write(folder, file, params.self_signed(&key).expect("signed").der(), &key);
}

fn write(folder: &Path, file: &str, certificate: &[u8], key: &KeyPair) {
    fs::write(folder.join(format!("{file}.pem")), encoded("CERTIFICATE", certificate)).expect("written");
    fs::write(folder.join(format!("{file}.key")), encoded("PRIVATE KEY", &key.serialize_der())).expect("written");
}

fn encoded(kind: &str, bytes: &[u8]) -> String {
    let text = BASE64.encode(bytes);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}
