//! One Z3 solver: assertions that are counted, checks that end with the budget, and Z3's statistics.
//!
//! Invariant: before a check, the solver holds as many assertions as it was sent; an unknown parameter makes Z3 lose one without
//! a word.

// Every call of Z3's C interface is unsafe. All pointers here come from the context that the session owns and outlive their
// use, and Z3 is only ever called from the thread of the session, except for the interruption, which Z3 allows.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_uint};
use std::ptr::NonNull;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_graph::decide::DecideStats;

use super::library::{FALSE, Functions, RawContext, RawSolver, RawSymbol, TRUE, functions, some};
use super::propagator::Connected;
use super::terms::{Term, handles};

/// Interval between two polls of the budget while Z3 runs.
const EVERY: Duration = Duration::from_millis(20);
/// Number of assertions sent between two polls of the budget.
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

/// The result of a check.
#[derive(Debug)]
pub(crate) enum Found {
    /// Everything that was demanded can be met; for each question, whether it is true in the model.
    Met(Vec<bool>),
    /// These of the demands, by place, cannot all be met.
    Refuted(Vec<usize>),
}

/// What Z3 keeps for one session: its terms, and whatever they are made of.
struct Context {
    z3: &'static Functions,
    raw: NonNull<RawContext>,
}

impl Context {
    fn new(z3: &'static Functions) -> Result<Context, Halt> {
        // SAFETY: the configuration is given back after its use. Without a handler an error is kept until it is asked for; Z3's
        // own would end the process.
        let raw = unsafe {
            let config = (z3.mk_config)();
            let raw = (z3.mk_context)(config);
            (z3.del_config)(config);
            let raw = some(raw, "context").map_err(Halt::Failed)?;
            (z3.set_error_handler)(raw.as_ptr(), None);
            raw
        };
        Ok(Context { z3, raw })
    }

    fn symbol(&self, name: &str) -> *mut RawSymbol {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: Z3 copies the name.
        unsafe { (self.z3.mk_string_symbol)(self.raw.as_ptr(), name.as_ptr()) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: nothing else uses the context any more: the session drops it last.
        unsafe { (self.z3.del_context)(self.raw.as_ptr()) };
    }
}

/// Stops a check from another thread.
struct Interrupt(&'static Functions, NonNull<RawContext>);

// SAFETY: an interruption is the one call that Z3 allows from any thread.
unsafe impl Sync for Interrupt {}

impl Interrupt {
    fn now(&self) {
        // SAFETY: the session, and with it the context, outlives the thread that interrupts it.
        unsafe { (self.0.interrupt)(self.1.as_ptr()) };
    }
}

/// The solver, in a context of its own.
pub(crate) struct Z3Session<'a> {
    solver: NonNull<RawSolver>,
    budget: &'a Budget,
    n_sent: Cell<usize>,
    /// How many assertions were found in the solver before its last check.
    n_held: Cell<usize>,
    /// What the solver calls back. Fields are dropped after [`Drop::drop`] has given the solver back, so no callback outlives it.
    theory: Option<Connected>,
    /// The last field, so that it is dropped last.
    context: Context,
}

impl<'a> Z3Session<'a> {
    /// A solver for a logic, or for all of them, with these parameters.
    pub fn new(
        logic: Option<&str>,
        params: &[(&str, u32)],
        budget: &'a Budget,
    ) -> Result<Z3Session<'a>, Halt> {
        let z3 = functions().map_err(Halt::Failed)?;
        let context = Context::new(z3)?;
        let raw = context.raw.as_ptr();
        // SAFETY: the context is alive as long as the session; the reference taken here is given back on drop.
        let solver = unsafe {
            let solver = match logic {
                Some(logic) => (z3.mk_solver_for_logic)(raw, context.symbol(logic)),
                None => (z3.mk_simple_solver)(raw),
            };
            let solver = some(solver, "solver for its logic").map_err(Halt::Failed)?;
            (z3.solver_inc_ref)(raw, solver.as_ptr());
            solver
        };
        let session = Z3Session {
            solver,
            budget,
            n_sent: Cell::new(0),
            n_held: Cell::new(0),
            theory: None,
            context,
        };
        session.set(params);
        session.expect_no_error()?;
        Ok(session)
    }

    fn set(&self, params: &[(&str, u32)]) {
        let (z3, raw) = (self.z3(), self.raw());
        // SAFETY: the parameters live until their reference is given back, which is after their use.
        unsafe {
            let set = (z3.mk_params)(raw);
            if set.is_null() {
                return;
            }
            (z3.params_inc_ref)(raw, set);
            for &(key, value) in params {
                (z3.params_set_uint)(raw, set, self.context.symbol(key), value);
            }
            (z3.solver_set_params)(raw, self.solver(), set);
            (z3.params_dec_ref)(raw, set);
        }
    }

    /// From now on a check gives up after this many conflicts.
    pub fn limit_conflicts(&self, n_conflicts: u32) {
        self.set(&[("max_conflicts", n_conflicts)]);
    }

    pub(super) fn z3(&self) -> &'static Functions {
        self.context.z3
    }

    pub(super) fn raw(&self) -> *mut RawContext {
        self.context.raw.as_ptr()
    }

    pub(super) fn solver(&self) -> *mut RawSolver {
        self.solver.as_ptr()
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
        self.n_sent.get()
    }

    /// Demands that this holds. An error here is noticed before the next check, because the assertion is missing then.
    pub fn assert(&self, holds: Term) -> Result<(), Halt> {
        self.step(self.n_sent())?;
        self.n_sent.set(self.n_sent() + 1);
        // SAFETY: the term belongs to this session.
        unsafe { (self.z3().solver_assert)(self.raw(), self.solver(), holds.0) };
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
        demands: &[Term],
        questions: &[Term],
        budget: &Budget,
    ) -> Result<Found, Halt> {
        self.expect_all_assertions()?;
        let interrupt = Interrupt(self.z3(), self.context.raw);
        let (answer, stopped) = thread::scope(|scope| {
            let (done, waiting) = mpsc::channel::<()>();
            let interrupt = &interrupt;
            let watcher = scope.spawn(move || {
                let mut reason = None;
                while waiting.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    reason = reason.or_else(|| budget.check().err());
                    // An interruption before Z3 listens is lost, so it is repeated.
                    if reason.is_some() {
                        interrupt.now();
                    }
                }
                reason
            });
            // SAFETY: the demands are alive, and this context is used elsewhere only to interrupt it.
            let answer = unsafe {
                (self.z3().solver_check_assumptions)(
                    self.raw(),
                    self.solver(),
                    demands.len() as c_uint,
                    handles(demands),
                )
            };
            drop(done);
            (answer, watcher.join().unwrap_or(None))
        });
        match (stopped, answer) {
            // After an interruption the context is not to be asked for anything.
            (Some(reason), _) => Err(Halt::Stopped(reason)),
            (None, TRUE) => self.model(questions).map(Found::Met),
            (None, FALSE) => Ok(Found::Refuted(self.core(demands))),
            (None, _) => Err(self.gave_up()),
        }
    }

    fn gave_up(&self) -> Halt {
        if let Err(halt) = self.expect_no_error() {
            return halt;
        }
        // SAFETY: Z3 returns a string of its own that lives until its next call, or null.
        let why = unsafe {
            let why = (self.z3().solver_get_reason_unknown)(self.raw(), self.solver());
            text(why)
        };
        Halt::Stopped(StopReason::Backend(format!("Z3 gave up: {why}")))
    }

    fn model(&self, questions: &[Term]) -> Result<Vec<bool>, Halt> {
        let (z3, raw) = (self.z3(), self.raw());
        // SAFETY: the model lives until its reference is given back; a value is read before the next call.
        unsafe {
            let model = (z3.solver_get_model)(raw, self.solver());
            let model = some(model, "model").map_err(Halt::Failed)?.as_ptr();
            (z3.model_inc_ref)(raw, model);
            let values = questions
                .iter()
                .map(|question| {
                    let mut value = question.0;
                    (z3.model_eval)(raw, model, question.0, true, &raw mut value)
                        && (z3.get_bool_value)(raw, value) == TRUE
                })
                .collect();
            (z3.model_dec_ref)(raw, model);
            Ok(values)
        }
    }

    fn core(&self, demands: &[Term]) -> Vec<usize> {
        let (z3, raw) = (self.z3(), self.raw());
        let mut failed: Vec<Term> = Vec::new();
        // SAFETY: the vector lives until its reference is given back; its members are among the demands, which are alive.
        unsafe {
            let core = (z3.solver_get_unsat_core)(raw, self.solver());
            if !core.is_null() {
                (z3.ast_vector_inc_ref)(raw, core);
                let size = (z3.ast_vector_size)(raw, core);
                failed.extend((0..size).map(|at| Term((z3.ast_vector_get)(raw, core, at))));
                (z3.ast_vector_dec_ref)(raw, core);
            }
        }
        failed.sort_unstable();
        (0..demands.len())
            .filter(|&at| failed.binary_search(&demands[at]).is_ok())
            .collect()
    }

    fn expect_no_error(&self) -> Result<(), Halt> {
        // SAFETY: Z3 returns a string of its own that lives until its next call.
        unsafe {
            let code = (self.z3().get_error_code)(self.raw());
            if code == 0 {
                return Ok(());
            }
            let what = text((self.z3().get_error_msg)(self.raw(), code));
            Err(Halt::Failed(format!("Z3: {what}")))
        }
    }

    /// Once for all that was sent: a check may rewrite what the solver holds, and then there are fewer.
    fn expect_all_assertions(&self) -> Result<(), Halt> {
        if self.n_held.get() == self.n_sent() {
            return Ok(());
        }
        let (z3, raw) = (self.z3(), self.raw());
        // SAFETY: the vector lives until its reference is given back.
        let n_held = unsafe {
            let held = (z3.solver_get_assertions)(raw, self.solver());
            let held = some(held, "list of assertions").map_err(Halt::Failed)?;
            (z3.ast_vector_inc_ref)(raw, held.as_ptr());
            let size = (z3.ast_vector_size)(raw, held.as_ptr()) as usize;
            (z3.ast_vector_dec_ref)(raw, held.as_ptr());
            size
        };
        if n_held == self.n_sent() {
            self.n_held.set(n_held);
            return Ok(());
        }
        Err(Halt::Failed(format!(
            "Z3 holds {n_held} assertions of {} that it was sent",
            self.n_sent()
        )))
    }

    /// Leaves what Z3 holds to the end of the process. Z3 gives it back node by node, which takes it seconds where there is
    /// much, and cannot be interrupted.
    pub fn abandon(self) {
        std::mem::forget(self);
    }

    /// Adds what Z3 counted since the session began.
    pub fn count(&self, stats: &mut DecideStats) {
        let (z3, raw) = (self.z3(), self.raw());
        // SAFETY: the statistics live until their reference is given back; a key is read before the next call.
        unsafe {
            let counted = (z3.solver_get_statistics)(raw, self.solver());
            if counted.is_null() {
                return;
            }
            (z3.stats_inc_ref)(raw, counted);
            for at in 0..(z3.stats_size)(raw, counted) {
                let key = text((z3.stats_get_key)(raw, counted, at));
                let value = if (z3.stats_is_uint)(raw, counted, at) {
                    f64::from((z3.stats_get_uint_value)(raw, counted, at))
                } else {
                    (z3.stats_get_double_value)(raw, counted, at)
                };
                match key.as_str() {
                    "conflicts" => stats.conflicts += value as u64,
                    "decisions" => stats.decisions += value as u64,
                    "propagations" | "binary propagations" => stats.propagations += value as u64,
                    _ => {}
                }
            }
            (z3.stats_dec_ref)(raw, counted);
        }
    }
}

impl Drop for Z3Session<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference was taken when the session began.
        unsafe { (self.z3().solver_dec_ref)(self.raw(), self.solver()) };
    }
}

/// A string of Z3's.
///
/// # Safety
///
/// It is null or closed by a zero.
unsafe fn text(string: *const c_char) -> String {
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
        let session = Z3Session::new(None, &[], &budget).expect("a solver");
        // Behind the session's back, Z3 gets a parameter that it does not know, and says nothing.
        session.set(&[("no_such_parameter", 1)]);
        session.assert(session.never()).expect("in time");
        let none = handles(&[]);
        // SAFETY: the session's own solver, and no assumptions.
        let unguarded = unsafe {
            (session.z3().solver_check_assumptions)(session.raw(), session.solver(), 0, none)
        };
        assert_eq!(unguarded, TRUE, "the trap is gone");
        match session.check(&[], &[], &budget) {
            Err(Halt::Failed(what)) => {
                assert_eq!(what, "Z3 holds 0 assertions of 1 that it was sent");
            }
            found => panic!("{found:?}"),
        }
    }
}
