//! Checks whether a database kept its isolation promise: from a log of what clients saw to a verdict that anyone can check again.
//!
//! ```
//! use kingsnake::{Level, Verdict};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let logs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus/none/lost-update.jsonl");
//! let history = kingsnake::open(logs)?;
//! match kingsnake::check(&history, Level::Ser)? {
//!     Verdict::Violated(violation) => println!("{}", violation.story()),
//!     other => println!("{other}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | to | use |
//! | --- | --- |
//! | read a log in any format | [`open`] |
//! | find mistakes of the log | [`lint`], [`lint_history`] |
//! | build a history in memory | [`HistoryBuilder`], [`parse`] |
//! | check it at a level | [`check`] |
//! | find the strongest level that holds | [`Checker::auto`] |
//! | find every class of anomaly | [`Checker::anomalies`] |
//! | follow a long check, read its statistics | [`Checker::progress`], [`Checker::stats`] |
//! | choose level, session order, back end, device, limits | [`Checker`] |
//! | make a violated history small | [`Checker::shrink`] |
//! | read what happened | [`Violation::story`] |
//! | write what shows an answer | [`certificate`], [`counterexample`] |
//! | write a page, a picture, a JSON document | [`Checker::report`], [`Checker::report_file`] |
//! | read it again, and check it against the history | [`read`], [`verify`] |
//! | plug in a back end or a device | [`Checker::own_backend`], [`Checker::own_device`] |
//!
//! A verdict has three values. [`Verdict::Unknown`] is returned only if a limit ended the check, the caller stopped it,
//! or a refutation could not be checked again. Every other verdict was checked again by code that shares nothing with
//! the search.
//!
//! A history in memory:
//!
//! ```
//! use kingsnake::{HistoryBuilder, Level, Status, Verdict};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut builder = HistoryBuilder::new();
//! let x = builder.text("x");
//! builder.initial(x, 0.into());
//! for (client, written) in [(1, 10), (2, 20)] {
//!     let session = builder.session(client.into());
//!     builder.begin(session, client.into(), Status::Committed)?;
//!     builder.read(x, 0.into());
//!     builder.write(x, written.into());
//! }
//! let history = builder.finish()?;
//! // Both read 0 and wrote, so one of the updates is lost.
//! assert!(matches!(kingsnake::check(&history, Level::Si)?, Verdict::Violated(_)));
//! # Ok(())
//! # }
//! ```

mod checker;
mod report;
mod shrink;
mod verdict;

use std::path::Path;

pub use checker::{Checker, Error, LevelAnswer};
/// Why an answer was rejected when it was checked again.
pub use kingsnake_certify::Refusal;
pub use kingsnake_datasets::{Format, Place, ReadError, ReadOptions, WriteError};
pub use kingsnake_evidence::{EvidenceClaim, EvidenceError};
pub use kingsnake_gpu::DeviceChoice;
pub use kingsnake_gpu::Gpu;
/// The interface of devices.
pub use kingsnake_graph::prune as device;
pub use kingsnake_graph::prune::Device;
pub use kingsnake_graph::{Edge, reach};
pub use kingsnake_history::adya::PlLevel;
pub use kingsnake_history::budget::{Budget, StopReason};
pub use kingsnake_history::definition::Definition;
pub use kingsnake_history::level::{Level, Spec, UnknownLevel};
pub use kingsnake_history::model::{BuildError, History, HistoryBuilder, Status, Token};
pub use kingsnake_history::progress::{Phase, Progress, ProgressEvent};
pub use kingsnake_history::promise::{Along, Promise, RegisterOptions};
pub use kingsnake_history::verdict::{Certificate, Counterexample};
/// Every class of anomaly, and what the classes rule out.
pub use kingsnake_report::anomalies::FoundAnomalies;
pub use kingsnake_solver::check::{CheckStats, Techniques};
/// The interface of back ends.
pub use kingsnake_solver::decide;
/// A class of anomaly, and the story of its example.
pub use kingsnake_tell::{AnomalyClass, Story};
pub use report::CheckReport;
pub use shrink::{ShrinkAnswer, ShrinkListener, Shrunk};
pub use verdict::{Unverified, Verdict, Violation};

/// Reads a history from a file or a directory of logs, in any format, recognised from its content.
///
/// ```
/// # fn main() -> Result<(), kingsnake::ReadError> {
/// # let logs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus/none/lost-update.jsonl");
/// let history = kingsnake::open(logs)?;
/// assert!(history.n_txns() > 1);
/// # Ok(())
/// # }
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<History, ReadError> {
    kingsnake_datasets::open(path.as_ref(), &ReadOptions::default()).map(|parsed| parsed.history)
}

/// Reads a history from the text of our own format (docs/formats.md); an error names the line.
///
/// ```
/// # fn main() -> Result<(), kingsnake::ReadError> {
/// let text = b"{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",0]]}\n";
/// assert_eq!(kingsnake::parse(text)?.n_txns(), 1);
/// let error = kingsnake::parse(b"{\"kingsnake\":1}\n{\"id\":true}\n").unwrap_err();
/// assert!(error.to_string().contains("line 2"));
/// # Ok(())
/// # }
/// ```
pub fn parse(text: &[u8]) -> Result<History, ReadError> {
    let parsed = kingsnake_datasets::read_bytes(Format::Kingsnake, text, "history");
    parsed.map(|parsed| parsed.history)
}

/// What looks like a mistake of a log, in a file or a directory: `kingsnake lint`.
///
/// ```
/// # fn main() -> Result<(), kingsnake::ReadError> {
/// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
/// assert!(kingsnake::lint(format!("{corpus}/none/lost-update.jsonl"))?.is_empty());
/// # Ok(())
/// # }
/// ```
pub fn lint(path: impl AsRef<Path>) -> Result<Vec<String>, ReadError> {
    let parsed = kingsnake_datasets::open(path.as_ref(), &ReadOptions::default())?;
    let mut remarks = parsed.warnings;
    remarks.extend(kingsnake_report::lint::lint(&parsed.history, parsed.format));
    Ok(remarks)
}

/// The same of a history in memory.
///
/// ```
/// let history = kingsnake::parse(b"{\"kingsnake\":1}\n").expect("a history");
/// assert!(kingsnake::lint_history(&history)[0].contains("no transaction"));
/// ```
pub fn lint_history(history: &History) -> Vec<String> {
    kingsnake_report::lint::lint(history, Format::Kingsnake)
}

/// Checks a history at a level, with the default options.
///
/// ```
/// use kingsnake::{Level, Verdict};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
/// let history = kingsnake::open(format!("{corpus}/strong-session-si/write-skew.jsonl"))?;
/// assert!(matches!(kingsnake::check(&history, Level::Si)?, Verdict::Satisfied(_)));
/// assert!(matches!(kingsnake::check(&history, Level::Ser)?, Verdict::Violated(_)));
/// # Ok(())
/// # }
/// ```
pub fn check(history: &History, level: Level) -> Result<Verdict<'_>, Error> {
    Checker::new().level(level).check(history)
}

/// The text of a certificate: the order that proves a promise kept, for [`read`] and for `kingsnake verify`.
///
/// ```
/// use kingsnake::{Checker, Level, Verdict};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
/// let history = kingsnake::open(format!("{corpus}/strong-session-ser/bank-transfer.jsonl"))?;
/// let mut checker = Checker::new().level(Level::Ser);
/// let promise = checker.promise()?;
/// let Verdict::Satisfied(mut certificate) = checker.check(&history)? else {
///     unreachable!("the history is serializable");
/// };
/// let text = kingsnake::certificate(&history, &promise, &certificate);
/// kingsnake::verify(&history, &kingsnake::read(&history, text.as_bytes())?)?;
/// certificate.order.reverse();
/// let text = kingsnake::certificate(&history, &promise, &certificate);
/// assert!(kingsnake::verify(&history, &kingsnake::read(&history, text.as_bytes())?).is_err());
/// # Ok(())
/// # }
/// ```
pub fn certificate(history: &History, promise: &Promise, certificate: &Certificate) -> String {
    kingsnake_evidence::certificate(history, promise, certificate)
}

/// The text of a counterexample, as [`Violation::evidence`] returns it: the proof that a promise is broken, for
/// [`read`] and `kingsnake verify`.
///
/// ```
/// use kingsnake::{Checker, Level, Verdict};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let figures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/certified");
/// let history = kingsnake::open(format!("{figures}/figure-1.jsonl"))?;
/// let mut checker = Checker::new().level("pl-3".parse()?);
/// let promise = checker.promise()?;
/// let Verdict::Violated(violation) = checker.check(&history)? else {
///     unreachable!("the recorded versions have a cycle");
/// };
/// let text = kingsnake::counterexample(&history, &promise, violation.counterexample());
/// let claim = kingsnake::read(&history, text.as_bytes())?;
/// assert_eq!(claim.promise, promise);
/// kingsnake::verify(&history, &claim)?;
/// # Ok(())
/// # }
/// ```
pub fn counterexample(
    history: &History,
    promise: &Promise,
    counterexample: &Counterexample,
) -> String {
    kingsnake_evidence::counterexample(history, promise, counterexample)
}

/// Reads a certificate or a counterexample for a history, also the document of `kingsnake check --json`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
/// let history = kingsnake::open(format!("{corpus}/none/lost-update.jsonl"))?;
/// let error = kingsnake::read(&history, b"{\"verdict\":\"unknown\"}").unwrap_err();
/// assert!(error.to_string().contains("only \"violated\" can be judged again"));
/// # Ok(())
/// # }
/// ```
pub fn read(history: &History, text: &[u8]) -> Result<EvidenceClaim, EvidenceError> {
    kingsnake_evidence::read(history, text)
}

/// Checks a file's claim against a history, independently of the solver: replays an order, or derives a counterexample again.
///
/// ```
/// use kingsnake::{HistoryBuilder, Level, Status, Verdict};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut builder = HistoryBuilder::new();
/// let x = builder.text("x");
/// for (client, begin, commit) in [(1_i64, 0, 10), (2, 20, 30)] {
///     let session = builder.session(client.into());
///     builder.begin(session, client.into(), Status::Committed)?;
///     builder.times(Some(begin), Some(commit));
///     if client == 1 {
///         builder.write(x, 1.into());
///     } else {
///         builder.read(x, 1.into());
///     }
/// }
/// let history = builder.finish()?;
/// let mut checker = kingsnake::Checker::new().level(Level::Linearizable);
/// let Verdict::Satisfied(certificate) = checker.check(&history)? else {
///     unreachable!("the read returned what was written");
/// };
/// let text = kingsnake::certificate(&history, &checker.promise()?, &certificate);
/// let claim = kingsnake::read(&history, text.as_bytes())?;
/// kingsnake::verify(&history, &claim)?;
/// // The read cannot have taken effect before it began.
/// let claim = kingsnake::read(&history, text.replace("[20,2]", "[5,2]").as_bytes())?;
/// assert!(kingsnake::verify(&history, &claim).is_err());
/// # Ok(())
/// # }
/// ```
pub fn verify(history: &History, claim: &EvidenceClaim) -> Result<(), Unverified> {
    let checked = claim.check(history, &Budget::unlimited());
    checked.map_err(Unverified)
}
