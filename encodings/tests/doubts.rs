//! Transactions of unknown outcome that reads leave in doubt: whether each took effect is a literal, so that many of
//! them, and doubts that depend on each other, are decided as fast as few, at every level and with every other feature
//! of a history.

use std::ops::Bound;
use std::time::{Duration, Instant};

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_encodings::{BACKENDS, BackendOptions, backend};
use kingsnake_history::model::{Act, Condition, History, HistoryBuilder, Query, Status, Token};
use kingsnake_lab::oracle;
use kingsnake_lab::random::{Combined, Feature, small_repeats};
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::level::{Level, Model};
use kingsnake_solver::verdict::{Counterexample, Verdict};

/// Every level, but that of single registers.
fn levels() -> impl Iterator<Item = Level> {
    let of_txns = |it: &Level| *it != Level::Linearizable;
    Level::ALL.into_iter().filter(of_txns)
}

/// Far more than any of these checks takes. Trying all cases would take much longer.
const TIME: Duration = Duration::from_secs(60);

fn verdict(history: &History, level: Level) -> Result<Verdict, String> {
    let spec = level.spec(None).expect("it needs nothing more");
    let mut backend = backend(BACKENDS[0], &BackendOptions::default()).expect("it is in the table");
    let budget = Budget::unlimited().with_timeout(Instant::now(), TIME);
    let techniques = Techniques::default();
    let report = check(
        history,
        spec,
        &techniques,
        &mut *backend,
        &budget,
        &mut Silent,
    );
    match report.map_err(|it| it.to_string())?.verdict {
        Verdict::Unknown(reason) => Err(reason.to_string()),
        verdict => Ok(verdict),
    }
}

fn holds(history: &History, level: Level) -> Result<bool, String> {
    verdict(history, level).map(|it| matches!(it, Verdict::Satisfied(_)))
}

/// What a history has besides reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Besides {
    Nothing,
    /// A range query that returned no row.
    Range,
    /// A condition that chose no row.
    Condition,
    /// A list, to which a transaction in doubt appended.
    List,
    /// The order of a key's versions.
    VersionOrder,
}

const BESIDES: [Besides; 5] = [
    Besides::Nothing,
    Besides::Range,
    Besides::Condition,
    Besides::List,
    Besides::VersionOrder,
];

/// A history under construction, each transaction in a session of its own.
struct Builder {
    history: HistoryBuilder,
    besides: Besides,
    n_txns: i64,
}

impl Builder {
    fn new(besides: Besides) -> Self {
        let mut history = HistoryBuilder::new();
        if besides == Besides::Condition {
            let [name, column] = ["t", "a"].map(|it| history.text(it));
            let table = history.table(name, vec![column]);
            table.expect("it is the first one");
        }
        history.initial_everywhere(Token::Int(0));
        Builder {
            history,
            besides,
            n_txns: 0,
        }
    }

    fn begin(&mut self, status: Status) {
        self.n_txns += 1;
        let name = Token::Int(self.n_txns);
        let session = self.history.session(name);
        let begun = self.history.begin(session, name, status);
        begun.expect("names are counted");
        let end = (status != Status::Unknown).then_some(1_000_000);
        self.history.times(Some(self.n_txns), end);
    }

    fn transaction(&mut self, status: Status, reads: &[(i64, i64)], writes: &[(i64, i64)]) {
        self.begin(status);
        for &(key, value) in reads {
            self.history.read(Token::Int(key), Token::Int(value));
        }
        for &(key, value) in writes {
            self.history.write(Token::Int(key), Token::Int(value));
        }
        if self.besides == Besides::List && status == Status::Unknown {
            let value = Token::Int(self.n_txns);
            self.history.append(Token::Int(9_000), value);
        }
    }

    fn finish(mut self) -> History {
        self.begin(Status::Committed);
        let builder = &mut self.history;
        match self.besides {
            Besides::Nothing | Besides::List => {}
            Besides::Range => {
                let bound = |key| Bound::Included(Token::Int(key));
                let range = builder.range(bound(9_000), bound(9_999), &[], None);
                range.expect("it is a range");
            }
            Besides::Condition => {
                let from = builder.n_ops();
                let condition = Condition::Always(false);
                let query = Query {
                    table: 0,
                    condition,
                };
                builder.predicate(Act::Select, query, from, None);
            }
            Besides::VersionOrder => {
                builder.write(Token::Int(9_000), Token::Int(1));
                let order = builder.version_order(Token::Int(9_000), [Token::Int(1)]);
                order.expect("it is the only one");
            }
        }
        let mut history = self.history.finish().expect("it is well formed");
        let models = history.set_models::<()>(|_, txn| {
            let at = txn.index() % Model::ALL.len();
            Ok(Some(Model::ALL[at])
                .filter(|&it| it != Model::Psi)
                .unwrap_or(Model::Ser))
        });
        models.expect("every transaction has one");
        history
    }
}

/// This many values, each written by a transaction of unknown outcome and by one that committed.
fn independent(n_doubts: i64, besides: Besides) -> History {
    let mut builder = Builder::new(besides);
    for key in 0..n_doubts {
        builder.transaction(Status::Unknown, &[], &[(key, 1)]);
        builder.transaction(Status::Committed, &[], &[(key, 1)]);
        builder.transaction(Status::Committed, &[(key, 1)], &[]);
    }
    builder.finish()
}

/// A ring of transactions of unknown end. Of two neighbours one must have taken effect, because a value was read that only they wrote, and
/// not both, because both overwrote what they read of a key. So a ring of odd length cannot be where no update may be lost.
fn ring(n_doubts: i64, besides: Besides) -> History {
    let mut builder = Builder::new(besides);
    for at in 0..n_doubts {
        let next = (at + 1) % n_doubts;
        let reads = [(100 + at, 0), (100 + next, 0)];
        let overwritten = [(100 + at, 1000 + at), (100 + next, 2000 + at)];
        let writes = [[(at, 1), (next, 1)], overwritten].concat();
        builder.transaction(Status::Unknown, &reads, &writes);
        builder.transaction(Status::Committed, &[(at, 1)], &[]);
    }
    builder.finish()
}

/// A value was read that two of unknown outcome wrote, each of which read what two others wrote, and so on; the last
/// two read a value without a writer, unless that is left out.
fn chain(n_links: i64, is_broken: bool, besides: Besides) -> History {
    let mut builder = Builder::new(besides);
    builder.transaction(Status::Committed, &[(0, 1)], &[]);
    for at in 0..n_links {
        for _ in 0..2 {
            let mut reads = Vec::new();
            if at + 1 < n_links {
                reads.push((at + 1, 1));
            } else if is_broken {
                reads.push((8_000, 7));
            }
            builder.transaction(Status::Unknown, &reads, &[(at, 1)]);
        }
    }
    builder.finish()
}

#[test]
fn forty_doubts_that_are_independent_are_decided_at_every_level() {
    for besides in BESIDES {
        let history = independent(40, besides);
        for level in levels() {
            let said = holds(&history, level);
            assert_eq!(said, Ok(true), "{level}, {besides:?}");
        }
    }
}

#[test]
fn twenty_doubts_that_depend_on_each_other_are_decided_at_every_level() {
    for besides in BESIDES {
        let [even, odd] = [20, 21].map(|n_doubts| ring(n_doubts, besides));
        for level in levels() {
            let said = holds(&even, level);
            assert_eq!(said, Ok(true), "{level}, {besides:?}");
        }
        for level in [Level::Ser, Level::Si, Level::Psi] {
            let said = verdict(&odd, level);
            let is_by_ends = |it: &Counterexample| matches!(it, Counterexample::EitherWay { .. });
            assert!(
                matches!(&said, Ok(Verdict::Violated(it)) if is_by_ends(it)),
                "{level}, {besides:?}: {said:?}"
            );
        }
        for level in [Level::Pc, Level::Cc, Level::Ra, Level::RcSo, Level::Rc] {
            let said = holds(&odd, level);
            assert_eq!(said, Ok(true), "{level}, {besides:?}");
        }
    }
}

#[test]
fn twenty_doubts_that_rest_on_one_another_are_decided_at_every_level() {
    for besides in BESIDES {
        for is_broken in [false, true] {
            let history = chain(10, is_broken, besides);
            for level in levels() {
                let said = holds(&history, level);
                let whole = format!("{level}, {besides:?}, broken: {is_broken}");
                assert_eq!(said, Ok(!is_broken), "{whole}");
            }
        }
    }
}

/// Small histories with some outcomes in doubt, half of them with further features.
fn drawn(seed: u64) -> Option<History> {
    if seed.is_multiple_of(2) {
        return Some(small_repeats(seed));
    }
    let drawn = Combined::draw(seed);
    let has_doubts = drawn.features().contains(&Feature::Unknown);
    has_doubts.then(|| drawn.history().expect("it is well formed"))
}

#[test]
fn doubts_agree_with_the_oracle_at_every_level() {
    let mut counts = [0; 2];
    // How often a check is wrong that assumes all outcomes to be aborts, or all to be commits.
    let mut caught = vec![[0; 2]; Level::ALL.len()];
    for seed in 0..2_500 {
        let Some(history) = drawn(seed) else { continue };
        for (at, level) in levels().enumerate() {
            let spec = level.spec(None).expect("it needs nothing more");
            if spec.real_time.is_some() && !history.has_times() {
                continue;
            }
            let Some(truth) = oracle::holds(&history, spec) else {
                continue;
            };
            let said = holds(&history, level);
            if matches!(&said, Err(why) if why.contains("which no transaction wrote")) {
                // Of such a version order nothing is said.
                continue;
            }
            assert_eq!(said, Ok(truth), "seed {seed}, {level}");
            counts[usize::from(truth)] += 1;
            for took_effect in [false, true] {
                let known = history.with_effects_of(|_| took_effect);
                let is_wrong = oracle::holds(&known, spec) != Some(truth);
                caught[at][usize::from(took_effect)] += usize::from(is_wrong);
            }
        }
    }
    println!("{counts:?} violated, satisfied; {caught:?} wrong with one end for all");
    assert!(counts.iter().all(|&n| n > 2_000), "{counts:?}");
    for (level, caught) in levels().zip(caught) {
        assert!(caught.iter().all(|&n| n > 0), "{level}: {caught:?}");
    }
}
