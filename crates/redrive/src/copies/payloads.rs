//! Bringing payloads to the vault of the target, under its own id; or finding them where they stay, if both have the same vault.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt, stream};
use redrive_core::failures::with_sources;
use redrive_core::payloads::{PayloadPlace, StoreId};
use redrive_store::contract::{Cell, ListPayloads, Part, Row};

use super::{CopiedPayloads, CopyError, Side};
use crate::error::Error;
use crate::vault::{Brought, Vault, VaultError};

/// The part whose rows are about bytes in the vault.
pub(super) const VAULT_PART: &str = "payload";

/// Payloads that are on their way at once.
const AT_ONCE: usize = 8;

/// Payloads that are looked at at once.
const PAGE: u32 = 1_000;

/// Payloads that are named when something is wrong with them; the others are counted.
const NAMED_MAX: usize = 20;

/// Payloads on their way from one vault to another.
pub(super) struct Bringing<'a> {
    from: Option<&'a Vault>,
    to: Option<&'a Vault>,
    place: &'a str,
    /// How many there are.
    total: u64,
    /// The id that the target keeps its payloads under.
    own: StoreId,
    /// Whether both have the same vault: then payloads stay where they are.
    pub(super) stay: bool,
    /// What became of them.
    pub(super) counted: CopiedPayloads,
    allow_missing: bool,
    /// Whether the payloads of the next piece may have been brought before.
    again: bool,
}

/// What became of one payload.
enum Came {
    Brought(u64),
    Found,
    Missing(String),
    Damaged(String),
}

impl<'a> Bringing<'a> {
    pub(super) fn new(
        (from, to): (&'a Side, &'a Side),
        (own, total): (StoreId, u64),
        counted: CopiedPayloads,
        (allow_missing, again): (bool, bool),
    ) -> Result<Self, Error> {
        let places = (from.setting.vault_place()?, to.setting.vault_place()?);
        let stay = matches!(&places, (Some(from), Some(to)) if from.is_same(to));
        let (place, from, to) = (from.place.as_str(), from.vault.as_ref(), to.vault.as_ref());
        Ok(Self { from, to, place, total, own, stay, counted, allow_missing, again })
    }

    /// Brings the payloads that rows are about, and has the rows say where they are then.
    pub(super) async fn bring(&mut self, part: &Part, rows: &mut [Row]) -> Result<(), Error> {
        let (Some(from), Some(to)) = (self.from, self.to) else { return Ok(()) };
        let column = |name| part.column(name).unwrap_or_default();
        let (place, store, stored, spooled) =
            (column("place"), column("store"), column("stored_bytes"), column("spooled_on"));
        let mut moves = Vec::with_capacity(rows.len());
        for row in rows.iter_mut() {
            let read = |cell: &Cell| match cell {
                Cell::Text(text) => text.parse::<PayloadPlace>().ok(),
                _ => None,
            };
            let Some(was) = read(&row[place]) else { continue };
            let is_spooled = row[spooled] != Cell::Null;
            let next = if self.stay { was } else { PayloadPlace { store: Some(self.own), ..was } };
            let Cell::Int(stored_bytes) = row[stored] else { continue };
            row[place] = Cell::Text(next.to_string());
            row[store] = Cell::Text(next.store.map_or_else(String::new, |id| id.to_string()));
            row[spooled] = Cell::Null;
            moves.push((next, u64::try_from(stored_bytes).unwrap_or(0), is_spooled));
        }
        let (stay, again) = (self.stay, self.again);
        let came: Vec<Came> = stream::iter(moves)
            .map(|(next, stored_bytes, is_spooled)| async move {
                let look = (stay && !is_spooled) || again;
                came(from, to, &next, (stored_bytes, look, stay && !is_spooled)).await
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        self.again = false;
        self.count(came)
    }

    fn count(&mut self, came: Vec<Came>) -> Result<(), Error> {
        let counted = &mut self.counted;
        let (mut looked_for, mut there) = (0, counted.brought + counted.found + counted.damaged);
        for came in came {
            looked_for += 1;
            let wrong = match came {
                Came::Brought(bytes) => {
                    (counted.brought, counted.bytes, there) = (counted.brought + 1, counted.bytes + bytes, there + 1);
                    None
                }
                Came::Found => {
                    (counted.found, there) = (counted.found + 1, there + 1);
                    None
                }
                Came::Missing(why) => {
                    counted.missing += 1;
                    Some(why)
                }
                Came::Damaged(why) => {
                    (counted.damaged, there) = (counted.damaged + 1, there + 1);
                    Some(why)
                }
            };
            counted.named.extend(wrong.filter(|_| counted.named.len() < NAMED_MAX));
        }
        // One or the other may have been removed by hand. If not one is there, the vault is another one.
        if looked_for > 0 && there == 0 && !self.allow_missing {
            let vault = self.from.map(|vault| vault.address().to_owned()).unwrap_or_default();
            return Err(CopyError::WrongVault { from: self.place.to_owned(), payloads: self.total, vault }.into());
        }
        Ok(())
    }
}

impl Side {
    /// Refuses to begin while payloads wait in spools of other machines: once the source is at rest nobody could bring them any more.
    pub(super) async fn refuse_spooled_elsewhere(&self) -> Result<(), Error> {
        let Some(vault) = &self.vault else { return Ok(()) };
        let (mut payloads, mut hosts, mut cursor) = (0, BTreeSet::new(), None);
        loop {
            let params = ListPayloads { prefix: None, limit: PAGE, cursor };
            let page = self.redrive.store.list_payloads(params).await?;
            for payload in page.items {
                let Some(host) = payload.spooled_on.filter(|host| host != redrive_store::host()) else { continue };
                // It may have arrived since the store was copied or restored.
                if !vault.has(&payload.place, payload.stored_bytes).await? {
                    payloads += 1;
                    hosts.insert(host);
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let (from, hosts) = (self.place.clone(), hosts.into_iter().collect());
        if payloads == 0 { Ok(()) } else { Err(CopyError::OnTheirWay { from, payloads, hosts }.into()) }
    }
}

/// Brings one payload. What is not there, or is not what it was, is told; whatever else goes wrong ends the copy for now.
async fn came(
    from: &Vault,
    to: &Vault,
    next: &PayloadPlace,
    (stored_bytes, look, stays): (u64, bool, bool),
) -> Result<Came, Error> {
    if look && to.has(next, stored_bytes).await? {
        return Ok(Came::Found);
    }
    if stays {
        return Ok(Came::Missing(VaultError::Missing(next.hash.to_string()).to_string()));
    }
    match to.take_over(from, next).await {
        Ok(Brought { bytes }) => Ok(Came::Brought(bytes)),
        Err(error @ (VaultError::Missing(_) | VaultError::OnItsWay { .. })) => Ok(Came::Missing(with_sources(&error))),
        Err(error @ VaultError::Damaged(_)) => Ok(Came::Damaged(with_sources(&error))),
        Err(error) => Err(error.into()),
    }
}
