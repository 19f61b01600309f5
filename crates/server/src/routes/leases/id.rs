//! A lease as text: who has it may settle the job.

use std::fmt;
use std::str::FromStr;

use redrive_core::jobs::Lease;
use serde::{Serialize, Serializer};

/// A lease as it goes over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaseText(pub Lease);

impl fmt::Display for LeaseText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lease { job, token, epoch } = self.0;
        write!(f, "{job}.{token}.{epoch}")
    }
}

impl Serialize for LeaseText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for LeaseText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let mut parts = text.split('.');
            let (job, token, epoch) = (parts.next()?, parts.next()?, parts.next()?);
            let lease = Lease { job: job.parse().ok()?, token: token.parse().ok()?, epoch: epoch.parse().ok()? };
            parts.next().is_none().then_some(Self(lease))
        };
        read().ok_or_else(|| format!("{text:?} is not a lease: expected one that POST /leases gave"))
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::ids::{JobId, LeaseToken};
    use redrive_core::time::Timestamp;

    use super::*;

    #[test]
    fn a_lease_survives_text() {
        let at = Timestamp::from_millis(1_000);
        let lease = LeaseText(Lease { job: JobId::new(at, 1), token: LeaseToken::new(at, 2), epoch: 3 });
        assert_eq!(lease.to_string().parse(), Ok(lease));
        for wrong in ["", "a.b.c", &format!("{lease}.4"), &lease.to_string()[..70]] {
            assert!(wrong.parse::<LeaseText>().is_err(), "{wrong:?}");
        }
    }
}
