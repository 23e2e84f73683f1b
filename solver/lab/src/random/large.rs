//! Large histories that are valid by construction, with their serial order, and one anomaly on request.

use kingsnake_history::model::{History, HistoryBuilder, SessionId, Status, Token, TxnId};
use kingsnake_history::rng::Rng;

/// An anomaly that makes the whole history invalid, whatever the other transactions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injected {
    /// Two transactions read one version and both overwrite it: neither SER nor SI.
    LostUpdate,
    /// A transaction sees one of another's writes, and a version that the other replaced: neither SER nor SI.
    StaleRead,
    /// Two transactions read two keys and each overwrites one: SI but not SER.
    WriteSkew,
}

/// What a large history looks like. Shares are percentages.
#[derive(Clone, Debug)]
pub struct Large {
    /// How many transactions; an injected anomaly adds two.
    pub n_txns: usize,
    /// How many sessions.
    pub n_sessions: usize,
    /// How many keys.
    pub n_keys: usize,
    /// How many operations a transaction.
    pub n_ops: usize,
    /// The share of reads that are not part of a read-modify-write.
    pub reads: usize,
    /// The share of writes that read the key first, which takes two operations; the others are blind.
    pub read_modify_writes: usize,
    /// How many commits in the past a transaction may begin. 0 gives a serial execution; more, strong session SI.
    pub lag: usize,
    /// Whether begins and commits have times, in which the execution is strictly serializable (with a lag: strong SI).
    pub times: bool,
    /// The anomaly.
    pub injected: Option<Injected>,
    /// The seed.
    pub seed: u64,
}

impl Default for Large {
    fn default() -> Self {
        Large {
            n_txns: 1_000,
            n_sessions: 24,
            n_keys: 1_000,
            n_ops: 8,
            reads: 50,
            read_modify_writes: 0,
            lag: 0,
            times: false,
            injected: None,
            seed: 0,
        }
    }
}

/// A history and the order in which its transactions committed.
#[derive(Clone, Debug)]
pub struct SerialHistory {
    /// The history.
    pub history: History,
    /// The commits. With lag 0 and nothing injected this is a serial order that explains every read.
    pub order: Vec<TxnId>,
}

impl Large {
    /// Runs the workload.
    pub fn run(&self) -> SerialHistory {
        assert!(
            self.n_sessions > 0 && self.n_keys > 1,
            "there are sessions and two keys"
        );
        let mut execution = LargeExecution::new(self);
        for txn in 0..self.n_txns {
            if txn == self.n_txns / 2 {
                execution.inject();
            }
            execution.txn();
        }
        let history = execution.builder.finish().expect("names are counted");
        let mut order: Vec<TxnId> = history.txns().collect();
        order.sort_unstable_by_key(|&txn| history.txn_token(txn));
        SerialHistory { history, order }
    }
}

struct LargeExecution<'l> {
    large: &'l Large,
    rng: Rng,
    builder: HistoryBuilder,
    sessions: Vec<SessionId>,
    /// How many commits there had been after each session's last.
    last_commit: Vec<usize>,
    /// The values of each key, with the number of commits after which it held them.
    versions: Vec<Vec<(usize, i64)>>,
    n_commits: usize,
    n_values: i64,
    /// What the current transaction wrote.
    own: Vec<(usize, i64)>,
}

/// The commits of the execution are this many nanoseconds apart, so that begins fit between.
const STEP: i64 = 10;

impl<'l> LargeExecution<'l> {
    fn new(large: &'l Large) -> Self {
        let mut builder = HistoryBuilder::new();
        builder.initial_everywhere(Token::Int(0));
        let sessions = (0..large.n_sessions)
            .map(|name| builder.session(Token::Int(name as i64)))
            .collect();
        LargeExecution {
            large,
            rng: Rng::new(large.seed),
            builder,
            sessions,
            last_commit: vec![0; large.n_sessions],
            versions: vec![Vec::new(); large.n_keys],
            n_commits: 0,
            n_values: 0,
            own: Vec::new(),
        }
    }

    fn txn(&mut self) {
        let session = self.rng.below(self.large.n_sessions);
        let lag = self.rng.below(self.large.lag + 1);
        let snapshot = self
            .n_commits
            .saturating_sub(lag)
            .max(self.last_commit[session]);
        self.begin(session, snapshot);
        let mut n_ops = 0;
        while n_ops < self.large.n_ops {
            n_ops += 1;
            let key = self.rng.below(self.large.n_keys);
            let newest = self.versions[key].last().map_or(0, |version| version.0);
            if newest > snapshot || self.rng.chance(self.large.reads) {
                self.read(key, snapshot);
                continue;
            }
            if n_ops < self.large.n_ops && self.rng.chance(self.large.read_modify_writes) {
                n_ops += 1;
                self.read(key, snapshot);
            }
            self.write(key);
        }
        self.commit();
    }

    fn begin(&mut self, session: usize, snapshot: usize) {
        let begun = self.builder.begin(
            self.sessions[session],
            Token::Int(self.n_commits as i64),
            Status::Committed,
        );
        begun.expect("names are counted");
        if self.large.times {
            let earlier = self.rng.below(3 * STEP as usize) as i64;
            let idle_since = self.last_commit[session] as i64 * STEP + 1;
            let begin = (snapshot as i64 * STEP + 1 - earlier).max(idle_since);
            let commit = (self.n_commits as i64 + 1) * STEP;
            self.builder.times(Some(begin), Some(commit));
        }
        self.last_commit[session] = self.n_commits + 1;
    }

    fn seen(&self, key: usize, snapshot: usize) -> i64 {
        let own = self.own.iter().rfind(|write| write.0 == key);
        let committed = || {
            self.versions[key]
                .iter()
                .rfind(|version| version.0 <= snapshot)
        };
        own.or_else(committed).map_or(0, |&(_, value)| value)
    }

    fn read(&mut self, key: usize, snapshot: usize) {
        let value = self.seen(key, snapshot);
        self.builder.read(Token::Int(key as i64), Token::Int(value));
    }

    fn write(&mut self, key: usize) {
        self.n_values += 1;
        self.builder
            .write(Token::Int(key as i64), Token::Int(self.n_values));
        self.own.push((key, self.n_values));
    }

    fn commit(&mut self) {
        self.n_commits += 1;
        for (key, value) in self.own.drain(..) {
            let versions = &mut self.versions[key];
            match versions.last_mut() {
                Some(last) if last.0 == self.n_commits => last.1 = value,
                _ => versions.push((self.n_commits, value)),
            }
        }
        self.own.clear();
    }

    /// Two transactions of different sessions, where there are several, both of which begin now.
    fn inject(&mut self) {
        let Some(injected) = self.large.injected else {
            return;
        };
        let one = self.rng.below(self.large.n_keys);
        let other = (one + 1) % self.large.n_keys;
        let now = self.n_commits;
        for session in 0..2 {
            self.begin(session % self.large.n_sessions, now);
            match (injected, session) {
                (Injected::LostUpdate, _) => {
                    self.read(one, now);
                    self.write(one);
                }
                (Injected::StaleRead, 0) => {
                    self.read(one, now);
                    self.write(one);
                    self.write(other);
                }
                (Injected::StaleRead, _) => {
                    self.read(one, now);
                    self.read(other, now + 1);
                }
                (Injected::WriteSkew, _) => {
                    self.read(one, now);
                    self.read(other, now);
                    self.write(if session == 0 { one } else { other });
                }
            }
            self.commit();
        }
    }
}
