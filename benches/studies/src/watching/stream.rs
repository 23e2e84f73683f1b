//! Writes a valid log of any length, as fast as a pipe takes it.
//!
//! Sessions run in virtual time, one transaction after the other. Without snapshots a transaction happens at one moment between its
//! begin and its commit. With timestamps it reads at its start, and leaves out writes of keys that another one wrote meanwhile.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kingsnake_context::rng::Rng;

/// What is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamShape {
    pub(super) txns: u64,
    pub(super) keys: usize,
    pub(super) sessions: usize,
    /// Half are reads, half are blind writes.
    pub(super) ops: usize,
    pub(super) has_stamps: bool,
    /// Every n-th transaction of a session is a fence.
    pub(super) fence_every: Option<u64>,
    /// Transactions per second of real time; unlimited by default.
    pub(super) per_second: Option<u64>,
}

#[derive(Default)]
struct Running {
    id: u64,
    begin: u64,
    commit: u64,
    n_done: u64,
    ops: String,
    writes: Vec<usize>,
}

#[derive(Clone, Copy, Default)]
struct StreamVersion {
    value: u64,
    commit: u64,
}

/// In this order at equal times: what starts when another one commits sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    Ends,
    Begins,
    Happens,
}

struct Stream<'a> {
    shape: &'a StreamShape,
    rng: Rng,
    versions: Vec<StreamVersion>,
    sessions: Vec<Running>,
    events: BinaryHeap<Reverse<(u64, Moment, usize)>>,
    n_begun: u64,
    n_values: u64,
}

/// Writes the log; `written` counts its transactions.
pub(super) fn stream(
    shape: &StreamShape,
    out: &mut impl Write,
    written: &AtomicU64,
) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 18, out);
    let mut stream = Stream {
        shape,
        rng: Rng::new(7),
        versions: vec![StreamVersion::default(); shape.keys + 1],
        sessions: (0..shape.sessions).map(|_| Running::default()).collect(),
        events: (0..shape.sessions)
            .map(|at| Reverse((1 + at as u64, Moment::Begins, at)))
            .collect(),
        n_begun: 0,
        n_values: 0,
    };
    writeln!(
        out,
        "{{\"kingsnake\":1,\"initial\":0,\"sessions\":{}}}",
        shape.sessions
    )?;
    let start = Instant::now();
    while let Some(Reverse((time, moment, at))) = stream.events.pop() {
        match moment {
            Moment::Begins => stream.begin(time, at),
            Moment::Happens => stream.act(at),
            Moment::Ends => {
                stream.end(time, at, &mut out)?;
                let n_written = written.fetch_add(1, Ordering::Relaxed) + 1;
                if let Some(rate) = shape.per_second
                    && n_written.is_multiple_of(64)
                {
                    out.flush()?;
                    let due = Duration::from_secs_f64(n_written as f64 / rate as f64);
                    std::thread::sleep(due.saturating_sub(start.elapsed()));
                }
            }
        }
    }
    out.flush()
}

impl Stream<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound as usize) as u64
    }

    fn begin(&mut self, time: u64, at: usize) {
        if self.n_begun == self.shape.txns {
            return;
        }
        self.n_begun += 1;
        let commit = time + 4_000 + self.below(40_000);
        let happens = if self.shape.has_stamps {
            time
        } else {
            time + 1 + self.below(commit - time - 1)
        };
        let it = &mut self.sessions[at];
        (it.id, it.begin, it.commit) = (self.n_begun, time, commit);
        self.events.push(Reverse((happens, Moment::Happens, at)));
        self.events.push(Reverse((commit, Moment::Ends, at)));
    }

    /// The transaction's reads, and without timestamps its writes.
    fn act(&mut self, at: usize) {
        let fence = self.shape.keys;
        let every = self.shape.fence_every;
        if every.is_some_and(|every| self.sessions[at].n_done.is_multiple_of(every)) {
            let value = self.versions[fence].value;
            let it = &mut self.sessions[at];
            let _ = write!(it.ops, "[\"r\",{fence},{value}],");
            it.writes.push(fence);
        } else {
            for op in 0..self.shape.ops {
                let key = self.rng.below(self.shape.keys);
                let it = &mut self.sessions[at];
                if it.writes.contains(&key) {
                    continue;
                }
                if op % 2 == 0 {
                    let _ = write!(it.ops, "[\"r\",{key},{}],", self.versions[key].value);
                } else {
                    it.writes.push(key);
                }
            }
        }
        if !self.shape.has_stamps {
            self.install(at, 0);
        }
    }

    fn install(&mut self, at: usize, commit: u64) {
        let it = &mut self.sessions[at];
        for key in it.writes.drain(..) {
            if self.versions[key].commit > it.begin {
                continue;
            }
            self.n_values += 1;
            let value = self.n_values;
            self.versions[key] = StreamVersion { value, commit };
            let _ = write!(it.ops, "[\"w\",{key},{value}],");
        }
    }

    fn end(&mut self, time: u64, at: usize, out: &mut impl Write) -> io::Result<()> {
        if self.shape.has_stamps {
            self.install(at, time);
        }
        let names = if self.shape.has_stamps {
            ["start_ts", "commit_ts"]
        } else {
            ["begin", "commit"]
        };
        let it = &mut self.sessions[at];
        writeln!(
            out,
            "{{\"id\":{},\"session\":{at},\"{}\":{},\"{}\":{time},\"ops\":[{}]}}",
            it.id,
            names[0],
            it.begin,
            names[1],
            it.ops.trim_end_matches(',')
        )?;
        it.ops.clear();
        it.n_done += 1;
        let next = time + 1 + self.below(2_000);
        self.events.push(Reverse((next, Moment::Begins, at)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transaction_is_written_and_sessions_go_on_in_order() {
        let shape = StreamShape {
            txns: 500,
            keys: 30,
            sessions: 4,
            ops: 8,
            has_stamps: false,
            fence_every: Some(5),
            per_second: None,
        };
        let mut out = Vec::new();
        let written = AtomicU64::new(0);
        stream(&shape, &mut out, &written).unwrap();
        assert_eq!(written.into_inner(), 500);
        let text = String::from_utf8(out).unwrap();
        let mut last = [0; 4];
        let mut n_fences = 0;
        for line in text.lines().skip(1) {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let session = line["session"].as_u64().unwrap() as usize;
            assert!(last[session] < line["begin"].as_u64().unwrap());
            last[session] = line["commit"].as_u64().unwrap();
            n_fences += usize::from(line["ops"][0][1] == 30);
        }
        assert!((90..=110).contains(&n_fences), "{n_fences}");
    }
}
