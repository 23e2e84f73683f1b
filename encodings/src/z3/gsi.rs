//! `z3/gsi`: a begin and a commit time for each transaction, and the rules of generalised snapshot isolation over them.
//!
//! One of the natural baselines of Viper (Zhang et al., `EuroSys` 2023), from the rules of Elnikety, Pedone and Zwaenepoel
//! (SRDS 2005). Reading: what a transaction reads was committed before it began, and every other writer of the key committed
//! before that version or after the reader began. Committing: of two writers of a key, one commits before the other begins.
//! There is no Boolean for an order of versions; `--prune-rounds 0 --no-combine` states the rules of the whole history.

use kingsnake_graph::Reason;
use kingsnake_graph::decide::Side;

use super::session::{Halt, Z3Session};
use super::terms::Term;
use super::{Asked, Stated, Z3Encoding};

pub(super) const ENCODING: Z3Encoding = Z3Encoding {
    name: "z3/gsi",
    logic: Some("QF_IDL"),
    params: &[],
    state,
    only_si: true,
};

/// A time for each node, with the known edges stated over them.
pub(super) fn times(asked: &Asked<'_>, session: &mut Z3Session<'_>) -> Result<Vec<Term>, Halt> {
    let times = session.integers(asked.question.n_nodes);
    for (from, to) in asked.known() {
        session.assert(session.less(times[from], times[to]))?;
    }
    Ok(times)
}

fn state(asked: &Asked<'_>, session: &mut Z3Session<'_>) -> Result<Stated, Halt> {
    let times = times(asked, session)?;
    let before = |from: usize, to: usize| session.less(times[from], times[to]);
    let n = asked.chosen.len();
    let demands: Vec<Term> = (0..n as u32).map(|at| session.boolean(at)).collect();
    let mut either = Vec::with_capacity(n);
    for (at, &demand) in demands.iter().enumerate() {
        let (Some(one), Some(other)) = (
            Installed::of(asked, at, Side::Either),
            Installed::of(asked, at, Side::Or),
        ) else {
            either.push(state_plainly(asked, session, at, demand, before)?);
            continue;
        };
        // Committing: whichever of two writers is the first has committed before the other begins.
        let first = before(one.commit, one.next_begin);
        let second = before(other.commit, other.next_begin);
        session.assert(session.or(&[session.not(demand), first, second]))?;
        either.push(first);
        // Reading: the other writer committed before the version that was read, or after the reader began.
        for installed in [one, other] {
            for (begin, next_commit) in installed.readers {
                session.assert(session.or(&[
                    session.not(demand),
                    before(next_commit, installed.commit),
                    before(begin, next_commit),
                ]))?;
            }
        }
    }
    Ok(Stated {
        demands,
        either,
        n_variables: times.len() as u64,
    })
}

/// One side read as what it is about: a version, its readers, and the version that the side puts next.
pub(super) struct Installed {
    /// The commit of the version's writer.
    pub commit: usize,
    /// The begin of the next version's writer.
    pub next_begin: usize,
    /// For each reader, its begin, and the commit of the next version's writer.
    pub readers: Vec<(usize, usize)>,
}

impl Installed {
    /// A side of an open constraint of snapshot isolation has one ww edge, which no path implies, and any number of rw
    /// edges. `None` for any other, which is stated edge by edge.
    pub fn of(asked: &Asked<'_>, at: usize, side: Side) -> Option<Installed> {
        let constraint = asked.chosen[at] as usize;
        let edges = asked.question.constraints.side(constraint, side);
        let count = |kind: fn(Reason) -> bool| edges.iter().filter(|it| kind(it.reason)).count();
        let n_ww = count(|reason| matches!(reason, Reason::Ww { .. }));
        let n_rw = count(|reason| matches!(reason, Reason::Rw { .. }));
        let mut ww = edges
            .iter()
            .filter(|it| matches!(it.reason, Reason::Ww { .. }));
        let (Some(ww), None, true) = (ww.next(), ww.next(), n_ww + n_rw == edges.len()) else {
            return None;
        };
        let (commit, next_begin) = (ww.from as usize, ww.to as usize);
        let readers = asked
            .side(at, side)
            .filter(|&it| it != (commit, next_begin));
        Some(Installed {
            commit,
            next_begin,
            readers: readers.collect(),
        })
    }
}

/// A constraint that is not about versions, edge by edge; says what is true if its first side is taken.
fn state_plainly(
    asked: &Asked<'_>,
    session: &Z3Session<'_>,
    at: usize,
    demand: Term,
    before: impl Fn(usize, usize) -> Term,
) -> Result<Term, Halt> {
    let [either, or] = [Side::Either, Side::Or].map(|side| {
        let edges: Vec<Term> = asked
            .side(at, side)
            .map(|(from, to)| before(from, to))
            .collect();
        session.and(&edges)
    });
    session.assert(session.or(&[session.not(demand), either, or]))?;
    Ok(either)
}
