//! Where requests may go: the public internet, named networks, or anywhere.
//!
//! What counts is the address that is connected to, not the name it has. An address that carries another one inside it
//! (IPv4 within IPv6, 6to4, NAT64) is judged by the inner one too.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Which addresses may be connected to. By default all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Egress(Option<Vec<Allowed>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Public,
    Network(Network),
}

impl Egress {
    /// What a list allows: `public`, and networks such as `10.1.0.0/16`.
    pub fn only<T: AsRef<str>>(list: &[T]) -> Result<Self, InvalidNetwork> {
        let allowed = list.iter().map(|text| match text.as_ref().trim() {
            "public" => Ok(Allowed::Public),
            text => text.parse().map(Allowed::Network),
        });
        let allowed = allowed.collect::<Result<Vec<_>, _>>()?;
        if allowed.is_empty() { Err(InvalidNetwork::Nothing) } else { Ok(Self(Some(allowed))) }
    }

    /// The public internet alone.
    pub fn public() -> Self {
        Self(Some(vec![Allowed::Public]))
    }

    /// Whether every address is allowed, so that nothing needs to be checked.
    pub fn is_anywhere(&self) -> bool {
        self.0.is_none()
    }

    /// Whether an address may be connected to.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.as_ref().is_none_or(|allowed| {
            allowed.iter().any(|allowed| match allowed {
                Allowed::Public => is_public(address),
                Allowed::Network(network) => network.contains(address),
            })
        })
    }
}

/// A block of addresses: those that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network {
    first: IpAddr,
    bits: u32,
}

impl Network {
    const fn v4(address: [u8; 4], bits: u32) -> Self {
        Self { first: IpAddr::V4(Ipv4Addr::new(address[0], address[1], address[2], address[3])), bits }
    }

    const fn v6(address: u128, bits: u32) -> Self {
        Self { first: IpAddr::V6(Ipv6Addr::from_bits(address)), bits }
    }

    fn contains(self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                (first.to_bits() ^ address.to_bits()).checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                (first.to_bits() ^ address.to_bits()).checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// Its first address, with nothing after the prefix.
    fn floor(self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => {
                let rest = u32::MAX.checked_shr(self.bits).unwrap_or(0);
                Ipv4Addr::from_bits(first.to_bits() & !rest).into()
            }
            IpAddr::V6(first) => {
                let rest = u128::MAX.checked_shr(self.bits).unwrap_or(0);
                Ipv6Addr::from_bits(first.to_bits() & !rest).into()
            }
        }
    }
}

/// A text that is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNetwork {
    /// An empty list, with which nothing could be fetched.
    #[error("the list of what is allowed is empty: name \"public\" or networks, or leave it out to allow everything")]
    Nothing,
    /// Neither an address nor a network.
    #[error("{0:?} is not a network: expected \"public\", or one such as 10.1.0.0/16 or fd00::/8")]
    NoNetwork(String),
    /// A network with bits set after its prefix.
    #[error("{0:?} is an address within a network: write {1} for the network")]
    NotItsFirst(String, String),
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let wrong = || InvalidNetwork::NoNetwork(text.to_owned());
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let first: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits_max = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(bits_max), |bits| bits.parse().map_err(|_| wrong()))?;
        if bits > bits_max {
            return Err(wrong());
        }
        // Addresses are compared in their own family, so networks of mapped ones are IPv4 networks.
        let network = match (first, first.to_canonical()) {
            (IpAddr::V6(_), first @ IpAddr::V4(_)) if bits >= 96 => Self { first, bits: bits - 96 },
            _ => Self { first, bits },
        };
        match network.floor() {
            floor if floor == network.first => Ok(network),
            floor => Err(InvalidNetwork::NotItsFirst(text.to_owned(), format!("{floor}/{}", network.bits))),
        }
    }
}

/// IPv4 that is not the public internet.
const NOT_PUBLIC_V4: &[Network] = &[
    Network::v4([0, 0, 0, 0], 8),        // this host
    Network::v4([10, 0, 0, 0], 8),       // private
    Network::v4([100, 64, 0, 0], 10),    // carrier-grade NAT
    Network::v4([127, 0, 0, 0], 8),      // loopback
    Network::v4([168, 63, 129, 16], 32), // the platform service of a large cloud, only seen from inside
    Network::v4([169, 254, 0, 0], 16),   // link-local, metadata services
    Network::v4([172, 16, 0, 0], 12),    // private
    Network::v4([192, 0, 0, 0], 24),     // protocol assignments
    Network::v4([192, 0, 2, 0], 24),     // documentation
    Network::v4([192, 88, 99, 0], 24),   // 6to4 relays
    Network::v4([192, 168, 0, 0], 16),   // private
    Network::v4([198, 18, 0, 0], 15),    // benchmarks
    Network::v4([198, 51, 100, 0], 24),  // documentation
    Network::v4([203, 0, 113, 0], 24),   // documentation
    Network::v4([224, 0, 0, 0], 4),      // multicast
    Network::v4([240, 0, 0, 0], 4),      // reserved, broadcast
];

/// The part of IPv6 that is given out for the public internet.
const GLOBAL_V6: Network = Network::v6(0x2000 << 112, 3);

/// What in there is not public.
const NOT_PUBLIC_V6: &[Network] = &[
    Network::v6(0x2001 << 112, 23), // protocol assignments, Teredo, benchmarks
    Network::v6((0x2001 << 112) | (0xdb8 << 96), 32), // documentation
    Network::v6(0x3fff << 112, 20), // documentation
];

/// 6to4: an IPv4 address in bits 16 to 48.
const SIX_TO_FOUR: Network = Network::v6(0x2002 << 112, 16);

/// NAT64: an IPv4 address in the last 32 bits.
const NAT64: Network = Network::v6((0x64 << 112) | (0xff9b << 96), 96);

/// Whether an address, in its own family, is one of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => !NOT_PUBLIC_V4.iter().any(|network| network.contains(address)),
        IpAddr::V6(v6) => match inner(v6) {
            Some(inner) => is_public(inner.into()),
            None => GLOBAL_V6.contains(address) && !NOT_PUBLIC_V6.iter().any(|network| network.contains(address)),
        },
    }
}

/// The IPv4 address that packets to an IPv6 address end up at.
fn inner(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = |bits: u128| Some(Ipv4Addr::from_bits(u32::try_from(bits & u128::from(u32::MAX)).unwrap_or_default()));
    match IpAddr::V6(address) {
        whole if SIX_TO_FOUR.contains(whole) => low(address.to_bits() >> 80),
        whole if NAT64.contains(whole) => low(address.to_bits()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn public() -> Egress {
        Egress::only(&["public"]).expect("valid")
    }

    fn allows(egress: &Egress, address: &str) -> bool {
        egress.allows(address.parse().unwrap_or_else(|_| panic!("{address} is no address")))
    }

    #[test]
    fn public_is_neither_this_machine_nor_a_network_behind_it() {
        let private = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2002:c0a8:101::",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        private.iter().for_each(|address| assert!(!allows(&public(), address), "{address}"));
        let open = [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00::1",
        ];
        open.iter().for_each(|address| assert!(allows(&public(), address), "{address}"));
    }

    #[test]
    fn networks_are_added_to_what_is_public() {
        let egress = Egress::only(&["public", "10.1.0.0/16", "fd00::/8", "127.0.0.1"]).expect("valid");
        for (address, allowed) in [
            ("10.1.255.255", true),
            ("10.2.0.0", false),
            ("::ffff:10.1.0.1", true),
            ("fd12::1", true),
            ("fc12::1", false),
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("8.8.8.8", true),
        ] {
            assert_eq!(allows(&egress, address), allowed, "{address}");
        }
        let egress = Egress::only(&["::ffff:10.0.0.0/104"]).expect("valid");
        assert!(allows(&egress, "10.9.9.9") && !allows(&egress, "8.8.8.8"));
        for everything in ["0.0.0.0/0", "::/0"] {
            let egress = Egress::only(&[everything]).expect("valid");
            assert!(allows(&egress, "127.0.0.1") != allows(&egress, "::1"), "each its own family");
        }
        assert!(allows(&Egress::default(), "127.0.0.1"), "by default everything is");
    }

    #[test]
    fn what_is_no_network_is_named() {
        for (text, said) in [
            ("private", "\"private\" is not a network"),
            ("10.0.0.0/33", "is not a network"),
            ("10.0.0/8", "is not a network"),
            ("10.0.0.0/-1", "is not a network"),
            ("::/129", "is not a network"),
            ("10.1.2.3/16", "write 10.1.0.0/16"),
            ("fd00::1/8", "write fd00::/8"),
        ] {
            let error = Egress::only(&[text]).expect_err(text).to_string();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(Egress::only::<&str>(&[]), Err(InvalidNetwork::Nothing));
    }

    proptest! {
        #[test]
        fn an_address_is_judged_the_same_however_it_is_wrapped(bits: u32) {
            let plain = Ipv4Addr::from_bits(bits);
            let wide = u128::from(bits);
            let mapped = plain.to_ipv6_mapped();
            let nat64 = Ipv6Addr::from_bits((0x64 << 112) | (0xff9b << 96) | wide);
            let six_to_four = Ipv6Addr::from_bits((0x2002 << 112) | (wide << 80));
            let verdict = public().allows(plain.into());
            for wrapped in [mapped, nat64, six_to_four] {
                prop_assert_eq!(public().allows(wrapped.into()), verdict, "{}", wrapped);
            }
        }

        #[test]
        fn a_network_has_its_prefix_and_nothing_else(bits: u32, other: u32, length in 0u32..=32) {
            let floor = if length == 0 { 0 } else { bits & (u32::MAX << (32 - length)) };
            let network = format!("{}/{length}", Ipv4Addr::from_bits(floor));
            let egress = Egress::only(&[network]).expect("valid");
            prop_assert!(egress.allows(Ipv4Addr::from_bits(bits).into()));
            let same = length == 0 || (bits ^ other) >> (32 - length) == 0;
            prop_assert_eq!(egress.allows(Ipv4Addr::from_bits(other).into()), same);
        }
    }
}
