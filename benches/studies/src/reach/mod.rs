//! `bench reach`: the algorithms for reachability on graphs like those of histories, in words OR-ed per second and as a
//! share of the memory bandwidth.
//!
//! Each row is written as it is measured; figures and a page follow at the end.

mod measure;
mod page;

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Context, Result};
use kingsnake_gpu::{DeviceChoice, Meter};
use kingsnake_solver::session_graph::SessionGraph;
use kingsnake_text::lasting;
use serde::Serialize;

use crate::listener::{StudyEvent, StudyListener};
use measure::{Graph, Measurement, ReachEngine};

const STDOUT: &str = "cannot write to stdout";

/// One measurement, as written.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ReachRow {
    pub(super) engine: String,
    pub(super) nodes: u32,
    pub(super) degree: u32,
    pub(super) edges: usize,
    pub(super) levels: usize,
    /// In memory that was touched before; on a device with the graph's way up.
    pub(super) seconds: f64,
    /// In fresh memory, which the system hands out page by page.
    pub(super) first_seconds: Option<f64>,
    pub(super) kernel_seconds: Option<f64>,
    /// Words of 32 bits.
    pub(super) words_ored: u64,
    pub(super) words_a_second: f64,
    /// Read and written, as the formulas of docs/gpu.md count.
    pub(super) bytes_moved: u64,
    pub(super) bytes_a_second: f64,
    /// Of what copying moves with as many threads.
    pub(super) share_of_copy: Option<f64>,
    pub(super) bytes_up: u64,
    pub(super) dispatches: u64,
    pub(super) workgroups: u64,
    /// The share of the threads' turns that had something to do.
    pub(super) occupancy: Option<f64>,
    pub(super) form: String,
}

/// The memory bandwidth: bytes read and written per second while copying.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Copying {
    pub(super) one_thread: f64,
    pub(super) all_threads: f64,
}

/// The parameters.
#[derive(Clone, Debug)]
pub struct ReachStudy {
    /// Output directory for rows, figures and the page.
    pub out: PathBuf,
    /// How many nodes.
    pub nodes: Vec<u32>,
    /// Edges per node.
    pub degrees: Vec<u32>,
    /// Number of chains of nodes.
    pub chains: u32,
    /// Largest distance between the two nodes of an edge.
    pub span: u32,
    /// The GPU to measure, if any.
    pub device: DeviceChoice,
    /// Largest number of nodes for a software adapter.
    pub software_nodes: u32,
    /// Everything is measured this often, and the shortest time taken.
    pub repeat: u32,
}

/// Measures, and writes the results.
pub fn reach(args: &ReachStudy, listener: &mut dyn StudyListener) -> Result<u8> {
    fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot make the directory {}", args.out.display()))?;
    let copying = measure::copying();
    let mut meter = match (&args.device, Meter::open(&args.device)) {
        (DeviceChoice::Cpu, _) => None,
        (_, Ok(meter)) => Some(meter),
        (_, Err(why)) => {
            let words = format!("{why}; the CPU is measured alone");
            listener
                .event(StudyEvent::Warning(&words))
                .context(STDOUT)?;
            None
        }
    };
    let path = args.out.join("rows.csv");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut csv = csv::Writer::from_writer(file);
    let mut rows = Vec::new();
    for &degree in &args.degrees {
        for &nodes in &args.nodes {
            let graph = Graph::new(SessionGraph {
                n_nodes: nodes,
                degree,
                n_sessions: args.chains,
                span: args.span,
            });
            for engine in measure::engines(meter.as_ref(), nodes, args.software_nodes) {
                let best = best_of(args.repeat, engine, &graph, meter.as_mut());
                let found = match best {
                    Ok(found) => found,
                    Err(why) => {
                        let words = format!("{nodes} nodes, {degree} edges each: {why}");
                        listener
                            .event(StudyEvent::Warning(&words))
                            .context(STDOUT)?;
                        continue;
                    }
                };
                let row = row(engine, &graph, degree, &found, copying, meter.as_ref());
                csv.serialize(&row).context("cannot write the row")?;
                csv.flush().context("cannot write the row")?;
                let text = &line(&row);
                let event = StudyEvent::Text {
                    text,
                    always: false,
                };
                listener.event(event).context(STDOUT)?;
                rows.push(row);
            }
        }
    }
    let page = page::write(&args.out, &rows, copying, meter.as_ref().map(Meter::about))?;
    let text = &format!("{}\n", page.display());
    let event = StudyEvent::Text { text, always: true };
    listener.event(event).context(STDOUT)?;
    Ok(0)
}

fn best_of(
    repeat: u32,
    engine: ReachEngine,
    graph: &Graph,
    mut meter: Option<&mut Meter>,
) -> Result<Measurement, String> {
    let mut best: Option<Measurement> = None;
    for _ in 0..repeat {
        let found = measure::measure(engine, graph, meter.as_deref_mut())?;
        let firsts = [best.as_ref().and_then(|best| best.first), found.first];
        let first = firsts.into_iter().flatten().min();
        if best.as_ref().is_none_or(|best| found.time < best.time) {
            best = Some(found);
        }
        if let Some(best) = &mut best {
            best.first = first;
        }
    }
    best.ok_or_else(|| "nothing was measured".to_owned())
}

fn row(
    engine: ReachEngine,
    graph: &Graph,
    degree: u32,
    found: &Measurement,
    copying: Copying,
    meter: Option<&Meter>,
) -> ReachRow {
    let seconds = found.time.as_secs_f64().max(1e-9);
    let bytes_a_second = found.bytes_moved as f64 / seconds;
    let copy = match engine {
        ReachEngine::DenseOne | ReachEngine::Chains => Some(copying.one_thread),
        ReachEngine::DenseAll => Some(copying.all_threads),
        ReachEngine::Gpu => None,
    };
    ReachRow {
        engine: engine.name(meter),
        nodes: graph.dag.n_nodes() as u32,
        degree,
        edges: graph.dag.n_edges(),
        levels: graph.n_levels,
        seconds,
        first_seconds: found.first.as_ref().map(Duration::as_secs_f64),
        kernel_seconds: found.kernels.as_ref().map(Duration::as_secs_f64),
        words_ored: found.words,
        words_a_second: found.words as f64 / seconds,
        bytes_moved: found.bytes_moved,
        bytes_a_second,
        share_of_copy: copy.map(|copy| bytes_a_second / copy),
        bytes_up: found.bytes_up,
        dispatches: found.dispatches,
        workgroups: found.workgroups,
        occupancy: found.occupancy,
        form: found.form.clone(),
    }
}

fn line(row: &ReachRow) -> String {
    let share = row.share_of_copy.map_or(String::new(), |share| {
        format!(", {:.0} % of copying", 100.0 * share)
    });
    format!(
        "{:>6} nodes {:>4} edges each  {:<28} {:>9}  {:>8.2} G words/s{share}\n",
        row.nodes,
        row.degree,
        row.engine,
        lasting(Duration::from_secs_f64(row.seconds)),
        row.words_a_second / 1e9
    )
}
