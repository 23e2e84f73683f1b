//! What every back end must do, each as a function that returns what is wrong. `agreement.rs` instantiates them all for
//! each back end by one line, and `lies.rs` shows that each of them notices a wrong report.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::Silent;
use kingsnake_encodings::BackendOptions;
use kingsnake_graph::decide::{Backend, Constraints, DecideStats, Decision};
use kingsnake_lab::oracle;
use kingsnake_lab::random::{CaseSplit, Injected, Large, Rng, small as small_history};
use kingsnake_solver::check::{CheckError, Decider, Techniques, check};
use kingsnake_solver::level::{Model, Spec};
use kingsnake_solver::model::History;
use kingsnake_solver::verdict::Verdict;

use super::{Owned, cnf, edge, judge, pigeons, planted, small};

/// Makes the back end under test.
pub type Make<'a> = &'a dyn Fn(&BackendOptions) -> Box<dyn Backend>;

/// How many questions could be met and how many could not, or what was wrong.
pub type Judged = Result<[usize; 2], String>;

fn seeded(seed: u32) -> BackendOptions {
    BackendOptions {
        seed,
        ..BackendOptions::default()
    }
}

fn count(tally: &mut [usize; 2], truth: bool) {
    tally[usize::from(!truth)] += 1;
}

/// Random questions against enumeration, without an estimate, with a good one, and with a misleading one.
pub fn small_questions(make: Make, n_questions: u64) -> Judged {
    let mut random = Rng::new(11);
    let mut tally = [0; 2];
    for round in 0..n_questions {
        let owned = small(&mut random);
        let truth = owned.can_meet(&owned.all());
        count(&mut tally, truth);
        let owned = match round % 3 {
            0 => owned,
            1 => owned.estimated(),
            _ => owned.misled(&mut random),
        };
        judge(&mut *make(&seeded(round as u32)), &owned, Some(truth))
            .map_err(|what| format!("question {round}: {what}\n{owned:?}"))?;
    }
    Ok(tally)
}

const fn spec(model: Model, session_order: bool) -> Spec {
    Spec {
        model,
        session_order,
        real_time: None,
    }
}

const SPECS: [Spec; 4] = [
    spec(Model::Ser, true),
    spec(Model::Ser, false),
    spec(Model::Si, true),
    spec(Model::Si, false),
];

/// Those of the levels that the back end decides.
fn specs(make: Make, of: &[Spec]) -> Vec<Spec> {
    let backend = make(&BackendOptions::default());
    let decided = of.iter().filter(|&&spec| {
        backend
            .refuses(kingsnake_solver::check::origin(spec))
            .is_none()
    });
    decided.copied().collect()
}

/// Pruning and the witness leave little to decide; without them the back end gets everything.
fn unpruned() -> Techniques {
    Techniques {
        prune_rounds: Some(0),
        combine: false,
        witness: false,
        ..Techniques::default()
    }
}

fn unwitnessed() -> Techniques {
    Techniques {
        witness: false,
        ..Techniques::default()
    }
}

/// The verdict on a history, which the solver has checked again, and who gave it; `None` if the reads cannot be resolved.
fn verdict(
    make: Make,
    history: &History,
    spec: Spec,
    techniques: &Techniques,
) -> Result<Option<(bool, Decider)>, String> {
    let mut backend = make(&BackendOptions::default());
    let budget = Budget::unlimited();
    match check(
        history,
        spec,
        techniques,
        &mut *backend,
        &budget,
        &mut Silent,
    ) {
        Err(CheckError::Resolve(_)) => Ok(None),
        Err(error) => Err(error.to_string()),
        Ok(report) => match report.verdict {
            Verdict::Satisfied(_) => Ok(Some((true, report.decider))),
            Verdict::Violated(_) => Ok(Some((false, report.decider))),
            Verdict::Unknown(reason) => Err(format!("it stopped: {reason}")),
        },
    }
}

/// Random histories, SER and SI, with and without session order, against the brute-force oracle.
pub fn small_histories(make: Make, n_histories: u64) -> Judged {
    let mut tally = [0; 2];
    let specs = specs(make, &SPECS);
    for seed in 0..n_histories {
        let history = small_history(seed);
        let spec = specs[seed as usize % specs.len()];
        let Some(truth) = oracle::holds(&history, spec) else {
            continue;
        };
        for techniques in [unwitnessed(), unpruned()] {
            let said = verdict(make, &history, spec, &techniques)
                .map_err(|what| format!("history {seed}, {spec}: {what}"))?;
            match said {
                Some((said, _)) if said != truth => {
                    return Err(format!("history {seed}, {spec}: it says {said}"));
                }
                Some(_) => count(&mut tally, truth),
                None => {}
            }
        }
    }
    Ok(tally)
}

/// Histories that only a case split decides.
pub fn puzzles(make: Make) -> Judged {
    let mut rng = Rng::new(5);
    let mut tally = [0; 2];
    for round in 0..100 {
        let puzzle = CaseSplit::draw(2 + round % 9, 4 + round % 23, &mut rng);
        let (history, truth) = (puzzle.history(), puzzle.is_satisfiable());
        for spec in specs(make, &[SPECS[0], SPECS[2]]) {
            let said = verdict(make, &history, spec, &Techniques::default())
                .map_err(|what| format!("puzzle {round}, {spec}: {what}"))?;
            match said {
                Some((said, Decider::Backend)) if said == truth => {}
                Some((true, _)) if truth => {}
                said => return Err(format!("puzzle {round}, {spec}: it says {said:?}")),
            }
            count(&mut tally, truth);
        }
    }
    Ok(tally)
}

/// Formulas in conjunctive normal form, written as questions.
pub fn formulas(make: Make) -> Judged {
    let mut random = Rng::new(5);
    let mut tally = [0; 2];
    for round in 0..60 {
        let n_variables = 8;
        let clauses: Vec<Vec<i32>> = (0..30 + random.below(12))
            .map(|_| {
                let literal = |_| {
                    let lit = random.below(n_variables) as i32 + 1;
                    if random.below(2) == 0 { lit } else { -lit }
                };
                (0..3).map(literal).collect()
            })
            .collect();
        let truth = (0u32..1 << n_variables).any(|model| {
            clauses.iter().all(|clause| {
                clause
                    .iter()
                    .any(|&lit| (model >> (lit.unsigned_abs() - 1) & 1 == 1) == (lit > 0))
            })
        });
        count(&mut tally, truth);
        let owned = cnf(n_variables, &clauses);
        judge(&mut *make(&seeded(round as u32)), &owned, Some(truth))
            .map_err(|what| format!("formula {round}: {what}"))?;
    }
    Ok(tally)
}

/// Questions and histories that no enumeration can decide, but whose answer was planted.
pub fn middling(make: Make) -> Judged {
    let mut random = Rng::new(2);
    let mut tally = [0; 2];
    for (n_nodes, n_constraints) in [(40, 60), (60, 200), (120, 250), (200, 300)] {
        for torn in [false, true] {
            let owned = planted(n_nodes, n_constraints, torn, &mut random);
            count(&mut tally, !torn);
            judge(&mut *make(&BackendOptions::default()), &owned, Some(!torn))
                .map_err(|what| format!("{n_nodes} nodes, torn {torn}: {what}"))?;
        }
    }
    for (model, injected, truth) in [
        (Model::Ser, None, true),
        (Model::Si, None, true),
        (Model::Ser, Some(Injected::WriteSkew), false),
        (Model::Si, Some(Injected::WriteSkew), true),
        (Model::Si, Some(Injected::LostUpdate), false),
    ] {
        for spec in specs(make, &[true, false].map(|order| spec(model, order))) {
            let shape = Large {
                n_txns: 60,
                n_sessions: 6,
                n_keys: 30,
                injected,
                seed: 7,
                ..Large::default()
            };
            let history = shape.run().history;
            for techniques in [unwitnessed(), unpruned()] {
                let said = verdict(make, &history, spec, &techniques)?;
                if said.is_none_or(|(said, _)| said != truth) {
                    return Err(format!("{model:?} with {injected:?}: it says {said:?}"));
                }
                count(&mut tally, truth);
            }
        }
    }
    Ok(tally)
}

/// How late an answer may be. A second is promised, and the time is printed; a failure here did not stop at all,
/// however busy the machine is.
pub const LATE: Duration = Duration::from_secs(60);

#[allow(clippy::print_stdout)] // What a test prints is shown with it.
fn in_time(what: &str, started: Instant, limit: Duration, late: Duration) -> Result<(), String> {
    let took = started.elapsed().saturating_sub(limit);
    println!("stopped {took:.2?} after {what}");
    if took > late {
        return Err(format!("it stopped only {took:?} after {what}"));
    }
    Ok(())
}

/// Asks with a limit of 200 ms, then with an interruption from another thread, and expects both to end soon.
fn stops(make: Make, owned: &Owned, late: Duration) -> Result<(), String> {
    let limit = Duration::from_millis(200);
    let started = Instant::now();
    let budget = Budget::unlimited().with_timeout(started, limit);
    let (decision, _) = ask(make, &BackendOptions::default(), owned, &budget)?;
    if decision != Decision::Unknown(StopReason::Time(limit)) {
        return Err(format!("at the time limit it says {}", shown(&decision)));
    }
    in_time("the time limit", started, limit, late)?;
    let flag = Arc::new(AtomicBool::new(false));
    let budget = Budget::unlimited().with_interrupt(Arc::clone(&flag));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(limit);
            flag.store(true, Ordering::Relaxed);
        });
        let started = Instant::now();
        let (decision, _) = ask(make, &BackendOptions::default(), owned, &budget)?;
        if decision != Decision::Unknown(StopReason::Interrupted) {
            return Err(format!("interrupted, it says {}", shown(&decision)));
        }
        in_time("the interruption", started, limit, late)?;
        Ok(())
    })
}

fn shown(decision: &Decision) -> String {
    match decision {
        Decision::Choices(_) => "it can be met".to_owned(),
        Decision::Core(_) => "it cannot be met".to_owned(),
        Decision::Unknown(reason) => reason.to_string(),
    }
}

fn ask(
    make: Make,
    options: &BackendOptions,
    owned: &Owned,
    budget: &Budget,
) -> Result<(Decision, DecideStats), String> {
    make(options)
        .decide(owned.question(), budget, &mut Silent)
        .map_err(|error| error.to_string())
}

/// A question that no search finishes in time.
pub fn stops_searching(make: Make, late: Duration) -> Result<(), String> {
    stops(make, &pigeons(13), late)
}

/// A question so large that building the formula already takes longer than allowed, or that is refused for its size.
pub fn stops_building(make: Make, late: Duration) -> Result<(), String> {
    let owned = planted(20_000, 150_000, true, &mut Rng::new(9));
    let started = Instant::now();
    let limit = Duration::from_millis(50);
    let budget = Budget::unlimited()
        .with_timeout(started, limit)
        .with_memory(4 << 30);
    let (decision, _) = ask(make, &BackendOptions::default(), &owned, &budget)?;
    if let Decision::Choices(_) = decision {
        return Err("it met what cannot be met".to_owned());
    }
    in_time("the time limit", started, limit, late)
}

/// What does not fit is refused, not allocated.
pub fn fits(make: Make) -> Result<(), String> {
    let owned = planted(2000, 4000, true, &mut Rng::new(1));
    let budget = Budget::unlimited().with_memory(1000);
    match ask(make, &BackendOptions::default(), &owned, &budget)?.0 {
        Decision::Unknown(StopReason::Memory { .. }) => Ok(()),
        decision => Err(format!("within 1,000 bytes it says {}", shown(&decision))),
    }
}

/// The same seed gives the same run, to the last conflict.
pub fn repeats(make: Make) -> Result<(), String> {
    let mut random = Rng::new(4);
    for torn in [false, true] {
        let owned = planted(100, 250, torn, &mut random);
        for seed in [0, 1] {
            let run = || {
                let (decision, stats) = ask(make, &seeded(seed), &owned, &Budget::unlimited())?;
                let counts = [
                    stats.conflicts,
                    stats.decisions,
                    stats.cycles,
                    stats.clauses,
                ];
                Ok::<_, String>((decision, counts, stats.variables, stats.edges))
            };
            let (one, other) = (run()?, run()?);
            if one != other {
                return Err(format!("torn {torn}, seed {seed}: {one:?}, then {other:?}"));
            }
        }
    }
    Ok(())
}

/// Requested statistics are counted: on a question that needs search, none is left out.
pub fn counts(make: Make) -> Result<(), String> {
    let (decision, stats) = ask(
        make,
        &BackendOptions::default(),
        &pigeons(4),
        &Budget::unlimited(),
    )?;
    if !matches!(decision, Decision::Core(_)) {
        return Err("it lets pigeons share a hole".to_owned());
    }
    for (what, count) in [
        ("variables", stats.variables),
        ("edges", stats.edges),
        ("conflicts", stats.conflicts),
        ("decisions", stats.decisions),
    ] {
        if count == 0 {
            return Err(format!("it counts no {what}: {stats:?}"));
        }
    }
    if stats.clauses + stats.cycles == 0 {
        return Err(format!("it counts neither clauses nor cycles: {stats:?}"));
    }
    if stats.solve.is_zero() {
        return Err(format!("it took no time: {stats:?}"));
    }
    // Only Linux tells the process's size.
    if cfg!(target_os = "linux") && stats.memory.is_none() {
        return Err(format!("it counts no memory: {stats:?}"));
    }
    Ok(())
}

/// Nothing open, a loop on one side, an empty side, the same edge on both sides.
pub fn corners(make: Make) -> Judged {
    let mut tally = [0; 2];
    let mut corner = |known: &[(u32, u32)], n_nodes, sides: &[[&[(u32, u32)]; 2]], truth| {
        let mut constraints = Constraints::default();
        for [either, or] in sides {
            let edges = |side: &[(u32, u32)]| {
                side.iter()
                    .map(|&(from, to)| edge(from, to))
                    .collect::<Vec<_>>()
            };
            constraints.push(edges(either), edges(or));
        }
        let owned = Owned::new(known, (0..n_nodes).collect(), constraints);
        count(&mut tally, truth);
        judge(&mut *make(&BackendOptions::default()), &owned, Some(truth))
            .map(|_| ())
            .map_err(|what| format!("{owned:?}: {what}"))
    };
    corner(&[], 0, &[], true)?;
    corner(&[(0, 1)], 2, &[], true)?;
    corner(&[], 2, &[[&[(0, 0)], &[(1, 0)]]], true)?;
    corner(&[(0, 1)], 2, &[[&[(0, 0)], &[(1, 0)]]], false)?;
    corner(&[(0, 1)], 2, &[[&[], &[(1, 0)]]], true)?;
    corner(
        &[],
        2,
        &[[&[(0, 1)], &[(0, 1)]], [&[(1, 0)], &[(1, 0)]]],
        false,
    )?;
    corner(
        &[(0, 1), (1, 2)],
        3,
        &[[&[(2, 0)], &[(2, 1), (0, 2)]]],
        false,
    )?;
    Ok(tally)
}
