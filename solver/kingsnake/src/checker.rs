//! A check with all its options.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kingsnake_certify::Meaning;
use kingsnake_datasets::{ReadError, ReadOptions};
use kingsnake_encodings::{BACKENDS, BackendOptions, UnknownBackend};
use kingsnake_gpu::{DeviceChoice, Gpu, GpuCooler};
use kingsnake_history::budget::{Budget, StopReason};
use kingsnake_history::definition::Definition;
use kingsnake_history::level::{Level, Spec, UnknownLevel};
use kingsnake_history::model::History;
use kingsnake_history::progress::{Progress, Silent};
use kingsnake_history::promise::Promise;
use kingsnake_report::Source;
use kingsnake_report::anomalies::{self, FoundAnomalies};
use kingsnake_solver::auto;
use kingsnake_solver::check::{CheckError, CheckStats, Engines, Report, Techniques};
use kingsnake_solver::check_promise;
use kingsnake_solver::decide::Backend;
use kingsnake_solver::prune::Device;
use thiserror::Error;

use crate::report::CheckReport;
use crate::shrink::{ShrinkAnswer, ShrinkListener, shrink};
use crate::verdict::Verdict;

/// Time limit per level of [`Checker::auto`] if no time limit is set.
const PER_LEVEL: Duration = Duration::from_secs(60);

/// A check that could not be carried out; this tells nothing about the database.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The level requires what was switched off.
    #[error("{0} demands session order, which was switched off")]
    SessionOrder(Level),
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no such back end.
    #[error(transparent)]
    Backend(#[from] UnknownBackend),
    /// The history lacks information, or an engine failed.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A limit ended what has no verdict.
    #[error("{0}")]
    Stopped(StopReason),
}

enum BackendChoice {
    Named(String),
    Own(Box<dyn Backend>),
}

enum ChosenDevice {
    Named(DeviceChoice),
    Own(Box<dyn Device>),
}

/// Checks histories. Everything has a default; each method changes one thing.
///
/// ```
/// use std::time::Duration;
///
/// use kingsnake::{Checker, DeviceChoice, Level};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
/// let history = kingsnake::open(format!("{corpus}/none/long-fork.jsonl"))?;
/// let verdict = Checker::new()
///     .level(Level::Si)
///     .session_order(false)
///     .backend("cadical/lazy")
///     .device(DeviceChoice::Cpu)
///     .timeout(Duration::from_secs(60))
///     .check(&history)?;
/// assert_eq!(verdict.holds(), Some(false));
/// # Ok(())
/// # }
/// ```
pub struct Checker {
    level: Level,
    promise: Option<Promise>,
    session_order: Option<bool>,
    backend: BackendChoice,
    device: ChosenDevice,
    timeout: Option<Duration>,
    memory_limit: Option<u64>,
    interrupt: Option<Arc<AtomicBool>>,
    within: Option<Budget>,
    seed: u32,
    techniques: Techniques,
    progress: Box<dyn Progress>,
    stats: CheckStats,
}

/// One level of [`Checker::auto`].
#[derive(Clone, Debug)]
pub struct LevelAnswer<'h> {
    /// How to ask for this level alone: `si`, or `si --session-order off`.
    pub label: &'static str,
    /// Level and session order.
    pub spec: Spec,
    /// The verdict; `None` if the level needs times and the history has none.
    pub verdict: Option<Verdict<'h>>,
    /// Whether the level holds and no stronger one does.
    pub is_strongest: bool,
}

impl Default for Checker {
    fn default() -> Self {
        Checker {
            level: Level::Ser,
            promise: None,
            session_order: None,
            backend: BackendChoice::Named(BACKENDS[0].to_owned()),
            device: ChosenDevice::Named(DeviceChoice::Auto),
            timeout: None,
            memory_limit: None,
            interrupt: None,
            within: None,
            seed: 0,
            techniques: Techniques::default(),
            progress: Box::new(Silent),
            stats: CheckStats::default(),
        }
    }
}

impl Checker {
    /// Serializability with session order, the default back end, no limits.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let promise = Checker::new().promise()?;
    /// assert_eq!(promise.to_string(), "serializability with session order");
    /// # Ok(())
    /// # }
    /// ```
    pub fn new() -> Self {
        Checker::default()
    }

    /// The level. [`Level::Linearizable`] is about operations on single keys, with their times: each transaction is one read, write
    /// or compare-and-set.
    ///
    /// ```
    /// use kingsnake::{Checker, HistoryBuilder, Level, Status};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut builder = HistoryBuilder::new();
    /// let x = builder.text("x");
    /// builder.initial(x, 0.into());
    /// // The write has ended before the read begins, and yet the read returns the old value.
    /// for (client, begin, commit) in [(1_i64, 0, 10), (2, 20, 30)] {
    ///     let session = builder.session(client.into());
    ///     builder.begin(session, client.into(), Status::Committed)?;
    ///     builder.times(Some(begin), Some(commit));
    ///     if client == 1 {
    ///         builder.write(x, 1.into());
    ///     } else {
    ///         builder.read(x, 0.into());
    ///     }
    /// }
    /// let history = builder.finish()?;
    /// let verdict = Checker::new().level(Level::Linearizable).check(&history)?;
    /// assert!(verdict.story().is_some_and(|it| it.contains("linearizability")));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.promise = None;
        self.level = level;
        self
    }

    /// The level by any of its names, as `kingsnake check --level` takes them, also as a paper defines it: `snapshot isolation`,
    /// `PL-2.99`, `viper/si`.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let words = |name| Ok::<_, Box<dyn std::error::Error>>(Checker::new().level_named(name)?.promise()?.to_string());
    /// assert_eq!(words("snapshot isolation")?, words("si")?);
    /// assert_eq!(words("viper/si")?, "snapshot isolation without session order");
    /// assert!(Checker::new().level_named("nonsense").is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn level_named(self, name: &str) -> Result<Self, UnknownLevel> {
        match Definition::named(name) {
            Some(definition) => {
                let promise = definition.level.promise(definition.spec(), false);
                Ok(self.level(definition.level).hold_to(promise))
            }
            None => Ok(self.level(name.parse()?)),
        }
    }

    /// Whether a session's transactions keep their order [default: yes].
    ///
    /// ```
    /// use kingsnake::{Checker, Level};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/ser/read-your-writes-violation.jsonl"))?;
    /// let mut checker = Checker::new().level(Level::Ser).session_order(false);
    /// assert_eq!(checker.check(&history)?.holds(), Some(true));
    /// let mut checker = Checker::new().level(Level::Ser).session_order(true);
    /// assert_eq!(checker.check(&history)?.holds(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn session_order(mut self, on: bool) -> Self {
        self.session_order = Some(on);
        self
    }

    /// The back end by its name, as `kingsnake check --help` lists them.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let verdict = Checker::new().backend("cadical/lazy").check(&history)?;
    /// assert_eq!(verdict.holds(), Some(false));
    /// // An unknown name; the error lists the known ones.
    /// let refused = Checker::new().backend("minisat").check(&history);
    /// assert!(refused.is_err_and(|error| error.to_string().contains("cadical/lazy")));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn backend(mut self, name: &str) -> Self {
        self.backend = BackendChoice::Named(name.to_owned());
        self
    }

    /// A custom back end. Its answers are checked like those of any other, so a wrong one is an error and never a verdict.
    ///
    /// ```
    /// use kingsnake::decide::{Backend, DecideError, DecideStats, Decision, Question};
    /// use kingsnake::{Budget, Checker, StopReason};
    ///
    /// /// Gives up at once.
    /// struct Modest;
    ///
    /// impl Backend for Modest {
    ///     fn name(&self) -> &str {
    ///         "own/modest"
    ///     }
    ///
    ///     fn decide(
    ///         &mut self,
    ///         _: Question<'_>,
    ///         _: &Budget,
    ///         _: &mut dyn kingsnake::Progress,
    ///     ) -> Result<(Decision, DecideStats), DecideError> {
    ///         let reason = StopReason::Backend("it did not try".to_owned());
    ///         Ok((Decision::Unknown(reason), DecideStats::default()))
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let verdict = Checker::new().own_backend(Modest).check(&history)?;
    /// // Pruning found the cycle, so no back end was asked.
    /// assert_eq!(verdict.holds(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn own_backend(mut self, backend: impl Backend + 'static) -> Self {
        self.backend = BackendChoice::Own(Box::new(backend));
        self
    }

    /// Where to compute reachability [default: on a GPU if that is faster].
    ///
    /// ```
    /// use kingsnake::{Checker, DeviceChoice};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let verdict = Checker::new().device(DeviceChoice::Cpu).check(&history)?;
    /// assert_eq!(verdict.holds(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn device(mut self, choice: DeviceChoice) -> Self {
        self.device = ChosenDevice::Named(choice);
        self
    }

    /// A custom device. If it fails, the CPU computes the round.
    ///
    /// ```
    /// use kingsnake::{Checker, DeviceChoice, Gpu};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let verdict = Checker::new().own_device(Gpu::new(DeviceChoice::Cpu)).check(&history)?;
    /// assert_eq!(verdict.holds(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn own_device(mut self, device: impl Device + 'static) -> Self {
        self.device = ChosenDevice::Own(Box::new(device));
        self
    }

    /// Answer [`Verdict::Unknown`] this long after the start of a check.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use kingsnake::{Checker, StopReason, Verdict};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let verdict = Checker::new().timeout(Duration::ZERO).check(&history)?;
    /// assert!(matches!(verdict, Verdict::Unknown(StopReason::Time(_))));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Answer [`Verdict::Unknown`] rather than allocate a structure of more than this many bytes.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let verdict = Checker::new().memory_limit(1 << 30).check(&history)?;
    /// assert_eq!(verdict.holds(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Answer [`Verdict::Unknown`] when this flag becomes true.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// use kingsnake::{Checker, StopReason, Verdict};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let flag = Arc::new(AtomicBool::new(false));
    /// let mut checker = Checker::new().interrupt(Arc::clone(&flag));
    /// // Another thread, or a signal, sets it.
    /// flag.store(true, Ordering::Relaxed);
    /// let verdict = checker.check(&history)?;
    /// assert!(matches!(verdict, Verdict::Unknown(StopReason::Interrupted)));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupt = Some(flag);
        self
    }

    /// Answer [`Verdict::Unknown`] when this budget ends, which other work may share.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use kingsnake::{Budget, Checker, Verdict};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let over = Budget::unlimited().with_timeout(Instant::now(), Duration::ZERO);
    /// let verdict = Checker::new().within(over).check(&history)?;
    /// assert!(matches!(verdict, Verdict::Unknown(_)));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn within(mut self, budget: Budget) -> Self {
        self.within = Some(budget);
        self
    }

    /// The seed of the back end.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let verdict = Checker::new().seed(7).check(&history)?;
    /// assert_eq!(verdict.holds(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn seed(mut self, seed: u32) -> Self {
        self.seed = seed;
        self
    }

    /// Which techniques run. None of them changes a verdict.
    ///
    /// ```
    /// use kingsnake::{Checker, Techniques};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let techniques = Techniques {
    ///     witness: false,
    ///     ..Techniques::default()
    /// };
    /// let verdict = Checker::new().techniques(techniques).check(&history)?;
    /// assert_eq!(verdict.holds(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn techniques(mut self, techniques: Techniques) -> Self {
        self.techniques = techniques;
        self
    }

    /// Reports phases, pruning rounds and solver work to a listener while a check runs.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// use kingsnake::{Checker, Progress, ProgressEvent};
    ///
    /// struct Sender(mpsc::Sender<ProgressEvent>);
    ///
    /// impl Progress for Sender {
    ///     fn event(&mut self, event: ProgressEvent) {
    ///         let _ = self.0.send(event);
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let (sender, events) = mpsc::channel();
    /// Checker::new().progress(Sender(sender)).check(&history)?;
    /// assert!(events.try_iter().count() > 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn progress(mut self, listener: impl Progress + 'static) -> Self {
        self.progress = Box::new(listener);
        self
    }

    /// Sizes, times per phase, pruning and solver statistics of the last [`Checker::check`].
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let mut checker = Checker::new();
    /// checker.check(&history)?;
    /// assert_eq!(checker.stats().n_counted, history.n_txns());
    /// # Ok(())
    /// # }
    /// ```
    pub fn stats(&self) -> &CheckStats {
        &self.stats
    }

    /// Checks every level from rc to strict-ser, with shared work. A time limit is divided among the levels; without
    /// one, each level gets up to a minute.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/strong-session-si/write-skew.jsonl"))?;
    /// let answers = Checker::new().auto(&history)?;
    /// let strongest: Vec<&str> = answers
    ///     .iter()
    ///     .filter(|it| it.is_strongest)
    ///     .map(|it| it.label)
    ///     .collect();
    /// assert_eq!(strongest, ["strong-session-si"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn auto<'h>(&mut self, history: &'h History) -> Result<Vec<LevelAnswer<'h>>, Error> {
        let budget = self.budget();
        let per_level = self.timeout.is_none().then_some(PER_LEVEL);
        let asked = auto::levels(self.session_order);
        let reports = self.with_engines(|mut engines, techniques, progress| {
            let limits = (&budget, per_level);
            auto::auto(history, &asked, techniques, &mut engines, limits, progress)
        })?;
        let strongest = auto::strongest(&asked, &reports);
        let answers = asked.into_iter().zip(reports).map(|(it, report)| {
            let promise = Promise::Level(it.spec);
            LevelAnswer {
                label: it.label(),
                spec: it.spec,
                is_strongest: strongest.contains(&it),
                verdict: report.map(|it| Verdict::new(history, promise, it.verdict)),
            }
        });
        Ok(answers.collect())
    }

    /// The promise: the level with its components, or what [`Checker::hold_to`] set.
    ///
    /// ```
    /// use kingsnake::{Checker, Level};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let promise = Checker::new().level(Level::Si).session_order(false).promise()?;
    /// assert_eq!(promise.to_string(), "snapshot isolation without session order");
    /// # Ok(())
    /// # }
    /// ```
    pub fn promise(&self) -> Result<Promise, Error> {
        if let Some(promise) = &self.promise {
            return Ok(promise.clone());
        }
        let spec = self.level.spec(self.session_order);
        let spec = spec.ok_or(Error::SessionOrder(self.level))?;
        Ok(self.level.promise(spec, false))
    }

    /// Checks histories against this promise in place of a level: an expected order, or a level with other components.
    ///
    /// ```
    /// use kingsnake::{Along, Checker, Promise};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let figures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/certified");
    /// let history = kingsnake::open(format!("{figures}/figure-3.jsonl"))?;
    /// let mut checker = Checker::new().hold_to(Promise::Along(Along::CommitTs));
    /// assert_eq!(checker.check(&history)?.holds(), Some(false));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn hold_to(mut self, promise: Promise) -> Self {
        self.promise = Some(promise);
        self
    }

    /// Checks a history.
    ///
    /// ```
    /// use kingsnake::{Checker, Level, Verdict};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let verdict = Checker::new().level(Level::Si).check(&history)?;
    /// assert!(matches!(verdict, Verdict::Violated(_)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn check<'h>(&mut self, history: &'h History) -> Result<Verdict<'h>, Error> {
        let budget = self.budget();
        self.check_within(history, &budget)
    }

    /// Checks a history, for a page, a picture or a JSON document.
    ///
    /// ```
    /// use kingsnake::{Checker, Level};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/long-fork.jsonl"))?;
    /// let report = Checker::new().level(Level::Si).report(&history)?;
    /// assert!(report.page().contains("snapshot isolation"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn report<'h>(&mut self, history: &'h History) -> Result<CheckReport<'h>, Error> {
        self.report_of(Cow::Borrowed(history), Source::default())
    }

    /// The same of a history that the report keeps.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let history = kingsnake::parse(b"{\"kingsnake\":1}\n")?;
    /// let report = Checker::new().own_report(history)?;
    /// assert_eq!(report.verdict().holds(), Some(true));
    /// # Ok(())
    /// # }
    /// ```
    pub fn own_report(&mut self, history: History) -> Result<CheckReport<'static>, Error> {
        self.report_of(Cow::Owned(history), Source::default())
    }

    /// The same of a file or a directory, whose lines the page shows.
    ///
    /// ```
    /// use kingsnake::{Checker, Error};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let report = Checker::new().report_file(format!("{corpus}/none/lost-update.jsonl"))?;
    /// assert!(report.page().contains("lost-update.jsonl"));
    /// let missing = Checker::new().report_file("/nowhere");
    /// assert!(matches!(missing, Err(Error::Read(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn report_file(&mut self, path: impl AsRef<Path>) -> Result<CheckReport<'static>, Error> {
        let (path, options) = (path.as_ref(), ReadOptions::default());
        let parsed = kingsnake_datasets::open(path, &options)?;
        let (history, source) = Source::of(parsed, path, Some(options));
        self.report_of(Cow::Owned(history), source)
    }

    fn report_of<'h>(
        &mut self,
        history: Cow<'h, History>,
        source: Source,
    ) -> Result<CheckReport<'h>, Error> {
        let (start, budget) = (Instant::now(), self.budget());
        let (promise, report) = self.asked(&history, &budget)?;
        let asked = (self.level, promise);
        let time = start.elapsed();
        Ok(CheckReport::new(history, source, asked, report, time))
    }

    /// Every class of anomaly that a history shows, whatever the level, and the models that they rule out.
    ///
    /// ```
    /// use kingsnake::Checker;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/strong-session-si/write-skew.jsonl"))?;
    /// let found = Checker::new().anomalies(&history)?;
    /// let names: Vec<&str> = found.classes().map(|(class, _)| class.name).collect();
    /// assert_eq!(names, ["G2-item", "write-skew"]);
    /// assert!(found.boundary.not.contains("repeatable-read"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn anomalies(&self, history: &History) -> Result<FoundAnomalies, Error> {
        let found = anomalies::find(&Meaning::of(history), &self.budget());
        let found = found.map_err(CheckError::Resolve)?;
        found.map_err(Error::Stopped)
    }

    /// The smallest part of a violated history, in sessions, transactions and operations, that shows the same anomaly. Each part is
    /// checked as [`Checker::check`] does, within limits that count for all of them; the listener gets every part that is smaller.
    ///
    /// ```
    /// use kingsnake::{Checker, History, Level, ShrinkAnswer};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
    /// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
    /// let mut checker = Checker::new().level(Level::Si);
    /// let answer = checker.shrink(&history, &mut |_: &History, _: usize| {})?;
    /// let ShrinkAnswer::Shrunk(shrunk) = answer else {
    ///     unreachable!("an update is lost");
    /// };
    /// assert_eq!(shrunk.anomaly, "lost update (G-single)");
    /// assert_eq!(shrunk.history.n_txns(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn shrink(
        &mut self,
        history: &History,
        listener: &mut dyn ShrinkListener,
    ) -> Result<ShrinkAnswer, Error> {
        let budget = self.budget();
        shrink(self, history, &budget, listener)
    }

    /// Checks within limits shared with other work.
    pub(crate) fn check_within<'h>(
        &mut self,
        history: &'h History,
        budget: &Budget,
    ) -> Result<Verdict<'h>, Error> {
        let (promise, report) = self.asked(history, budget)?;
        Ok(Verdict::new(history, promise, report.verdict))
    }

    fn asked(&mut self, history: &History, budget: &Budget) -> Result<(Promise, Report), Error> {
        let promise = self.promise()?;
        let report = self.with_engines(|engines, techniques, progress| {
            check_promise(history, &promise, techniques, engines, budget, progress)
        })?;
        self.stats.clone_from(&report.stats);
        Ok((promise, report))
    }

    /// Calls `ask` with the back end, the device, the techniques and the listener.
    // Without CaDiCaL the options of a back end have no other fields.
    #[cfg_attr(not(feature = "cadical"), allow(clippy::needless_update))]
    fn with_engines<T>(
        &mut self,
        ask: impl FnOnce(Engines<'_>, &Techniques, &mut dyn Progress) -> Result<T, CheckError>,
    ) -> Result<T, Error> {
        let mut named_backend;
        let backend: &mut dyn Backend = match &mut self.backend {
            BackendChoice::Own(backend) => &mut **backend,
            BackendChoice::Named(name) => {
                let cooler = match &self.device {
                    ChosenDevice::Named(choice) => Some(GpuCooler::source(choice.clone())),
                    ChosenDevice::Own(_) => None,
                };
                let options = BackendOptions {
                    seed: self.seed,
                    cooler,
                    ..BackendOptions::default()
                };
                named_backend = kingsnake_encodings::backend(name, &options)?;
                &mut *named_backend
            }
        };
        let mut named_device;
        let device: &mut dyn Device = match &mut self.device {
            ChosenDevice::Own(device) => &mut **device,
            ChosenDevice::Named(choice) => {
                named_device = Gpu::new(choice.clone());
                &mut named_device
            }
        };
        let engines = Engines {
            device: Some(device),
            backend,
        };
        Ok(ask(engines, &self.techniques, &mut *self.progress)?)
    }

    fn budget(&self) -> Budget {
        let mut budget = self.within.clone().unwrap_or_else(Budget::unlimited);
        if let Some(limit) = self.timeout {
            budget = budget.with_timeout(Instant::now(), limit);
        }
        if let Some(bytes) = self.memory_limit {
            budget = budget.with_memory(bytes);
        }
        if let Some(flag) = &self.interrupt {
            budget = budget.with_interrupt(Arc::clone(flag));
        }
        budget
    }
}
