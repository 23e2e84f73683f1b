//! What the reads of a weak transaction see if some of them have several candidates.
//!
//! If read r' of t was of what w' wrote, read r of t sees r' (`rc`, `rc-so`: an earlier read or one of the same statement; `ra`, `cc`: any),
//! and r returned key x as w wrote it, then w' commits before w if it writes x too: x[r', w'] ∧ x[r, w] → C(w') → C(w).
//! No transaction commits before the initial state. The same holds of a transaction that wrote x earlier in the
//! session, and no read may see a writer of what a range query of t found absent. Longer paths of what happened before
//! t (`cc`) are not stated here.

use rustc_hash::FxHashMap;

use crate::level::Model;
use crate::model::KeyId;
use crate::resolve::{NO_NODE, Node, Resolved, VersionId};
use crate::visible::written;

/// A read of a weak transaction: its candidates, each with a mark; none if it is certain.
#[derive(Clone, Debug)]
pub struct SightRead<T> {
    /// Its statement.
    pub statement: u32,
    /// The key.
    pub key: KeyId,
    /// What it can have been of.
    pub sources: Vec<(VersionId, Option<T>)>,
}

/// What two reads imply together, at least one of which is not certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Implied<T> {
    /// The transaction that is seen.
    pub seen: Node,
    /// The transaction before which it commits; [`NO_NODE`] is the initial state, which is impossible.
    pub before: Node,
    /// The marks of the reads that this rests on.
    pub marks: [Option<T>; 2],
}

/// Which implications are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Those that rest on one uncertain read.
    Single,
    /// All.
    All,
}

/// The keys that each transaction writes.
#[derive(Clone, Debug)]
pub struct WrittenKeys {
    start: Vec<u32>,
    keys: Vec<KeyId>,
}

impl WrittenKeys {
    /// Those of a history.
    pub fn of(resolved: &Resolved) -> Self {
        let (start, keys) = written(resolved);
        WrittenKeys { start, keys }
    }

    /// Those of a transaction.
    pub fn by(&self, node: Node) -> &[KeyId] {
        let at = |node: usize| self.start[node] as usize;
        &self.keys[at(node as usize)..at(node as usize + 1)]
    }
}

/// Lists what the reads of a weak transaction imply; they stand in program order, and at `ra` and `cc` there is one per key.
pub fn each_sight<T: Copy>(
    (resolved, written): (&Resolved, &WrittenKeys),
    (reader, model): (Node, Model),
    session_order: bool,
    reads: &[SightRead<T>],
    listed: Listed,
    mut imply: impl FnMut(Implied<T>),
) {
    let versions = resolved.versions();
    let in_order = matches!(model, Model::Rc | Model::RcSo);
    let mut of_key: FxHashMap<KeyId, Vec<usize>> = FxHashMap::default();
    for (at, read) in reads.iter().enumerate() {
        of_key.entry(read.key).or_default().push(at);
    }
    let gaps = resolved.reads().gaps_of(reader);
    let mut see = |seen: Node, mark: Option<T>, from: u32| {
        for key in written.by(seen) {
            let places = of_key.get(key).into_iter().flatten();
            for read in places.map(|&at| &reads[at]) {
                if in_order && read.statement < from {
                    continue;
                }
                for &(version, other) in &read.sources {
                    let is_said = match (mark.is_some(), other.is_some()) {
                        (false, false) => false,
                        (true, true) => listed == Listed::All,
                        _ => true,
                    };
                    let before = versions.writer(version);
                    if is_said && before != seen {
                        imply(Implied {
                            seen,
                            before,
                            marks: [mark, other],
                        });
                    }
                }
            }
        }
        if mark.is_some() && !gaps.is_empty() {
            let mut seen_gaps = gaps.iter().filter(|gap| !in_order || gap.op >= from);
            let keys = written.by(seen).iter();
            let places: Vec<u32> = keys.flat_map(|&it| resolved.gaps().places(it)).collect();
            if seen_gaps.any(|gap| places.iter().any(|it| gap.places.contains(it))) {
                imply(Implied {
                    seen,
                    before: NO_NODE,
                    marks: [mark, None],
                });
            }
        }
    };
    for read in reads {
        for &(version, mark) in &read.sources {
            let seen = versions.writer(version);
            if seen != NO_NODE {
                see(seen, mark, read.statement);
            }
        }
    }
    if !session_order || model == Model::Rc {
        return;
    }
    for read in reads {
        let Some(seen) = last_in_session(resolved, reader, read.key) else {
            continue;
        };
        for &(version, mark) in &read.sources {
            let before = versions.writer(version);
            if mark.is_some() && before != seen {
                imply(Implied {
                    seen,
                    before,
                    marks: [mark, None],
                });
            }
        }
    }
}

/// The last transaction before another in its session that writes a key.
fn last_in_session(resolved: &Resolved, reader: Node, key: KeyId) -> Option<Node> {
    let sessions = resolved.sessions();
    let session = &sessions[sessions.partition_point(|it| it.end <= reader)];
    let writers = resolved.versions().writers_of(key);
    let n_before = writers.partition_point(|&it| it < reader);
    let last = *writers[..n_before].last()?;
    (last >= session.start).then_some(last)
}
