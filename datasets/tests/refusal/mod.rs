//! Reading bytes that should be refused, or should not.

use kingsnake_datasets::{Format, Parsed, ReadError, read_bytes};

/// The error of a history that must be refused.
pub fn error(format: Format, bytes: impl AsRef<[u8]>) -> ReadError {
    match read_bytes(format, bytes.as_ref(), "history") {
        Err(error) => error,
        Ok(parsed) => panic!("read {} transactions", parsed.history.n_txns()),
    }
}

/// A history that must be read.
pub fn read(format: Format, bytes: impl AsRef<[u8]>) -> Parsed {
    read_bytes(format, bytes.as_ref(), "history").unwrap_or_else(|error| panic!("{error}"))
}
