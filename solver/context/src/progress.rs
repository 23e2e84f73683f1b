//! The progress that a check reports while it runs. Libraries never print; the caller does.

/// The phases of a check, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Bytes become a history.
    Parse,
    /// Reads find their writers.
    Resolve,
    /// The polygraph is built.
    Construct,
    /// Reachability decides constraints.
    Prune,
    /// A solver decides the rest.
    Decide,
    /// The answer is checked again.
    Certify,
    /// A violation is described in words.
    Explain,
}

impl Phase {
    /// The name, as reported.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Parse => "parse",
            Phase::Resolve => "resolve",
            Phase::Construct => "construct",
            Phase::Prune => "prune",
            Phase::Decide => "decide",
            Phase::Certify => "certify",
            Phase::Explain => "explain",
        }
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ProgressEvent {
    /// One of several levels is checked, by this name; the following events belong to it.
    Asking(&'static str),
    /// A level of several has its answer.
    Answered {
        /// The level's name.
        level: &'static str,
        /// `satisfied`, `violated` or `unknown`.
        verdict: &'static str,
    },
    /// A phase begins.
    Phase(Phase),
    /// A pruning round ended.
    Round {
        /// Counted from 1.
        round: usize,
        /// Edges that became known.
        new_edges: usize,
        /// Constraints still open.
        open: usize,
    },
    /// The back end is at work.
    Deciding {
        /// Conflicts so far.
        conflicts: u64,
        /// Variables decided, of all.
        settled: usize,
        /// Variables.
        variables: usize,
    },
}

/// A listener. Called from the thread that checks.
pub trait Progress {
    /// Takes note of an event.
    fn event(&mut self, event: ProgressEvent);
}

/// Ignores every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&mut self, _: ProgressEvent) {}
}
