//! Questions about paths, answered from the closure on the device: a list of pairs goes up, a bit for each comes down.

use kingsnake_graph::prune::DeviceError;

use crate::closure::a_thread_each;
use crate::kernel::Kernel;
use crate::layout::{ProbeParams, THREADS};
use crate::list::List;
use crate::pairs::{Closed, Means};
use crate::places::Places;
use crate::recording::{Executor, Load, Recording};

/// A pair's thread touches about this many words: the pair, its strip, a quad of the matrix, its answer.
const WORDS_A_PAIR: u64 = 10;

/// The buffers of the questions.
pub(crate) struct Probe {
    pairs: List,
    answers: List,
}

impl Probe {
    pub(crate) fn new<E: Executor>(executor: &mut E) -> Result<Self, DeviceError> {
        Ok(Probe {
            pairs: List::new(executor, "the questions about paths", 2)?,
            answers: List::new(executor, "the answers about paths", 1)?,
        })
    }

    /// Runs the probe after what was recorded, in one wait.
    pub(crate) fn ask<E: Executor>(
        &mut self,
        asked: &[(u32, u32)],
        places: &Places,
        mut recording: Recording,
        closed: Closed<'_>,
        means: &mut Means<'_, E>,
    ) -> Result<Vec<bool>, DeviceError> {
        let n_pairs = asked.len() as u32;
        let n_words = u64::from(n_pairs.div_ceil(32));
        self.pairs.expect(means.executor, 2 * u64::from(n_pairs))?;
        self.answers.expect(means.executor, n_words)?;
        let place = |node: u32| places.of_node[node as usize];
        let pairs = asked.iter().map(|&(from, to)| [place(from), place(to)]);
        recording.upload(self.pairs.buffer, 0, &pairs.collect::<Vec<_>>());
        recording.clear(self.answers.buffer);
        self.record(&mut recording, n_pairs, closed, means);
        recording.download(self.answers.buffer, 0, n_words);
        let answers = means.run(&recording)?.pop().unwrap_or_default();
        let bit = |at: usize| answers[at / 32] >> (at % 32) & 1 == 1;
        Ok((0..asked.len()).map(bit).collect())
    }

    fn record<E: Executor>(
        &self,
        recording: &mut Recording,
        n_pairs: u32,
        closed: Closed<'_>,
        means: &Means<'_, E>,
    ) {
        let limits = means.executor.limits();
        let most = (limits.work / WORDS_A_PAIR / u64::from(THREADS))
            .clamp(1, u64::from(limits.groups)) as u32
            * THREADS;
        for band in closed.bands {
            for first in (0..n_pairs).step_by(most as usize) {
                let end = n_pairs.min(first.saturating_add(most));
                let params = ProbeParams {
                    shape: band.shape,
                    first,
                    end,
                    ..ProbeParams::default()
                };
                let load = Load {
                    work: u64::from(end - first) * WORDS_A_PAIR,
                    ..a_thread_each(end - first)
                };
                let groups = [(end - first).div_ceil(THREADS), 1];
                let buffers = [
                    band.buffer,
                    closed.strips,
                    self.pairs.buffer,
                    self.answers.buffer,
                ];
                recording.dispatch(Kernel::Probe, params, &buffers, groups, load);
            }
        }
    }
}
