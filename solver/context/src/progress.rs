//! What a check tells about itself while it runs. Libraries never print; the caller draws.

/// The phases of the straight line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Bytes become a history.
    Parse,
    /// Reads find their writers.
    Resolve,
    /// The polygraph is built.
    Construct,
    /// Reachability settles constraints.
    Prune,
    /// A solver settles the rest.
    Decide,
    /// The answer is checked again.
    Certify,
    /// A violation is put into words.
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

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgressEvent {
    /// One of several levels is asked, by this name; the following events are of it.
    Asking(&'static str),
    /// A level of several has its answer.
    Answered {
        /// The level's name.
        level: &'static str,
        /// `satisfied`, `violated` or `unknown`.
        verdict: &'static str,
    },
    /// A phase began.
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

/// Somebody who listens. Called from the thread that checks.
pub trait Progress {
    /// Takes note of an event.
    fn event(&mut self, event: ProgressEvent);
}

/// Nobody listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn event(&mut self, _: ProgressEvent) {}
}
