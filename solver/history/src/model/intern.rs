//! Gives dense ids to whole numbers within a scope: the inner loop of every reader, so one probe is one cache line.
//!
//! Open addressing, linear probing, at most three quarters full; ids are handed out in order of first appearance.

use super::ids::KeyId;
use super::names::Token;
use rustc_hash::FxHashMap;

const FREE: u32 = u32::MAX;

/// From this many slots on, room matters more than moving the slots once more.
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
    /// The id of a pair; `fresh` if the pair is new.
    #[inline]
    fn id(&mut self, scope: u32, number: i64, fresh: u32) -> u32 {
        if self.n_used * 4 >= self.slots.len() * 3 {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(scope, number) & mask;
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

    /// Loads the slot where a pair would be, so that asking for its id soon finds it in the cache.
    #[inline]
    fn touch(&self, scope: u32, number: i64) -> u32 {
        match self.slots.len() {
            0 => 0,
            size => self.slots[hash(scope, number) & (size - 1)].id,
        }
    }

    #[cold]
    fn grow(&mut self) {
        let factor = if self.slots.len() < LARGE { 4 } else { 2 };
        self.resize((self.slots.len() * factor).max(64));
    }

    /// Makes room for this many pairs in all.
    fn reserve(&mut self, n_pairs: usize) {
        let size = (n_pairs / 3 * 4 + 8).next_power_of_two();
        if size > self.slots.len() {
            self.resize(size);
        }
    }

    fn resize(&mut self, size: usize) {
        let free = Slot {
            number: 0,
            scope: 0,
            id: FREE,
        };
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

/// The ids of tokens within a scope; numbers are the fast path.
#[derive(Debug, Default)]
pub(super) struct TokenTable {
    numbers: NumberTable,
    others: FxHashMap<(u32, Token), u32>,
}

impl TokenTable {
    /// The id of a token; `fresh` if it is new.
    #[inline]
    pub(super) fn id(&mut self, scope: KeyId, token: Token, fresh: u32) -> u32 {
        match token {
            Token::Int(number) => self.numbers.id(scope.0, number, fresh),
            other => *self.others.entry((scope.0, other)).or_insert(fresh),
        }
    }

    /// Makes room for this many numbers.
    pub(super) fn reserve(&mut self, n_numbers: usize) {
        self.numbers.reserve(n_numbers);
    }

    /// Loads what asking for this number's id will need; the answer means nothing.
    #[inline]
    pub(super) fn touch(&self, scope: KeyId, number: i64) -> u32 {
        self.numbers.touch(scope.0, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_room_for_moves_nothing() {
        for n_pairs in 0..300 {
            let mut table = NumberTable::default();
            table.reserve(n_pairs);
            let size = table.slots.len();
            for number in 0..n_pairs as u32 {
                assert_eq!(table.id(7, i64::from(number), number), number);
            }
            assert_eq!(table.slots.len(), size, "{n_pairs}");
        }
    }

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
}
