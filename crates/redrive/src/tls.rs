//! Which cryptography TLS connections use. One provider for the whole program; a program that embeds the engine and has
//! installed one of its own keeps it.

pub use crate::handler::http::{Authorities, complaint};

/// Makes sure that a provider is installed. To be called before a TLS client is made.
pub fn ensure_provider() {
    // The error says that there is one already, which is what is wanted.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
