//! Whether a log of additions and reads is a linearizable counter: Wing and Gong's search with Lowe's cache.
//!
//! The bounds of [`counter`](crate::counter) judge each read alone; this asks for one order of all operations, each between
//! its start and its end, in which every read returns the sum so far. Additions commute, so the sum follows from which of them
//! were taken. Three choices lose nothing: a read that returns the sum is taken at once, because it changes nothing; nothing
//! is taken before some operation that is not taken yet ends; and of additions of the same amount that have started the one that
//! ends first is taken. So with one amount there is no choice at all, and with several the problem is that of subset sums.

use kingsnake_history::budget::{Budget, StopReason};
use kingsnake_history::operations::Operation;
use kingsnake_history::rng::Rng;
use rustc_hash::{FxHashMap, FxHashSet};

/// The effect of an operation on the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Add(i64),
    Read(i64),
}

/// An operation of the counter: when it started, and when it ended if it did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterOperation {
    pub(crate) act: Act,
    pub(crate) start: usize,
    /// Nothing where it may have happened at any time since, or never.
    pub(crate) end: Option<usize>,
    /// Its place in the log.
    pub(crate) at: usize,
}

/// The state of the search.
#[derive(Clone)]
struct Place {
    /// The next event.
    event: usize,
    /// Operations that have started and were not taken.
    open: Vec<u32>,
    sum: i64,
    /// A name of the set of operations that were taken: the same additions in another order pass other sums, and so other reads.
    set: u128,
}

/// A place, and what may be taken there.
struct Fork {
    place: Place,
    choices: Vec<u32>,
}

/// Number of steps between two looks at the clock.
const STEPS: u64 = 1024;

/// `None` if there is an order; else the operation that the longest attempt could not place before its end.
pub(crate) fn stuck(
    steps: &[CounterOperation],
    budget: &Budget,
) -> Result<Option<usize>, StopReason> {
    let mut events: Vec<(usize, bool, u32)> = Vec::with_capacity(2 * steps.len());
    for (number, step) in steps.iter().enumerate() {
        events.push((step.start, false, number as u32));
        if let Some(end) = step.end {
            events.push((end, true, number as u32));
        }
    }
    events.sort_unstable();
    let mut place = Place {
        event: 0,
        open: Vec::new(),
        sum: 0,
        set: 0,
    };
    let mut forks: Vec<Fork> = Vec::new();
    let mut seen = FxHashSet::default();
    let mut furthest = 0;
    let mut n_steps = 0_u64;
    loop {
        n_steps += 1;
        if n_steps.is_multiple_of(STEPS) {
            budget.check()?;
        }
        let Some(wanted) = advance(steps, &events, &mut place) else {
            return Ok(None);
        };
        furthest = furthest.max(place.event);
        if seen.insert(place.set) {
            let choices = choices(steps, &place.open, wanted);
            forks.push(Fork {
                place: place.clone(),
                choices,
            });
        }
        loop {
            let Some(fork) = forks.last_mut() else {
                let (_, _, number) = events[furthest];
                return Ok(Some(steps[number as usize].at));
            };
            if let Some(chosen) = fork.choices.pop() {
                place.clone_from(&fork.place);
                take(steps, &mut place, chosen);
                break;
            }
            forks.pop();
        }
    }
}

/// Advances to the next end of an operation that is not taken; `None` after the last event.
fn advance(
    steps: &[CounterOperation],
    events: &[(usize, bool, u32)],
    place: &mut Place,
) -> Option<u32> {
    loop {
        let (sum, set) = (place.sum, &mut place.set);
        place.open.retain(|&it| {
            let is_taken = steps[it as usize].act == Act::Read(sum);
            *set ^= if is_taken { name(it) } else { 0 };
            !is_taken
        });
        let &(_, is_end, number) = events.get(place.event)?;
        if is_end && place.open.contains(&number) {
            return Some(number);
        }
        if !is_end {
            place.open.push(number);
        }
        place.event += 1;
    }
}

/// The additions to consider: of each amount the one that ends first. The last is tried first.
fn choices(steps: &[CounterOperation], open: &[u32], wanted: u32) -> Vec<u32> {
    let mut first: FxHashMap<i64, u32> = FxHashMap::default();
    let end = |number: u32| steps[number as usize].end.unwrap_or(usize::MAX);
    for &number in open {
        if let Act::Add(amount) = steps[number as usize].act {
            let best = first.entry(amount).or_insert(number);
            if end(number) < end(*best) {
                *best = number;
            }
        }
    }
    let mut choices: Vec<u32> = first.into_values().collect();
    // Those that end soon are needed soon; the one that blocks the search is tried first of all.
    choices.sort_unstable_by_key(|&it| (it == wanted, std::cmp::Reverse(end(it)), it));
    choices
}

fn take(steps: &[CounterOperation], place: &mut Place, number: u32) {
    if let Act::Add(amount) = steps[number as usize].act {
        place.sum = place.sum.wrapping_add(amount);
    }
    place.open.retain(|&it| it != number);
    place.set ^= name(number);
}

/// A random name of an operation; sets are named by the sum without carry of their members' names.
fn name(number: u32) -> u128 {
    let mut rng = Rng::new(u64::from(number));
    u128::from(rng.number()) << 64 | u128::from(rng.number())
}

/// The steps of a log; `None` where an operation adds no whole number.
pub(crate) fn steps(log: &[Operation]) -> Option<Vec<CounterOperation>> {
    let mut steps = Vec::new();
    for (at, op) in log.iter().enumerate() {
        if op.is_failed() {
            continue;
        }
        let act = match op.f.as_str() {
            "read" if op.is_ok() => Act::Read(op.output.int()?),
            "add" => Act::Add(op.input.int().or(op.output.int())?),
            "decrement" => Act::Add(op.input.int().or(op.output.int())?.checked_neg()?),
            _ => continue,
        };
        steps.push(CounterOperation {
            act,
            start: op.invoked,
            end: op.completed.filter(|_| op.is_ok()),
            at,
        });
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: some order of all that ended and of some that did not.
    fn by_trying(steps: &[CounterOperation], taken: &mut Vec<usize>, sum: i64) -> bool {
        let is_left = |it: &usize| !taken.contains(it);
        let left: Vec<usize> = (0..steps.len()).filter(is_left).collect();
        if left.iter().all(|&it| steps[it].end.is_none()) {
            return true;
        }
        let soonest = left.iter().filter_map(|&it| steps[it].end).min();
        for it in left {
            let step = steps[it];
            if soonest.is_some_and(|end| end < step.start) {
                continue;
            }
            let after = match step.act {
                Act::Read(found) if found != sum => continue,
                Act::Read(_) => sum,
                Act::Add(amount) => sum + amount,
            };
            taken.push(it);
            let is_found = by_trying(steps, taken, after);
            taken.pop();
            if is_found {
                return true;
            }
        }
        false
    }

    fn random(rng: &mut Rng) -> Vec<CounterOperation> {
        let n_steps = rng.between(1, 7);
        let amounts: &[i64] = [&[1][..], &[1, 2], &[3, 5, -2]][rng.below(3)];
        let mut times: Vec<usize> = (0..2 * n_steps).collect();
        for at in (1..times.len()).rev() {
            times.swap(at, rng.below(at + 1));
        }
        let steps = (0..n_steps).map(|at| {
            let (one, other) = (times[2 * at], times[2 * at + 1]);
            let act = if rng.chance(50) {
                Act::Add(amounts[rng.below(amounts.len())])
            } else {
                Act::Read(rng.below(6) as i64)
            };
            let has_end = matches!(act, Act::Read(_)) || rng.chance(80);
            CounterOperation {
                act,
                start: one.min(other),
                end: has_end.then_some(one.max(other)),
                at,
            }
        });
        steps.collect()
    }

    /// Jepsen's bounds, for non-negative amounts alone.
    fn is_bounded(steps: &[CounterOperation]) -> bool {
        let total = |counts: &dyn Fn(&CounterOperation) -> bool| {
            let amounts = steps.iter().filter(|it| counts(it)).map(|it| match it.act {
                Act::Add(amount) => amount,
                Act::Read(_) => 0,
            });
            amounts.sum::<i64>()
        };
        steps.iter().all(|read| match (read.act, read.end) {
            (Act::Read(found), Some(end)) => {
                let low = total(&|it| it.end.is_some_and(|end| end < read.start));
                (low..=total(&|it| it.start < end)).contains(&found)
            }
            _ => true,
        })
    }

    #[test]
    fn the_search_agrees_with_trying_all_orders_and_the_bounds_do_not() {
        let mut rng = Rng::new(3);
        let budget = Budget::unlimited();
        let (mut n_held, mut n_broken, mut n_bounds_wrong) = (0, 0, 0);
        for _ in 0..30_000 {
            let steps = random(&mut rng);
            let expected = by_trying(&steps, &mut Vec::new(), 0);
            let found = stuck(&steps, &budget).unwrap().is_none();
            assert_eq!(found, expected, "{steps:?}");
            *if expected { &mut n_held } else { &mut n_broken } += 1;
            n_bounds_wrong += usize::from(!expected && is_bounded(&steps));
        }
        assert!(
            n_held > 3_000 && n_broken > 3_000,
            "{n_held} and {n_broken}"
        );
        assert!(n_bounds_wrong > 100, "{n_bounds_wrong}");
    }

    #[test]
    fn a_search_without_time_says_so() {
        let amount = |at: usize| Act::Add(1 << (at % 40));
        let mut steps: Vec<CounterOperation> = (0..40)
            .map(|at| CounterOperation {
                act: amount(at),
                start: at,
                end: Some(1_000 + at),
                at,
            })
            .collect();
        // A sum that only all of them together pass, read after two different parts of them.
        for (at, found) in [(40, (1 << 39) - 1), (41, 1 << 39)] {
            steps.push(CounterOperation {
                act: Act::Read(found),
                start: 100 + at,
                end: Some(500),
                at,
            });
        }
        let limit = std::time::Duration::from_millis(20);
        let budget = Budget::unlimited().with_timeout(std::time::Instant::now(), limit);
        assert!(matches!(stuck(&steps, &budget), Err(StopReason::Time(_))));
    }
}
