//! How often each content was met in one reading: 16 bytes a slot, in memory up to 64 MiB, in a temporary file beyond.
//!
//! An open-addressing hash table: 12 bytes of a hash that is one already, and a count. The file is the same table, read and
//! written in place.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use redrive_core::tasks::ContentHash;

/// Bytes of a slot.
const SLOT: usize = 16;

/// Bytes of the hash in it; the rest is the count.
const HASH: usize = 12;

/// Slots of a table that was just begun.
const SLOTS_AT_FIRST: u64 = 1024;

/// The largest table in memory, in bytes.
const MEMORY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The contents that were met, and how often.
pub(super) struct Seen {
    table: Table,
    slots: u64,
    used: u64,
    memory_bytes_max: u64,
}

enum Table {
    Memory(Vec<u8>),
    Spilled(File),
}

impl Default for Seen {
    fn default() -> Self {
        Self::with_memory(MEMORY_BYTES_MAX)
    }
}

impl Seen {
    fn with_memory(memory_bytes_max: u64) -> Self {
        let table = Table::Memory(vec![0; SLOTS_AT_FIRST as usize * SLOT]);
        Self { table, slots: SLOTS_AT_FIRST, used: 0, memory_bytes_max }
    }

    /// Counts a content; says the how-manieth of its kind it is, from 1.
    pub(super) fn count(&mut self, content: &ContentHash) -> io::Result<u32> {
        // At most three quarters full: beyond that, looking takes long.
        if (self.used + 1) * 4 > self.slots * 3 {
            self.grow()?;
        }
        let mut hash = [0; HASH];
        hash.copy_from_slice(&content.as_bytes()[..HASH]);
        let (at, before) = self.find(&hash)?;
        let count = before.saturating_add(1);
        self.put(at, &hash, count)?;
        self.used += u64::from(before == 0);
        Ok(count)
    }

    /// The slot of a hash, or the empty one where it belongs, and its count.
    fn find(&self, hash: &[u8; HASH]) -> io::Result<(u64, u32)> {
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        let mut at = u64::from_le_bytes(first) % self.slots;
        loop {
            let slot = self.get(at)?;
            let count = count_of(&slot);
            if count == 0 || slot[..HASH] == hash[..] {
                return Ok((at, count));
            }
            at = (at + 1) % self.slots;
        }
    }

    fn get(&self, at: u64) -> io::Result<[u8; SLOT]> {
        let mut slot = [0; SLOT];
        match &self.table {
            Table::Memory(bytes) => slot.copy_from_slice(&bytes[place(at)..place(at) + SLOT]),
            Table::Spilled(file) => file.read_exact_at(&mut slot, at * SLOT as u64)?,
        }
        Ok(slot)
    }

    fn put(&mut self, at: u64, hash: &[u8; HASH], count: u32) -> io::Result<()> {
        let mut slot = [0; SLOT];
        slot[..HASH].copy_from_slice(hash);
        slot[HASH..].copy_from_slice(&count.to_le_bytes());
        match &mut self.table {
            Table::Memory(bytes) => bytes[place(at)..place(at) + SLOT].copy_from_slice(&slot),
            Table::Spilled(file) => file.write_all_at(&slot, at * SLOT as u64)?,
        }
        Ok(())
    }

    /// Moves everything to a table of twice the size.
    fn grow(&mut self) -> io::Result<()> {
        let slots = self.slots * 2;
        let bytes = slots * SLOT as u64;
        let table = if bytes > self.memory_bytes_max {
            let file = tempfile::tempfile()?;
            file.set_len(bytes)?;
            Table::Spilled(file)
        } else {
            Table::Memory(vec![0; place(slots)])
        };
        let mut grown = Self { table, slots, used: self.used, memory_bytes_max: self.memory_bytes_max };
        for at in 0..self.slots {
            let slot = self.get(at)?;
            let count = count_of(&slot);
            if count > 0 {
                let mut hash = [0; HASH];
                hash.copy_from_slice(&slot[..HASH]);
                let (at, _) = grown.find(&hash)?;
                grown.put(at, &hash, count)?;
            }
        }
        *self = grown;
        Ok(())
    }
}

fn count_of(slot: &[u8; SLOT]) -> u32 {
    u32::from_le_bytes([slot[HASH], slot[HASH + 1], slot[HASH + 2], slot[HASH + 3]])
}

/// Where a slot begins in memory.
fn place(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX).saturating_mul(SLOT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn content(n: u64) -> ContentHash {
        let input = serde_json::json!({ "n": n });
        ContentHash::of(input.as_object().expect("an object"))
    }

    /// Counts 3,000 contents, some of them often, beside a map that does the same.
    fn counts_as_a_map_does(mut seen: Seen) -> Seen {
        let mut counts: HashMap<u64, u32> = HashMap::new();
        for n in (0..9_000_u64).map(|n| n * n % 3_001) {
            let expected = counts.entry(n).or_default();
            *expected += 1;
            assert_eq!(seen.count(&content(n)).expect("counted"), *expected);
        }
        assert_eq!(seen.used, counts.len() as u64);
        seen
    }

    #[test]
    fn equal_ones_are_counted_in_memory() {
        let seen = counts_as_a_map_does(Seen::default());
        assert!(matches!(seen.table, Table::Memory(_)));
    }

    #[test]
    fn what_is_too_much_for_memory_goes_on_in_a_file() {
        let seen = counts_as_a_map_does(Seen::with_memory(20_000));
        assert!(matches!(seen.table, Table::Spilled(_)));
    }

    #[test]
    fn a_table_in_memory_is_no_larger_than_it_may_be() {
        let mut seen = Seen::with_memory(64 * 1024);
        for n in 0..3_072 {
            seen.count(&content(n)).expect("counted");
            if let Table::Memory(bytes) = &seen.table {
                assert!(bytes.len() <= 64 * 1024);
            }
        }
        assert!(matches!(seen.table, Table::Memory(_)), "three quarters of it are used");
        seen.count(&content(9_999)).expect("counted");
        assert!(matches!(seen.table, Table::Spilled(_)));
    }
}
