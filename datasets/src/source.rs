//! Brings a file's bytes into memory: mapped where it is large and the caller asks for that, decompressed where it is gzip or zstd.
//!
//! Invariant: what is decompressed, or comes from a pipe or a device, never exceeds the caller's limit, and the budget is asked
//! after every piece.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use kingsnake_history::budget::Budget;
use memmap2::Mmap;

use crate::ReadOptions;
use crate::error::{InputProblem, Place, ReadError};

/// Below this size a plain read is cheaper than a mapping.
const MAP_FROM: u64 = 64 * 1024;

/// How much is read between two looks at the budget.
const PIECE: u64 = 1 << 20;

pub(crate) const BYTE_ORDER_MARK: &[u8] = &[0xef, 0xbb, 0xbf];
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The bytes of one file.
pub(crate) enum FileSource {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl FileSource {
    /// The mapping, if it is one.
    pub(crate) fn map(&self) -> Option<&Mmap> {
        match self {
            FileSource::Mapped(map) => Some(map),
            FileSource::Owned(_) => None,
        }
    }
}

impl Deref for FileSource {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            FileSource::Mapped(map) => map,
            FileSource::Owned(bytes) => bytes,
        }
    }
}

/// Reads a file, decompressed.
pub(crate) fn load(
    path: &Path,
    limit: u64,
    options: &ReadOptions,
) -> Result<FileSource, ReadError> {
    let budget = &options.budget;
    let raw = raw(path, limit, options)?;
    let fail = |error: io::Error| ReadError::new(path, Place::Whole, error);
    if raw.starts_with(GZIP) {
        let reader = flate2::read::MultiGzDecoder::new(&*raw);
        return pieces(reader, path, limit, budget).map(FileSource::Owned);
    }
    if raw.starts_with(ZSTD) {
        let reader = zstd::Decoder::with_buffer(&*raw).map_err(fail)?;
        return pieces(reader, path, limit, budget).map(FileSource::Owned);
    }
    Ok(raw)
}

/// How much of a file is looked at to find what it is.
const BEGINNING: u64 = 1 << 16;

/// The beginning of a file, decompressed.
pub(crate) struct Beginning {
    pub(crate) bytes: Vec<u8>,
    /// Whether the file holds no more.
    pub(crate) is_whole: bool,
}

/// Reads as much of a file as tells what it is.
pub(crate) fn beginning(path: &Path) -> io::Result<Beginning> {
    let mut file = BufReader::new(File::open(path)?);
    let magic = file.fill_buf()?;
    if magic.starts_with(GZIP) {
        first(flate2::bufread::MultiGzDecoder::new(file))
    } else if magic.starts_with(ZSTD) {
        first(zstd::Decoder::with_buffer(file)?)
    } else {
        first(file)
    }
}

fn first(reader: impl Read) -> io::Result<Beginning> {
    let mut bytes = Vec::new();
    reader.take(BEGINNING + 1).read_to_end(&mut bytes)?;
    let is_whole = bytes.len() as u64 <= BEGINNING;
    bytes.truncate(BEGINNING as usize);
    Ok(Beginning { bytes, is_whole })
}

/// The bytes without a byte-order mark, which some editors put before UTF-8 text. Text of 16 bits is refused.
pub(crate) fn text<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a [u8], ReadError> {
    if let Some(rest) = bytes.strip_prefix(BYTE_ORDER_MARK) {
        return Ok(rest);
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        let problem = InputProblem::Syntax {
            found: "the byte-order mark of UTF-16".to_owned(),
            expected: "UTF-8; save the file as UTF-8".to_owned(),
        };
        return Err(ReadError::new(path, Place::Whole, problem));
    }
    Ok(bytes)
}

/// The bytes as they are in the file.
fn raw(path: &Path, limit: u64, options: &ReadOptions) -> Result<FileSource, ReadError> {
    let fail = |error: io::Error| ReadError::new(path, Place::Whole, error);
    let file = File::open(path).map_err(fail)?;
    let meta = file.metadata().map_err(fail)?;
    if !meta.is_file() || !options.map || meta.len() < MAP_FROM {
        // A file on a disk is as large as it is; the limit is for what grows while it is read.
        let limit = if meta.is_file() { u64::MAX } else { limit };
        return pieces(file, path, limit, &options.budget).map(FileSource::Owned);
    }
    // A file that shrinks while it is mapped ends the process, unless the caller handles SIGBUS, as a caller that asks for mapping
    // does. Nothing else can go wrong: the mapping is private, read only, and dropped before the reader returns.
    #[allow(unsafe_code)]
    let map = unsafe { Mmap::map(&file) }.map_err(fail)?;
    Ok(FileSource::Mapped(map))
}

/// Reads to the end, piece by piece, unless the limit or the budget comes first.
fn pieces(
    mut reader: impl Read,
    path: &Path,
    limit: u64,
    budget: &Budget,
) -> Result<Vec<u8>, ReadError> {
    let fail = |problem: InputProblem| ReadError::new(path, Place::Whole, problem);
    let mut bytes = Vec::new();
    loop {
        // What was read is in memory twice while a buffer that is full moves.
        let n_next = bytes.len() + PIECE as usize;
        let moved = if n_next > bytes.capacity() { n_next } else { 0 };
        budget
            .check()
            .and_then(|()| budget.reserve("the file in memory", (bytes.len() + moved) as u64))
            .map_err(|reason| fail(InputProblem::Stopped(reason)))?;
        bytes.reserve(PIECE as usize);
        let read = reader.by_ref().take(PIECE).read_to_end(&mut bytes);
        let n_read = read.map_err(|error| fail(error.into()))?;
        if bytes.len() as u64 > limit {
            return Err(fail(InputProblem::TooLarge { limit }));
        }
        if n_read == 0 {
            return Ok(bytes);
        }
    }
}

/// A file's name without its compression suffix.
pub(crate) fn plain_name(path: &Path) -> &str {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    name.strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"))
        .unwrap_or(name)
}

/// One session's log, named by a letter and a number: `T7.log`, `J7.log`.
pub(crate) struct LogFile {
    pub(crate) number: i64,
    pub(crate) path: PathBuf,
}

/// What a directory holds.
pub(crate) struct Listing {
    /// `T<n>.log`, by number.
    pub(crate) cobra: Vec<LogFile>,
    /// `J<n>.log`, by number.
    pub(crate) viper: Vec<LogFile>,
    /// Everything else, by name.
    pub(crate) others: Vec<PathBuf>,
}

/// Lists a directory.
pub(crate) fn list(directory: &Path) -> Result<Listing, ReadError> {
    let fail = |error: io::Error| ReadError::new(directory, Place::Whole, error);
    let mut listing = Listing {
        cobra: Vec::new(),
        viper: Vec::new(),
        others: Vec::new(),
    };
    for entry in fs::read_dir(directory).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if let Some(number) = log_number(&path, 'T') {
            listing.cobra.push(LogFile { number, path });
        } else if let Some(number) = log_number(&path, 'J') {
            listing.viper.push(LogFile { number, path });
        } else {
            listing.others.push(path);
        }
    }
    listing.others.sort();
    for logs in [&mut listing.cobra, &mut listing.viper] {
        logs.sort_by(|a, b| (a.number, &a.path).cmp(&(b.number, &b.path)));
        if let Some(pair) = logs
            .windows(2)
            .find(|pair| pair[0].number == pair[1].number)
        {
            let message = format!(
                "{} and {} are both the log of session {}",
                pair[0].path.display(),
                pair[1].path.display(),
                pair[0].number
            );
            return Err(ReadError::new(
                directory,
                Place::Whole,
                InputProblem::Contradiction(message),
            ));
        }
    }
    Ok(listing)
}

/// The number in a log's name, where the name has that form.
pub(crate) fn log_number(path: &Path, letter: char) -> Option<i64> {
    let digits = plain_name(path)
        .strip_prefix(letter)?
        .strip_suffix(".log")?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_named_by_a_letter_and_a_number() {
        let number = |name: &str| log_number(Path::new(name), 'T');
        assert_eq!(number("a/T12.log"), Some(12));
        assert_eq!(number("T12.log.gz"), Some(12));
        assert_eq!(number("T12.error"), None);
        assert_eq!(number("T.log"), None);
        assert_eq!(number("T-1.log"), None);
        assert_eq!(number("J1.log"), None);
    }
}
