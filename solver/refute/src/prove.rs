//! Finds a short tree of case splits whose every leaf is a cycle: DPLL over a small [`Arena`], with unit steps and
//! lookahead (as in Heule's and van Maaren's march), from which only the splits that some leaf uses are kept.
//!
//! Invariant: a returned tree refutes the arena: each leaf's arcs hold under the sides on the way to it.

use super::arena::{Arena, Stamps};
use super::closure::Closure;
use super::effort::Effort;

/// Why an arena has no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// Arcs, each of which ends where the next begins, around.
    Cycle(Vec<u32>),
    /// Either side of a split fails.
    Split {
        /// The split.
        split: u32,
        /// What refutes each side.
        sides: Box<[Tree; 2]>,
    },
}

/// The splits that a tree assumes from outside of it, sorted.
type Used = Vec<u32>;

/// How many splits a lookahead tries.
const LOOKAHEAD: usize = 40;

/// How many pairs of leaves are compared when several splits fail on both sides.
const WEIGHED: usize = 24;

/// Refutes an arena, or gives up when the work is used up or there is an order.
pub(super) fn prove(arena: &Arena, work: &mut Effort<'_>) -> Option<Tree> {
    let mut closure = Closure::new(arena.n_points());
    let fixed: Vec<u32> = (0..arena.arcs().len() as u32)
        .filter(|&index| arena.arc(index).split.is_none())
        .collect();
    for &index in &fixed {
        let arc = arena.arc(index);
        spend(work, closure.work() / 8 + 1)?;
        closure.add(arc.from, arc.to);
    }
    let stamps = vec![[u32::MAX; 2]; arena.n_splits()];
    if closure.is_cyclic() {
        return arena
            .cheapest_cycle(&fixed, &stamps, 0, None)
            .map(Tree::Cycle);
    }
    let state = State {
        closure,
        stamps,
        clock: 0,
    };
    refute(arena, state, work).map(|(tree, _)| tree)
}

/// The state at one place of the search.
#[derive(Clone)]
struct State {
    closure: Closure,
    stamps: Stamps,
    /// Sides stamped before this time hold.
    clock: u32,
}

/// A side that was forced at a time, because the other one closes a cycle.
struct Forced {
    split: u32,
    side: usize,
    time: u32,
}

impl State {
    fn is_open(&self, split: u32) -> bool {
        self.stamps[split as usize] == [u32::MAX; 2]
    }

    /// Whether one arc of a side closes a cycle.
    fn closes(&self, arena: &Arena, split: u32, side: usize) -> bool {
        arena.side(split, side).iter().any(|&index| {
            let arc = arena.arc(index);
            arc.from == arc.to || self.closure.reaches(arc.to, arc.from)
        })
    }

    fn assume(
        &mut self,
        arena: &Arena,
        split: u32,
        side: usize,
        work: &mut Effort<'_>,
    ) -> Option<()> {
        self.stamps[split as usize][side] = self.clock;
        for &index in arena.side(split, side) {
            let arc = arena.arc(index);
            spend(work, self.closure.work() / 8 + 1)?;
            self.closure.add(arc.from, arc.to);
        }
        Some(())
    }

    /// The cheapest cycle that the side closes on its own.
    fn leaf(&self, arena: &Arena, split: u32, side: usize, time: u32) -> Option<Vec<u32>> {
        let through = arena.side(split, side);
        arena.cheapest_cycle(through, &self.stamps, time, Some((split, side)))
    }
}

fn spend(work: &mut Effort<'_>, amount: u64) -> Option<()> {
    work.spend(amount).ok()
}

fn used_by(arena: &Arena, cycle: &[u32]) -> Used {
    let mut used: Used = cycle
        .iter()
        .filter_map(|&index| arena.arc(index).split.map(|(split, _)| split))
        .collect();
    used.sort_unstable();
    used.dedup();
    used
}

fn merge(mut one: Used, other: Used, without: u32) -> Used {
    one.extend(other);
    one.sort_unstable();
    one.dedup();
    one.retain(|&split| split != without);
    one
}

fn refute(arena: &Arena, mut state: State, work: &mut Effort<'_>) -> Option<(Tree, Used)> {
    let mut trail: Vec<Forced> = Vec::new();
    loop {
        let mut forced = Vec::new();
        let mut hopeless = Vec::new();
        for split in (0..arena.n_splits() as u32).filter(|&split| state.is_open(split)) {
            spend(work, 4)?;
            match [0, 1].map(|side| state.closes(arena, split, side)) {
                [true, true] => hopeless.push(split),
                [true, false] => forced.push((split, 1)),
                [false, true] => forced.push((split, 0)),
                [false, false] => {}
            }
        }
        if !hopeless.is_empty() {
            let leaf = cheapest_pair(arena, &state, &hopeless, work)?;
            return wrap(arena, &state, &trail, leaf);
        }
        if forced.is_empty() {
            break;
        }
        let time = state.clock;
        let mut arcs = Vec::new();
        for (split, side) in forced {
            state.assume(arena, split, side, work)?;
            arcs.extend_from_slice(arena.side(split, side));
            trail.push(Forced { split, side, time });
        }
        state.clock += 1;
        if state.closure.is_cyclic() {
            let cycle = arena.cheapest_cycle(&arcs, &state.stamps, state.clock, None)?;
            let used = used_by(arena, &cycle);
            return wrap(arena, &state, &trail, (Tree::Cycle(cycle), used));
        }
    }
    let split = choose(arena, &state, work)?;
    let inner = decide(arena, &state, split, work)?;
    wrap(arena, &state, &trail, inner)
}

/// Refutes both sides of a split; one refutation is enough where it does not use the split.
fn decide(arena: &Arena, state: &State, split: u32, work: &mut Effort<'_>) -> Option<(Tree, Used)> {
    let mut refuted = Vec::with_capacity(2);
    for side in 0..2 {
        let mut child = state.clone();
        spend(work, child.closure.work())?;
        child.assume(arena, split, side, work)?;
        child.clock += 1;
        let (tree, used) = if child.closure.is_cyclic() {
            let cycle = child.leaf(arena, split, side, child.clock)?;
            let used = used_by(arena, &cycle);
            (Tree::Cycle(cycle), used)
        } else {
            refute(arena, child, work)?
        };
        if used.binary_search(&split).is_err() {
            return Some((tree, used));
        }
        refuted.push((tree, used));
    }
    let (other, other_used) = refuted.pop()?;
    let (one, one_used) = refuted.pop()?;
    let sides = Box::new([one, other]);
    Some((
        Tree::Split { split, sides },
        merge(one_used, other_used, split),
    ))
}

/// Puts the forced splits that a tree uses around it, latest first.
fn wrap(
    arena: &Arena,
    state: &State,
    trail: &[Forced],
    (mut tree, mut used): (Tree, Used),
) -> Option<(Tree, Used)> {
    for forced in trail.iter().rev() {
        if used.binary_search(&forced.split).is_err() {
            continue;
        }
        let cycle = state.leaf(arena, forced.split, 1 - forced.side, forced.time)?;
        let closed_used = used_by(arena, &cycle);
        if closed_used.binary_search(&forced.split).is_err() {
            return None;
        }
        let closed = Tree::Cycle(cycle);
        let sides = Box::new(if forced.side == 1 {
            [closed, tree]
        } else {
            [tree, closed]
        });
        tree = Tree::Split {
            split: forced.split,
            sides,
        };
        used = merge(used, closed_used, forced.split);
    }
    Some((tree, used))
}

/// Of the splits that fail on both sides, the one whose two cycles are the easiest to explain.
fn cheapest_pair(
    arena: &Arena,
    state: &State,
    hopeless: &[u32],
    work: &mut Effort<'_>,
) -> Option<(Tree, Used)> {
    let cost = |cycle: &[u32]| -> u32 { cycle.iter().map(|&index| arena.arc(index).cost).sum() };
    let mut best: Option<(u32, u32, [Vec<u32>; 2])> = None;
    for &split in hopeless.iter().take(WEIGHED) {
        spend(work, arena.arcs().len() as u64)?;
        let one = state.leaf(arena, split, 0, state.clock)?;
        let other = state.leaf(arena, split, 1, state.clock)?;
        let total = cost(&one) + cost(&other);
        if best.as_ref().is_none_or(|(least, ..)| total < *least) {
            best = Some((total, split, [one, other]));
        }
    }
    let (_, split, cycles) = best?;
    let [one_used, other_used] = [0, 1].map(|side: usize| used_by(arena, &cycles[side]));
    let sides = Box::new(cycles.map(Tree::Cycle));
    Some((
        Tree::Split { split, sides },
        merge(one_used, other_used, split),
    ))
}

/// The split that forces the most on both sides, found by trying.
fn choose(arena: &Arena, state: &State, work: &mut Effort<'_>) -> Option<u32> {
    let mut open: Vec<u32> = (0..arena.n_splits() as u32)
        .filter(|&split| state.is_open(split))
        .filter(|&split| (0..2).all(|side| !arena.side(split, side).is_empty()))
        .collect();
    open.sort_by_key(|&split| {
        let [one, other] = [0, 1].map(|side| arena.side(split, side).len());
        usize::MAX - one * other
    });
    let mut best: Option<(u64, u32)> = None;
    for &split in open.iter().take(LOOKAHEAD) {
        let mut score = 1;
        for side in 0..2 {
            let mut child = state.clone();
            spend(work, child.closure.work())?;
            child.assume(arena, split, side, work)?;
            if child.closure.is_cyclic() {
                return Some(split);
            }
            let forced = (0..arena.n_splits() as u32)
                .filter(|&it| child.is_open(it))
                .filter(|&it| (0..2).any(|side| child.closes(arena, it, side)))
                .count();
            spend(work, 4 * arena.n_splits() as u64)?;
            score *= forced as u64 + 1;
        }
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, split));
        }
    }
    best.map(|(_, split)| split)
}

#[cfg(test)]
mod tests {
    use super::super::arena::{Arc, Arena};
    use super::super::effort::Effort;
    use super::{Tree, prove};
    use crate::budget::Budget;

    fn arc(from: u32, to: u32, split: Option<(u32, usize)>) -> Arc {
        Arc {
            from,
            to,
            cost: 1,
            split,
        }
    }

    #[test]
    fn a_cycle_without_splits_is_a_leaf() {
        let arena = Arena::new(
            3,
            0,
            vec![arc(0, 1, None), arc(1, 2, None), arc(2, 0, None)],
        );
        let Some(Tree::Cycle(cycle)) =
            prove(&arena, &mut Effort::new(10_000, &Budget::unlimited()))
        else {
            panic!("a cycle");
        };
        assert_eq!(cycle.len(), 3);
    }

    #[test]
    fn a_split_that_no_leaf_uses_is_left_out() {
        let arcs = vec![
            arc(0, 1, None),
            arc(2, 3, None),
            arc(1, 0, Some((0, 0))),
            arc(3, 2, Some((0, 1))),
            arc(4, 5, Some((1, 0))),
            arc(5, 4, Some((1, 1))),
        ];
        let arena = Arena::new(6, 2, arcs);
        let tree = prove(&arena, &mut Effort::new(10_000, &Budget::unlimited())).unwrap();
        let Tree::Split { split: 0, sides } = tree else {
            panic!("a split");
        };
        assert!(sides.iter().all(|side| matches!(side, Tree::Cycle(_))));
    }

    #[test]
    fn an_arena_with_an_order_is_not_refuted() {
        let arcs = vec![arc(0, 1, Some((0, 0))), arc(1, 0, Some((0, 1)))];
        assert_eq!(
            prove(
                &Arena::new(2, 1, arcs),
                &mut Effort::new(10_000, &Budget::unlimited())
            ),
            None
        );
    }
}
