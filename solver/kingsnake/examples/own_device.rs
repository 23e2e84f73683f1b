//! A custom device: passes everything to a GPU and counts the calls. Without a GPU the CPU computes, with a warning.
//!
//! `cargo run -p kingsnake --features gpu --example own_device -- HISTORY`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kingsnake::device::{DeviceError, DeviceStats, Judgement, Offer, PairEdge, Relatives, Task};
use kingsnake::reach::Dag;
use kingsnake::{Budget, Checker, Device, DeviceChoice, Edge, Gpu};

struct Counted {
    inner: Gpu,
    rounds: Arc<AtomicUsize>,
}

impl Device for Counted {
    fn offer(&mut self, task: &Task, dag: &Dag, budget: &Budget) -> Offer {
        self.inner.offer(task, dag, budget)
    }

    fn load(&mut self, task: &Task, dag: &Dag, budget: &Budget) -> Result<(), DeviceError> {
        self.inner.load(task, dag, budget)
    }

    fn close(&mut self, dag: &Dag, new: &[Edge], budget: &Budget) -> Result<(), DeviceError> {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.inner.close(dag, new, budget)
    }

    fn judge(&mut self, budget: &Budget) -> Result<Judgement, DeviceError> {
        self.inner.judge(budget)
    }

    fn open(&mut self, budget: &Budget) -> Result<Vec<u32>, DeviceError> {
        self.inner.open(budget)
    }

    fn implied(&mut self, budget: &Budget) -> Result<Vec<PairEdge>, DeviceError> {
        self.inner.implied(budget)
    }

    fn reaches(&mut self, asked: &[(u32, u32)], budget: &Budget) -> Result<Vec<bool>, DeviceError> {
        self.inner.reaches(asked, budget)
    }

    fn relatives(&mut self, budget: &Budget) -> Result<Relatives, DeviceError> {
        self.inner.relatives(budget)
    }

    fn stats(&self) -> DeviceStats {
        self.inner.stats()
    }
}

#[allow(clippy::print_stdout)] // An example shows what it found.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let corpus = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../datasets/corpus/none/long-fork.jsonl"
    );
    let path = std::env::args().nth(1).unwrap_or_else(|| corpus.to_owned());
    let history = kingsnake::open(path)?;
    let rounds = Arc::new(AtomicUsize::new(0));
    let device = Counted {
        inner: Gpu::new(DeviceChoice::Gpu),
        rounds: Arc::clone(&rounds),
    };
    let verdict = Checker::new().own_device(device).check(&history)?;
    println!(
        "{verdict}; closures on the device: {}",
        rounds.load(Ordering::Relaxed)
    );
    Ok(())
}
