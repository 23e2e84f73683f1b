//! Random histories that combine features, at every level, against brute force: the same verdict, no refusal, no
//! internal error, no `unknown`. A difference is shrunk and written to a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use kingsnake::certificate as certificate_text;
use kingsnake::{Checker, DeviceChoice, History, Level, Spec, Techniques, Verdict, read, verify};
use kingsnake_graph::heuristic::Heuristic;
use kingsnake_history::level::Model;
use kingsnake_history::model::Status;
use kingsnake_lab::oracle;
use kingsnake_lab::random::{COMBINED_LEVELS, Combined, Feature, Rng};

/// No check of such a history takes nearly this long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Limit of shrinking steps.
const MOST_STEPS: usize = 200;

/// The back ends that are asked, the default first; the two rules of snapshot isolation need Z3.
const BACKENDS: [&str; 7] = [
    kingsnake_encodings::BACKENDS[0],
    "cadical/lazy",
    "cadical/closure",
    "cadical/order-unary",
    "cadical/order-binary",
    "cadical/elimination",
    "search/backtrack",
];

/// What is asked of a history, and how.
#[derive(Clone, Copy, Debug)]
struct Question {
    level: Level,
    session_order: bool,
    /// How far clocks may disagree.
    drift: u64,
    /// Which techniques are off and which back end is asked; 0 is the default.
    ways: u64,
    /// Whether all levels are asked at once.
    by_auto: bool,
}

impl Question {
    fn new(level: Level, session_order: bool) -> Self {
        Question {
            level,
            session_order,
            drift: 0,
            ways: 0,
            by_auto: false,
        }
    }

    /// A level, asked in a random way.
    fn draw(level: Level, session_order: bool, rng: &mut Rng) -> Self {
        Question {
            drift: if rng.chance(30) {
                rng.below(12) as u64
            } else {
                0
            },
            ways: if rng.chance(50) { rng.number() } else { 0 },
            by_auto: level != Level::AsRecorded && rng.chance(5),
            ..Question::new(level, session_order)
        }
    }

    fn spec(self) -> Spec {
        let spec = self.level.spec(Some(self.session_order));
        let mut spec = spec.expect("the level leaves it open");
        if let Some(real_time) = &mut spec.real_time
            && !self.by_auto
        {
            real_time.drift = self.drift;
        }
        spec
    }

    fn needs_times(self) -> bool {
        self.spec().real_time.is_some()
    }

    fn checker(self) -> Checker {
        let mut rng = Rng::new(self.ways);
        let (mut techniques, mut backend) = (Techniques::default(), BACKENDS[0]);
        if self.ways != 0 {
            for switch in [
                &mut techniques.combine,
                &mut techniques.coalesce,
                &mut techniques.unread,
                &mut techniques.merge,
                &mut techniques.linear,
                &mut techniques.estimate,
                &mut techniques.witness,
            ] {
                *switch = rng.chance(50);
            }
            techniques.heuristic = Heuristic::ALL[rng.below(3).saturating_sub(rng.below(3))];
            techniques.prune_rounds = [None, None, Some(0), Some(1)][rng.below(4)];
            backend = BACKENDS[rng.below(BACKENDS.len())];
        }
        Checker::new()
            .level(self.level)
            .session_order(self.session_order)
            .hold_to(self.spec().into())
            .techniques(techniques)
            .backend(backend)
            .device(DeviceChoice::Cpu)
            .timeout(TIMEOUT)
    }
}

/// An engine, or brute force: whether the level holds, or why there is no answer.
type Engine = dyn Fn(&History, Question) -> Result<bool, String> + Sync;

fn truth(history: &History, question: Question) -> Option<bool> {
    oracle::holds(history, question.spec())
}

/// Reads evidence again and checks it.
fn verified(history: &History, text: &str) -> Result<(), String> {
    let claim = read(history, text.as_bytes()).map_err(|why| why.to_string())?;
    verify(history, &claim).map_err(|why| why.to_string())
}

/// The library's answer and its guarantees: the evidence is written, read and checked again.
fn checked(history: &History, question: Question) -> Result<bool, String> {
    let verdict = if question.by_auto {
        let answers = question.checker().auto(history);
        let answers = answers.map_err(|error| error.to_string())?;
        let mut own = answers.into_iter().filter(|it| it.spec == question.spec());
        own.next().and_then(|it| it.verdict).expect("auto asks it")
    } else {
        let checked = question.checker().check(history);
        checked.map_err(|error| error.to_string())?
    };
    match verdict {
        Verdict::Satisfied(certificate) => {
            let text = certificate_text(history, &question.spec().into(), &certificate);
            verified(history, &text).map(|()| true)
        }
        Verdict::Violated(violation) => verified(history, &violation.evidence()).map(|()| false),
        Verdict::Unknown(reason) => Err(format!("unknown: {reason}")),
    }
}

/// The levels of `KINGSNAKE_LEVELS=rc,psi`.
fn asked_levels() -> Option<&'static [Level]> {
    static ASKED: OnceLock<Option<Vec<Level>>> = OnceLock::new();
    let asked = ASKED.get_or_init(|| {
        let names = std::env::var("KINGSNAKE_LEVELS").ok()?;
        let level = |name: &str| {
            let mut levels = COMBINED_LEVELS.into_iter();
            levels.find(|it| it.to_string() == name)
        };
        let levels = names.split(',').map(|it| level(it).expect("a level"));
        Some(levels.collect())
    });
    asked.as_deref()
}

/// The level that the store kept, and two others.
fn questions(drawn: &Combined, history: &History, seed: u64) -> Vec<Question> {
    let mut rng = Rng::new(seed ^ 0x5eed);
    if let Some(levels) = asked_levels() {
        let both = levels
            .iter()
            .flat_map(|&level| [true, false].map(|on| (level, on)));
        let both = both.map(|(level, on)| Question::draw(level, on, &mut rng));
        let possible = both.filter(|it| history.has_times() || !it.needs_times());
        return possible.collect();
    }
    let mut levels = vec![drawn.level];
    levels.extend((0..2).map(|_| COMBINED_LEVELS[rng.below(COMBINED_LEVELS.len())]));
    let asked = levels.into_iter().enumerate().map(|(at, level)| {
        let on = match at {
            0 => drawn.session_order,
            _ => rng.chance(50),
        };
        Question::draw(level, on, &mut rng)
    });
    asked
        .filter(|it| history.has_times() || !it.needs_times())
        .collect()
}

/// An engine's mistake, if there is one.
fn wrong(engine: &Engine, history: &History, question: Question) -> Option<String> {
    let truth = truth(history, question)?;
    match engine(history, question) {
        Ok(said) if said == truth => None,
        Ok(said) => Some(format!("says {said}, the truth is {truth}")),
        Err(why) => Some(format!("{why} (the truth is {truth})")),
    }
}

/// A mistake without its names and numbers, to recognise it in a smaller history.
fn kind(what: &str) -> String {
    let words = what.split(|it: char| it.is_ascii_digit() || it == '"');
    words.take(2).collect::<String>().chars().take(60).collect()
}

/// The smallest history that shows the same mistake.
fn shrink(engine: &Engine, mut drawn: Combined, question: Question, what: &str) -> Combined {
    let is_same = |it: &Combined| {
        let history = it.history().ok();
        let history = history.filter(|it| it.has_times() || !question.needs_times());
        let found = history.and_then(|history| wrong(engine, &history, question));
        found.is_some_and(|found| kind(&found) == kind(what))
    };
    // A step may leave the size of the history unchanged.
    for _ in 0..MOST_STEPS {
        let Some(smaller) = drawn.smaller().into_iter().find(is_same) else {
            break;
        };
        drawn = smaller;
    }
    drawn
}

#[derive(Default)]
struct Tally {
    /// Violated and satisfied.
    levels: BTreeMap<String, [usize; 2]>,
    pairs: BTreeMap<(Feature, Feature), [usize; 2]>,
    n_asked: usize,
    n_too_large: usize,
    wrong: Vec<(u64, Question, String)>,
}

impl Tally {
    fn count(&mut self, question: Question, features: &[Feature], truth: bool) {
        let Question {
            level,
            session_order,
            ..
        } = question;
        let name = format!("{level}, sessions {session_order}");
        self.levels.entry(name).or_default()[usize::from(truth)] += 1;
        self.n_asked += 1;
        for (at, &one) in features.iter().enumerate() {
            for &other in &features[at..] {
                self.pairs.entry((one, other)).or_default()[usize::from(truth)] += 1;
            }
        }
    }

    fn table(&self) -> String {
        let mut table = format!(
            "{} questions, {} too large\n",
            self.n_asked, self.n_too_large
        );
        for (level, [violated, satisfied]) in &self.levels {
            table += &format!("{violated:8} violated {satisfied:8} satisfied  {level}\n");
        }
        for ((one, other), [violated, satisfied]) in &self.pairs {
            let pair = format!("{one:?} and {other:?}");
            table += &format!("{violated:8} violated {satisfied:8} satisfied  {pair}\n");
        }
        table
    }

    /// Every level and every pair of features must have both verdicts.
    fn assert_balance(&self) {
        assert_eq!(self.levels.len(), 2 * COMBINED_LEVELS.len());
        for (level, &[violated, satisfied]) in &self.levels {
            let least = (violated + satisfied) / 20;
            assert!(
                violated.min(satisfied) > least,
                "{level}: {violated}, {satisfied}"
            );
        }
        for (at, &one) in Feature::ALL.iter().enumerate() {
            for &other in &Feature::ALL[at + 1..] {
                let found = self.pairs.get(&(one, other));
                assert!(
                    found.is_some_and(|it| it[0].min(it[1]) > 0),
                    "{one:?} and {other:?}: {found:?}"
                );
            }
        }
    }
}

fn n_threads() -> usize {
    let given = std::env::var("KINGSNAKE_THREADS").ok();
    let given = given.and_then(|it| it.parse().ok());
    given.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Asks an engine about the histories of these seeds.
fn sweep(seeds: std::ops::Range<u64>, engine: &Engine) -> Tally {
    let (tally, next) = (Mutex::new(Tally::default()), AtomicU64::new(seeds.start));
    std::thread::scope(|scope| {
        for _ in 0..n_threads() {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let drawn = Combined::draw(seed);
                    let history = drawn.history().expect("what is drawn is well formed");
                    let features: Vec<Feature> = drawn.features().into_iter().collect();
                    for question in questions(&drawn, &history, seed) {
                        let truth = truth(&history, question);
                        let what = wrong(engine, &history, question);
                        let mut tally = tally.lock().expect("nobody panics with it");
                        match truth {
                            Some(truth) => tally.count(question, &features, truth),
                            None => tally.n_too_large += 1,
                        }
                        tally.wrong.extend(what.map(|it| (seed, question, it)));
                    }
                }
            });
        }
    });
    tally.into_inner().expect("nobody panics with it")
}

/// Where the history of a mistake is written.
fn file(seed: u64, question: Question) -> PathBuf {
    let Question {
        level,
        session_order,
        ..
    } = question;
    let on = if session_order { "on" } else { "off" };
    std::env::temp_dir().join(format!("kingsnake-combined-{seed}-{level}-{on}.jsonl"))
}

/// The mistakes, one of each kind, shrunk.
fn told(engine: &Engine, wrong: &[(u64, Question, String)]) -> String {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut told = String::new();
    for (seed, question, what) in wrong {
        let n_met = kinds
            .entry(format!("{}: {}", question.level, kind(what)))
            .or_default();
        *n_met += 1;
        if *n_met > 1 {
            continue;
        }
        let small = shrink(engine, Combined::draw(*seed), *question, what);
        let history = small.history().expect("it was built before");
        let path = file(*seed, *question);
        kingsnake_datasets::write(&history, kingsnake_datasets::Format::Kingsnake, &path)
            .expect("there is room");
        let lines = std::fs::read_to_string(&path).unwrap_or_default();
        told += &format!(
            "seed {seed}, {question:?}: {what}\n{}\n{lines}\n",
            path.display()
        );
    }
    for (kind, count) in kinds {
        told += &format!("{count:8} times {kind}\n");
    }
    told
}

/// Asks the library about the histories of these seeds; returns how often each level and each pair of features had each verdict.
fn agree(seeds: std::ops::Range<u64>) -> String {
    let tally = sweep(seeds, &checked);
    let (table, wrong) = (tally.table(), told(&checked, &tally.wrong));
    assert!(tally.wrong.is_empty(), "{table}{wrong}");
    if asked_levels().is_none() {
        tally.assert_balance();
    }
    table
}

#[test]
fn combined_histories_agree_with_brute_force() {
    println!("{}", agree(0..20_000));
}

/// `KINGSNAKE_SEEDS=5000..9000` asks for others, `KINGSNAKE_LEVELS=rc,psi` for these levels alone.
#[test]
#[ignore = "make long"]
fn a_million_combined_histories_agree_with_brute_force() {
    let given = std::env::var("KINGSNAKE_SEEDS").ok();
    let seeds = given.as_deref().and_then(|it| it.split_once(".."));
    let number = |text: &str| text.parse().expect("a number");
    let seeds = seeds.map_or(0..1_000_000, |(from, to)| number(from)..number(to));
    println!("{}", agree(seeds));
}

/// Brute force on another question: what an engine would say that misses one thing.
fn instead(history: &History, question: Question) -> Result<bool, String> {
    truth(history, question).ok_or_else(|| "too large".to_owned())
}

type Mutant = fn(&History, Question) -> Result<bool, String>;

fn changed(
    history: &History,
    question: Question,
    change: impl Fn(&mut History),
) -> Result<bool, String> {
    let mut history = history.clone();
    change(&mut history);
    instead(&history, question)
}

fn leveled(history: &History, question: Question, from: Level, to: Level) -> Result<bool, String> {
    let level = if question.level == from {
        to
    } else {
        question.level
    };
    instead(history, Question { level, ..question })
}

fn with_sessions(
    history: &History,
    question: Question,
    session_order: bool,
) -> Result<bool, String> {
    instead(
        history,
        Question {
            session_order,
            ..question
        },
    )
}

#[test]
fn engines_with_one_mistake_are_caught() {
    let mutants: [(&str, Mutant); 16] = [
        ("forgets conditions", |history, question| {
            changed(history, question, History::forget_predicates)
        }),
        ("forgets version orders", |history, question| {
            changed(history, question, |it| it.retain_versions(|_| false))
        }),
        ("takes unknown for committed", |history, question| {
            changed(history, question, |it| *it = it.with_effects_of(|_| true))
        }),
        ("takes unknown for aborted", |history, question| {
            changed(history, question, |it| {
                let known = |txn| it.status(txn) == Status::Committed;
                *it = it.with_effects_of(known);
            })
        }),
        ("forgets sessions", |history, question| {
            with_sessions(history, question, false)
        }),
        ("keeps sessions that do not count", |history, question| {
            with_sessions(history, question, true)
        }),
        ("forgets the clock at strict-ser", |history, question| {
            leveled(history, question, Level::StrictSer, Level::Ser)
        }),
        ("trusts every clock", |history, question| {
            let drift = 0;
            instead(history, Question { drift, ..question })
        }),
        ("forgets the clock at strong-si", |history, question| {
            leveled(history, question, Level::StrongSi, Level::Si)
        }),
        ("lets updates be lost at si", |history, question| {
            leveled(history, question, Level::Si, Level::Pc)
        }),
        ("lets forks happen at si", |history, question| {
            leveled(history, question, Level::Si, Level::Psi)
        }),
        ("lets updates be lost at psi", |history, question| {
            leveled(history, question, Level::Psi, Level::Cc)
        }),
        ("forgets what happened before at cc", |history, question| {
            leveled(history, question, Level::Cc, Level::Ra)
        }),
        ("lets reads be fractured at ra", |history, question| {
            leveled(history, question, Level::Ra, Level::RcSo)
        }),
        ("forgets sessions at rc-so", |history, question| {
            leveled(history, question, Level::RcSo, Level::Rc)
        }),
        (
            "takes every level for read committed",
            |history, question| {
                changed(history, question, |it| {
                    let set: Result<(), ()> = it.set_models(|_, _| Ok(Model::Rc));
                    set.expect("every transaction has one");
                })
            },
        ),
    ];
    for (name, mutant) in mutants {
        let caught = (0..1_000).find(|&part| {
            let tally = sweep(part * 200..(part + 1) * 200, &mutant);
            !tally.wrong.is_empty()
        });
        println!("an engine that {name} is caught in part {caught:?}");
        assert!(caught.is_some(), "{name}");
    }
}
