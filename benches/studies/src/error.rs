//! What can go wrong with a study, apart from what its checks answer.

use std::error::Error as Source;

/// Why a study does not run, or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A study file that makes no sense, with its line.
    #[error("{0}")]
    File(String),
    /// A request that cannot be met.
    #[error("{0}")]
    Refused(String),
    /// Something outside that failed.
    #[error("{doing}")]
    Outside {
        /// What was tried.
        doing: String,
        /// What the system, or a library, said.
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
