//! Sets, counters and savepoints against all orders, by what the operations mean: a set is the elements that were added to it, a counter
//! the sum of its increments, and what is rolled back to a savepoint never was. The engine knows only rows.

use std::collections::{BTreeMap, BTreeSet};

use kingsnake::{Checker, History, HistoryBuilder, Level, Status, Token, Verdict};
use kingsnake_lab::random::Rng;

#[derive(Clone, Debug)]
enum Step {
    Read(i64),
    Write(i64),
    Add(i64),
    ReadSet(BTreeSet<i64>),
    Increment(i64),
    ReadCounter(i64),
    /// What a transaction did between a savepoint and a rollback to it: reads and writes of the register alone.
    RolledBack(Vec<Step>),
}

#[derive(Clone, Debug)]
struct Txn {
    session: i64,
    status: Status,
    steps: Vec<Step>,
}

/// What a transaction sees.
#[derive(Clone, Debug, Default)]
struct State {
    register: i64,
    set: BTreeSet<i64>,
    counter: i64,
}

/// What a transaction changed.
#[derive(Clone, Debug, Default)]
struct Change {
    register: Option<i64>,
    added: BTreeSet<i64>,
    amount: i64,
}

impl State {
    fn apply(&mut self, change: &Change) {
        self.register = change.register.unwrap_or(self.register);
        self.set.extend(&change.added);
        self.counter += change.amount;
    }
}

impl Step {
    /// Whether the step can have happened in a state, which it changes.
    fn run(&self, state: &mut State, change: &mut Change) -> bool {
        match self {
            Step::Read(value) => return state.register == *value,
            Step::ReadSet(elements) => return state.set == *elements,
            Step::ReadCounter(value) => return state.counter == *value,
            Step::Write(value) => {
                state.register = *value;
                change.register = Some(*value);
            }
            Step::Add(element) => {
                state.set.insert(*element);
                change.added.insert(*element);
            }
            Step::Increment(by) => {
                state.counter += by;
                change.amount += by;
            }
            Step::RolledBack(steps) => {
                let (mut inner, mut lost) = (state.clone(), Change::default());
                return steps.iter().all(|step| step.run(&mut inner, &mut lost));
            }
        }
        true
    }

    /// The same with what a state really holds.
    fn seen(&mut self, state: &mut State, change: &mut Change) {
        match self {
            Step::Read(value) => *value = state.register,
            Step::ReadSet(elements) => elements.clone_from(&state.set),
            Step::ReadCounter(value) => *value = state.counter,
            Step::RolledBack(steps) => {
                let (mut inner, mut lost) = (state.clone(), Change::default());
                for step in steps {
                    step.seen(&mut inner, &mut lost);
                }
            }
            _ => {
                self.run(state, change);
            }
        }
    }
}

/// A history and its transactions. Values of the register differ; elements of the set may be added twice.
fn drawn(seed: u64) -> Vec<Txn> {
    let mut rng = Rng::new(seed);
    let n_txns = rng.between(2, 4);
    let mut fresh = 0;
    let mut states = vec![State::default()];
    let mut txns = Vec::new();
    for _ in 0..n_txns {
        let mut state = states[rng.below(states.len()).max(rng.below(states.len()))].clone();
        let mut change = Change::default();
        let status = match rng.below(10) {
            0 => Status::Aborted,
            1 | 2 => Status::Unknown,
            _ => Status::Committed,
        };
        let mut steps = Vec::new();
        for _ in 0..rng.between(1, 3) {
            fresh += 1;
            let mut step = match rng.below(9) {
                0 => Step::Read(0),
                1 => Step::Write(fresh),
                2 | 3 => Step::Add(rng.between(1, 4) as i64),
                4 | 5 => Step::ReadSet(BTreeSet::new()),
                6 => Step::Increment(rng.between(0, 3) as i64 - 1),
                7 => Step::ReadCounter(0),
                _ => {
                    let mut inner = vec![Step::Write(1000 + fresh), Step::Read(0)];
                    if rng.chance(50) {
                        inner.swap(0, 1);
                    }
                    Step::RolledBack(inner)
                }
            };
            step.seen(&mut state, &mut change);
            steps.push(step);
        }
        if status != Status::Aborted {
            let mut after = states[states.len() - 1].clone();
            after.apply(&change);
            states.push(after);
        }
        txns.push(Txn {
            session: rng.below(3) as i64,
            status,
            steps,
        });
    }
    if rng.chance(60) {
        let txn = rng.below(txns.len());
        let at = rng.below(txns[txn].steps.len());
        lie(&mut txns[txn].steps[at], fresh, &mut rng);
    }
    txns
}

fn lie(step: &mut Step, fresh: i64, rng: &mut Rng) {
    match step {
        Step::Read(value) => *value = rng.between(0, fresh as usize) as i64,
        Step::ReadCounter(value) => *value += rng.between(0, 2) as i64 - 1,
        Step::ReadSet(elements) => {
            let element = rng.between(1, 4) as i64;
            if !elements.remove(&element) {
                elements.insert(element);
            }
        }
        Step::RolledBack(steps) => steps.iter_mut().for_each(|it| lie(it, fresh, rng)),
        _ => {}
    }
}

fn history(txns: &[Txn]) -> History {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Int(0));
    let [register, set, counter] = ["x", "s", "c"].map(|name| builder.text(name));
    for (name, txn) in txns.iter().enumerate() {
        let session = builder.session(Token::Int(txn.session));
        let name = Token::Int(name as i64);
        builder
            .begin(session, name, txn.status)
            .expect("it is well formed");
        for step in &txn.steps {
            put(&mut builder, step, [register, set, counter]);
        }
    }
    builder.finish().expect("it is well formed")
}

fn put(builder: &mut HistoryBuilder, step: &Step, names: [Token; 3]) {
    let [register, set, counter] = names;
    match step {
        Step::Read(value) => drop(builder.read(register, Token::Int(*value))),
        Step::Write(value) => drop(builder.write(register, Token::Int(*value))),
        Step::Add(element) => builder
            .add(set, Token::Int(*element))
            .expect("it is well formed"),
        Step::ReadSet(elements) => {
            let elements = elements.iter().map(|&it| Token::Int(it));
            builder.read_set(set, elements).expect("it is well formed");
        }
        Step::Increment(by) => builder.increment(counter, *by).expect("it is well formed"),
        Step::ReadCounter(value) => builder
            .read_counter(counter, *value)
            .expect("it is well formed"),
        Step::RolledBack(steps) => {
            let from = builder.n_ops();
            for step in steps {
                put(builder, step, names);
            }
            builder.roll_back(from).expect("it is well formed");
        }
    }
}

/// A level, by what a transaction sees and who may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    level: Level,
    has_begins: bool,
    first_wins: bool,
}

const RULES: [Rule; 3] = [
    Rule {
        level: Level::Ser,
        has_begins: false,
        first_wins: false,
    },
    Rule {
        level: Level::Si,
        has_begins: true,
        first_wins: true,
    },
    Rule {
        level: Level::Pc,
        has_begins: true,
        first_wins: false,
    },
];

/// How far all transactions have come.
#[derive(Clone, Default)]
struct Progress {
    state: State,
    /// Of those under way, their snapshot's age in commits and what they change.
    open: BTreeMap<usize, (usize, Change)>,
    commits: Vec<(usize, Change)>,
}

/// Whether some order of those that took effect explains everything. What aborted, or did not take effect, counts for nothing.
fn holds(txns: &[Txn], rule: Rule, session_order: bool) -> bool {
    let unknown: Vec<usize> = (0..txns.len())
        .filter(|&txn| txns[txn].status == Status::Unknown)
        .collect();
    (0..1_u32 << unknown.len()).any(|mask| {
        let took = |txn: usize| match unknown.iter().position(|&it| it == txn) {
            Some(bit) => mask >> bit & 1 == 1,
            None => txns[txn].status == Status::Committed,
        };
        let counted: Vec<usize> = (0..txns.len()).filter(|&txn| took(txn)).collect();
        go(txns, &counted, rule, session_order, &Progress::default())
    })
}

fn go(txns: &[Txn], counted: &[usize], rule: Rule, session_order: bool, at: &Progress) -> bool {
    if at.commits.len() == counted.len() {
        return true;
    }
    let is_done = |txn: usize| at.commits.iter().any(|it| it.0 == txn);
    counted.iter().any(|&txn| {
        if is_done(txn) {
            return false;
        }
        let mut next = at.clone();
        if let Some((age, change)) = next.open.remove(&txn) {
            let overlaps = |(_, other): &(usize, Change)| {
                other.register.is_some() && change.register.is_some()
                    || !other.added.is_disjoint(&change.added)
            };
            if rule.first_wins && at.commits[age..].iter().any(overlaps) {
                return false;
            }
            next.state.apply(&change);
            next.commits.push((txn, change));
            return go(txns, counted, rule, session_order, &next);
        }
        let is_earlier = |&it: &usize| it < txn && txns[it].session == txns[txn].session;
        let mut before = counted.iter().filter(|it| is_earlier(it));
        if session_order && !before.all(|&it| is_done(it)) {
            return false;
        }
        let (mut state, mut change) = (at.state.clone(), Change::default());
        let mut steps = txns[txn].steps.iter();
        if !steps.all(|step| step.run(&mut state, &mut change)) {
            return false;
        }
        next.open.insert(txn, (at.commits.len(), change));
        if rule.has_begins {
            return go(txns, counted, rule, session_order, &next);
        }
        let (_, change) = next.open.remove(&txn).expect("it was put there");
        next.state.apply(&change);
        next.commits.push((txn, change));
        go(txns, counted, rule, session_order, &next)
    })
}

fn answer(history: &History, level: Level, session_order: bool) -> bool {
    let mut checker = Checker::new().level(level).session_order(session_order);
    match checker
        .check(history)
        .expect("no refusal and no internal error")
    {
        Verdict::Satisfied(_) => true,
        Verdict::Violated(_) => false,
        Verdict::Unknown(why) => panic!("{why}"),
    }
}

#[test]
fn sets_counters_and_savepoints_hold_in_some_order_iff_the_check_says_so() {
    let n_seeds = if std::env::var_os("KINGSNAKE_LONG").is_some() {
        100_000
    } else {
        2_000
    };
    let (mut n_holds, mut n_broken, mut n_caught) = (0, 0, 0);
    for seed in 0..n_seeds {
        let txns = drawn(seed);
        let whole = history(&txns);
        let rule = RULES[seed as usize % RULES.len()];
        let session_order = seed % 2 == 0;
        let should = holds(&txns, rule, session_order);
        let does = answer(&whole, rule.level, session_order);
        assert_eq!(
            does, should,
            "seed {seed} at {rule:?}, {session_order}: {txns:#?}"
        );
        if does {
            n_holds += 1;
            for level in [Level::Cc, Level::Ra, Level::RcSo, Level::Rc] {
                assert!(
                    answer(&whole, level, session_order),
                    "seed {seed} at {level}"
                );
            }
        } else {
            n_broken += 1;
            // An engine that takes what a set returned as all that was read of it.
            let mut forgetful = whole.clone();
            forgetful.forget_predicates();
            n_caught += usize::from(answer(&forgetful, rule.level, session_order));
        }
    }
    assert!(n_holds > 300 && n_broken > 300, "{n_holds} {n_broken}");
    assert!(n_caught > 100, "{n_caught}");
}

#[test]
fn a_name_is_one_kind_of_object() {
    let mut builder = HistoryBuilder::new();
    let x = builder.text("x");
    let session = builder.session(Token::Int(0));
    builder
        .begin(session, Token::Int(0), Status::Committed)
        .expect("it is well formed");
    builder.add(x, Token::Int(1)).expect("it is well formed");
    let wrong = builder.increment(x, 1).unwrap_err().to_string();
    assert!(wrong.contains("key x is a set"), "{wrong}");
    builder.write(x, Token::Int(1));
    let wrong = builder.finish().unwrap_err().to_string();
    assert!(wrong.contains("key x is a set"), "{wrong}");
}
