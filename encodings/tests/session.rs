//! Questions that grow: at every step a session answers like a back end that gets the whole question, and like brute
//! force; one that forgets a step is caught.

mod support;

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::Silent;
use kingsnake_encodings::{BACKENDS, BackendOptions, Faults, Propagator, backend};
use kingsnake_graph::Edge;
use kingsnake_graph::decide::{Backend, Decision, Origin, Side};
use kingsnake_graph::session::{Afresh, Growth, SideOf, SolverSession};
use support::{Owned, Rng, planted, small};

/// A small question, and what is appended to it step by step.
struct Growing {
    base: Owned,
    steps: Vec<Growth>,
}

impl Growing {
    fn draw(random: &mut Rng, base: Owned, n_steps: usize, most: usize) -> Growing {
        let n_nodes = base.n_nodes;
        let mut n_constraints = base.constraints.len();
        let mut steps = Vec::new();
        for _ in 0..n_steps {
            n_constraints += random.below(3);
            n_constraints = n_constraints.min(most).max(1);
            let mut growth = growth(n_constraints);
            let edge = |random: &mut Rng| {
                let from = random.below(n_nodes) as u32;
                let to = (from as usize + 1 + random.below(n_nodes - 1)) % n_nodes;
                Edge::plain(from, to as u32)
            };
            if random.below(6) == 0 {
                growth.known.push(edge(random));
            }
            for _ in 0..random.below(4) {
                let guard = sides(random, n_constraints, 3);
                growth.guard(edge(random), &guard);
            }
            for _ in 0..random.below(3) {
                growth.clause(&sides(random, n_constraints, 3));
            }
            steps.push(growth);
        }
        Growing { base, steps }
    }

    fn n_constraints(&self, n_steps: usize) -> usize {
        let last = self.steps[..n_steps].last();
        last.map_or(0, |it| it.n_constraints)
            .max(self.base.constraints.len())
    }

    /// Whether these sides meet everything stated up to this step.
    fn is_met(&self, n_steps: usize, chosen: &[Side]) -> bool {
        let holds = |&(at, side): &SideOf| chosen[at as usize] == side;
        let steps = &self.steps[..n_steps];
        if steps
            .iter()
            .flat_map(Growth::clauses)
            .any(|it| !it.iter().any(holds))
        {
            return false;
        }
        let mut edges: Vec<(u32, u32)> = self
            .base
            .question()
            .known()
            .map(|it| (it.from, it.to))
            .collect();
        let n_base = self.base.constraints.len();
        for (at, &side) in chosen.iter().take(n_base).enumerate() {
            let side = self.base.constraints.side(at, side);
            edges.extend(side.iter().map(|it| (it.from, it.to)));
        }
        for growth in steps {
            edges.extend(growth.edges(chosen).map(|it| (it.from, it.to)));
        }
        support::brute::is_acyclic(self.base.n_nodes, &edges)
    }

    /// By trying all sides, or those of these constraints where the others are free: a free constraint takes no side, so what names
    /// it does not count.
    fn can_be_met(&self, n_steps: usize) -> bool {
        let n = self.n_constraints(n_steps);
        (0..1_u32 << n).any(|mask| self.is_met(n_steps, &sides_of(mask, n)))
    }

    /// The question of a core alone.
    fn only(&self, n_steps: usize, core: &[u32]) -> Growing {
        let place = |at: u32| core.iter().position(|&it| it == at).map(|it| it as u32);
        let renamed = |named: &[SideOf]| -> Option<Vec<SideOf>> {
            named
                .iter()
                .map(|&(at, side)| Some((place(at)?, side)))
                .collect()
        };
        let mut base = self.base.clone();
        let mut constraints = kingsnake_graph::decide::Constraints::default();
        let of = |at: u32, side| {
            let at = at as usize;
            let is_base = at < self.base.constraints.len();
            let edges = if is_base {
                self.base.constraints.side(at, side)
            } else {
                &[]
            };
            edges.to_vec()
        };
        for &at in core {
            constraints.push(of(at, Side::Either), of(at, Side::Or));
        }
        base.constraints = constraints;
        let step = |growth: &Growth| {
            let mut kept = self::growth(core.len());
            kept.known.clone_from(&growth.known);
            for (edge, guard) in growth.guarded() {
                if let Some(guard) = renamed(guard) {
                    kept.guard(edge, &guard);
                }
            }
            for clause in growth.clauses() {
                if let Some(clause) = renamed(clause) {
                    kept.clause(&clause);
                }
            }
            kept
        };
        Growing {
            base,
            steps: self.steps[..n_steps].iter().map(step).collect(),
        }
    }
}

/// This many constraints and nothing else.
#[allow(clippy::field_reassign_with_default)] // Its other fields are its own.
fn growth(n_constraints: usize) -> Growth {
    let mut growth = Growth::default();
    growth.n_constraints = n_constraints;
    growth
}

fn sides_of(mask: u32, n: usize) -> Vec<Side> {
    let side = |at| {
        if mask >> at & 1 == 0 {
            Side::Either
        } else {
            Side::Or
        }
    };
    (0..n).map(side).collect()
}

/// One to this many sides of different constraints.
fn sides(random: &mut Rng, n_constraints: usize, most: usize) -> Vec<SideOf> {
    let mut all = Vec::new();
    for _ in 0..=random.below(most.min(n_constraints)) {
        let at = random.below(n_constraints) as u32;
        if all.iter().all(|&(other, _)| other != at) {
            let side = if random.below(2) == 0 {
                Side::Either
            } else {
                Side::Or
            };
            all.push((at, side));
        }
    }
    all
}

/// Asks at every step; returns what is wrong. Counts how often the answer was yes and no.
fn judge(
    session: &mut dyn SolverSession,
    growing: &Growing,
    truth: &dyn Fn(usize) -> Option<bool>,
    tally: &mut [usize; 2],
) -> Result<(), String> {
    for n_steps in 0..=growing.steps.len() {
        if n_steps > 0 {
            session.add(&growing.steps[n_steps - 1]);
        }
        let decided = session.decide(&Budget::unlimited(), &mut Silent);
        let (decision, _) = decided.map_err(|error| format!("step {n_steps}: {error}"))?;
        let met = match decision {
            Decision::Choices(chosen) => {
                if chosen.len() != growing.n_constraints(n_steps) {
                    return Err(format!("step {n_steps}: {} sides", chosen.len()));
                }
                if !growing.is_met(n_steps, &chosen) {
                    return Err(format!(
                        "step {n_steps}: its sides do not meet the question"
                    ));
                }
                true
            }
            Decision::Core(core) => {
                if core.len() < 12 && growing.only(n_steps, &core).can_be_met(n_steps) {
                    return Err(format!("step {n_steps}: its core {core:?} can be met"));
                }
                false
            }
            Decision::Unknown(reason) => return Err(format!("step {n_steps}: {reason}")),
        };
        tally[usize::from(!met)] += 1;
        match truth(n_steps) {
            Some(truth) if truth != met => return Err(format!("step {n_steps}: it says {met}")),
            _ => {}
        }
    }
    Ok(())
}

/// Small questions against brute force at every step.
fn sweep(make: &dyn Fn(u32) -> Box<dyn Backend>, n_questions: u64) -> Result<[usize; 2], String> {
    let mut random = Rng::new(31);
    let mut tally = [0; 2];
    for round in 0..n_questions {
        let base = small(&mut random);
        let base = match round % 3 {
            0 => base,
            1 => base.estimated(),
            _ => base.misled(&mut random),
        };
        let n_steps = 1 + random.below(6);
        let growing = Growing::draw(&mut random, base, n_steps, 11);
        let mut backend = make(round as u32);
        let mut session = backend.session(growing.base.question());
        let truth = |n_steps| Some(growing.can_be_met(n_steps));
        judge(&mut *session, &growing, &truth, &mut tally)
            .map_err(|what| format!("question {round}: {what}"))?;
    }
    Ok(tally)
}

fn options(seed: u32) -> BackendOptions {
    BackendOptions {
        seed,
        ..BackendOptions::default()
    }
}

#[test]
fn every_back_end_answers_a_growing_question_as_brute_force_does() {
    for &name in BACKENDS {
        let make = |seed| backend(name, &options(seed)).expect("of the table");
        if make(0).refuses(Origin::Other).is_some() {
            println!("{name} decides other questions");
            continue;
        }
        let n_questions = if name.starts_with("z3/") { 60 } else { 400 };
        match sweep(&make, n_questions) {
            Ok(tally) => {
                println!("{name}: {tally:?}");
                assert!(
                    tally.iter().all(|&n| n > n_questions as usize / 5),
                    "{name}: {tally:?}"
                );
            }
            Err(what) => panic!("{name}: {what}"),
        }
    }
}

#[test]
fn a_session_that_forgets_a_step_or_ignores_clauses_is_caught() {
    let mutants = [
        (
            "forget_growth",
            Faults {
                forget_growth: true,
                ..Faults::default()
            },
        ),
        (
            "ignore_clauses",
            Faults {
                ignore_clauses: true,
                ..Faults::default()
            },
        ),
        (
            "short_lemma",
            Faults {
                short_lemma: true,
                ..Faults::default()
            },
        ),
        (
            "drop_pending",
            Faults {
                drop_pending: true,
                ..Faults::default()
            },
        ),
        (
            "frozen_order",
            Faults {
                frozen_order: true,
                ..Faults::default()
            },
        ),
    ];
    for (name, faults) in mutants {
        let make = |seed| -> Box<dyn Backend> {
            Box::new(Propagator::new(&options(seed)).with_faults(faults))
        };
        let caught = sweep(&make, 400).err();
        println!("{name}: {caught:?}");
        assert!(caught.is_some(), "{name} went unnoticed");
    }
}

/// Larger questions: both kinds of session give the same answers, and the one with a memory takes fewer conflicts.
#[test]
fn memory_saves_conflicts_and_changes_no_answer() {
    let mut random = Rng::new(8);
    let mut totals = [[0_u64; 2]; 2];
    for _ in 0..12 {
        let base = planted(120, 260, false, &mut random);
        let mut growing = Growing::draw(&mut random, base, 12, usize::MAX);
        for growth in &mut growing.steps {
            growth.known.clear();
        }
        for (at, name) in ["cadical/propagator", "cadical/lazy"]
            .into_iter()
            .enumerate()
        {
            let mut kept = backend(name, &options(1)).expect("of the table");
            let mut fresh = backend(name, &options(1)).expect("of the table");
            let mut sessions: [Box<dyn SolverSession + '_>; 2] = [
                kept.session(growing.base.question()),
                Box::new(Afresh::new(&mut *fresh, growing.base.question())),
            ];
            for n_steps in 0..=growing.steps.len() {
                let mut answers = Vec::new();
                for (which, session) in sessions.iter_mut().enumerate() {
                    if n_steps > 0 {
                        session.add(&growing.steps[n_steps - 1]);
                    }
                    let (decision, stats) = session
                        .decide(&Budget::unlimited(), &mut Silent)
                        .unwrap_or_else(|error| panic!("{name}: {error}"));
                    totals[at][which] += stats.conflicts + stats.cycles;
                    if let Decision::Choices(chosen) = &decision {
                        assert!(growing.is_met(n_steps, chosen), "{name}, step {n_steps}");
                    }
                    answers.push(matches!(decision, Decision::Choices(_)));
                }
                assert_eq!(answers[0], answers[1], "{name}, step {n_steps}");
            }
        }
    }
    println!(
        "conflicts and cycles, kept and afresh: propagator {:?}, lazy {:?}",
        totals[0], totals[1]
    );
    for total in totals {
        assert!(total[0] <= total[1], "{totals:?}");
    }
}

#[test]
fn a_session_stops_at_the_budget_and_goes_on_after_it() {
    for name in ["cadical/propagator", "cadical/lazy"] {
        let owned = support::pigeons(10);
        let mut backend = backend(name, &options(0)).expect("of the table");
        let mut session = backend.session(owned.question());
        let limit = std::time::Duration::from_millis(100);
        let budget = Budget::unlimited().with_timeout(std::time::Instant::now(), limit);
        let (decision, _) = session.decide(&budget, &mut Silent).expect("no failure");
        assert_eq!(
            decision,
            Decision::Unknown(StopReason::Time(limit)),
            "{name}"
        );
        let tiny = Budget::unlimited().with_memory(100);
        let (decision, _) = session.decide(&tiny, &mut Silent).expect("no failure");
        assert!(
            matches!(decision, Decision::Unknown(StopReason::Memory { .. })),
            "{name}"
        );
        // An empty clause ends it.
        let mut growth = growth(owned.constraints.len());
        growth.clause(&[]);
        session.add(&growth);
        let (decision, _) = session
            .decide(&Budget::unlimited(), &mut Silent)
            .expect("no failure");
        assert_eq!(decision, Decision::Core(Vec::new()), "{name}");
    }
}
