//! Records the closure: which kernels run over which levels, blocks and bands.

use crate::kernel::Kernel;
use crate::layout::{ClosureParams, THREADS};
use crate::matrix::{Band, Cut};
use crate::recording::{BufferId, Limits, Load, Recording};
use crate::round::Round;

/// A level with this many times more nodes than a workgroup holds at once gets its own dispatch.
const WIDE: u32 = 16;

/// Which kernels compute the closure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Chosen from the levels.
    #[default]
    Auto,
    /// One workgroup a strip passes through all levels.
    Sweep,
    /// Each level is a dispatch.
    Levels,
}

/// A round's graph on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphBuffers {
    pub(crate) strips: BufferId,
    pub(crate) steps: BufferId,
    pub(crate) starts: BufferId,
    pub(crate) targets: BufferId,
    pub(crate) ends: BufferId,
}

/// The inputs of the recording.
pub(crate) struct Closing<'a> {
    pub(crate) graph: GraphBuffers,
    pub(crate) cut: &'a Cut,
    pub(crate) bands: &'a [Band],
    pub(crate) round: &'a Round,
    pub(crate) limits: Limits,
}

/// Which kernels were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) sweep: bool,
    pub(crate) levels: bool,
}

impl Used {
    pub(crate) fn add(&mut self, other: Used) {
        self.sweep |= other.sweep;
        self.levels |= other.levels;
    }

    /// The names, as reported.
    pub(crate) fn words(self) -> String {
        let named = [(self.sweep, "sweep"), (self.levels, "levels")];
        let names: Vec<&str> = named.iter().filter(|it| it.0).map(|it| it.1).collect();
        names.join(" and ")
    }
}

impl Closing<'_> {
    /// Records the kernels of the chosen form.
    pub(crate) fn record(&self, recording: &mut Recording, form: Form) -> Used {
        let mut used = Used::default();
        for band in self.bands {
            used.add(self.band(recording, band, form));
        }
        used
    }

    fn is_wide(&self, level: usize, form: Form) -> bool {
        match form {
            Form::Sweep => false,
            Form::Levels => true,
            Form::Auto => self.round.level(level).len() as u32 > WIDE * self.cut.lanes(),
        }
    }

    /// Strips do not depend on each other, so a band passes through all levels before the next.
    fn band(&self, recording: &mut Recording, band: &Band, form: Form) -> Used {
        let mut used = Used::default();
        let n_levels = self.round.n_levels();
        let mut level = 0;
        while level < n_levels {
            if self.is_wide(level, form) {
                self.level(recording, band, level);
                used.levels = true;
                level += 1;
                continue;
            }
            let first = level;
            let mut load = Load::default();
            while level < n_levels && !self.is_wide(level, form) {
                let more = self.load(band, level);
                if level > first && load.work + more.work > self.limits.work {
                    break;
                }
                load.work += more.work;
                load.busy += more.busy;
                load.turns += more.turns;
                level += 1;
            }
            let params = ClosureParams {
                shape: band.shape,
                first_step: self.round.level(first).start,
                first: first as u32,
                end: level as u32,
                unused: 0,
            };
            let groups = [1, band.shape.n_strips];
            recording.dispatch(Kernel::Sweep, params, &self.buffers(band), groups, load);
            used.sweep = true;
        }
        used
    }

    fn buffers(&self, band: &Band) -> [BufferId; 6] {
        let graph = &self.graph;
        [
            band.buffer,
            graph.strips,
            graph.steps,
            graph.starts,
            graph.targets,
            graph.ends,
        ]
    }

    /// The work of a level for workgroups with a strip each. A strip without a row of the level does nothing.
    fn load(&self, band: &Band, level: usize) -> Load {
        let words = u64::from(self.cut.strip_words());
        let mut load = Load {
            work: self.round.rows_of(level) * band.row_words(),
            ..Load::default()
        };
        for &limit in &self.cut.limits[band.strips()] {
            let rows = self.round.n_below(self.round.level(level), limit);
            load.busy += u64::from(rows) * words;
            load.turns += self.rows_in_hand(rows) * words;
        }
        load
    }

    /// Number of rows that fit into a workgroup together with the computed ones.
    fn rows_in_hand(&self, n_rows: u32) -> u64 {
        u64::from(n_rows.next_multiple_of(self.cut.lanes()))
    }

    fn level(&self, recording: &mut Recording, band: &Band, level: usize) {
        let range = self.round.level(level);
        let lanes = self.cut.lanes();
        let work = self.round.rows_of(level) * band.row_words();
        let n_groups = (range.len() as u32).div_ceil(lanes);
        let parts = (work / self.limits.work + 1) as u32;
        let most = n_groups.div_ceil(parts).clamp(1, self.limits.groups);
        let words = u64::from(self.cut.strip_words());
        for start in range.clone().step_by((most * lanes) as usize) {
            let end = range.end.min(start + most * lanes);
            let params = ClosureParams {
                shape: band.shape,
                first_step: start,
                first: start,
                end,
                unused: 0,
            };
            let groups = [(end - start).div_ceil(lanes), band.shape.n_strips];
            let limits = self.cut.limits[band.strips()].iter();
            let rows = limits.map(|&limit| u64::from(self.round.n_below(start..end, limit)));
            let load = Load {
                work: work * u64::from(end - start) / range.len() as u64,
                busy: rows.sum::<u64>() * words,
                turns: self.rows_in_hand(end - start) * band.row_words(),
            };
            let buffers = &self.buffers(band)[..5];
            recording.dispatch(Kernel::Level, params, buffers, groups, load);
        }
    }
}

/// The work of a dispatch with one thread per item.
pub(crate) fn a_thread_each(n_items: u32) -> Load {
    Load {
        work: n_items.into(),
        busy: n_items.into(),
        turns: n_items.next_multiple_of(THREADS).into(),
    }
}
