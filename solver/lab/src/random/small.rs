//! Small histories from a simulated multi-version store, whose isolation is a choice.

use std::ops::{Bound, RangeBounds};

use super::draft::{Draft, DraftOp, DraftRange, DraftTxn, INITIAL};
use super::mutate::mutate;
use kingsnake_history::model::{History, Status};
use kingsnake_history::rng::Rng;

/// What the keys hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// One value, read and overwritten.
    Registers,
    /// A list, read whole and appended to.
    Lists,
    /// A row or none: read by key and by range, inserted, overwritten and deleted.
    Rows(RowBehaviour),
}

/// How rows behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowBehaviour {
    /// Whether the keys have no row before any transaction.
    pub start_empty: bool,
    /// The share of reads that do not see tombstones.
    pub hidden: usize,
    /// Whether tombstones have no names; then no read sees them.
    pub nameless: bool,
}

/// How the simulated database treats a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// All at once, at its commit: strictly serializable.
    Serial,
    /// Reads at its begin, first committer wins: strong snapshot isolation.
    Snapshot,
    /// Reads at some moment before its begin, first committer wins: snapshot isolation, but sessions may see the past.
    StaleSnapshot,
    /// Each read sees the last commit; nothing is checked at the commit.
    ReadCommitted,
    /// Each key is read at a moment of its own, possibly in the past; nothing is checked at the commit.
    PerKey,
}

/// What a small history looks like. Shares are percentages.
#[derive(Clone, Debug)]
pub struct Small {
    /// How many transactions, whatever becomes of them.
    pub n_txns: usize,
    /// At most how many sessions.
    pub n_sessions: usize,
    /// How many keys: at most 3.
    pub n_keys: usize,
    /// At most how many operations a transaction.
    pub max_ops: usize,
    /// What the keys hold.
    pub kind: KeyKind,
    /// How the transactions run.
    pub execution: Execution,
    /// How many times the result is mutated.
    pub n_mutations: usize,
    /// The share of transactions that abort of themselves.
    pub aborted: usize,
    /// The share whose end is unknown; half of them took effect.
    pub unknown: usize,
    /// The share of writes whose value was, or may have been, used before. Leave it 0 to keep values unique per key.
    pub repeats: usize,
    /// Whether begins and commits have times.
    pub times: bool,
    /// Whether some keys come with a part of their version order. It has no effect where values repeat.
    pub version_orders: bool,
}

impl Small {
    /// Draws the parameters: up to 7 transactions with unique values, and something of everything else.
    pub fn draw(rng: &mut Rng) -> Self {
        let executions = [
            Execution::Serial,
            Execution::Snapshot,
            Execution::Snapshot,
            Execution::StaleSnapshot,
            Execution::ReadCommitted,
            Execution::ReadCommitted,
            Execution::PerKey,
            Execution::PerKey,
        ];
        Small {
            n_txns: rng.between(1, 7).max(rng.between(3, 7)),
            n_sessions: rng.between(1, 5),
            n_keys: rng.between(1, 3),
            max_ops: rng.between(1, 4).max(rng.between(2, 4)),
            kind: if rng.chance(25) {
                KeyKind::Lists
            } else {
                KeyKind::Registers
            },
            execution: executions[rng.below(executions.len())],
            n_mutations: [0, 0, 1, 1, 2][rng.below(5)],
            aborted: [0, 10, 20][rng.below(3)],
            unknown: [0, 0, 15, 30][rng.below(4)],
            repeats: 0,
            times: rng.chance(50),
            version_orders: rng.chance(25),
        }
    }

    /// A history of this kind.
    pub fn history(&self, rng: &mut Rng) -> History {
        assert!(
            self.n_txns > 0 && self.n_sessions > 0 && self.max_ops > 0,
            "a history has something in it"
        );
        assert!(
            (1..=3).contains(&self.n_keys),
            "small histories have 1 to 3 keys"
        );
        self.draft(rng).build()
    }

    fn draft(&self, rng: &mut Rng) -> Draft {
        let mut draft = Simulation::new(self).run(rng);
        for _ in 0..self.n_mutations {
            mutate(&mut draft, rng);
        }
        draft
    }
}

/// The small history of a seed, with drawn parameters and unique values.
pub fn small(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    Small::draw(&mut rng).history(&mut rng)
}

/// How range queries can be misread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misread {
    /// They end one key too early.
    ShortRanges,
    /// What they did not return is not taken for a read.
    ForgottenAbsences,
}

/// What is left of [`small_rows`] where range queries are misread: fewer reads, the same transactions.
pub fn small_rows_misread(seed: u64, misread: Misread) -> History {
    let mut draft = rows_draft(seed);
    draft.misread(misread == Misread::ShortRanges);
    draft.build()
}

/// The small history of a seed with range queries, inserts and deletes.
pub fn small_rows(seed: u64) -> History {
    rows_draft(seed).build()
}

fn rows_draft(seed: u64) -> Draft {
    let mut rng = Rng::new(seed);
    let mut small = Small::draw(&mut rng);
    small.kind = KeyKind::Rows(RowBehaviour {
        start_empty: rng.chance(60),
        hidden: [0, 0, 20, 100][rng.below(4)],
        nameless: rng.chance(15),
    });
    small.draft(&mut rng)
}

/// The small history of a seed in which values repeat, transactions read what they wrote themselves, and many ends are
/// unknown: a value then does not tell who wrote it.
pub fn small_repeats(seed: u64) -> History {
    repeats_draft(seed).build()
}

/// What [`small_repeats`] becomes where every transaction of unknown end is taken for committed.
pub fn small_repeats_committed(seed: u64) -> History {
    let mut draft = repeats_draft(seed);
    for txn in &mut draft.txns {
        if txn.status == Status::Unknown {
            txn.status = Status::Committed;
        }
    }
    draft.build()
}

fn repeats_draft(seed: u64) -> Draft {
    let mut rng = Rng::new(seed);
    let mut small = Small::draw(&mut rng);
    if rng.chance(40) {
        small.kind = KeyKind::Rows(RowBehaviour {
            start_empty: rng.chance(60),
            hidden: [0, 20, 100][rng.below(3)],
            nameless: rng.chance(50),
        });
    } else {
        small.kind = KeyKind::Registers;
    }
    small.repeats = [10, 25, 50][rng.below(3)];
    small.unknown = [20, 40][rng.below(2)];
    small.draft(&mut rng)
}

/// What a key held after a number of commits: nothing for the initial state, one value for a register.
type Version = (usize, Vec<i64>);

/// A transaction that has begun.
struct Active {
    txn: usize,
    /// How many commits each key's reads see.
    snapshot: Vec<usize>,
    /// What the transaction itself made of each key.
    own: Vec<Option<Vec<i64>>>,
    n_ops: usize,
}

struct Simulation<'s> {
    small: &'s Small,
    draft: Draft,
    active: Vec<Option<Active>>,
    n_commits: usize,
    versions: Vec<Vec<Version>>,
    /// Every value in the order in which it was installed, for each key.
    installed: Vec<Vec<i64>>,
    n_values: Vec<i64>,
    clock: i64,
}

impl<'s> Simulation<'s> {
    fn new(small: &'s Small) -> Self {
        Simulation {
            small,
            draft: Draft {
                starts_empty: matches!(small.kind, KeyKind::Rows(rows) if rows.start_empty),
                nameless: matches!(small.kind, KeyKind::Rows(rows) if rows.nameless),
                ..Draft::default()
            },
            active: (0..small.n_sessions).map(|_| None).collect(),
            n_commits: 0,
            versions: vec![vec![(0, Vec::new())]; small.n_keys],
            installed: vec![Vec::new(); small.n_keys],
            n_values: vec![INITIAL; small.n_keys],
            clock: 0,
        }
    }

    fn run(mut self, rng: &mut Rng) -> Draft {
        while self.draft.txns.len() < self.small.n_txns || self.active.iter().any(Option::is_some) {
            self.clock += rng.between(1, 3) as i64;
            let session = rng.below(self.small.n_sessions);
            match self.active[session].take() {
                None if self.draft.txns.len() < self.small.n_txns => self.begin(session, rng),
                None => {}
                Some(mut active)
                    if active.n_ops > 0 && self.small.execution != Execution::Serial =>
                {
                    self.step(&mut active, rng);
                    self.active[session] = Some(active);
                }
                Some(active) => self.end(active, rng),
            }
        }
        self.give_version_orders(rng);
        self.draft
    }

    fn begin(&mut self, session: usize, rng: &mut Rng) {
        let begin = self.small.times.then_some(self.clock);
        self.draft.txns.push(DraftTxn {
            session,
            status: Status::Committed,
            begin,
            commit: None,
            ops: Vec::new(),
        });
        let past = |rng: &mut Rng| self.n_commits.saturating_sub(rng.below(3));
        let n_keys = self.small.n_keys;
        let snapshot = match self.small.execution {
            Execution::StaleSnapshot => vec![past(rng); n_keys],
            Execution::PerKey => (0..n_keys).map(|_| past(rng)).collect(),
            _ => vec![self.n_commits; n_keys],
        };
        let n_ops = rng.between(1, self.small.max_ops);
        let txn = self.draft.txns.len() - 1;
        self.active[session] = Some(Active {
            txn,
            snapshot,
            own: vec![None; n_keys],
            n_ops,
        });
    }

    /// Runs one operation.
    fn step(&mut self, active: &mut Active, rng: &mut Rng) {
        active.n_ops -= 1;
        let key = rng.below(self.small.n_keys);
        if let KeyKind::Rows(rows) = self.small.kind {
            let op = self.row_op(active, key, rows, rng);
            self.draft.txns[active.txn].ops.push(op);
            return;
        }
        let seen = self.seen(active, key);
        let op = match (self.small.kind, rng.chance(60)) {
            (KeyKind::Registers, true) => {
                DraftOp::Read(key, seen.last().copied().unwrap_or(INITIAL))
            }
            (KeyKind::Lists | KeyKind::Rows(_), true) => DraftOp::ReadList(key, seen),
            (KeyKind::Registers, false) => {
                let value = self.value(key, rng);
                active.own[key] = Some(vec![value]);
                DraftOp::Write(key, value)
            }
            (KeyKind::Lists | KeyKind::Rows(_), false) => {
                let value = self.value(key, rng);
                let mut list = seen;
                list.push(value);
                active.own[key] = Some(list);
                DraftOp::Append(key, value)
            }
        };
        self.draft.txns[active.txn].ops.push(op);
    }

    /// An operation on rows.
    fn row_op(
        &mut self,
        active: &mut Active,
        key: usize,
        rows: RowBehaviour,
        rng: &mut Rng,
    ) -> DraftOp {
        let shows_deleted = !rows.nameless && !rng.chance(rows.hidden);
        let held = |key: usize| self.seen(active, key).last().copied().unwrap_or(INITIAL);
        match rng.below(20) {
            0..=4 => match held(key) {
                ..0 if !shows_deleted => DraftOp::ReadNothing(key),
                value => DraftOp::Read(key, value),
            },
            5..=10 => {
                let n_keys = self.small.n_keys;
                let mut bound = || match rng.below(4) {
                    0 => Bound::Unbounded,
                    1 => Bound::Excluded(rng.below(n_keys)),
                    _ => Bound::Included(rng.below(n_keys)),
                };
                let (low, high) = (bound(), bound());
                let inside = (0..n_keys).filter(|key| (low, high).contains(key));
                let is_row = |&(_, value): &(usize, i64)| match value {
                    ..0 => shows_deleted,
                    INITIAL => !rows.start_empty,
                    _ => true,
                };
                let rows = inside.map(|key| (key, held(key))).filter(is_row);
                DraftOp::Range(DraftRange {
                    low,
                    high,
                    rows: rows.collect(),
                    shows_deleted,
                })
            }
            kind => {
                let value = self.value(key, rng);
                let (value, op) = match kind {
                    11..=13 => (value, DraftOp::Write(key, value)),
                    14..=16 => (value, DraftOp::Insert(key, value)),
                    _ => (-value, DraftOp::Delete(key, -value)),
                };
                active.own[key] = Some(vec![value]);
                op
            }
        }
    }

    fn seen(&self, active: &Active, key: usize) -> Vec<i64> {
        if let Some(own) = &active.own[key] {
            return own.clone();
        }
        let latest = matches!(
            self.small.execution,
            Execution::ReadCommitted | Execution::Serial
        );
        let snapshot = if latest {
            self.n_commits
        } else {
            active.snapshot[key]
        };
        let version = self.versions[key]
            .iter()
            .rfind(|version| version.0 <= snapshot);
        version.map(|version| version.1.clone()).unwrap_or_default()
    }

    fn value(&mut self, key: usize, rng: &mut Rng) -> i64 {
        if self.small.repeats > 0 && rng.chance(self.small.repeats) {
            return rng.between(0, self.n_values[key] as usize + 1) as i64;
        }
        self.n_values[key] += 1;
        self.n_values[key]
    }

    fn end(&mut self, mut active: Active, rng: &mut Rng) {
        while active.n_ops > 0 {
            self.step(&mut active, rng);
        }
        let first_committer_wins = matches!(
            self.small.execution,
            Execution::Snapshot | Execution::StaleSnapshot
        );
        let late = (0..self.small.n_keys).any(|key| {
            let newest = self.versions[key].last().map_or(0, |version| version.0);
            active.own[key].is_some() && newest > active.snapshot[key]
        });
        let status = if first_committer_wins && late || rng.chance(self.small.aborted) {
            Status::Aborted
        } else if rng.chance(self.small.unknown) {
            Status::Unknown
        } else {
            Status::Committed
        };
        let noticed = self.small.times && (status != Status::Unknown || rng.chance(50));
        let txn = &mut self.draft.txns[active.txn];
        txn.status = status;
        txn.commit = noticed.then_some(self.clock);
        if status == Status::Committed || status == Status::Unknown && rng.chance(50) {
            self.install(active);
        }
    }

    fn install(&mut self, active: Active) {
        self.n_commits += 1;
        for (key, own) in active.own.into_iter().enumerate() {
            let Some(mut own) = own else { continue };
            let appends = self.small.kind == KeyKind::Lists;
            let ops = self.draft.txns[active.txn]
                .ops
                .iter()
                .filter_map(DraftOp::install);
            let values: Vec<i64> = ops
                .filter(|&(at, _)| at == key)
                .map(|(_, value)| value)
                .collect();
            let kept = if appends { 0 } else { values.len() - 1 };
            self.installed[key].extend(&values[kept..]);
            if appends {
                // An append goes to the end of the list as it is now, not as the transaction saw it.
                own = self.versions[key]
                    .last()
                    .map(|version| version.1.clone())
                    .unwrap_or_default();
                own.extend(&values);
            }
            self.versions[key].push((self.n_commits, own));
        }
    }

    fn give_version_orders(&mut self, rng: &mut Rng) {
        if !self.small.version_orders || self.small.repeats > 0 {
            return;
        }
        // Several deletes without a name look the same in an order.
        let has_name = |value: i64| value > INITIAL || value < INITIAL && !self.draft.nameless;
        for (key, installed) in self.installed.iter().enumerate() {
            let values: Vec<i64> = installed
                .iter()
                .copied()
                .filter(|&value| has_name(value) && rng.chance(75))
                .collect();
            if rng.chance(70) && !values.is_empty() {
                self.draft.version_orders.push((key, values));
            }
        }
    }
}
