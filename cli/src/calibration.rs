//! The measurements of `devices --calibrate`, stored per adapter and driver in the user's configuration, where
//! `--device auto` finds them.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kingsnake_gpu::{Calibration, MeasuredSpeed, Speed};
use serde::{Deserialize, Serialize};

use crate::voice::complain;

/// Size limit of a file of constants.
const MOST_BYTES: u64 = 1 << 20;

/// The version of the files.
const SCHEMA: u32 = 1;

/// The constants of an adapter, as written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    adapter: String,
    driver: String,
    kind: String,
    bytes_per_second: f64,
    bus_bytes_per_second: f64,
    workgroups: f64,
    dispatch_seconds: f64,
    latency_seconds: f64,
    start_seconds: f64,
    closures: Vec<MeasuredClosure>,
}

/// A closure that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MeasuredClosure {
    shape: String,
    nodes: u32,
    edges: usize,
    levels: usize,
    seconds: f64,
    kernel_seconds: Option<f64>,
    by_data_sheet: f64,
    by_fit: f64,
}

/// The file: adapters in the order in which they were measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationFile {
    schema: u32,
    adapters: Vec<Constants>,
}

impl CalibrationFile {
    /// These adapters.
    pub fn of(found: &[Calibration]) -> Self {
        CalibrationFile {
            schema: SCHEMA,
            adapters: found.iter().map(Constants::of).collect(),
        }
    }

    /// Reads a file that this program wrote, here or elsewhere.
    pub fn read(path: &Path) -> Result<Self> {
        let text = kingsnake_datasets::bounded::read_text(path, MOST_BYTES)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let file: CalibrationFile = serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is not what `kingsnake devices --calibrate` writes",
                path.display()
            )
        })?;
        if file.schema != SCHEMA {
            bail!("{}: schema {} is not known", path.display(), file.schema);
        }
        let speeds = file.adapters.iter().map(Constants::speed);
        for speed in speeds {
            let all = [
                speed.bytes,
                speed.bus,
                speed.groups,
                speed.dispatch,
                speed.latency,
                speed.start,
            ];
            if !all.into_iter().all(|it| it.is_finite() && it > 0.0) {
                bail!("{}: every constant must be above 0", path.display());
            }
        }
        Ok(file)
    }

    /// Writes it, in a directory that is created if necessary.
    pub fn write(&self, path: &Path) -> Result<()> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("cannot make the directory {}", parent.display()))?;
        }
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        crate::output::put(path, &text)
    }

    /// The rows of docs/gpu.md, one per adapter, under their heading.
    pub fn table(&self) -> String {
        let mut words = String::from(
            "| adapter | memory | bus | workgroups | dispatch | wait | start | largest error |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
        );
        for it in &self.adapters {
            let errors = it.closures.iter();
            let errors = errors.map(|it| (it.by_fit / it.seconds).max(it.seconds / it.by_fit));
            let _ = writeln!(
                words,
                "| {}, {} | {:.1} GB/s | {:.1} GB/s | {:.0} | {:.1} µs | {:.2} µs | {:.2} s | {:.1} times |",
                it.adapter,
                it.driver,
                it.bytes_per_second / 1e9,
                it.bus_bytes_per_second / 1e9,
                it.workgroups,
                it.dispatch_seconds * 1e6,
                it.latency_seconds * 1e6,
                it.start_seconds,
                errors.fold(1.0, f64::max),
            );
        }
        words
    }

    /// Every closure beside the model's prediction.
    pub fn closures(&self) -> String {
        let mut words = String::new();
        for it in &self.adapters {
            let _ = write!(
                words,
                "\n{}\n\n| shape | nodes | edges | levels | measured | kernels | data sheet | fitted |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
                it.adapter
            );
            for row in &it.closures {
                let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
                let _ = writeln!(
                    words,
                    "| {} | {} | {} | {} | {} | {} | {} | {} |",
                    row.shape,
                    row.nodes,
                    row.edges,
                    row.levels,
                    ms(row.seconds),
                    row.kernel_seconds.map_or("–".to_owned(), ms),
                    ms(row.by_data_sheet),
                    ms(row.by_fit),
                );
            }
        }
        words
    }
}

impl Constants {
    fn of(found: &Calibration) -> Self {
        let (about, speed) = (&found.about, found.speed);
        let closures = found.points.iter().map(|it| MeasuredClosure {
            shape: it.shape.to_owned(),
            nodes: it.nodes,
            edges: it.edges,
            levels: it.levels,
            seconds: it.measured,
            kernel_seconds: it.kernels,
            by_data_sheet: it.by_data_sheet,
            by_fit: it.by_fit,
        });
        Constants {
            adapter: about.name.clone(),
            driver: about.driver.clone(),
            kind: about.kind.to_string(),
            bytes_per_second: speed.bytes,
            bus_bytes_per_second: speed.bus,
            workgroups: speed.groups,
            dispatch_seconds: speed.dispatch,
            latency_seconds: speed.latency,
            start_seconds: speed.start,
            closures: closures.collect(),
        }
    }

    fn speed(&self) -> Speed {
        Speed {
            bytes: self.bytes_per_second,
            bus: self.bus_bytes_per_second,
            groups: self.workgroups,
            dispatch: self.dispatch_seconds,
            latency: self.latency_seconds,
            start: self.start_seconds,
        }
    }
}

/// Where the constants of this machine are stored: `$XDG_CONFIG_HOME/kingsnake/devices.json`, by default below `~/.config`.
pub fn place() -> Option<PathBuf> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|it| !it.is_empty())
            .map(PathBuf::from)
    };
    let config = set("XDG_CONFIG_HOME").filter(|it| it.is_absolute());
    let config = config.or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(config.join("kingsnake/devices.json"))
}

/// Stores measurements, replacing those of the same adapters.
pub fn keep(found: &[Calibration]) -> Result<PathBuf> {
    let Some(path) = place() else {
        bail!("neither XDG_CONFIG_HOME nor HOME says where the constants are to be kept");
    };
    let mut file = CalibrationFile::of(found);
    if path.exists() {
        let old = CalibrationFile::read(&path)?.adapters.into_iter();
        let is_new = |it: &Constants| {
            let mut new = file.adapters.iter();
            new.any(|new| (&new.adapter, &new.driver) == (&it.adapter, &it.driver))
        };
        let mut kept: Vec<Constants> = old.filter(|it| !is_new(it)).collect();
        kept.append(&mut file.adapters);
        file.adapters = kept;
    }
    file.write(&path)?;
    Ok(path)
}

/// The constants of this machine's adapters. If they cannot be read, a warning, and none.
pub fn kept() -> Vec<MeasuredSpeed> {
    let Some(path) = place().filter(|path| path.exists()) else {
        return Vec::new();
    };
    match CalibrationFile::read(&path) {
        Ok(file) => {
            let speeds = file.adapters.iter().map(|it| MeasuredSpeed {
                name: it.adapter.clone(),
                driver: it.driver.clone(),
                speed: it.speed(),
            });
            speeds.collect()
        }
        Err(why) => {
            complain(&format!(
                "warning: {why:#}; devices count by their data sheets"
            ));
            Vec::new()
        }
    }
}
