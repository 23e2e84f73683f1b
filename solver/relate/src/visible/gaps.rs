//! Gaps of range queries at the weak levels: a read that found a key absent must not have seen a writer of the key, because nothing
//! comes before the initial state. One such writer is a counterexample by itself, so nothing is listed: each level asks, for the
//! intervals of a reader, whether a transaction that it saw wrote into them.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::past::Past;
use super::{Sight, Visible, Why};
use crate::budget::StopReason;
use crate::level::Model;
use crate::model::KeyId;
use crate::resolve::{Intervals, NO_NODE, Node, ProgramGap, VersionId};

/// The readers at some levels that have gaps.
fn readers<'a>(graph: &Visible<'a>, levels: &[Model]) -> Vec<(Node, &'a [ProgramGap])> {
    let chunks = graph.reads.gaps().chunk_by(|a, b| a.reader == b.reader);
    let readers = chunks.map(|gaps| (gaps[0].reader, gaps));
    readers
        .filter(|&(reader, _)| levels.contains(&graph.models.of(reader)))
        .collect()
}

/// Read committed: what was first read from by an operation is seen by it and by the later ones.
pub(super) fn add_rc(graph: &mut Visible<'_>) -> Result<(), StopReason> {
    for (reader, gaps) in readers(graph, &[Model::Rc, Model::RcSo]) {
        let mut later = Intervals::default();
        let mut gaps = gaps.iter().rev().peekable();
        for (op, by) in sources(graph, reader).into_iter().rev() {
            graph.poll.step()?;
            while let Some(gap) = gaps.next_if(|gap| gap.op >= op) {
                later.insert(gap.places.clone());
            }
            see(graph, &later, reader, by, Sight::EarlierRead(by));
        }
    }
    Ok(())
}

/// Read atomic: every read sees all that the transaction read from.
pub(super) fn add_ra(graph: &mut Visible<'_>) -> Result<(), StopReason> {
    for (reader, gaps) in readers(graph, &[Model::Ra]) {
        let all = union(gaps);
        for (_, by) in sources(graph, reader) {
            graph.poll.step()?;
            see(graph, &all, reader, by, Sight::Source(by));
        }
    }
    Ok(())
}

/// What a transaction read from: the first operation that did, and the version; in program order.
fn sources(graph: &Visible<'_>, reader: Node) -> Vec<(u32, VersionId)> {
    let reads = graph.reads;
    let mut first: FxHashMap<Node, (u32, VersionId)> = FxHashMap::default();
    for read in reads.of(reader) {
        let by = reads.version(read);
        let writer = graph.versions.writer(by);
        if writer != NO_NODE {
            first.entry(writer).or_insert((reads.statement(read), by));
        }
    }
    let mut sources: Vec<(u32, VersionId)> = first.into_values().collect();
    sources.sort_unstable();
    sources
}

fn union(gaps: &[ProgramGap]) -> Intervals {
    let mut all = Intervals::default();
    for gap in gaps {
        all.insert(gap.places.clone());
    }
    all
}

/// Notes that a reader saw the writer of a version, if that wrote into some places.
fn see(graph: &mut Visible<'_>, places: &Intervals, reader: Node, by: VersionId, sight: Sight) {
    let seen = graph.versions.writer(by);
    let gaps = graph.resolved.gaps();
    let key = if graph.written(seen).len() <= places.n_places() {
        let mut written = graph.written(seen).iter().copied();
        written.find(|&key| gaps.places(key).any(|place| places.contains(place)))
    } else {
        let keys = places.iter().flatten().map(|at| gaps.keys()[at as usize]);
        keys.into_iter().find(|&key| graph.writes(seen, key))
    };
    if let Some(key) = key {
        push(graph, seen, reader, key, sight);
    }
}

/// A transaction would have to commit before the initial state.
fn push(graph: &mut Visible<'_>, seen: Node, reader: Node, key: KeyId, sight: Sight) {
    let version = graph.versions.initial(key);
    let why = Why::Vis {
        reader,
        version,
        sight,
    };
    graph.push(seen, NO_NODE, why);
}

/// The places that some transactions wrote into, and one of them for each.
type Written = BTreeMap<u32, Node>;

fn write(graph: &Visible<'_>, writer: Node, written: &mut Written) {
    let gaps = graph.resolved.gaps();
    for &key in graph.written(writer) {
        for place in gaps.places(key) {
            written.insert(place, writer);
        }
    }
}

/// Notes that a reader saw some transactions, if one wrote into its gaps.
fn see_all(
    graph: &mut Visible<'_>,
    written: &Written,
    reader: Node,
    gaps: &[ProgramGap],
    sight: Sight,
) {
    for gap in gaps {
        if let Some((&place, &seen)) = written.range(gap.places.clone()).next() {
            let key = graph.resolved.gaps().keys()[place as usize];
            push(graph, seen, reader, key, sight);
        }
    }
}

/// What came before in the session.
pub(super) fn add_sessions(graph: &mut Visible<'_>) -> Result<(), StopReason> {
    let reads = graph.reads;
    if reads.gaps().is_empty() {
        return Ok(());
    }
    for nodes in graph.resolved.sessions() {
        let mut written = Written::new();
        for reader in nodes.clone() {
            graph.poll.step()?;
            if matches!(graph.models.of(reader), Model::RcSo | Model::Ra) {
                see_all(
                    graph,
                    &written,
                    reader,
                    reads.gaps_of(reader),
                    Sight::Session,
                );
            }
            write(graph, reader, &mut written);
        }
    }
    Ok(())
}

/// Causal consistency: what happened before. The pasts of a chain's transactions only grow, so each chain is walked once.
pub(super) fn add_cc(graph: &mut Visible<'_>, past: &Past) -> Result<(), StopReason> {
    let mut chain = None;
    let mut written = Written::new();
    let mut taken: FxHashMap<u32, Node> = FxHashMap::default();
    for (reader, gaps) in readers(graph, &[Model::Cc]) {
        if chain.replace(past.chain(reader)) != chain {
            written.clear();
            taken.clear();
        }
        for (other, before) in past.before(reader) {
            let from = taken.entry(other).or_insert(before.start);
            for writer in *from..before.end {
                graph.poll.step()?;
                write(graph, writer, &mut written);
            }
            *from = before.end.max(*from);
        }
        see_all(graph, &written, reader, gaps, Sight::Past);
    }
    Ok(())
}
