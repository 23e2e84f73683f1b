//! Options about cells: where they run, and which of them.

use clap::{Args, ValueEnum};
use kingsnake_studies::{Mode, Slurm};

/// Where cells run, and which of them.
#[derive(Clone, Debug, Args)]
pub struct CellArgs {
    /// Number of parallel cells (use 1 for comparable timings).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: u16,
    /// Only list what would run; with --json one cell per line: id, cell, argv, history, row, done.
    #[arg(long)]
    pub list: bool,
    /// Only prepare the directory, for running cells elsewhere.
    #[arg(long, conflicts_with = "list")]
    pub prepare: bool,
    /// Run only these cells, without a lock, and write each row to a file in DIR/rows.d; run without this option to merge
    /// them.
    #[arg(long, value_name = "ID,…", value_delimiter = ',', conflicts_with_all = ["list", "prepare", "restart", "jobs"])]
    pub cell: Vec<String>,
    /// Where to run the cells: on this machine, or as an array job of a Slurm cluster (docs/cluster.md).
    #[arg(long, value_name = "WHERE", default_value = "local", conflicts_with_all = ["list", "prepare", "cell"])]
    pub on: OnArg,
    /// With --on slurm: cells per task [default: as few as make at most 200 tasks].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub cells_per_task: Option<u32>,
    /// With --on slurm: an argument for sbatch, such as --slurm-arg=--partition=gpu; may be repeated.
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub slurm_arg: Vec<String>,
    /// Delete the existing rows in DIR first.
    #[arg(long)]
    pub restart: bool,
}

impl CellArgs {
    /// What to do with the cells; `json` if a list is printed as JSON.
    pub fn mode(&self, json: bool) -> Mode {
        if self.list {
            Mode::List { json }
        } else if self.prepare {
            Mode::Prepare
        } else if !self.cell.is_empty() {
            Mode::Cells(self.cell.clone())
        } else if self.on == OnArg::Slurm {
            Mode::Slurm(Slurm {
                cells_per_task: self.cells_per_task.map(|n| n as usize),
                arguments: self.slurm_arg.clone(),
            })
        } else {
            Mode::Local
        }
    }

    /// Whether more than a single check was requested.
    pub fn is_asked(&self) -> bool {
        !matches!(self.mode(false), Mode::Local) || self.jobs > 1 || self.restart
    }
}

/// Where cells run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnArg {
    /// On this machine.
    Local,
    /// As an array job of a Slurm cluster.
    Slurm,
}
