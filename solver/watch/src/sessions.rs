//! The announcements of each session about its further transactions, and the watermark that follows.
//!
//! A session runs one transaction after the other, so its next begin is not below its last commit; a heartbeat
//! announces a later bound while it is idle. Breaking an announcement is an error that names the session: nothing
//! settled is judged again.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::arrival::{Horizon, KeyNumber};

/// A line that contradicts an announcement. Sessions are numbers of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BrokenPromise {
    /// A transaction begins too early.
    #[error("begins at {begin}, and nothing was to begin before {promised} any more")]
    Early {
        /// Its begin.
        begin: i64,
        /// The announcement of the session, or of all.
        promised: i64,
    },
    /// A transaction without a begin, at a level that needs the clock.
    #[error("has a transaction without a begin time")]
    Timeless,
    /// A session goes on after it was closed.
    #[error("goes on after it was closed")]
    Closed,
    /// More sessions than were announced.
    #[error("was not announced, and all sessions that were have been heard of")]
    Unannounced,
    /// A session that appears while it runs does not begin with a fence.
    #[error("appears without a fence: its first transaction must read and write the fence's key")]
    Fenceless,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SessionPromise {
    next: i64,
    is_live: bool,
    /// Whether it must begin with a fence and has not yet: it appeared after something was judged.
    owes_fence: bool,
}

/// The sessions of a stream, by the caller's numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sessions {
    of: Vec<Option<SessionPromise>>,
    n_heard: usize,
    /// The total number, if known.
    announced: Option<usize>,
    has_time: bool,
    fence: Option<KeyNumber>,
    /// What holds for every session.
    everyone: i64,
    /// The greatest watermark returned.
    used: i64,
    /// Whether anything was judged.
    is_used: bool,
    is_ended: bool,
}

impl Sessions {
    /// Nothing was heard. `announced` is how many sessions there will be; `has_time` is whether begins order them.
    pub fn new(announced: Option<usize>, has_time: bool, fence: Option<KeyNumber>) -> Self {
        Sessions {
            of: Vec::new(),
            n_heard: 0,
            announced,
            has_time,
            fence,
            everyone: i64::MIN,
            used: i64::MIN,
            is_used: false,
            is_ended: false,
        }
    }

    /// Number of sessions to come.
    pub fn announce(&mut self, n_sessions: usize) {
        self.announced = Some(self.announced.map_or(n_sessions, |it| it.max(n_sessions)));
    }

    fn get(&self, session: u32) -> Option<SessionPromise> {
        self.of.get(session as usize).copied().flatten()
    }

    fn set(&mut self, session: u32, promise: SessionPromise) {
        let at = session as usize;
        if self.of.len() <= at {
            self.of.resize(at + 1, None);
        }
        self.n_heard += usize::from(self.of[at].is_none());
        self.of[at] = Some(promise);
    }

    /// A session that is new, or opened again, begins nothing before this time.
    pub fn open(&mut self, session: u32, time: i64) -> Result<(), BrokenPromise> {
        let before = self.get(session);
        if before.is_none() {
            self.expect_welcome()?;
        } else if before.is_some_and(|it| !it.is_live) && !self.has_time {
            return Err(BrokenPromise::Closed);
        }
        let least = self.used.max(before.map_or(i64::MIN, |it| it.next));
        if self.has_time && time != i64::MIN && time < least {
            return Err(BrokenPromise::Early {
                begin: time,
                promised: least,
            });
        }
        self.set(
            session,
            SessionPromise {
                next: time.max(least),
                is_live: true,
                owes_fence: before.map_or(self.is_used && self.needs_fence(), |it| it.owes_fence),
            },
        );
        Ok(())
    }

    /// Whether a session that appears now must begin with a fence: only the chain of fences waits for it.
    fn needs_fence(&self) -> bool {
        let is_awaited = self.announced.is_some_and(|it| self.n_heard < it);
        self.fence.is_some() && !self.has_time && !is_awaited
    }

    /// Whether one more session may appear.
    fn expect_welcome(&self) -> Result<(), BrokenPromise> {
        let is_full = self.announced.is_some_and(|it| self.n_heard >= it);
        if is_full && !self.has_time && self.fence.is_none() {
            return Err(BrokenPromise::Unannounced);
        }
        Ok(())
    }

    /// The session, or every session, begins nothing before this time.
    pub fn promise(&mut self, session: Option<u32>, time: i64) -> Result<(), BrokenPromise> {
        let Some(session) = session else {
            self.everyone = self.everyone.max(time);
            return Ok(());
        };
        match self.get(session) {
            None => self.open(session, time.max(self.used)),
            Some(it) if !it.is_live => Err(BrokenPromise::Closed),
            Some(it) => {
                self.set(
                    session,
                    SessionPromise {
                        next: it.next.max(time),
                        ..it
                    },
                );
                Ok(())
            }
        }
    }

    /// A transaction begins, with the begin and commit that were recorded; says whether it may.
    pub fn deliver(
        &mut self,
        session: u32,
        begin: i64,
        commit: Option<i64>,
    ) -> Result<(), BrokenPromise> {
        let known = self.get(session);
        if known.is_none() {
            self.expect_welcome()?;
        }
        if known.is_some_and(|it| !it.is_live) {
            return Err(BrokenPromise::Closed);
        }
        let promised = known.map_or(self.used, |it| it.next).max(self.everyone);
        if self.has_time && begin == i64::MIN {
            return Err(BrokenPromise::Timeless);
        }
        if self.has_time && begin < promised {
            return Err(BrokenPromise::Early { begin, promised });
        }
        self.set(
            session,
            SessionPromise {
                next: begin.max(commit.unwrap_or(i64::MIN)).max(promised),
                is_live: true,
                owes_fence: known.map_or(self.needs_fence(), |it| it.owes_fence),
            },
        );
        Ok(())
    }

    /// A transaction of the session may have taken effect; `is_fence` tells whether it committed and is a fence. An
    /// aborted one is not reported, and admits no other session.
    pub fn count(&mut self, session: u32, is_fence: bool) -> Result<(), BrokenPromise> {
        let Some(promise) = self.get(session) else {
            return Ok(());
        };
        if promise.owes_fence && !is_fence {
            return Err(BrokenPromise::Fenceless);
        }
        let owes_fence = false;
        self.set(
            session,
            SessionPromise {
                owes_fence,
                ..promise
            },
        );
        Ok(())
    }

    /// The session delivers nothing any more.
    pub fn close(&mut self, session: u32) {
        let before = self.get(session);
        self.set(
            session,
            SessionPromise {
                next: before.map_or(i64::MIN, |it| it.next),
                is_live: false,
                owes_fence: before.is_some_and(|it| it.owes_fence),
            },
        );
    }

    /// Whether nothing says which sessions there are, so that one may appear which should have been waited for.
    pub fn is_unannounced(&self) -> bool {
        self.has_time && self.announced.is_none() && !self.is_ended
    }

    /// Nothing arrives any more.
    pub fn end(&mut self) {
        self.is_ended = true;
    }

    /// Whether every announced session appeared, and all are closed.
    pub fn is_done(&self) -> bool {
        self.announced
            .is_some_and(|it| it > 0 && self.n_heard >= it)
            && self.n_live() == 0
    }

    /// Sessions that can still deliver.
    pub fn n_live(&self) -> usize {
        self.of.iter().flatten().filter(|it| it.is_live).count()
    }

    /// The least begin that can still arrive; `i64::MIN` while announced sessions have not appeared.
    pub fn watermark(&self) -> i64 {
        let is_missing = self.announced.is_some_and(|it| self.n_heard < it);
        let live = self.of.iter().flatten().filter(|it| it.is_live);
        let least = live.map(|it| it.next).min();
        match least {
            _ if self.is_ended => i64::MAX,
            Some(least) if !is_missing => least.max(self.everyone),
            // New sessions begin at what is used already.
            None if !is_missing => self.used.max(self.everyone),
            _ => self.everyone,
        }
    }

    /// What can still arrive.
    pub fn horizon(&mut self) -> Horizon {
        if self.is_ended {
            return Horizon::closed();
        }
        let watermark = self.watermark();
        self.used = self.used.max(watermark);
        self.is_used = true;
        let numbered = self.of.iter().enumerate();
        let is_live = |it: &Option<SessionPromise>| it.is_some_and(|it| it.is_live);
        let mut live: Vec<u32> = numbered
            .filter(|(_, it)| is_live(it))
            .map(|(at, _)| at as u32)
            .collect();
        // A session that was announced and has not appeared holds everything back, as one that delivered nothing does.
        if self.announced.is_some_and(|it| self.n_heard < it) {
            live.push(u32::MAX);
        }
        let is_full = self.announced.is_some_and(|it| self.n_heard >= it);
        Horizon {
            watermark,
            live,
            fence: self.fence,
            is_open: !is_full || self.has_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_live_session_holds_the_watermark() {
        let mut sessions = Sessions::new(None, true, None);
        assert!(sessions.deliver(0, 5, Some(9)).is_ok());
        assert!(sessions.deliver(1, 6, Some(7)).is_ok());
        assert_eq!(sessions.horizon().watermark, 7);
        assert!(sessions.promise(Some(1), 20).is_ok());
        assert_eq!(sessions.watermark(), 9);
        sessions.close(0);
        assert_eq!(sessions.watermark(), 20);
    }

    #[test]
    fn broken_promises_are_named() {
        let mut sessions = Sessions::new(Some(2), true, None);
        assert!(sessions.deliver(0, 5, Some(9)).is_ok());
        assert_eq!(sessions.horizon().watermark, i64::MIN);
        assert!(sessions.deliver(1, 6, None).is_ok());
        assert_eq!(sessions.horizon().watermark, 6);
        let early = BrokenPromise::Early {
            begin: 8,
            promised: 9,
        };
        assert_eq!(sessions.deliver(0, 8, None), Err(early));
        let late = BrokenPromise::Early {
            begin: 3,
            promised: 6,
        };
        assert_eq!(sessions.deliver(2, 3, None), Err(late));
        let timeless = sessions.deliver(0, i64::MIN, None);
        assert_eq!(timeless, Err(BrokenPromise::Timeless));
        sessions.close(0);
        assert_eq!(sessions.deliver(0, 30, None), Err(BrokenPromise::Closed));
    }

    #[test]
    fn without_a_clock_sessions_are_announced_or_fenced() {
        let mut sessions = Sessions::new(Some(1), false, None);
        assert!(sessions.deliver(0, i64::MIN, None).is_ok());
        assert!(!sessions.horizon().is_open);
        let unannounced = sessions.deliver(1, i64::MIN, None);
        assert_eq!(unannounced, Err(BrokenPromise::Unannounced));
        let mut sessions = Sessions::new(None, false, Some(7));
        assert!(sessions.deliver(0, i64::MIN, None).is_ok());
        assert_eq!(sessions.count(0, false), Err(BrokenPromise::Fenceless));
        assert_eq!(sessions.count(0, true), Ok(()));
        assert_eq!(sessions.count(0, false), Ok(()));
    }

    /// An aborted fence stands in no chain, and `open` alone comes too late once something was judged.
    #[test]
    fn a_session_that_appears_later_owes_a_fence_that_committed() {
        let mut sessions = Sessions::new(Some(1), false, Some(7));
        assert!(sessions.deliver(0, i64::MIN, None).is_ok());
        // All that were announced are waited for.
        assert_eq!(sessions.count(0, false), Ok(()));
        let _ = sessions.horizon();
        assert!(sessions.open(1, i64::MIN).is_ok());
        assert!(sessions.deliver(1, i64::MIN, None).is_ok());
        // The first one aborted, so nothing was counted; the next is no fence.
        assert!(sessions.deliver(1, i64::MIN, None).is_ok());
        assert_eq!(sessions.count(1, false), Err(BrokenPromise::Fenceless));
    }
}
