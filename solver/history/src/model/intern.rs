//! Assigns dense ids to whole numbers within a scope: the inner loop of every reader, so one probe is one cache line.
//!
//! Ids are handed out in order of first appearance. The small numbers of a scope, such as the values of a counter, have a stretch of an
//! array; the others a hash table with open addressing and linear probing, at most three quarters full.

use super::ids::KeyId;
use super::names::Token;
use rustc_hash::FxHashMap;

const FREE: u32 = u32::MAX;

/// From this many slots on, saving memory is worth rehashing once more.
const LARGE: usize = 1 << 22;

#[derive(Clone, Copy, Debug)]
struct Slot {
    number: i64,
    scope: u32,
    id: u32,
}

/// The ids of (scope, number) pairs.
#[derive(Debug, Default)]
struct NumberTable {
    slots: Vec<Slot>,
    n_used: usize,
}

impl NumberTable {
    /// The id of a pair with this hash; `fresh` if the pair is new.
    #[inline]
    fn id(&mut self, hash: usize, scope: u32, number: i64, fresh: u32) -> u32 {
        if self.n_used * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = hash & mask;
        loop {
            let slot = self.slots[at];
            if slot.id == FREE {
                self.slots[at] = Slot {
                    number,
                    scope,
                    id: fresh,
                };
                self.n_used += 1;
                return fresh;
            }
            if slot.number == number && slot.scope == scope {
                return slot.id;
            }
            at = (at + 1) & mask;
        }
    }

    /// The id of a pair, if it has one.
    fn get(&self, scope: u32, number: i64) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash(scope, number) & mask;
        loop {
            let slot = self.slots[at];
            if slot.id == FREE {
                return None;
            }
            if slot.number == number && slot.scope == scope {
                return Some(slot.id);
            }
            at = (at + 1) & mask;
        }
    }

    /// Prefetches the slot of a pair with this hash.
    #[inline]
    fn touch(&self, hash: usize) -> u32 {
        match self.slots.len() {
            0 => 0,
            size => self.slots[hash & (size - 1)].id,
        }
    }

    #[cold]
    fn grow(&mut self) {
        let free = Slot {
            number: 0,
            scope: 0,
            id: FREE,
        };
        let factor = if self.slots.len() < LARGE { 4 } else { 2 };
        let size = (self.slots.len() * factor).max(64);
        let old = std::mem::replace(&mut self.slots, vec![free; size]);
        for slot in old.into_iter().filter(|slot| slot.id != FREE) {
            let mut at = hash(slot.scope, slot.number) & (size - 1);
            while self.slots[at].id != FREE {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = slot;
        }
    }
}

/// A folded multiplication: every bit of the input reaches the low bits that pick the slot.
#[inline]
fn hash(scope: u32, number: i64) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (number as u64)
        ^ (u64::from(scope) << 32 | u64::from(scope)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let wide = u128::from(mixed ^ 0x2545_f491_4f6c_dd1d) * u128::from(ODD);
    ((wide >> 64) as u64 ^ wide as u64) as usize
}

/// Larger numbers never have a place in a stretch: random ones, hashes, marks of an initial state.
const SMALL: u64 = 1 << 28;

/// A scope's stretch has room for at most this many numbers per number seen.
const ROOM_A_NUMBER: u64 = 8;

/// The small numbers of a scope: their ids begin at `start`.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    start: u32,
    room: u32,
    /// How many small numbers of the scope were seen.
    n_seen: u32,
}

/// The ids of numbers within scopes, by stretches of an array where the numbers are small and many.
#[derive(Debug, Default)]
struct SmallTable {
    stretches: Vec<Stretch>,
    ids: Vec<u32>,
    others: NumberTable,
}

impl SmallTable {
    /// The id of a small number; `fresh` if the pair is new.
    #[inline]
    fn id(&mut self, scope: u32, number: i64, fresh: u32) -> u32 {
        if let Some(stretch) = self.stretches.get_mut(scope as usize)
            && (number as u64) < u64::from(stretch.room)
        {
            let id = &mut self.ids[stretch.start as usize + number as usize];
            if *id == FREE {
                *id = fresh;
                stretch.n_seen += 1;
            }
            return *id;
        }
        self.other_id(scope, number, fresh)
    }

    /// The id of a number without a place in a stretch, unless it gets one now.
    #[inline(never)]
    fn other_id(&mut self, scope: u32, number: i64, fresh: u32) -> u32 {
        if self.stretches.len() <= scope as usize {
            self.stretches
                .resize(scope as usize + 1, Stretch::default());
        }
        let n_seen = u64::from(self.stretches[scope as usize].n_seen);
        let most = (n_seen + 1) * ROOM_A_NUMBER;
        if (number as u64) < most {
            let room = (number as u64 + 1).next_power_of_two().max(4);
            if room <= most && self.ids.len() as u64 + room < u64::from(u32::MAX) {
                self.widen(scope, room as u32);
                return self.id(scope, number, fresh);
            }
        }
        let id = self.others.id(hash(scope, number), scope, number, fresh);
        self.stretches[scope as usize].n_seen += u32::from(id == fresh);
        id
    }

    /// Gives a scope a longer stretch, with the ids that its numbers have already.
    fn widen(&mut self, scope: u32, room: u32) {
        let stretch = &mut self.stretches[scope as usize];
        let old = stretch.start as usize..(stretch.start + stretch.room) as usize;
        let from = stretch.room;
        stretch.start = self.ids.len() as u32;
        stretch.room = room;
        self.ids.extend_from_within(old);
        let others = &self.others;
        let ids = (from..room).map(|number| others.get(scope, i64::from(number)).unwrap_or(FREE));
        self.ids.extend(ids);
    }

    /// Prefetches the place of a small number.
    #[inline]
    fn touch(&self, scope: u32, number: i64) -> u32 {
        match self.stretches.get(scope as usize) {
            Some(stretch) if (number as u64) < u64::from(stretch.room) => {
                self.ids[stretch.start as usize + number as usize]
            }
            _ => self.others.touch(hash(scope, number)),
        }
    }
}

/// The ids of tokens within a scope; numbers are the fast path.
#[derive(Debug, Default)]
pub(super) struct TokenTable {
    numbers: SmallTable,
    others: FxHashMap<(u32, Token), u32>,
}

/// What [`TokenTable::touch`] found for a number, for [`TokenTable::touched_id`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touched {
    hash: usize,
    /// The loaded content, otherwise unused: using it waits for the memory.
    pub(super) loaded: u32,
}

impl TokenTable {
    /// The id of a token; `fresh` if it is new.
    #[inline]
    pub(super) fn id(&mut self, scope: KeyId, token: Token, fresh: u32) -> u32 {
        match token {
            Token::Int(number) if (number as u64) < SMALL => {
                self.numbers.id(scope.0, number, fresh)
            }
            Token::Int(number) => {
                let hash = hash(scope.0, number);
                self.numbers.others.id(hash, scope.0, number, fresh)
            }
            other => *self.others.entry((scope.0, other)).or_insert(fresh),
        }
    }

    /// Prefetches what the lookup of this number's id needs.
    #[inline]
    pub(super) fn touch(&self, scope: KeyId, number: i64) -> Touched {
        if (number as u64) < SMALL {
            let loaded = self.numbers.touch(scope.0, number);
            return Touched { hash: 0, loaded };
        }
        let hash = hash(scope.0, number);
        let loaded = self.numbers.others.touch(hash);
        Touched { hash, loaded }
    }

    /// The id of a number that was touched; `fresh` if it is new.
    #[inline]
    pub(super) fn touched_id(
        &mut self,
        touched: Touched,
        scope: KeyId,
        number: i64,
        fresh: u32,
    ) -> u32 {
        if (number as u64) < SMALL {
            return self.numbers.id(scope.0, number, fresh);
        }
        let others = &mut self.numbers.others;
        others.id(touched.hash, scope.0, number, fresh)
    }
}

#[cfg(test)]
mod tests {
    use kingsnake_context::rng::Rng;

    use super::*;

    #[test]
    fn equal_pairs_have_equal_ids_and_others_do_not() {
        let mut table = TokenTable::default();
        let mut fresh = 0;
        let mut intern = |scope: u32, token: Token| {
            let id = table.id(KeyId(scope), token, fresh);
            fresh += u32::from(id == fresh);
            id
        };
        for scope in 0..50 {
            for number in -50..50 {
                assert_eq!(
                    intern(scope, Token::Int(number << 40)),
                    scope * 101 + (number + 50) as u32
                );
            }
            assert_eq!(intern(scope, Token::Nil), scope * 101 + 100);
        }
        for scope in 0..50 {
            for number in -50..50 {
                assert_eq!(
                    intern(scope, Token::Int(number << 40)),
                    scope * 101 + (number + 50) as u32
                );
            }
        }
        assert_eq!(intern(3, Token::Nil), 403);
        assert_eq!(intern(50, Token::Nil), 50 * 101);
        assert_eq!(intern(0, Token::Int(1)), 50 * 101 + 1);
    }

    #[test]
    fn numbers_keep_their_ids_whatever_the_order_in_which_they_come() {
        let mut known: FxHashMap<(u32, i64), u32> = FxHashMap::default();
        let mut table = TokenTable::default();
        let mut rng = Rng::new(1);
        let mut below = |bound: u64| rng.below(bound as usize) as u64;
        let mut n_repeated = 0;
        for _ in 0..200_000 {
            let scope = below(300) as u32;
            // Counters, a few large numbers, the ends of the range, negative ones.
            let number = match below(20) {
                0 => below(1 << 31) as i64,
                1 => -(below(50) as i64),
                2 => {
                    [i64::MIN, i64::MAX, SMALL as i64 - 1, SMALL as i64, 1 << 32][below(5) as usize]
                }
                3..10 => below(2_000) as i64,
                _ => below(100) as i64,
            };
            let fresh = known.len() as u32;
            let expected = *known.entry((scope, number)).or_insert(fresh);
            n_repeated += usize::from(expected != fresh);
            let scope = KeyId(scope);
            let id = if below(2) == 0 {
                table.id(scope, Token::Int(number), fresh)
            } else {
                let touched = table.touch(scope, number);
                table.touched_id(touched, scope, number, fresh)
            };
            assert_eq!(id, expected);
        }
        assert!(n_repeated > 50_000 && known.len() > 50_000);
    }
}
