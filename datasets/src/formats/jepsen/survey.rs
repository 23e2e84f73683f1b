//! Properties of all events of a log together, which determine how to read each: found in one pass, one thread per part.

use rayon::prelude::*;

use super::events::{Action, ClientEvent, Content, EventKind, Events, MicroOp, Part, Stamp};

/// Where real time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogClock {
    None,
    Time,
    Index,
    Order,
}

/// What a log, or a part of it, has.
#[allow(clippy::struct_excessive_bools)] // Each is a fact of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Survey {
    has_invocations: bool,
    /// Whether every event has an `:index`.
    pub(super) has_index: bool,
    has_time: bool,
    first_time: Option<Stamp>,
    /// Whether two events differ in their `:time`.
    time_runs: bool,
    /// Whether something is appended, or a list is read.
    pub(super) has_lists: bool,
    pub(super) n_writes: usize,
    pub(super) n_steps: usize,
}

impl Survey {
    const NOTHING: Survey = Survey {
        has_invocations: false,
        has_index: true,
        has_time: true,
        first_time: None,
        time_runs: false,
        has_lists: false,
        n_writes: 0,
        n_steps: 0,
    };

    /// Looks at every event and every step.
    pub(super) fn of(events: &Events) -> Self {
        let parts: Vec<Survey> = if events.parts.len() == 1 {
            vec![Survey::of_part(&events.parts[0])]
        } else {
            events.parts.par_iter().map(Survey::of_part).collect()
        };
        parts.into_iter().fold(Survey::NOTHING, Survey::join)
    }

    fn of_part(part: &Part) -> Self {
        let mut survey = Survey::NOTHING;
        for event in &part.all {
            survey.take_event(event);
        }
        for step in &part.steps {
            survey.take_step(step);
        }
        survey
    }

    fn take_event(&mut self, event: &ClientEvent) {
        self.has_invocations |= event.kind == EventKind::Invoke;
        self.has_index &= event.index.get().is_some();
        self.has_time &= event.time.get().is_some();
        self.time_runs |= *self.first_time.get_or_insert(event.time) != event.time;
    }

    fn take_step(&mut self, step: &MicroOp) {
        let is_list = step.action == Action::Read && matches!(step.content, Content::List(..));
        self.has_lists |= step.action == Action::Append || is_list;
        self.n_writes += usize::from(!step.action.is_read());
        self.n_steps += 1;
    }

    /// Of two parts, the first and the one behind it.
    fn join(self, other: Survey) -> Survey {
        let differ = matches!((self.first_time, other.first_time), (Some(a), Some(b)) if a != b);
        Survey {
            has_invocations: self.has_invocations || other.has_invocations,
            has_index: self.has_index && other.has_index,
            has_time: self.has_time && other.has_time,
            first_time: self.first_time.or(other.first_time),
            time_runs: self.time_runs || other.time_runs || differ,
            has_lists: self.has_lists || other.has_lists,
            n_writes: self.n_writes + other.n_writes,
            n_steps: self.n_steps + other.n_steps,
        }
    }

    /// Invocations give real time: by `:time` where it runs, else by `:index`, else by their order in the file.
    pub(super) fn clock(&self) -> LogClock {
        if !self.has_invocations {
            LogClock::None
        } else if self.has_time && self.time_runs {
            LogClock::Time
        } else if self.has_index {
            LogClock::Index
        } else {
            LogClock::Order
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(times: &[i64]) -> Survey {
        let mut survey = Survey::NOTHING;
        for &time in times {
            survey.take_event(&ClientEvent {
                kind: EventKind::Invoke,
                process: Some(0),
                time: Stamp::new(Some(time)),
                index: Stamp::new(None),
                number: 0,
                at: 0,
                has_steps: false,
                steps: (0, 0),
                skipped: None,
            });
        }
        survey
    }

    #[test]
    fn times_that_differ_only_between_parts_run() {
        let clock = |parts: &[&[i64]]| {
            let parts = parts.iter().map(|times| part(times));
            parts.fold(Survey::NOTHING, Survey::join).clock()
        };
        assert_eq!(clock(&[&[3, 3], &[], &[3]]), LogClock::Order);
        assert_eq!(clock(&[&[3, 3], &[], &[4]]), LogClock::Time);
        assert_eq!(clock(&[&[], &[3, 4]]), LogClock::Time);
        assert_eq!(clock(&[&[]]), LogClock::None);
    }
}
