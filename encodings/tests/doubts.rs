//! Transactions of unknown end that reads leave in doubt: whether each took effect is part of the question, so many of them, and doubts
//! that depend on each other, are decided as fast as few.

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_encodings::{BACKENDS, BackendOptions, backend};
use kingsnake_history::model::{History, HistoryBuilder, Status, Token};
use kingsnake_lab::oracle;
use kingsnake_lab::random::{sketch, small_repeats};
use kingsnake_solver::check::{CheckError, Techniques, check};
use kingsnake_solver::level::Level;
use kingsnake_solver::verdict::{Counterexample, Verdict};

const LEVELS: [Level; 3] = [Level::Ser, Level::Si, Level::Pc];

fn verdict(history: &History, level: Level) -> Result<Verdict, CheckError> {
    let spec = level.spec(None).expect("it needs nothing more");
    let mut backend = backend(BACKENDS[0], &BackendOptions::default()).expect("it is in the table");
    let (techniques, budget) = (Techniques::default(), Budget::unlimited());
    let report = check(
        history,
        spec,
        &techniques,
        &mut *backend,
        &budget,
        &mut Silent,
    );
    report.map(|it| it.verdict)
}

/// A history under construction, each transaction in a session of its own.
struct Builder(HistoryBuilder, i64);

impl Builder {
    fn new() -> Self {
        let mut builder = HistoryBuilder::new();
        builder.initial_everywhere(Token::Int(0));
        Builder(builder, 0)
    }

    fn transaction(&mut self, status: Status, reads: &[(i64, i64)], writes: &[(i64, i64)]) {
        self.1 += 1;
        let session = self.0.session(Token::Int(self.1));
        let begun = self.0.begin(session, Token::Int(self.1), status);
        begun.expect("names are counted");
        for &(key, value) in reads {
            self.0.read(Token::Int(key), Token::Int(value));
        }
        for &(key, value) in writes {
            self.0.write(Token::Int(key), Token::Int(value));
        }
    }

    fn finish(self) -> History {
        self.0.finish().expect("it is well formed")
    }
}

/// So many values, each written by a transaction of unknown end and by one that committed.
fn independent(n_doubts: i64) -> History {
    let mut builder = Builder::new();
    for key in 0..n_doubts {
        builder.transaction(Status::Unknown, &[], &[(key, 1)]);
        builder.transaction(Status::Committed, &[], &[(key, 1)]);
        builder.transaction(Status::Committed, &[(key, 1)], &[]);
    }
    builder.finish()
}

/// A ring of transactions of unknown end. Of two neighbours one must have taken effect, because a value was read that only they wrote, and
/// not both, because both overwrote what they read of a key. So a ring of odd length cannot be.
fn ring(n_doubts: i64) -> History {
    let mut builder = Builder::new();
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

#[test]
fn forty_doubts_that_are_independent_are_decided() {
    for level in LEVELS {
        let said = verdict(&independent(40), level);
        assert!(matches!(said, Ok(Verdict::Satisfied(_))), "{level:?}");
    }
}

#[test]
fn twenty_doubts_that_depend_on_each_other_are_decided() {
    for level in LEVELS {
        let said = verdict(&ring(20), level);
        assert!(
            matches!(said, Ok(Verdict::Satisfied(_))),
            "{level:?}: {said:?}"
        );
    }
    for level in [Level::Ser, Level::Si] {
        let said = verdict(&ring(21), level);
        let is_by_ends = |it: &Counterexample| matches!(it, Counterexample::EitherWay { .. });
        assert!(
            matches!(&said, Ok(Verdict::Violated(it)) if is_by_ends(it)),
            "{level:?}: {said:?}"
        );
    }
}

#[test]
fn doubts_agree_with_the_oracle() {
    let mut counts = [0; 2];
    for seed in 0..4_000 {
        let history = small_repeats(seed);
        for level in LEVELS {
            let spec = level.spec(None).expect("it needs nothing more");
            let truth = oracle::holds(&history, spec).expect("it is small");
            let said = match verdict(&history, level) {
                Ok(verdict) => matches!(verdict, Verdict::Satisfied(_)),
                Err(error) => panic!("seed {seed}, {spec}: {error}\n{}", sketch(&history)),
            };
            assert_eq!(said, truth, "seed {seed}, {spec}\n{}", sketch(&history));
            counts[usize::from(truth)] += 1;
        }
    }
    println!("{counts:?} violated, satisfied");
    assert!(counts.iter().all(|&n| n > 1_000), "{counts:?}");
}
