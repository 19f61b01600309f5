//! Why a server does not let somebody in or do something, with the way out: what whoever looks after the server would have to do.

use std::error::Error as _;
use std::io;

use rustls::CertificateError;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use super::fault::Fault;

/// Why somebody is not let in; nothing if it is not about that.
pub(super) fn why(fault: &Fault) -> Option<String> {
    let Fault::Sql(error) = fault else { return None };
    match error.as_db_error() {
        Some(said) => of_server(said),
        None => distrust(error).or_else(|| of_library(error)),
    }
}

fn of_server(said: &DbError) -> Option<String> {
    let message = said.message();
    let code = said.code();
    let way_out = match () {
        () if *code == SqlState::INVALID_CATALOG_NAME => "make it with CREATE DATABASE, or name another in the address",
        () if *code == SqlState::INVALID_PASSWORD => {
            "the password is that of the address, of PGPASSWORD, or of the file that PGPASSFILE names (else ~/.pgpass)"
        }
        () if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            "the server's pg_hba.conf says who may connect from where, and whether encrypted (sslmode)"
        }
        () if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            "`redrive store migrate --print` prints what somebody who may can run for this role"
        }
        () => return None,
    };
    Some(format!("{message}; {way_out}"))
}

/// What the library itself refuses.
fn of_library(error: &Error) -> Option<String> {
    let why = error.source()?.to_string();
    Some(match why.as_str() {
        "password missing" => {
            "a password is needed, and none is there: PGPASSWORD, ~/.pgpass (PGPASSFILE), or in the address".into()
        }
        "server does not support TLS" => "it does not speak TLS, and sslmode asks for it".into(),
        _ if error.to_string().contains("authentication") => format!("{error}: {why}"),
        _ => return None,
    })
}

/// What is wrong with a certificate of one of the two, or with how they would encrypt.
pub(super) fn distrust(error: &Error) -> Option<String> {
    let wrapped = error.source()?.downcast_ref::<io::Error>()?.get_ref()?;
    Some(match wrapped.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is signed by an authority that is not trusted: name the authority's file with sslrootcert"
                .into()
        }
        rustls::Error::InvalidCertificate(wrong) => format!("its certificate is not valid: {wrong}"),
        rustls::Error::AlertReceived(alert) => {
            format!(
                "it ended the TLS handshake ({alert:?}): it may want a certificate, sslcert and sslkey, that it trusts"
            )
        }
        wrong @ (rustls::Error::NoCertificatesPresented
        | rustls::Error::PeerIncompatible(_)
        | rustls::Error::PeerMisbehaved(_)
        | rustls::Error::InappropriateMessage { .. }) => format!("TLS cannot be spoken with it: {wrong}"),
        _ => return None,
    })
}
