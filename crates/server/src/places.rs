//! Connections: how many there are at once, and which of them ends when there are too many.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive::CancellationToken;

/// The bits of an IPv6 address that are one client's: who has one has all that begin so.
const NETWORK_BITS: u32 = 64;

/// The connections that there are. Cheap to clone.
#[derive(Clone)]
pub struct Places(Arc<Mutex<Taken>>);

struct Taken {
    most: usize,
    /// In the order in which they came.
    all: BTreeMap<u64, Connection>,
    next: u64,
}

struct Connection {
    /// The other end; none if it is a proxy, which connects for many.
    client: Option<IpAddr>,
    /// Set if it brought a request with a session or a token.
    is_known: bool,
    end: CancellationToken,
}

/// A connection among the others, until it is dropped. Cheap to clone.
#[derive(Clone)]
pub struct Place(Arc<Entry>);

struct Entry {
    places: Places,
    number: u64,
    end: CancellationToken,
}

impl Places {
    /// Room for so many connections.
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Taken { most, all: BTreeMap::new(), next: 0 })))
    }

    /// Takes a place for a connection of `client`, or of a proxy. If there are too many, one is told to end: this one, or an older one.
    pub fn enter(&self, client: Option<IpAddr>) -> Place {
        let end = CancellationToken::new();
        let mut taken = self.taken();
        let number = taken.next;
        taken.next += 1;
        taken.all.insert(number, Connection { client: client.map(network), is_known: false, end: end.clone() });
        if let Some(last) = taken.who_ends(number).and_then(|number| taken.all.remove(&number)) {
            last.end.cancel();
        }
        Place(Arc::new(Entry { places: self.clone(), number, end }))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// The connection that ends because another came. It is never one that brought a session or a token.
    ///
    /// One client has at most three quarters of the places, and at most half are taken by strangers. Of the client with most
    /// strangers the oldest ends: whoever is about to say who they are has just come.
    fn who_ends(&self, newest: u64) -> Option<u64> {
        let client = self.all.get(&newest)?.client;
        let has = self.all.values().filter(|one| one.client == client).count();
        let mut strangers: BTreeMap<Option<IpAddr>, Vec<u64>> = BTreeMap::new();
        for (number, one) in self.all.iter().filter(|(_, one)| !one.is_known) {
            strangers.entry(one.client).or_default().push(*number);
        }
        if client.is_some() && has > (self.most - self.most / 4) {
            return strangers.get(&client)?.first().copied();
        }
        let are_too_many = strangers.values().map(Vec::len).sum::<usize>() > self.most.div_ceil(2);
        let most = strangers.values().max_by_key(|numbers| numbers.len())?;
        (are_too_many || self.all.len() > self.most).then(|| most.first().copied()).flatten()
    }
}

impl Place {
    /// Notes that a request came with a session or a token.
    pub fn note_known(&self) {
        if let Some(one) = self.0.places.taken().all.get_mut(&self.0.number) {
            one.is_known = true;
        }
    }

    /// Returns when the connection is to end.
    pub async fn ended(&self) {
        self.0.end.cancelled().await;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.places.taken().all.remove(&self.number);
    }
}

fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> NETWORK_BITS << NETWORK_BITS).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    fn left(places: &[Place]) -> Vec<usize> {
        (0..places.len()).filter(|at| !places[*at].0.end.is_cancelled()).collect()
    }

    #[test]
    fn oldest_stranger_of_the_client_with_most_ends() {
        let places = Places::new(8);
        let crowd: Vec<_> = (0..20).map(|_| places.enter(client("10.0.0.1"))).collect();
        assert_eq!(left(&crowd), [16, 17, 18, 19], "half of the places are for strangers");
        let other = places.enter(client("10.0.0.2"));
        assert!(!other.0.end.is_cancelled() && left(&crowd) == [17, 18, 19]);
        other.note_known();
        let more: Vec<_> = (0..20).map(|_| places.enter(client("10.0.0.1"))).collect();
        assert!(!other.0.end.is_cancelled() && left(&crowd).is_empty() && left(&more) == [16, 17, 18, 19]);
    }

    #[test]
    fn one_client_has_three_quarters_of_the_places() {
        let places = Places::new(8);
        let known = |from: &str| {
            let place = places.enter(client(from));
            place.note_known();
            place
        };
        let mut crowd: Vec<_> = (0..10).map(|_| known("10.0.0.1")).collect();
        assert_eq!(left(&crowd), [0, 1, 2, 3, 4, 5], "those that are known stay");
        let others = [known("10.0.0.2"), known("10.0.0.3")];
        assert_eq!((left(&others), left(&crowd).len()), (vec![0, 1], 6));
        let last = places.enter(client("10.0.0.4"));
        assert!(last.0.end.is_cancelled(), "all places are taken by who is known");
        crowd.truncate(5);
        assert!(!places.enter(client("10.0.0.4")).0.end.is_cancelled(), "a place is free again");
    }

    #[test]
    fn proxy_connects_for_many_and_a_network_is_one_client() {
        let places = Places::new(8);
        let proxied: Vec<_> = (0..8).map(|_| places.enter(None)).inspect(Place::note_known).collect();
        assert_eq!(left(&proxied).len(), 8);
        assert_eq!(network("2001:db8::1:2:3:4".parse().expect("an address")), client("2001:db8::").expect("one"));
    }
}
