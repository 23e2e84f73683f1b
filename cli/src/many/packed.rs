//! Several histories in one process, a thread each, which share one device: a round of all of them is one dispatch of each
//! kernel (`kingsnake_gpu::members`), and so is a colour of their annealing (`kingsnake_gpu::shared_coolers`).
//!
//! A history that cannot be checked so, such as a file that cannot be read, is left to a process of its own, which says why.

use std::collections::HashMap;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Instant;

use kingsnake_gpu::{DeviceChoice, members, shared_coolers};
use kingsnake_studies::Item;
use serde_json::Value;

use super::{row, takes_report};
use crate::args::{CheckArgs, CheckManyArgs};
use crate::commands::check::{self, Devices};
use crate::commands::white_box;
use crate::plan::start_threads;

/// So many histories share a device at a time.
const WAVE: usize = 16;

/// The histories that were checked together and have not been told yet.
pub struct Packed {
    check: CheckArgs,
    choice: DeviceChoice,
    started: Once,
    rows: Mutex<HashMap<String, Option<Value>>>,
}

impl Packed {
    /// For histories whose device was asked for by name, and of which nothing but a row is wanted.
    pub fn new(args: &CheckManyArgs) -> Option<Packed> {
        let check = &args.check;
        let choice = check.techniques.device.clone();
        let is_gpu = matches!(choice, DeviceChoice::Gpu | DeviceChoice::Named(_));
        let is_plain = takes_report(check.level.level)
            && !white_box::is_asked(check)
            && check.read.workload.is_none()
            && check.files.directory.is_none()
            && check.files.edn.is_none()
            && args.many.out.is_none();
        (is_gpu && is_plain).then(|| Packed {
            check: check.clone(),
            choice,
            started: Once::new(),
            rows: Mutex::default(),
        })
    }

    /// The row of a history, which is checked together with those that follow it; `None` if it cannot be checked so.
    pub fn row(&self, item: &Item, items: &[Item]) -> Option<Value> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = rows.remove(&item.key) {
            return row;
        }
        let first = items.iter().position(|it| it.key == item.key)?;
        let wave = &items[first..items.len().min(first + WAVE)];
        rows.extend(self.check(wave));
        rows.remove(&item.key).flatten()
    }

    fn check(&self, wave: &[Item]) -> Vec<(String, Option<Value>)> {
        // The threads of the solver can be chosen once a process; a second choice would be an error.
        self.started
            .call_once(|| drop(start_threads(&self.check.limits)));
        let members = members(&self.choice, wave.len());
        let coolers = shared_coolers(&self.choice, wave.len());
        std::thread::scope(|scope| {
            let threads: Vec<_> = wave
                .iter()
                .zip(members.into_iter().zip(coolers))
                .map(|(item, (member, cooler))| {
                    let mut args = self.check.clone();
                    args.history.clone_from(&item.history);
                    let checked = scope.spawn(move || {
                        let start = Instant::now();
                        let devices = Devices {
                            device: Box::new(member),
                            cooler,
                        };
                        let (status, document) = check::document(&args, devices, start).ok()?;
                        let wall = start.elapsed().as_secs_f64();
                        Some(row::answered(item, status, document, wall))
                    });
                    (item.key.clone(), checked)
                })
                .collect();
            let rows = threads
                .into_iter()
                .map(|(key, it)| (key, it.join().ok().flatten()));
            rows.collect()
        })
    }
}
