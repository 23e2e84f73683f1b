//! `z3/asi`: Adya's snapshot isolation, as a relation of each kind of dependency and a begin and a commit time.
//!
//! The other natural baseline of Viper (Zhang et al., `EuroSys` 2023), from Adya's thesis (1999): which depends on which by ww
//! or wr must begin after the other's commit (G-SIa), and no cycle has exactly one rw dependency (G-SIb). Times make
//! the other dependencies of such a cycle one interval, so it is there iff the rw dependency's target committed before its
//! source began. A rw dependency between two transactions is one Boolean, whichever versions it comes from.

use std::collections::HashMap;

use kingsnake_graph::decide::Side;

use super::gsi::{Installed, times};
use super::session::{Halt, Z3Session};
use super::sides::Taken;
use super::terms::Term;
use super::{Asked, Stated, Z3Encoding};

pub(super) const ENCODING: Z3Encoding = Z3Encoding {
    name: "z3/asi",
    logic: Some("QF_IDL"),
    params: &[],
    state,
    only_si: true,
};

fn state(asked: &Asked<'_>, session: &mut Z3Session<'_>) -> Result<Stated, Halt> {
    let times = times(asked, session)?;
    let before = |from: usize, to: usize| session.less(times[from], times[to]);
    let taken = Taken::new(asked, session)?;
    let first_rw = 3 * asked.chosen.len() as u32;
    let mut rw: HashMap<(usize, usize), Term> = HashMap::new();
    for at in 0..asked.chosen.len() {
        for side in [Side::Either, Side::Or] {
            let ww = taken.side(at, side);
            let Some(installed) = Installed::of(asked, at, side) else {
                for (from, to) in asked.side(at, side) {
                    session.assert(session.implies(ww, before(from, to)))?;
                }
                continue;
            };
            let begins_later = before(installed.commit, installed.next_begin);
            session.assert(session.implies(ww, begins_later))?;
            for (begin, commit) in installed.readers {
                let n_rw = rw.len() as u32;
                let fresh = !rw.contains_key(&(begin, commit));
                let depends = *rw
                    .entry((begin, commit))
                    .or_insert_with(|| session.boolean(first_rw + n_rw));
                if fresh {
                    let saw = before(commit, begin);
                    session.assert(session.implies(depends, session.not(saw)))?;
                }
                session.assert(session.implies(ww, depends))?;
            }
        }
    }
    Ok(taken.stated(times.len() + rw.len()))
}
