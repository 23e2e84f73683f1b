//! Reads small files completely: settings, side files, records of runs.
//!
//! Invariant: no more than the caller's limit is read, whatever the file is; [`read_regular`] never waits for a pipe.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a file, a pipe or a device that a user named.
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    limited(File::open(path)?, most)
}

/// The text of a file, a pipe or a device that a user named.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    text(read_bytes(path, most)?)
}

/// The text of a file that was found in a directory; pipes and devices are refused before they are opened.
pub fn read_regular(path: &Path, most: u64) -> io::Result<String> {
    expect_regular(path)?;
    text(read_bytes(path, most)?)
}

/// Refuses everything but regular files and links to them.
pub fn expect_regular(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_file() {
        return Ok(());
    }
    let problem = "not a regular file";
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

fn limited(reader: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= most {
        return Ok(bytes);
    }
    let problem = format!("it holds more than {most} bytes");
    Err(io::Error::new(io::ErrorKind::FileTooLarge, problem))
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test may panic.
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_limit_is_read() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("it");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        assert_eq!(read_regular(&path, 5).unwrap(), "12345");
        let error = read_text(&path, 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        let error = read_regular(scratch.path(), 4).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        #[cfg(unix)]
        {
            let endless = Path::new("/dev/zero");
            assert!(read_bytes(endless, 1 << 10).is_err());
            assert!(read_regular(endless, 1 << 10).is_err());
        }
    }
}
