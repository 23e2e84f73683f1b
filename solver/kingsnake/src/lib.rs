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
//! | build a history in memory | [`HistoryBuilder`] |
//! | check it at a level | [`check`] |
//! | choose level, session order, back end, device, limits | [`Checker`] |
//! | read what happened | [`Violation::story`] |
//! | replay the order that explains a history | [`verify`] |
//! | plug in a back end or a device | [`Checker::own_backend`], [`Checker::own_device`] |
//!
//! A verdict has three values. [`Verdict::Unknown`] comes only where a limit ended the check, where the caller asked it to stop, or
//! where a refutation could not be checked again. Every other verdict was checked again by code that shares nothing with the search.
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
mod verdict;

use std::path::Path;

pub use checker::{Checker, Error};
/// Why an answer is not accepted when it is checked again.
pub use kingsnake_certify::Refusal;
pub use kingsnake_datasets::{Format, ReadError, ReadOptions, WriteError};
pub use kingsnake_gpu::DeviceChoice;
pub use kingsnake_gpu::Gpu;
/// What a device implements, gets and answers.
pub use kingsnake_graph::prune as device;
pub use kingsnake_graph::prune::Device;
pub use kingsnake_graph::{Edge, reach};
pub use kingsnake_history::budget::{Budget, StopReason};
pub use kingsnake_history::level::{Level, Spec};
pub use kingsnake_history::model::{BuildError, History, HistoryBuilder, Status, Token};
pub use kingsnake_history::progress::Progress;
pub use kingsnake_history::verdict::{Certificate, Counterexample};
pub use kingsnake_solver::check::Techniques;
/// What a back end implements, is asked and answers.
pub use kingsnake_solver::decide;
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

/// Checks a history at a level, with everything else as it is by default.
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

/// Replays the order of a certificate against a history, in linear time and with nothing of what found it. For an order of
/// [`Level::Linearizable`] use [`verify_linearizable`].
///
/// ```
/// use kingsnake::{Checker, Level, Verdict};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/corpus");
/// let history = kingsnake::open(format!("{corpus}/strong-session-ser/bank-transfer.jsonl"))?;
/// let mut checker = Checker::new().level(Level::Ser);
/// let spec = checker.spec()?;
/// let Verdict::Satisfied(mut certificate) = checker.check(&history)? else {
///     unreachable!("the history is serializable");
/// };
/// kingsnake::verify(&history, spec, &certificate)?;
/// certificate.order.reverse();
/// assert!(kingsnake::verify(&history, spec, &certificate).is_err());
/// # Ok(())
/// # }
/// ```
pub fn verify(history: &History, spec: Spec, certificate: &Certificate) -> Result<(), Unverified> {
    kingsnake_certify::order::verify(history, spec, certificate).map_err(Unverified)
}

/// Replays the order that shows a history to be linearizable: each operation takes effect between its begin and its end, and every
/// read returns the last value written.
///
/// ```
/// use kingsnake::{Checker, HistoryBuilder, Level, Status, Verdict};
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
/// let Verdict::Satisfied(mut certificate) = kingsnake::check(&history, Level::Linearizable)? else {
///     unreachable!("the read returned what was written");
/// };
/// kingsnake::verify_linearizable(&history, &certificate)?;
/// certificate.order.reverse();
/// assert!(kingsnake::verify_linearizable(&history, &certificate).is_err());
/// # Ok(())
/// # }
/// ```
pub fn verify_linearizable(history: &History, certificate: &Certificate) -> Result<(), Unverified> {
    use kingsnake_certify::linearizable::{Demand, moments, replay};
    let demand = Demand {
        drift: 0,
        refusals_count: false,
    };
    let order = moments(history, certificate.order.iter().map(|point| point.txn));
    replay(history, demand, &order).map_err(Unverified)
}
