//! Assumptions of the user against all orders, on small random histories; and a check of the comparison itself.

use crate::agreement::Exhaustive;
use crate::assume::{Unwritten, assume_keys, assume_transaction_order, assume_unwritten};
use crate::budget::Budget;
use crate::certify::order::replay;
use crate::check::{CheckError, check};
use crate::level::{Model, Spec};
use crate::model::{GivenEdge, History, KeyAssumption, KeyId, Op, Status, TxnId, ValueId};
use crate::progress::Silent;
use crate::techniques::Techniques;
use crate::verdict::{Certificate, Moment, Point, Verdict};
use kingsnake_history::rng::Rng;
use kingsnake_lab::random::{Execution, KeyKind, Small, sketch};

/// A history of registers or lists without unknown ends, small enough for all orders.
fn drawn(seed: u64, n_txns: usize) -> (History, Rng) {
    let mut rng = Rng::new(seed);
    let mut small = Small::draw(&mut rng);
    small.kind = [KeyKind::Registers, KeyKind::Lists][rng.below(2)];
    small.n_txns = rng.between(2, n_txns);
    small.n_keys = rng.between(1, 2);
    small.unknown = 0;
    small.times = true;
    small.version_orders = false;
    if rng.chance(50) {
        small.execution = [Execution::PerKey, Execution::StaleSnapshot][rng.below(2)];
    }
    (small.history(&mut rng), rng)
}

/// The assumptions, apart from the history.
struct Assumed {
    keys: Vec<KeyAssumption>,
    edges: Vec<(TxnId, TxnId)>,
    numbers: Vec<(TxnId, i64)>,
}

impl Assumed {
    fn draw(history: &History, rng: &mut Rng) -> Self {
        let mut keys = KeyAssumption::ALL.to_vec();
        keys.retain(|_| rng.chance(40));
        let committed = |&txn: &TxnId| history.status(txn) == Status::Committed;
        let txns: Vec<TxnId> = history.txns().filter(committed).collect();
        let mut edges = Vec::new();
        if txns.len() > 1 && rng.chance(40) {
            for _ in 0..rng.between(1, 2) {
                let (from, to) = (txns[rng.below(txns.len())], txns[rng.below(txns.len())]);
                edges.extend((from != to).then_some((from, to)));
            }
        }
        let mut numbers = Vec::new();
        if rng.chance(25) {
            let some = txns.iter().filter(|_| rng.chance(60)).copied();
            let some: Vec<TxnId> = some.collect();
            for txn in some {
                let place = rng.below(numbers.len() + 1);
                numbers.insert(place, (txn, 0));
            }
            for (at, it) in numbers.iter_mut().enumerate() {
                it.1 = 10 * at as i64;
            }
        }
        Assumed {
            keys,
            edges,
            numbers,
        }
    }

    fn apply(&self, history: &History) -> History {
        let mut history = history.clone();
        assume_transaction_order(&mut history, &self.numbers);
        for &(from, to) in &self.edges {
            let name = "test".to_owned();
            history.assume_edge(GivenEdge { from, to, name });
        }
        assume_keys(&mut history, &self.keys).expect("values differ and there are times");
        history
    }

    /// By definition: every two transactions of which one is later find versions in that order.
    fn is_kept(&self, history: &History, order: &[Point]) -> bool {
        let place = |txn: TxnId, is_end: bool| {
            let is_it = |it: &Point| {
                it.txn == txn
                    && (it.moment == Moment::Whole || (it.moment == Moment::Commit) == is_end)
            };
            order.iter().position(is_it)
        };
        let edges_hold = self
            .edges
            .iter()
            .all(|&(from, to)| place(from, true) < place(to, false));
        let numbers = &self.numbers;
        let numbers_hold = numbers.iter().all(|one| {
            numbers.iter().all(|two| {
                let both =
                    |key: &KeyId| writes(history, one.0, *key) && writes(history, two.0, *key);
                let mut keys = (0..history.n_keys() as u32).map(KeyId);
                one.1 >= two.1
                    || !keys.any(|key| both(&key))
                    || place(one.0, true) < place(two.0, true)
            })
        });
        let version = |value: Option<ValueId>| {
            let Some(value) = value else {
                return 0;
            };
            let wrote = |txn: &TxnId| {
                let last = history
                    .ops(*txn)
                    .iter()
                    .rev()
                    .find(|op| op.is_write() && op.key() == Some(history.value_key(value)));
                matches!(last, Some(Op::Write { value: it, .. } | Op::Append { value: it, .. }) if *it == value)
            };
            let mut txns = history.txns();
            let writer = txns.find(|txn| history.status(*txn) == Status::Committed && wrote(txn));
            writer
                .and_then(|txn| place(txn, true).map(|at| at + 1))
                .unwrap_or(0)
        };
        let later = |by: KeyAssumption, one: TxnId, two: TxnId| match by {
            KeyAssumption::Linearizable => {
                history.interval(one).commit < history.interval(two).begin
            }
            KeyAssumption::Sequential => history.session(one) == history.session(two) && one < two,
            KeyAssumption::WritesFollowReads => false,
        };
        let txns: Vec<TxnId> = history
            .txns()
            .filter(|&txn| history.status(txn) == Status::Committed)
            .collect();
        let keys_hold = self.keys.iter().all(|&by| {
            (0..history.n_keys() as u32).map(KeyId).all(|key| {
                let found = |txn: TxnId| -> Vec<usize> {
                    found(history, txn, key).into_iter().map(version).collect()
                };
                txns.iter().all(|&one| {
                    let own = found(one);
                    let has_written = writes(history, one, key);
                    let own_holds = match by {
                        KeyAssumption::WritesFollowReads => {
                            !has_written || own.iter().all(|it| Some(it) <= own.last())
                        }
                        _ => own.is_sorted(),
                    };
                    own_holds
                        && txns.iter().all(|&two| {
                            let other = found(two);
                            !later(by, one, two)
                                || own.is_empty()
                                || other.is_empty()
                                || own.last() <= other.first()
                        })
                })
            })
        });
        edges_hold && numbers_hold && keys_hold
    }
}

fn writes(history: &History, txn: TxnId, key: KeyId) -> bool {
    let mut ops = history.ops(txn).iter();
    ops.any(|op| op.is_write() && op.key() == Some(key))
}

/// What a transaction found of a key before it wrote it, and what it left. The version of a list is its last element.
fn found(history: &History, txn: TxnId, key: KeyId) -> Vec<Option<ValueId>> {
    let (mut read, mut left) = (Vec::new(), None);
    for &op in history.ops(txn) {
        match op {
            Op::Write { key: it, value } | Op::Append { key: it, value } if it == key => {
                left = Some(value);
            }
            Op::Read { key: it, value } if it == key && left.is_none() => read.push(Some(value)),
            Op::ReadList { key: it, list } if it == key && left.is_none() => {
                read.push(history.list(list).last().copied());
            }
            _ => {}
        }
    }
    read.extend(left.map(Some));
    read
}

/// Every order of the committed transactions, or of their begins and commits, until one is accepted.
fn some_order(
    history: &History,
    has_begins: bool,
    order: &mut Vec<Point>,
    accepts: &dyn Fn(&[Point]) -> bool,
) -> bool {
    let moments: &[Moment] = if has_begins {
        &[Moment::Begin, Moment::Commit]
    } else {
        &[Moment::Whole]
    };
    let mut is_done = true;
    for txn in history.txns() {
        if history.status(txn) != Status::Committed {
            continue;
        }
        let n_done = order.iter().filter(|it| it.txn == txn).count();
        let Some(&moment) = moments.get(n_done) else {
            continue;
        };
        is_done = false;
        order.push(Point { txn, moment });
        let is_found = some_order(history, has_begins, order, accepts);
        order.pop();
        if is_found {
            return true;
        }
    }
    is_done && accepts(order)
}

fn expected(history: &History, spec: Spec, assumed: &Assumed) -> bool {
    let has_begins = matches!(spec.model, Model::Si | Model::Pc);
    some_order(history, has_begins, &mut Vec::new(), &|order| {
        let order = Certificate::from(order.to_vec());
        assumed.is_kept(history, &order.order) && replay(history, spec, &order).is_ok()
    })
}

fn answer(history: &History, spec: Spec) -> Result<Verdict, CheckError> {
    let (mut backend, techniques) = (Exhaustive::default(), Techniques::default());
    let (budget, mut silent) = (Budget::unlimited(), Silent);
    let report = check(
        history,
        spec,
        &techniques,
        &mut backend,
        &budget,
        &mut silent,
    );
    report.map(|it| it.verdict)
}

const MODELS: [Model; 6] = [
    Model::Ser,
    Model::Si,
    Model::Pc,
    Model::Cc,
    Model::Ra,
    Model::Rc,
];

#[test]
fn assumptions_hold_in_some_order_iff_the_check_says_so() {
    let (mut n_holds, mut n_broken, mut n_by_assumption) = (0, 0, 0);
    let n_seeds = if std::env::var_os("KINGSNAKE_LONG").is_some() {
        60_000
    } else {
        3_000
    };
    for seed in 0..n_seeds {
        let model = MODELS[seed as usize % MODELS.len()];
        let n_txns = if matches!(model, Model::Si | Model::Pc) {
            4
        } else {
            5
        };
        let (history, mut rng) = drawn(seed, n_txns);
        // All orders of those that committed are tried, and no subsets.
        let is_unknown = |txn| history.status(txn) == Status::Unknown;
        if history.txns().any(is_unknown) {
            continue;
        }
        let assumed = Assumed::draw(&history, &mut rng);
        let spec = Spec {
            model,
            session_order: rng.chance(50),
            real_time: None,
        };
        let with = assumed.apply(&history);
        let holds = matches!(answer(&with, spec).unwrap(), Verdict::Satisfied(_));
        let should = expected(&history, spec, &assumed);
        assert_eq!(
            holds,
            should,
            "seed {seed} at {spec}, {:?} {:?} {:?}\n{}",
            assumed.keys,
            assumed.edges,
            assumed.numbers,
            sketch(&history)
        );
        if holds {
            n_holds += 1;
        } else {
            n_broken += 1;
            let plain = matches!(answer(&history, spec).unwrap(), Verdict::Satisfied(_));
            n_by_assumption += usize::from(plain);
        }
    }
    assert!(n_holds > 500 && n_broken > 500, "{n_holds} {n_broken}");
    assert!(n_by_assumption > 200, "{n_by_assumption}");
}

#[test]
fn an_engine_that_forgets_an_assumption_is_caught() {
    let mut n_caught = 0;
    for seed in 0..400 {
        let (history, _) = drawn(seed, 5);
        let spec = Spec {
            model: MODELS[seed as usize % MODELS.len()],
            session_order: false,
            real_time: None,
        };
        // The history says what is assumed, and the orders that follow are missing.
        let mut forgetful = history.clone();
        forgetful.assume_keys(&[KeyAssumption::Linearizable], Vec::new(), Vec::new());
        match answer(&forgetful, spec) {
            Err(CheckError::Uncertified { why, .. }) => {
                assert!(why.to_string().contains("linearizable-keys"), "{why}");
                n_caught += 1;
            }
            Err(error) => panic!("{error}"),
            Ok(_) => {}
        }
    }
    assert!(n_caught > 20, "{n_caught}");
}

#[test]
fn a_value_that_nobody_wrote_is_the_initial_state_or_somebodys_if_so_told() {
    use crate::model::{HistoryBuilder, Token};
    // One transaction writes x = 1; a later one of its session reads x = 2, which was never written.
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Nil);
    let session = builder.session(Token::Int(0));
    builder
        .begin(session, Token::Int(0), Status::Committed)
        .unwrap();
    builder.write(Token::Int(7), Token::Int(1));
    builder
        .begin(session, Token::Int(1), Status::Committed)
        .unwrap();
    builder.read(Token::Int(7), Token::Int(2));
    let history = builder.finish().unwrap();
    let spec = |session_order| Spec {
        model: Model::Ser,
        session_order,
        real_time: None,
    };
    let holds = |history: &History, session_order| {
        matches!(
            answer(history, spec(session_order)).unwrap(),
            Verdict::Satisfied(_)
        )
    };
    assert!(!holds(&history, false), "a thin-air read");
    let mut initial = history.clone();
    assume_unwritten(&mut initial, Unwritten::Initial).unwrap();
    assert!(holds(&initial, false) && !holds(&initial, true));
    let mut unseen = history;
    assume_unwritten(&mut unseen, Unwritten::Unseen).unwrap();
    assert!(holds(&unseen, true));
    assert_eq!(unseen.n_txns(), 3);
}
