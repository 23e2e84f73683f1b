//! Checks an order a second time, by its graph: the dependencies that the order of the commits gives must have no cycle.
//!
//! Adya's direct serialization graph, with a node for each begin and each commit if the level separates them. A replay
//! checks what every read returned; this checks who read whose version, from [`Meaning`], and who installed the next
//! one. Only reads whose version is certain count, so an order that replays has no cycle here.

use rustc_hash::FxHashMap;

use super::Refusal;
use super::graphs::on_a_cycle;
use super::meaning::Meaning;
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{History, KeyId, Op, TxnId};
use kingsnake_history::verdict::{Certificate, Moment};

/// The reads of longer transactions do not count: looking up what each of them read takes quadratic time.
const LONGEST: usize = 256;

/// Checks that the dependencies of an order have no cycle. The error names a transaction on one.
pub fn check(history: &History, spec: Spec, certificate: &Certificate) -> Result<(), Refusal> {
    sort(history, spec, certificate).map_err(Refusal::Order)
}

/// The same, as words.
pub(super) fn sort(history: &History, spec: Spec, certificate: &Certificate) -> Result<(), String> {
    let order = certificate.order.iter();
    let commits = order.filter(|point| point.moment != Moment::Begin);
    let commits: Vec<TxnId> = commits.map(|point| point.txn).collect();
    if commits.iter().any(|txn| txn.index() >= history.n_txns()) {
        return Err("the order names a transaction that is not in the history".to_owned());
    }
    let mut graph = Dependencies {
        history,
        spec,
        has_begins: spec.has_begins(history),
        writers: FxHashMap::default(),
        edges: Vec::new(),
    };
    graph.sessions(&commits);
    graph.edges(&commits);
    graph.writes(&commits);
    graph.reads(&commits);
    match on_a_cycle(2 * history.n_txns(), &graph.edges) {
        None => Ok(()),
        Some(node) => {
            let name = history.txn_name(TxnId(node / 2));
            Err(format!("transaction {name} depends on itself"))
        }
    }
}

struct Dependencies<'h> {
    history: &'h History,
    spec: Spec,
    has_begins: bool,
    /// The writers of each key, as they commit.
    writers: FxHashMap<KeyId, Vec<TxnId>>,
    edges: Vec<(u32, u32)>,
}

impl Dependencies<'_> {
    fn model(&self, txn: TxnId) -> Model {
        self.spec.model_of(self.history, txn)
    }

    /// Where a transaction begins.
    fn begin(&self, txn: TxnId) -> u32 {
        2 * txn.0 + u32::from(!self.has_begins)
    }

    /// Where it reads.
    fn snap(&self, txn: TxnId) -> u32 {
        2 * txn.0 + u32::from(!self.model(txn).reads_at_begin())
    }

    /// Where its writes appear.
    fn commit(txn: TxnId) -> u32 {
        2 * txn.0 + 1
    }

    fn sessions(&mut self, commits: &[TxnId]) {
        let mut txns = commits.to_vec();
        txns.sort_unstable();
        for &txn in txns.iter().filter(|_| self.has_begins) {
            self.edges.push((self.begin(txn), Self::commit(txn)));
        }
        for pair in txns.windows(2).filter(|_| self.spec.session_order) {
            if self.history.session(pair[0]) == self.history.session(pair[1]) {
                self.edges
                    .push((Self::commit(pair[0]), self.begin(pair[1])));
            }
        }
    }

    /// The orders given by the user.
    fn edges(&mut self, commits: &[TxnId]) {
        for edge in self.history.given_edges() {
            if commits.contains(&edge.from) && commits.contains(&edge.to) {
                self.edges
                    .push((Self::commit(edge.from), self.begin(edge.to)));
            }
        }
    }

    fn writes(&mut self, commits: &[TxnId]) {
        for &txn in commits {
            for &op in self.history.ops(txn) {
                let Some(key) = op.key().filter(|_| op.is_write()) else {
                    continue;
                };
                let writers = self.writers.entry(key).or_default();
                let last = writers.last().copied();
                if last == Some(txn) {
                    continue;
                }
                writers.push(txn);
                if let Some(last) = last {
                    let installs = if self.model(txn).installs_at_begin() {
                        self.begin(txn)
                    } else {
                        Self::commit(txn)
                    };
                    self.edges.push((Self::commit(last), installs));
                }
            }
        }
    }

    fn reads(&mut self, commits: &[TxnId]) {
        let meaning = Meaning::of(self.history);
        let mut place: FxHashMap<(KeyId, TxnId), usize> = FxHashMap::default();
        for (&key, writers) in &self.writers {
            place.extend(
                writers
                    .iter()
                    .enumerate()
                    .map(|(at, &txn)| ((key, txn), at)),
            );
        }
        let mut keys: Vec<KeyId> = Vec::new();
        for &txn in commits {
            let ops = self.history.ops(txn);
            if ops.len() > LONGEST {
                continue;
            }
            let ops = ops.iter();
            keys.clear();
            keys.extend(ops.filter_map(|op| match *op {
                Op::Read { key, .. } | Op::ReadList { key, .. } => Some(key),
                _ => None,
            }));
            keys.sort_unstable();
            keys.dedup();
            for &key in &keys {
                let Some(version) = meaning.version_read(txn, key) else {
                    continue;
                };
                let next = match version {
                    None => 0,
                    Some(writer) => {
                        let Some(&at) = place.get(&(key, writer)) else {
                            continue;
                        };
                        self.edges.push((Self::commit(writer), self.snap(txn)));
                        at + 1
                    }
                };
                // A weak transaction need not read the newest version.
                if !Model::TIMED.contains(&self.model(txn)) {
                    continue;
                }
                let writers = self.writers.get(&key).map_or(&[][..], Vec::as_slice);
                if let Some(&next) = writers.get(next).filter(|&&next| next != txn) {
                    self.edges.push((self.snap(txn), Self::commit(next)));
                }
            }
        }
    }
}
