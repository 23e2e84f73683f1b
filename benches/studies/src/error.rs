//! Errors of a study, apart from the answers of its checks.

use std::error::Error as Source;

/// Why a study does not run, or does not continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A study file that makes no sense, with its line.
    #[error("{0}")]
    File(String),
    /// A request that cannot be met.
    #[error("{0}")]
    Refused(String),
    /// An external failure.
    #[error("{doing}")]
    Outside {
        /// The attempted action.
        doing: String,
        /// The message of the system, or of a library.
        source: Box<dyn Source + Send + Sync>,
    },
}

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says what was tried when something outside failed.
pub(crate) trait Context<T> {
    fn context(self, doing: &str) -> Result<T>;
    fn with_context(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<Box<dyn Source + Send + Sync>>> Context<T> for std::result::Result<T, E> {
    fn context(self, doing: &str) -> Result<T> {
        self.with_context(|| doing.to_owned())
    }

    fn with_context(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| Error::Outside {
            doing: doing(),
            source: source.into(),
        })
    }
}

/// Returns with [`Error::Refused`].
macro_rules! bail {
    ($($words:tt)*) => {
        return Err($crate::error::Error::Refused(format!($($words)*)))
    };
}
pub(crate) use bail;
