//! How key-value stores keep registers and lists: numbers in fixed order-preserving keys, values as plain bytes.

use crate::adapter::{Failure, Key, StoredCell};

/// A register's key: registers come in the order of their numbers.
pub(super) fn register(key: Key) -> [u8; 9] {
    place(b'r', key)
}

/// A list's key.
pub(super) fn list(key: Key) -> [u8; 9] {
    place(b'l', key)
}

fn place(table: u8, key: Key) -> [u8; 9] {
    let mut bytes = [table; 9];
    // The sign bit is flipped, so that bytes are ordered as numbers are.
    bytes[1..].copy_from_slice(&(key as u64 ^ (1 << 63)).to_be_bytes());
    bytes
}

/// The number of a key that [`register`] made.
pub(super) fn key_of(bytes: &[u8]) -> Result<Key, Failure> {
    let number = bytes.get(1..9).and_then(|it| it.try_into().ok());
    let number = number.map(|it| (u64::from_be_bytes(it) ^ (1 << 63)) as i64);
    number.ok_or_else(|| strange(bytes))
}

/// A register's value.
pub(super) fn cell(cell: StoredCell) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&cell.value.to_be_bytes());
    bytes[8..].copy_from_slice(&cell.beside.to_be_bytes());
    bytes
}

/// A register's value back.
pub(super) fn cell_of(bytes: &[u8]) -> Result<StoredCell, Failure> {
    let numbers = numbers(bytes)?;
    match numbers[..] {
        [value, beside] => Ok(StoredCell { value, beside }),
        _ => Err(strange(bytes)),
    }
}

/// A list, 8 bytes an element.
pub(super) fn numbers(bytes: &[u8]) -> Result<Vec<i64>, Failure> {
    let (whole, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(strange(bytes));
    }
    Ok(whole.iter().map(|it| i64::from_be_bytes(*it)).collect())
}

fn strange(bytes: &[u8]) -> Failure {
    Failure::Fatal(format!(
        "found {bytes:?}, which was not written by a client"
    ))
}
