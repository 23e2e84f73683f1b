//! `zones`: decides a key whose values are written once, in O(n log n).
//!
//! Versions linked by compare-and-sets form runs, each of which is one block in any order. Inside a run the groups
//! *writer, readers, compare-and-set, readers, …* must not go back in time. Of two blocks, A must precede B iff the least
//! end in A is before the greatest start in B; the key is linearizable iff no two blocks precede each other and the
//! block of the initial value is preceded by none. (Gibbons and Korach 1997 for reads and writes; Huang et al.'s MTC for
//! chains of compare-and-sets.) A zone lies between a block's least end and its greatest start: *forward* if the end is
//! first, else *backward*. Two blocks precede each other iff two forward zones overlap or a forward one contains a
//! backward one, so sorting the forward ones finds them.

use crate::operations::{INITIAL, Key, NONE, Operation};
use crate::rules::Rules;

/// The result for a key.
pub(crate) enum ZoneAnswer {
    /// Its operations that took effect, as places, in an order that fits.
    Ordered(Vec<u32>),
    /// Why there is no order.
    Conflict(Conflict),
    /// A value is written twice, a refusal counts, or what was seen is impossible: not for this engine.
    Repeated,
}

/// Two or more operations, by their places, that fit no order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// Reads of values that no other operation left.
    Unwritten(Vec<u32>),
    /// Two compare-and-sets replaced one version.
    DoubleSuccess(u32, u32),
    /// Compare-and-sets each of which replaced what the one before it wrote, in a circle.
    Ring(Vec<u32>),
    /// In a run `earlier` must come before `later`, which ended before it started.
    Back { earlier: u32, later: u32 },
    /// `initial` is of the run that begins with the initial value, and started after `other` of another run ended.
    Initial { initial: u32, other: u32 },
    /// Of two blocks, one has an operation that ended before one of the other started, and the other way round.
    Blocks {
        ended: [u32; 2],
        started: [u32; 2],
        heads: [u32; 2],
    },
}

/// One version: who wrote it, who replaced it, and the extremes of those who only read it.
#[derive(Clone, Copy)]
pub(crate) struct Version {
    pub(crate) writer: u32,
    taker: u32,
    /// The reader that ended first.
    pub(crate) first_end: u32,
    /// The reader that started last.
    pub(crate) last_start: u32,
}

/// A run: the extremes of all its operations.
#[derive(Clone, Copy)]
struct Block {
    /// Its run, as a place in [`Chains`].
    run: u32,
    /// The value that the run begins with.
    head: u32,
    first_end: u32,
    last_start: u32,
}

/// Decides a key.
pub(crate) fn decide<R: Rules>(key: &Key<'_>) -> ZoneAnswer {
    let Some((mut versions, counted)) = versions::<R>(key) else {
        return ZoneAnswer::Repeated;
    };
    if let Some(conflict) = link(key, &counted, &mut versions) {
        return ZoneAnswer::Conflict(conflict);
    }
    let chains = Chains::of(key, &counted, &versions);
    let (blocks, n_reached) = match runs::<R>(key, &counted, &versions, &chains) {
        Ok(runs) => runs,
        Err(conflict) => return ZoneAnswer::Conflict(conflict),
    };
    if n_reached < counted.iter().filter(|&&counts| counts).count() {
        return ZoneAnswer::Conflict(ring(key, &counted, &versions));
    }
    let blocks = match place_blocks::<R>(key.ops, blocks) {
        Ok(blocks) => blocks,
        Err(conflict) => return ZoneAnswer::Conflict(conflict),
    };
    ZoneAnswer::Ordered(order(key, &counted, &versions, &chains, &blocks))
}

/// Who wrote each value, and which operations took effect; `None` if this engine cannot tell.
fn versions<R: Rules>(key: &Key<'_>) -> Option<(Vec<Version>, Vec<bool>)> {
    let nobody = Version {
        writer: NONE,
        taker: NONE,
        first_end: NONE,
        last_start: NONE,
    };
    let mut versions = vec![nobody; key.n_values];
    let mut n_unknown = 0;
    for (at, op) in key.ops.iter().enumerate() {
        n_unknown += usize::from(op.is_unknown);
        if op.has_refusals() || op.writes_initial {
            return None;
        }
        if op.write != NONE {
            let writer = &mut versions[op.write as usize].writer;
            if *writer != NONE {
                return None;
            }
            *writer = at as u32;
        }
    }
    let counted = match n_unknown {
        0 => vec![true; key.ops.len()],
        _ => observed::<R>(key.ops, &versions),
    };
    let mut ops = key.ops.iter().zip(&counted);
    let is_broken = ops.any(|(op, counts)| *counts && op.is_broken);
    (!is_broken).then_some((versions, counted))
}

/// Operations of unknown end took effect once one that did shows what they wrote.
fn observed<R: Rules>(ops: &[Operation], versions: &[Version]) -> Vec<bool> {
    let mut counted: Vec<bool> = ops.iter().map(|op| !op.is_unknown).collect();
    let mut fresh: Vec<u32> = (0..ops.len() as u32)
        .filter(|&at| counted[at as usize])
        .collect();
    while let Some(at) = fresh.pop() {
        let op = &ops[at as usize];
        if !R::shows_writer(op) {
            continue;
        }
        let writer = versions[op.read as usize].writer;
        if writer != NONE && !std::mem::replace(&mut counted[writer as usize], true) {
            fresh.push(writer);
        }
    }
    counted
}

/// Fills in readers and takers; a read of a value without a writer and two takers of one version are conflicts.
fn link(key: &Key<'_>, counted: &[bool], versions: &mut [Version]) -> Option<Conflict> {
    let ops = key.ops;
    let mut unwritten = Vec::new();
    let mut double = None;
    for (at, op) in ops.iter().enumerate() {
        if !counted[at] || op.read == NONE {
            continue;
        }
        let at = at as u32;
        let version = &mut versions[op.read as usize];
        if op.read != INITIAL && (version.writer == NONE || version.writer == at) {
            unwritten.push(at);
        }
        if !op.is_read() {
            if version.taker != NONE {
                double = double.or(Some((version.taker, at)));
            }
            version.taker = at;
            continue;
        }
        earliest_end(ops, &mut version.first_end, at);
        latest_start(ops, &mut version.last_start, at);
    }
    if !unwritten.is_empty() {
        return Some(Conflict::Unwritten(unwritten));
    }
    let (one, other) = double?;
    // What is replaced twice may itself come from a circle, and then the circle is the plainer proof.
    let circle = circle(ops, versions, one);
    Some(circle.map_or(Conflict::DoubleSuccess(one, other), Conflict::Ring))
}

fn earliest_end(ops: &[Operation], best: &mut u32, at: u32) {
    if at != NONE && (*best == NONE || ops[at as usize].end < ops[*best as usize].end) {
        *best = at;
    }
}

fn latest_start(ops: &[Operation], best: &mut u32, at: u32) {
    if at != NONE && (*best == NONE || ops[at as usize].begin > ops[*best as usize].begin) {
        *best = at;
    }
}

/// Whether one operation ended before the other started.
fn precedes<R: Rules>(ops: &[Operation], one: u32, other: u32) -> bool {
    if one == NONE || other == NONE {
        return false;
    }
    R::is_over(ops[one as usize].end, ops[other as usize].begin)
}

/// The heads of runs: the initial value and every value that was written blindly.
fn heads<'a>(key: &'a Key<'_>, counted: &'a [bool]) -> impl Iterator<Item = u32> + 'a {
    let blind = key.ops.iter().zip(counted);
    let blind = blind.filter(|(op, counts)| **counts && op.read == NONE && op.write != NONE);
    std::iter::once(INITIAL).chain(blind.map(|(op, _)| op.write))
}

/// The values of all runs, one run behind the other, and where each run ends.
struct Chains {
    values: Vec<u32>,
    ends: Vec<u32>,
}

impl Chains {
    /// Follows every run from its head, the initial one first.
    ///
    /// Each value of a run is found from the one before it. So that nothing else is waited for, what replaced a value is in an
    /// array of its own, small enough for a cache; all else that is known of the values is looked up afterwards.
    fn of(key: &Key<'_>, counted: &[bool], versions: &[Version]) -> Self {
        let next = |version: &Version| match version.taker {
            NONE => NONE,
            taker => key.ops[taker as usize].write,
        };
        let next: Vec<u32> = versions.iter().map(next).collect();
        let mut chains = Chains {
            values: Vec::with_capacity(key.n_values),
            ends: Vec::new(),
        };
        for head in heads(key, counted) {
            let mut value = head;
            while value != NONE {
                chains.values.push(value);
                value = next[value as usize];
            }
            chains.ends.push(chains.values.len() as u32);
        }
        chains
    }

    /// The values of a run.
    fn run(&self, at: usize) -> &[u32] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.values[start as usize..self.ends[at] as usize]
    }
}

/// The blocks of all runs, the initial one first, and how many operations are in them.
fn runs<R: Rules>(
    key: &Key<'_>,
    counted: &[bool],
    versions: &[Version],
    chains: &Chains,
) -> Result<(Vec<Block>, usize), Conflict> {
    // Readers are in the block of what they read; whether that is reached follows from its writer.
    let ops = key.ops.iter().zip(counted);
    let n_readers = ops.filter(|(op, counts)| **counts && op.is_read()).count();
    let is_written = |value: &&u32| versions[**value as usize].writer != NONE;
    let n_written = chains.values.iter().filter(is_written).count();
    let blocks = (0..chains.ends.len()).map(|run| check_run::<R>(key.ops, versions, chains, run));
    let blocks = blocks.collect::<Result<Vec<Block>, Conflict>>()?;
    Ok((blocks, n_readers + n_written))
}

/// Walks a run backwards and looks for an operation that started after the end of one that must come later.
fn check_run<R: Rules>(
    ops: &[Operation],
    versions: &[Version],
    chains: &Chains,
    run: usize,
) -> Result<Block, Conflict> {
    let values = chains.run(run);
    let mut block = Block {
        run: run as u32,
        head: values[0],
        first_end: NONE,
        last_start: NONE,
    };
    for &value in values.iter().rev() {
        for (first_end, last_start) in R::extremes(&versions[value as usize]) {
            if precedes::<R>(ops, block.first_end, last_start) {
                return Err(Conflict::Back {
                    earlier: last_start,
                    later: block.first_end,
                });
            }
            earliest_end(ops, &mut block.first_end, first_end);
            latest_start(ops, &mut block.last_start, last_start);
        }
    }
    Ok(block)
}

/// Compare-and-sets that no run reaches: from any of them, backwards, until one comes twice.
fn ring(key: &Key<'_>, counted: &[bool], versions: &[Version]) -> Conflict {
    let ops = key.ops;
    let mut reached = vec![false; key.n_values];
    for head in heads(key, counted) {
        let mut value = head;
        loop {
            reached[value as usize] = true;
            match versions[value as usize].taker {
                NONE => break,
                taker => value = ops[taker as usize].write,
            }
        }
    }
    let unreached = |at: &u32| {
        let op = &ops[*at as usize];
        counted[*at as usize] && op.write != NONE && !reached[op.write as usize]
    };
    let at = (0..ops.len() as u32).find(unreached).unwrap_or(0);
    Conflict::Ring(circle(ops, versions, at).unwrap_or_default())
}

/// Goes back from an operation to who wrote what it read, and so on; returns the circle where that ends in one.
fn circle(ops: &[Operation], versions: &[Version], from: u32) -> Option<Vec<u32>> {
    let source = |at: u32| {
        let read = ops[at as usize].read;
        let writer = (read != NONE).then(|| versions[read as usize].writer);
        writer.filter(|&writer| writer != NONE)
    };
    let mut seen = vec![false; ops.len()];
    let mut at = from;
    while !std::mem::replace(&mut seen[at as usize], true) {
        at = source(at)?;
    }
    let mut circle = vec![at];
    let mut before = source(at)?;
    while before != at {
        circle.push(before);
        before = source(before)?;
    }
    circle.reverse();
    Some(circle)
}

/// Sorts the blocks into an order that fits the clock. The first block is the initial one and stays first.
fn place_blocks<R: Rules>(ops: &[Operation], blocks: Vec<Block>) -> Result<Vec<Block>, Conflict> {
    let initial = blocks[0];
    for block in &blocks[1..] {
        if R::initial_is_first() && precedes::<R>(ops, block.first_end, initial.last_start) {
            return Err(Conflict::Initial {
                initial: initial.last_start,
                other: block.first_end,
            });
        }
    }
    let mut blocks = blocks;
    let end = |block: &Block| ops[block.first_end as usize].end;
    let start = |block: &Block| ops[block.last_start as usize].begin;
    let is_forward = |block: &Block| end(block) < start(block);
    // A backward zone that begins where a forward one does may contain its end, and then comes before it.
    blocks[1..].sort_by_key(|block| (end(block).min(start(block)), is_forward(block)));
    let mut forward: Option<Block> = None;
    for block in &blocks[1..] {
        if let Some(before) = forward
            && R::collide((end(&before), start(&before)), (end(block), start(block)))
        {
            return Err(clash(before, *block));
        }
        if is_forward(block) {
            forward = Some(*block);
        }
    }
    Ok(blocks)
}

fn clash(one: Block, other: Block) -> Conflict {
    Conflict::Blocks {
        ended: [one.first_end, other.first_end],
        started: [one.last_start, other.last_start],
        heads: [one.head, other.head],
    }
}

/// The operations, block by block and group by group.
fn order(
    key: &Key<'_>,
    counted: &[bool],
    versions: &[Version],
    chains: &Chains,
    blocks: &[Block],
) -> Vec<u32> {
    let mut starts = vec![0_u32; key.n_values + 1];
    let readers = || {
        let all = key.ops.iter().enumerate();
        all.filter(|&(at, op)| counted[at] && op.is_read() && op.read != NONE)
    };
    for (_, op) in readers() {
        starts[op.read as usize + 1] += 1;
    }
    for value in 0..key.n_values {
        starts[value + 1] += starts[value];
    }
    let mut next = starts.clone();
    let mut by_value = vec![0_u32; starts[key.n_values] as usize];
    for (at, op) in readers() {
        by_value[next[op.read as usize] as usize] = at as u32;
        next[op.read as usize] += 1;
    }
    // Readers of one version are free among themselves, but their moments go by the clock.
    for value in 0..key.n_values {
        let group = &mut by_value[starts[value] as usize..starts[value + 1] as usize];
        group.sort_unstable_by_key(|&at| key.ops[at as usize].begin);
    }
    let mut order = Vec::with_capacity(key.ops.len());
    for block in blocks {
        for &value in chains.run(block.run as usize) {
            let value = value as usize;
            let writer = versions[value].writer;
            order.extend((writer != NONE).then_some(writer));
            let readers = starts[value] as usize..starts[value + 1] as usize;
            order.extend_from_slice(&by_value[readers]);
        }
    }
    order
}
