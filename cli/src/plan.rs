//! What will run: every option resolved, checked, and written out so that the run can be reproduced.

mod level;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Parser as _;
use kingsnake_datasets::Format;
use kingsnake_encodings::{BackendOptions, CoolerSource, PropagatorOptions};
use kingsnake_gpu::{DeviceChoice, Gpu, GpuCooler};
use kingsnake_history::adya::PlLevel;
use kingsnake_report::CommandRun;
use kingsnake_solver::check::Techniques;
use kingsnake_solver::decide::Backend;
use kingsnake_solver::heuristic::Heuristic;
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::promise::Promise;
use kingsnake_workloads::JepsenWorkload;

use self::level::milliseconds;
use self::level::{checked_level, checked_spec, promised};
pub use self::level::{clocked, isolation_map, one_level, questioned_level, searched_level, spec};
use crate::args::{AssumeArgs, CheckArgs, Command, LimitArgs, Profile, Typed};
use crate::assumptions;
use crate::isolation::IsolationMap;
use crate::profile::{reachability_name, search, techniques};
use crate::switches::{Kept, SWITCHES};

/// A check, ready to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The history.
    pub history: PathBuf,
    /// Its format, if given; otherwise it is recognised.
    pub format: Option<Format>,
    /// The Jepsen workload that it is read as.
    pub workload: Option<JepsenWorkload>,
    /// A file with version orders.
    pub version_order: Option<PathBuf>,
    /// Whether to ignore the version order in the history.
    pub no_version_order: bool,
    /// Which share of the given versions counts, if not all.
    pub version_order_share: Option<f64>,
    /// Assumptions beyond the history.
    pub assume: AssumeArgs,
    /// The level by name.
    pub level: Level,
    /// The level's components.
    pub spec: Spec,
    /// The promise.
    pub promise: Promise,
    /// The expected order, as typed.
    pub along: Option<String>,
    /// Whether the version order and the snapshots of the history are the certificate.
    pub is_certified: bool,
    /// The meaning of recorded isolation levels, if they count.
    pub isolation_map: Option<IsolationMap>,
    /// The profile: techniques that were not typed.
    pub profile: Profile,
    /// Which techniques run.
    pub techniques: Techniques,
    /// How the default back end searches.
    pub search: PropagatorOptions,
    /// Where reachability is computed.
    pub device: DeviceChoice,
    /// The back end that decides open constraints.
    pub backend: String,
    /// The seed of the solver and of `--version-order-share`.
    pub seed: u32,
    /// The time limit.
    pub timeout: Option<Duration>,
    /// The memory limit.
    pub memory_limit: Option<u64>,
    /// The number of threads, if given.
    pub threads: Option<u16>,
}

impl Plan {
    /// Creates the annealing device, by `--device`.
    pub fn cooler(&self) -> CoolerSource {
        GpuCooler::source(self.device.clone())
    }

    /// Makes the back end.
    pub fn backend(&self) -> Result<Box<dyn Backend>> {
        let options = BackendOptions {
            seed: self.seed,
            propagator: self.search,
            cooler: Some(self.cooler()),
        };
        Ok(kingsnake_encodings::backend(&self.backend, &options)?)
    }

    /// Makes the device; an error where the one that was asked for is not there.
    pub fn device(&self) -> Result<Gpu> {
        kingsnake_gpu::expect(&self.device)
            .map_err(|why| anyhow!("--device {}: {why}", self.device))?;
        Ok(Gpu::new(self.device.clone()))
    }

    /// Resolves the options.
    pub fn new(args: &CheckArgs) -> Result<Self> {
        let level = match (args.level.level, args.read.workload) {
            (
                None,
                Some(
                    JepsenWorkload::CasRegister
                    | JepsenWorkload::Mutex
                    | JepsenWorkload::OwnedMutex,
                ),
            ) => Level::Linearizable,
            (None, Some(JepsenWorkload::ListAppend | JepsenWorkload::RwRegister)) => {
                Level::StrictSer
            }
            _ => checked_level(args)?,
        };
        Plan::at(level, args)
    }

    /// Resolves the options, at this level.
    pub fn at(level: Level, args: &CheckArgs) -> Result<Self> {
        let spec = checked_spec(level, args)?;
        Ok(Plan {
            history: args.history.clone(),
            format: args.read.format,
            workload: args.read.workload,
            version_order: args.read.version_order.clone(),
            no_version_order: args.read.no_version_order,
            version_order_share: args.version_order_share,
            assume: args.assume.clone(),
            level,
            spec,
            promise: promised(level, spec, args),
            along: args.along.clone(),
            is_certified: args.certificate_from.is_some(),
            isolation_map: isolation_map(level, &args.level)?,
            profile: args.techniques.profile,
            techniques: techniques(&args.techniques),
            search: search(&args.techniques),
            device: args.techniques.device.clone(),
            backend: args.techniques.backend.clone(),
            seed: args.techniques.seed,
            timeout: args.limits.bounds.timeout,
            memory_limit: args.limits.bounds.memory_limit,
            threads: args.limits.threads,
        })
    }

    /// The plan for a search, in place of a level of Adya's whose version order is incomplete.
    pub fn searching(mut self) -> Plan {
        self.level = match self.level {
            Level::Pl(PlLevel::PlSi) => Level::Si,
            _ => Level::Ser,
        };
        self.promise = Promise::Level(self.spec);
        self
    }

    /// How to repeat it.
    pub fn run(&self) -> CommandRun {
        CommandRun {
            rows: self.rows(),
            command: self.command(),
            short_command: self.short_command(),
            history: quoted_path(&self.history),
        }
    }

    /// The plan as names and values, in a fixed order: for `-v`, JSON and the page.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
        let techniques = &self.techniques;
        let mut rows = vec![
            ("history", self.history.display().to_string()),
            (
                "format",
                self.format
                    .map_or("recognised".to_owned(), |it| it.to_string()),
            ),
            (
                "version-order",
                match &self.version_order {
                    Some(file) => file.display().to_string(),
                    None if self.no_version_order => "ignored".to_owned(),
                    None => "what the history gives".to_owned(),
                },
            ),
            (
                "version-order-share",
                self.version_order_share.unwrap_or(1.0).to_string(),
            ),
            (
                "assumptions",
                match assumptions::switches(&self.assume).as_slice() {
                    [] => "none".to_owned(),
                    switches => switches.join(" "),
                },
            ),
            ("level", self.level.to_string()),
            ("session-order", switch(self.spec.session_order)),
            ("real-time", switch(self.spec.real_time.is_some())),
            (
                "clock-drift",
                self.spec.real_time.map_or("none".to_owned(), |it| {
                    format!("{} ms", milliseconds(it.drift))
                }),
            ),
            (
                "times",
                self.spec
                    .real_time
                    .map_or("none", |it| it.times.name())
                    .to_owned(),
            ),
            ("along", self.along.clone().unwrap_or("none".to_owned())),
            (
                "certificate-from",
                if self.is_certified { "history" } else { "none" }.to_owned(),
            ),
            (
                "failed-cas",
                if self.promise.refusals_count() {
                    "differs"
                } else {
                    "nothing"
                }
                .to_owned(),
            ),
            ("profile", self.profile.name().to_owned()),
            ("backend", self.backend.clone()),
            ("phase", self.search.phase.name().to_owned()),
            ("decide", self.search.decide.name().to_owned()),
            ("propagate", self.search.propagate.to_string()),
            ("seed", self.seed.to_string()),
            (
                "reachability",
                reachability_name(techniques.reachability).to_owned(),
            ),
            ("device", self.device.to_string()),
            (
                "prune-rounds",
                techniques
                    .prune_rounds
                    .map_or("to the fixpoint".to_owned(), |n| n.to_string()),
            ),
            ("heuristic", techniques.heuristic.name().to_owned()),
        ];
        rows.extend(self.techniques_on().map(|(name, on)| (name, switch(on))));
        rows.extend([
            (
                "timeout",
                self.timeout
                    .map_or("none".to_owned(), |it| format!("{} s", it.as_secs_f64())),
            ),
            (
                "memory-limit",
                self.memory_limit
                    .map_or("what is free".to_owned(), |it| format!("{it} bytes")),
            ),
            (
                "threads",
                self.threads
                    .map_or("one per core".to_owned(), |it| it.to_string()),
            ),
        ]);
        rows
    }

    /// Every switch of the table, and whether it is on.
    fn techniques_on(&self) -> impl Iterator<Item = (&'static str, bool)> + '_ {
        let (mut techniques, mut search) = (self.techniques.clone(), self.search);
        SWITCHES.iter().map(move |switch| {
            let on = match switch.kept {
                Kept::Techniques(field) => *field(&mut techniques),
                Kept::Search(field) => *field(&mut search),
                Kept::Rounds => techniques.prune_rounds != Some(0),
            };
            (switch.name, on)
        })
    }

    /// A command line that reproduces the run, with every option spelled out.
    pub fn command(&self) -> String {
        let history = quoted_path(&self.history);
        let mut words = vec![format!("kingsnake check {history}")];
        words.push(format!("--level {}", self.level));
        words.extend(self.switches());
        words.extend(self.settings());
        words.join(" ")
    }

    /// The shortest command line that reproduces the run: only options that differ from their defaults.
    pub fn short_command(&self) -> String {
        let history = quoted_path(&self.history);
        let mut words = vec![format!("kingsnake check {history}")];
        if self.level != Level::Ser || self.workload.is_some() {
            words.push(format!("--level {}", self.level));
        }
        if self.profile != Profile::Kingsnake {
            words.push(format!("--profile {}", self.profile.name()));
        }
        let line = words.join(" ");
        let typed = ["kingsnake", "check", "h", "--level"].map(str::to_owned);
        let more = ["--profile", self.profile.name()].map(str::to_owned);
        let typed = typed
            .into_iter()
            .chain([self.level.to_string()])
            .chain(more);
        let plain = match Typed::try_parse_from(typed).map(|it| it.command) {
            Ok(Command::Check(args)) => Plan::at(self.level, &args.check).ok(),
            _ => None,
        };
        let Some(plain) = plain else {
            return self.command();
        };
        let usual: Vec<String> = plain
            .switches()
            .into_iter()
            .chain(plain.settings())
            .collect();
        let all = self.switches().into_iter().chain(self.settings());
        let differ = all.filter(|it| !usual.contains(it));
        std::iter::once(line)
            .chain(differ)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The level options.
    fn switches(&self) -> Vec<String> {
        let switch = |on: bool| if on { "on" } else { "off" };
        let mut words = vec![
            format!("--session-order {}", switch(self.spec.session_order)),
            format!("--real-time {}", switch(self.spec.real_time.is_some())),
        ];
        if let Some(map) = &self.isolation_map {
            words.push(format!("--isolation-map {}", quoted(&map.typed())));
        }
        if self.promise.refusals_count() {
            words.push("--failed-cas differs".to_owned());
        }
        if let Some(along) = &self.along {
            words.push(format!("--along {}", quoted(along)));
        }
        if self.is_certified {
            words.push("--certificate-from history".to_owned());
        }
        if let Some(real_time) = self.spec.real_time {
            words.push(format!("--clock-drift {}", milliseconds(real_time.drift)));
            words.push(format!("--times {}", real_time.times.name()));
        }
        words
    }

    /// The other options, each preceded by a space.
    pub fn options(&self) -> String {
        format!(" {}", self.settings().join(" "))
    }

    /// The options that do not depend on the level.
    fn settings(&self) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(format) = self.format {
            words.push(format!("--format {format}"));
        }
        if let Some(workload) = self.workload {
            words.push(format!("--workload {workload}"));
        }
        if let Some(file) = &self.version_order {
            words.push(format!("--version-order {}", quoted_path(file)));
        }
        if self.no_version_order {
            words.push("--no-version-order".to_owned());
        }
        if let Some(share) = self.version_order_share {
            words.push(format!("--version-order-share {share}"));
        }
        words.extend(assumptions::switches(&self.assume));
        let techniques = &self.techniques;
        let rounds = techniques.prune_rounds;
        let rounds = rounds.map_or("fixpoint".to_owned(), |rounds| rounds.to_string());
        words.extend([
            format!("--profile {}", self.profile.name()),
            format!("--backend {}", quoted(&self.backend)),
            format!("--phase {}", self.search.phase.name()),
            format!("--decide {}", self.search.decide.name()),
            format!("--propagate {}", self.search.propagate),
            format!("--seed {}", self.seed),
            format!(
                "--reachability {}",
                reachability_name(techniques.reachability)
            ),
            format!("--device {}", quoted(&self.device.to_string())),
            format!("--prune-rounds {rounds}"),
        ]);
        if techniques.heuristic != Heuristic::Off {
            words.push(format!("--heuristic {}", techniques.heuristic.name()));
        }
        // The number of rounds tells whether to prune.
        for (name, on) in self.techniques_on().filter(|it| it.0 != "prune") {
            words.push(format!("--{}{name}", if on { "" } else { "no-" }));
        }
        if let Some(limit) = self.timeout {
            words.push(format!("--timeout {}", limit.as_secs_f64()));
        }
        if let Some(limit) = self.memory_limit {
            words.push(format!("--memory-limit {limit}"));
        }
        if let Some(threads) = self.threads {
            words.push(format!("--threads {threads}"));
        }
        words
    }
}

/// Starts as many threads as were asked for; a process that checks several histories does so once.
pub fn start_threads(limits: &LimitArgs) -> Result<()> {
    static STARTED: AtomicU16 = AtomicU16::new(0);
    let Some(threads) = limits.threads else {
        return Ok(());
    };
    if STARTED.swap(threads, Ordering::Relaxed) == threads {
        return Ok(());
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(usize::from(threads))
        .build_global()
        .context("cannot start the threads")
}

/// A path, quoted for a shell.
pub fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// A word, quoted for a shell. No argument contains a zero byte, the only one that cannot be quoted.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), Into::into)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;
    use kingsnake_solver::level::RealTime;

    use super::*;

    fn plan(line: &str) -> Result<Plan> {
        let typed = Typed::try_parse_from(line.split(' '))?;
        match typed.command {
            Command::Check(args) => {
                let mut check = args.check.clone();
                check.history = args.histories[0].clone();
                Plan::new(&check)
            }
            other => bail!("{other:?}"),
        }
    }

    #[test]
    fn the_default_is_serializability_with_session_order() {
        let plan = plan("kingsnake check h").unwrap();
        assert_eq!(plan.spec.to_string(), "serializability with session order");
    }

    #[test]
    fn a_strong_session_level_without_session_order_is_refused() {
        let error =
            plan("kingsnake check h --level strong-session-si --session-order off").unwrap_err();
        assert!(
            error.to_string().contains("demands session order"),
            "{error}"
        );
    }

    #[test]
    fn the_spelt_out_command_has_the_same_plan() {
        for line in [
            "kingsnake check h --level si --session-order off --no-witness --prune-rounds 3 --heuristic viper \
             --timeout 1.5 --memory-limit 1G --reachability dense --device gpu:0 --seed 7 --threads 2",
            "kingsnake check h --profile cobra --no-version-order --estimate --decide repair",
            "kingsnake check h --decide position --phase random --propagate 9 --no-minimise",
            "kingsnake check h --no-anneal",
            "kingsnake check h --profile king-cobra --version-order f --version-order-share 0.9 \
             --real-time on --no-prune --phase random",
        ] {
            let first = plan(line).unwrap();
            let again = plan(&first.command()).unwrap();
            assert_eq!(format!("{first:?}"), format!("{again:?}"));
            let again = plan(&first.short_command()).unwrap();
            assert_eq!(format!("{first:?}"), format!("{again:?}"));
        }
    }

    #[test]
    fn the_short_command_says_only_what_differs_from_the_defaults() {
        for line in [
            "kingsnake check h",
            "kingsnake check h --level si",
            "kingsnake check h --level strict-ser",
            "kingsnake check h --session-order off",
            "kingsnake check h --profile king-cobra --seed 7",
        ] {
            assert_eq!(plan(line).unwrap().short_command(), line);
        }
    }

    #[test]
    fn what_is_typed_overrides_the_profile_wherever_it_stands() {
        let cobra = plan("kingsnake check h --profile cobra").unwrap();
        assert_eq!(cobra.techniques.prune_rounds, Some(1));
        assert!(!cobra.techniques.unread);
        assert!(!cobra.techniques.merge && cobra.techniques.coalesce);
        let king = plan("kingsnake check h --profile king-cobra").unwrap();
        assert_eq!(king.techniques.prune_rounds, Some(5));
        let mixed =
            "kingsnake check h --prune-rounds fixpoint --merge --profile cobra --no-combine";
        let mixed = plan(mixed).unwrap().techniques;
        assert_eq!(mixed.prune_rounds, None);
        assert!(mixed.merge && !mixed.combine && !mixed.estimate);
        let last = plan("kingsnake check h --no-merge --merge").unwrap();
        assert!(last.techniques.merge);
    }

    #[test]
    fn real_time_is_a_switch_unless_the_level_demands_it() {
        let on = plan("kingsnake check h --real-time on").unwrap();
        assert_eq!(on.spec.real_time, Some(RealTime::STRICT));
        let error = plan("kingsnake check h --level strict-ser --real-time off").unwrap_err();
        assert!(error.to_string().contains("demands real-time"), "{error}");
    }

    #[test]
    fn clocks_are_part_of_the_plan_where_the_level_looks_at_them() {
        let line = "kingsnake check h --level gsi --clock-drift 2.5 --times exact";
        let first = plan(line).unwrap();
        assert_eq!(
            first.spec.to_string(),
            "generalised snapshot isolation with session order, up to 2.5 ms of drift, times exact"
        );
        let again = plan(&first.command()).unwrap();
        assert_eq!(format!("{first:?}"), format!("{again:?}"));
        let error = plan("kingsnake check h --level si --clock-drift 1").unwrap_err();
        assert!(error.to_string().contains("look at the clock"), "{error}");
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("a/b.log"), "a/b.log");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted(""), "''");
    }
}
