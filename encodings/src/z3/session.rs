//! One Z3 solver: assertions that are counted, checks that end with the budget, and what Z3 tells of them.
//!
//! The crate `z3` makes the terms, but it hides the solver's handle, which the user propagator needs, and it drops errors.
//! So the solver itself is held by the C interface, in this file. Invariant: before a check, the solver holds as
//! many assertions as it was sent; an unknown parameter makes Z3 lose one without a word.

// Every call of Z3's C interface is unsafe. All pointers here come from the context that the session owns and outlive their
// use, and Z3 is only ever called from the thread of the session, except for the interruption, which Z3 allows.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_graph::decide::DecideStats;
use z3::Context;
use z3::ast::{Ast, Bool};
use z3_sys as sys;

use super::propagator::Connected;

/// How often the budget is asked while Z3 is at work.
const EVERY: Duration = Duration::from_millis(20);
/// The oldest Z3 whose interface is the one that was compiled against.
const OLDEST: [u32; 3] = [4, 13, 3];
/// Between two looks at the budget, so many assertions are sent.
const STRIDE: usize = 1024;

/// Why a session ended without an answer.
#[derive(Debug)]
pub(crate) enum Halt {
    /// The budget did.
    Stopped(StopReason),
    /// Something is wrong.
    Failed(String),
}

impl From<StopReason> for Halt {
    fn from(reason: StopReason) -> Halt {
        Halt::Stopped(reason)
    }
}

/// What a check found.
#[derive(Debug)]
pub(crate) enum Found {
    /// Everything that was demanded can be met; for each question, whether it is true in the model.
    Met(Vec<bool>),
    /// These of the demands, by place, cannot all be met.
    Refuted(Vec<usize>),
}

/// The solver. There is one context a thread, so a session belongs to its thread.
pub(crate) struct Z3Session<'a> {
    context: Context,
    solver: sys::Z3_solver,
    budget: &'a Budget,
    n_sent: usize,
    /// How many assertions were found in the solver before its last check.
    n_held: Cell<usize>,
    /// What the solver calls back. Fields are dropped after [`Drop::drop`] has given the solver back, so no callback outlives it.
    theory: Option<Connected>,
}

impl<'a> Z3Session<'a> {
    /// A solver for a logic, or for all of them, with these parameters.
    pub fn new(
        logic: Option<&str>,
        params: &[(&str, u32)],
        budget: &'a Budget,
    ) -> Result<Z3Session<'a>, Halt> {
        expect_new_enough()?;
        let context = Context::thread_local();
        let raw = context.get_z3_context();
        // SAFETY: the context is alive as long as the session; the reference taken here is given back on drop.
        let solver = unsafe {
            let solver = match logic {
                Some(logic) => {
                    sys::Z3_mk_solver_for_logic(raw, z3::Symbol::from(logic).as_z3_symbol())
                }
                None => sys::Z3_mk_simple_solver(raw),
            };
            let solver =
                solver.ok_or_else(|| Halt::Failed("no solver for its logic".to_owned()))?;
            sys::Z3_solver_inc_ref(raw, solver);
            solver
        };
        let session = Z3Session {
            context,
            solver,
            budget,
            n_sent: 0,
            n_held: Cell::new(0),
            theory: None,
        };
        session.set(params);
        session.expect_no_error()?;
        Ok(session)
    }

    fn set(&self, params: &[(&str, u32)]) {
        let raw = self.raw();
        // SAFETY: the parameters live until their reference is given back, which is after their use.
        unsafe {
            let Some(set) = sys::Z3_mk_params(raw) else {
                return;
            };
            sys::Z3_params_inc_ref(raw, set);
            for &(key, value) in params {
                let key = z3::Symbol::from(key).as_z3_symbol();
                sys::Z3_params_set_uint(raw, set, key, value);
            }
            sys::Z3_solver_set_params(raw, self.solver, set);
            sys::Z3_params_dec_ref(raw, set);
        }
    }

    /// From now on a check gives up after so many conflicts.
    pub fn limit_conflicts(&self, n_conflicts: u32) {
        self.set(&[("max_conflicts", n_conflicts)]);
    }

    pub fn raw(&self) -> sys::Z3_context {
        self.context.get_z3_context()
    }

    pub fn solver(&self) -> sys::Z3_solver {
        self.solver
    }

    /// Keeps what the solver calls back for as long as there is a solver.
    pub fn keep(&mut self, theory: Connected) -> &Connected {
        self.theory.insert(theory)
    }

    /// What the solver calls back.
    pub fn theory(&self) -> Option<&Connected> {
        self.theory.as_ref()
    }

    /// How many assertions were sent.
    pub fn n_sent(&self) -> usize {
        self.n_sent
    }

    /// Demands that this holds. An error here is noticed before the next check, because the assertion is missing then.
    pub fn assert(&mut self, holds: &Bool) -> Result<(), Halt> {
        self.step(self.n_sent)?;
        self.n_sent += 1;
        // SAFETY: the term belongs to this thread's context.
        unsafe { sys::Z3_solver_assert(self.raw(), self.solver, holds.get_z3_ast()) };
        Ok(())
    }

    /// Asks the budget now and then; to be called at every step of something long.
    pub fn step(&self, at: usize) -> Result<(), Halt> {
        if at.is_multiple_of(STRIDE) {
            self.budget.check()?;
        }
        Ok(())
    }

    /// Whether everything asserted can be met together with the demands; if so, the questions are looked up in the model.
    pub fn check(
        &self,
        demands: &[Bool],
        questions: &[Bool],
        budget: &Budget,
    ) -> Result<Found, Halt> {
        self.expect_all_assertions()?;
        let assumed: Vec<sys::Z3_ast> = demands.iter().map(Ast::get_z3_ast).collect();
        let handle = self.context.handle();
        let (answer, stopped) = thread::scope(|scope| {
            let (done, waiting) = mpsc::channel::<()>();
            let handle = &handle;
            let watcher = scope.spawn(move || {
                let mut reason = None;
                while waiting.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    reason = reason.or_else(|| budget.check().err());
                    // An interruption before Z3 listens is lost, so it is repeated.
                    if reason.is_some() {
                        handle.interrupt();
                    }
                }
                reason
            });
            // SAFETY: the demands are alive, and nobody else uses this context but to interrupt it.
            let answer = unsafe {
                sys::Z3_solver_check_assumptions(
                    self.raw(),
                    self.solver,
                    assumed.len() as u32,
                    assumed.as_ptr(),
                )
            };
            drop(done);
            (answer, watcher.join().unwrap_or(None))
        });
        match (stopped, answer) {
            // After an interruption the context is not to be asked for anything.
            (Some(reason), _) => Err(Halt::Stopped(reason)),
            (None, sys::Z3_L_TRUE) => self.model(questions).map(Found::Met),
            (None, sys::Z3_L_FALSE) => Ok(Found::Refuted(self.core(demands))),
            (None, _) => Err(self.gave_up()),
        }
    }

    fn gave_up(&self) -> Halt {
        if let Err(halt) = self.expect_no_error() {
            return halt;
        }
        // SAFETY: Z3 returns a string of its own that lives until its next call, or null.
        let why = unsafe {
            let why = sys::Z3_solver_get_reason_unknown(self.raw(), self.solver);
            text(why)
        };
        Halt::Stopped(StopReason::Backend(format!("Z3 gave up: {why}")))
    }

    fn model(&self, questions: &[Bool]) -> Result<Vec<bool>, Halt> {
        let raw = self.raw();
        // SAFETY: the model lives until its reference is given back; a value is read before the next call.
        unsafe {
            let model = sys::Z3_solver_get_model(raw, self.solver)
                .ok_or_else(|| Halt::Failed("Z3 has no model".to_owned()))?;
            sys::Z3_model_inc_ref(raw, model);
            let values = questions
                .iter()
                .map(|question| {
                    let mut value = question.get_z3_ast();
                    sys::Z3_model_eval(raw, model, question.get_z3_ast(), true, &raw mut value)
                        && sys::Z3_get_bool_value(raw, value) == sys::Z3_L_TRUE
                })
                .collect();
            sys::Z3_model_dec_ref(raw, model);
            Ok(values)
        }
    }

    fn core(&self, demands: &[Bool]) -> Vec<usize> {
        let raw = self.raw();
        let mut failed: Vec<NonNull<_>> = Vec::new();
        // SAFETY: the vector lives until its reference is given back; its members are among the demands, which are alive.
        unsafe {
            if let Some(core) = sys::Z3_solver_get_unsat_core(raw, self.solver) {
                sys::Z3_ast_vector_inc_ref(raw, core);
                let size = sys::Z3_ast_vector_size(raw, core);
                failed.extend((0..size).filter_map(|at| sys::Z3_ast_vector_get(raw, core, at)));
                sys::Z3_ast_vector_dec_ref(raw, core);
            }
        }
        failed.sort_unstable();
        (0..demands.len())
            .filter(|&at| failed.binary_search(&demands[at].get_z3_ast()).is_ok())
            .collect()
    }

    fn expect_no_error(&self) -> Result<(), Halt> {
        // SAFETY: Z3 returns a string of its own that lives until its next call.
        unsafe {
            let code = sys::Z3_get_error_code(self.raw());
            if code == sys::ErrorCode::Ok {
                return Ok(());
            }
            let what = text(sys::Z3_get_error_msg(self.raw(), code));
            Err(Halt::Failed(format!("Z3: {what}")))
        }
    }

    /// Once for all that was sent: a check may rewrite what the solver holds, and then there are fewer.
    fn expect_all_assertions(&self) -> Result<(), Halt> {
        if self.n_held.get() == self.n_sent {
            return Ok(());
        }
        let raw = self.raw();
        // SAFETY: the vector lives until its reference is given back.
        let n_held = unsafe {
            let held = sys::Z3_solver_get_assertions(raw, self.solver)
                .ok_or_else(|| Halt::Failed("Z3 does not tell its assertions".to_owned()))?;
            sys::Z3_ast_vector_inc_ref(raw, held);
            let size = sys::Z3_ast_vector_size(raw, held) as usize;
            sys::Z3_ast_vector_dec_ref(raw, held);
            size
        };
        if n_held == self.n_sent {
            self.n_held.set(n_held);
            return Ok(());
        }
        Err(Halt::Failed(format!(
            "Z3 holds {n_held} assertions of {} that it was sent",
            self.n_sent
        )))
    }

    /// Leaves what Z3 holds to the end of the process. Z3 gives it back node by node, which takes it seconds where there is
    /// much, and cannot be interrupted.
    pub fn abandon(self) {
        std::mem::forget(self.context.clone());
        std::mem::forget(self);
    }

    /// Adds what Z3 counted since the session began.
    pub fn count(&self, stats: &mut DecideStats) {
        let raw = self.raw();
        // SAFETY: the statistics live until their reference is given back; a key is read before the next call.
        unsafe {
            let Some(counted) = sys::Z3_solver_get_statistics(raw, self.solver) else {
                return;
            };
            sys::Z3_stats_inc_ref(raw, counted);
            for at in 0..sys::Z3_stats_size(raw, counted) {
                let key = text(sys::Z3_stats_get_key(raw, counted, at));
                let value = if sys::Z3_stats_is_uint(raw, counted, at) {
                    f64::from(sys::Z3_stats_get_uint_value(raw, counted, at))
                } else {
                    sys::Z3_stats_get_double_value(raw, counted, at)
                };
                match key.as_str() {
                    "conflicts" => stats.conflicts += value as u64,
                    "decisions" => stats.decisions += value as u64,
                    "propagations" | "binary propagations" => stats.propagations += value as u64,
                    _ => {}
                }
            }
            sys::Z3_stats_dec_ref(raw, counted);
        }
    }
}

impl Drop for Z3Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference was taken when the session began.
        unsafe { sys::Z3_solver_dec_ref(self.raw(), self.solver) };
    }
}

/// A program may be linked to one Z3 and find another when it runs, or none.
fn expect_new_enough() -> Result<(), Halt> {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    kingsnake_z3::load().map_err(Halt::Failed)?;
    let [mut major, mut minor, mut build, mut revision] = [0; 4];
    // SAFETY: Z3 writes four numbers to where these are.
    unsafe {
        sys::Z3_get_version(
            &raw mut major,
            &raw mut minor,
            &raw mut build,
            &raw mut revision,
        );
    }
    if [major, minor, build] >= OLDEST {
        return Ok(());
    }
    let [a, b, c] = OLDEST;
    Err(Halt::Failed(format!(
        "this is Z3 {major}.{minor}.{build}, and at least {a}.{b}.{c} is needed"
    )))
}

/// A string of Z3's.
///
/// # Safety
///
/// It is null or closed by a zero.
unsafe fn text(string: sys::Z3_string) -> String {
    if string.is_null() {
        return "nothing".to_owned();
    }
    // SAFETY: as promised by the caller.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_assertion_is_noticed_before_it_can_make_an_answer_wrong() {
        let budget = Budget::unlimited();
        let mut session = Z3Session::new(None, &[], &budget).expect("a solver");
        // Behind the session's back, Z3 gets a parameter that it does not know, and says nothing.
        session.set(&[("no_such_parameter", 1)]);
        session.assert(&Bool::from_bool(false)).expect("in time");
        // SAFETY: the session's own solver.
        let unguarded = unsafe { sys::Z3_solver_check(session.raw(), session.solver) };
        assert_eq!(unguarded, sys::Z3_L_TRUE, "the trap is gone");
        match session.check(&[], &[], &budget) {
            Err(Halt::Failed(what)) => {
                assert_eq!(what, "Z3 holds 0 assertions of 1 that it was sent");
            }
            found => panic!("{found:?}"),
        }
    }
}
