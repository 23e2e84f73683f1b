//! Records the closure: which kernels run over which levels, blocks and bands.

use crate::kernel::Kernel;
use crate::layout::{BLOCK, ClosureParams, THREADS, WarshallParams};
use crate::matrix::{Band, Cut};
use crate::recording::{BufferId, Limits, Load, Recording};
use crate::steps::Steps;

/// A level with this many times more nodes than a workgroup holds at once is worth a dispatch of its own.
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
    /// Blocks of 128 nodes; cycles are allowed.
    Warshall,
}

/// The known graph on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphBuffers {
    pub(crate) starts: BufferId,
    pub(crate) targets: BufferId,
    pub(crate) extras: BufferId,
    pub(crate) steps: BufferId,
    pub(crate) ends: BufferId,
    pub(crate) through: BufferId,
}

/// What a closure is recorded from.
pub(crate) struct Closing<'a> {
    pub(crate) graph: GraphBuffers,
    pub(crate) cut: &'a Cut,
    pub(crate) bands: &'a [Band],
    pub(crate) steps: &'a Steps,
    /// How many rows each level's nodes absorb, themselves included.
    pub(crate) rows: &'a [u64],
    pub(crate) limits: Limits,
}

/// Which kernels were recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) sweep: bool,
    pub(crate) levels: bool,
    pub(crate) warshall: bool,
}

impl Used {
    pub(crate) fn add(&mut self, other: Used) {
        self.sweep |= other.sweep;
        self.levels |= other.levels;
        self.warshall |= other.warshall;
    }

    /// The names, as reported.
    pub(crate) fn words(self) -> String {
        let named = [
            (self.sweep, "sweep"),
            (self.levels, "levels"),
            (self.warshall, "warshall"),
        ];
        let names: Vec<&str> = named.iter().filter(|it| it.0).map(|it| it.1).collect();
        names.join(" and ")
    }
}

impl Closing<'_> {
    /// Records the kernels of a form that was settled.
    pub(crate) fn record(&self, recording: &mut Recording, form: Form) -> Used {
        if form == Form::Warshall {
            self.warshall(recording);
            return Used {
                warshall: true,
                ..Used::default()
            };
        }
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
            _ => self.steps.level(level).len() as u32 > WIDE * self.cut.lanes(),
        }
    }

    /// Strips do not depend on each other, so a band passes through all levels before the next.
    fn band(&self, recording: &mut Recording, band: &Band, form: Form) -> Used {
        let mut used = Used::default();
        let n_levels = self.steps.ends.len();
        let mut level = 0;
        while level < n_levels {
            if self.is_wide(level, form) {
                self.level(recording, band, level);
                used.levels = true;
                level += 1;
                continue;
            }
            let first = level;
            let mut work = 0;
            let mut rows = 0;
            while level < n_levels && !self.is_wide(level, form) {
                let more = self.rows[level] * band.row_words();
                if level > first && work + more > self.limits.work {
                    break;
                }
                work += more;
                rows += self.rows_in_hand(self.steps.level(level).len() as u32);
                level += 1;
            }
            let first_step = self.steps.level(first).start;
            let done = u64::from(self.steps.ends[level - 1] - first_step);
            let load = Load {
                work,
                busy: done * band.row_words(),
                turns: rows * band.row_words(),
            };
            let params = ClosureParams {
                shape: band.shape,
                first_step,
                first: first as u32,
                end: level as u32,
                unused: 0,
            };
            let graph = &self.graph;
            let buffers = [
                band.buffer,
                graph.starts,
                graph.targets,
                graph.extras,
                graph.steps,
                graph.ends,
            ];
            let groups = [1, band.shape.n_strips];
            recording.dispatch(Kernel::Sweep, params, &buffers, groups, load);
            used.sweep = true;
        }
        used
    }

    /// The rows that a workgroup has room for while it computes so many.
    fn rows_in_hand(&self, n_rows: u32) -> u64 {
        u64::from(n_rows.next_multiple_of(self.cut.lanes()))
    }

    fn level(&self, recording: &mut Recording, band: &Band, level: usize) {
        let range = self.steps.level(level);
        let lanes = self.cut.lanes();
        let work = self.rows[level] * band.row_words();
        let n_groups = (range.len() as u32).div_ceil(lanes);
        let parts = (work / self.limits.work + 1) as u32;
        let most = n_groups.div_ceil(parts).clamp(1, self.limits.groups);
        let graph = &self.graph;
        let buffers = [
            band.buffer,
            graph.starts,
            graph.targets,
            graph.extras,
            graph.steps,
        ];
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
            let rows = u64::from(end - start);
            let load = Load {
                work: work * rows / range.len() as u64,
                busy: rows * band.row_words(),
                turns: self.rows_in_hand(end - start) * band.row_words(),
            };
            recording.dispatch(Kernel::Level, params, &buffers, groups, load);
        }
    }

    fn warshall(&self, recording: &mut Recording) {
        let n_rows = self.cut.n_rows;
        for band in self.bands {
            self.seed(recording, band);
        }
        for first in (0..n_rows).step_by(BLOCK as usize) {
            let end = n_rows.min(first + BLOCK);
            let params = |band: &Band| WarshallParams {
                shape: band.shape,
                first,
                end,
                first_row: 0,
                unused: 0,
            };
            let strip = (first / 32) >> self.cut.strip_shift;
            let own = &self.bands[(strip / self.cut.strips_a_band) as usize];
            let through = self.graph.through;
            let rows = n_rows.div_ceil(THREADS);
            let both = [own.buffer, through];
            let column = Load {
                work: u64::from(n_rows) * 4,
                ..a_thread_each(n_rows)
            };
            recording.dispatch(Kernel::Column, params(own), &both, [rows, 1], column);
            let in_block = u64::from(end - first);
            let pivot = Load {
                work: 0,
                busy: in_block,
                turns: BLOCK.into(),
            };
            recording.dispatch(Kernel::Pivot, params(own), &[through], [1, 1], pivot);
            for band in self.bands {
                let both = [band.buffer, through];
                let strips = band.shape.n_strips;
                let turns = u64::from(BLOCK) * band.row_words();
                let panel = Load {
                    work: turns,
                    busy: in_block * band.row_words(),
                    turns,
                };
                recording.dispatch(Kernel::Panel, params(band), &both, [1, strips], panel);
            }
            for band in self.bands {
                self.rest(recording, band, params(band));
            }
        }
    }

    fn seed(&self, recording: &mut Recording, band: &Band) {
        let graph = &self.graph;
        let buffers = [
            band.buffer,
            graph.starts,
            graph.targets,
            graph.extras,
            graph.steps,
        ];
        let n_steps = self.steps.nodes.len() as u32;
        let most = self.limits.groups.saturating_mul(THREADS);
        for first in (0..n_steps).step_by(most as usize) {
            let end = n_steps.min(first.saturating_add(most));
            let params = WarshallParams {
                shape: band.shape,
                first,
                end,
                first_row: 0,
                unused: 0,
            };
            let groups = [(end - first).div_ceil(THREADS), 1];
            let load = Load {
                work: self.rows.iter().sum(),
                ..a_thread_each(end - first)
            };
            recording.dispatch(Kernel::Seed, params, &buffers, groups, load);
        }
    }

    /// Every row may absorb all rows of the block: its work is bounded by that, and split by rows.
    fn rest(&self, recording: &mut Recording, band: &Band, mut params: WarshallParams) {
        let n_rows = self.cut.n_rows;
        let a_row = band.row_words() * u64::from(BLOCK);
        let most = (self.limits.work / a_row / u64::from(THREADS))
            .clamp(1, u64::from(self.limits.groups)) as u32;
        for first_row in (0..n_rows).step_by((most * THREADS) as usize) {
            let rows = (n_rows - first_row).min(most * THREADS);
            params.first_row = first_row;
            let groups = [rows.div_ceil(THREADS), band.shape.n_strips];
            let buffers = [band.buffer, self.graph.through];
            let end = first_row + rows;
            let in_block = end
                .min(params.end)
                .saturating_sub(first_row.max(params.first));
            let load = Load {
                work: u64::from(rows) * a_row,
                busy: u64::from(rows - in_block) * band.row_words(),
                turns: u64::from(rows.next_multiple_of(THREADS)) * band.row_words(),
            };
            recording.dispatch(Kernel::Rest, params, &buffers, groups, load);
        }
    }
}

/// What a dispatch asks that gives each item a thread.
pub(crate) fn a_thread_each(n_items: u32) -> Load {
    Load {
        work: n_items.into(),
        busy: n_items.into(),
        turns: n_items.next_multiple_of(THREADS).into(),
    }
}
