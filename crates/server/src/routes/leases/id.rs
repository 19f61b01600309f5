//! A lease as text: who has it may settle the job, or say what the letter came to in a try.

use std::fmt;
use std::str::FromStr;

use redrive::contract::TriedLease;
use redrive_core::jobs::Lease;
use serde::{Serialize, Serializer};

/// A lease as it goes over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseText {
    /// Of a job.
    Job(Lease),
    /// Of a letter in a try.
    Tried(TriedLease),
}

impl fmt::Display for LeaseText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job(lease) => lease.fmt(f),
            Self::Tried(TriedLease { id, job, token }) => write!(f, "{job}.{token}.{id}"),
        }
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
        if let Ok(lease) = text.parse() {
            return Ok(Self::Job(lease));
        }
        let tried = || {
            let mut parts = text.split('.');
            let (job, token, id) = (parts.next()?, parts.next()?, parts.next()?);
            let lease = TriedLease { id: id.parse().ok()?, job: job.parse().ok()?, token: token.parse().ok()? };
            parts.next().is_none().then_some(Self::Tried(lease))
        };
        tried().ok_or_else(|| format!("{text:?} is not a lease: expected one that POST /leases gave"))
    }
}

/// Leases of jobs and of letters in tries, apart.
pub fn apart(leases: &[LeaseText]) -> (Vec<Lease>, Vec<TriedLease>) {
    let (mut jobs, mut tried) = (Vec::new(), Vec::new());
    for lease in leases {
        match lease {
            LeaseText::Job(lease) => jobs.push(*lease),
            LeaseText::Tried(lease) => tried.push(*lease),
        }
    }
    (jobs, tried)
}

#[cfg(test)]
mod tests {
    use redrive_core::ids::{JobId, LeaseToken, TryId};
    use redrive_core::time::Timestamp;

    use super::*;

    #[test]
    fn a_lease_survives_text() {
        let at = Timestamp::from_millis(1_000);
        let (job, token) = (JobId::new(at, 1), LeaseToken::new(at, 2));
        let lease = LeaseText::Job(Lease { job, token, epoch: 3 });
        let tried = LeaseText::Tried(TriedLease { id: TryId::new(at, 4), job, token });
        assert_eq!((lease.to_string().parse(), tried.to_string().parse()), (Ok(lease), Ok(tried)));
        for wrong in ["", "a.b.c", &format!("{lease}.4"), &format!("{tried}.4"), &lease.to_string()[..70]] {
            assert!(wrong.parse::<LeaseText>().is_err(), "{wrong:?}");
        }
    }
}
