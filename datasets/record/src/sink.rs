//! Where lines go: a file, in which ends are filled in, or a watch, to which they are sent.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::net::TcpStream;

use crate::value::Field;

/// Room for the longest end: `"committed","commit":` and a number of 64 bits.
const ROOM: usize = 44;

/// The smallest page of memory in use.
const PAGE: u64 = 4096;

const UNKNOWN: &str = "\"unknown\"";

pub(crate) enum Sink {
    File(File),
    Watch(Box<dyn Write + Send>),
}

impl Sink {
    pub(crate) fn file(file: File) -> Self {
        Sink::File(file)
    }

    pub(crate) fn connect(address: &str) -> io::Result<Self> {
        #[cfg(unix)]
        if let Some(path) = address.strip_prefix("unix:") {
            let stream = std::os::unix::net::UnixStream::connect(path)?;
            return Ok(Sink::Watch(Box::new(stream)));
        }
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Sink::Watch(Box::new(stream)))
    }

    /// Appends a line, whole or not at all; where it begins.
    pub(crate) fn append(&mut self, line: &str) -> io::Result<u64> {
        match self {
            Sink::File(file) => {
                let start = file.seek(SeekFrom::End(0))?;
                let blank = blank_before(start, line.len());
                file.write_all(format!("{:blank$}{line}", "").as_bytes())?;
                Ok(start + blank as u64)
            }
            Sink::Watch(stream) => {
                stream.write_all(line.as_bytes())?;
                Ok(0)
            }
        }
    }

    /// Appends a line with an unknown end between two pieces; where the end stands.
    pub(crate) fn append_open(&mut self, head: &str, tail: &str) -> io::Result<u64> {
        let line = match self {
            Sink::File(_) => format!("{head}{UNKNOWN:<ROOM$}{tail}"),
            Sink::Watch(_) => format!("{head}{UNKNOWN}{tail}"),
        };
        Ok(self.append(&line)? + head.len() as u64)
    }

    /// Says how the transaction ended that a session appended last.
    pub(crate) fn fill(&mut self, place: u64, session: &Field, end: &str) -> io::Result<()> {
        match self {
            Sink::File(file) => {
                file.seek(SeekFrom::Start(place))?;
                // Spaces after a value mean nothing in JSON.
                file.write_all(format!("{end:<ROOM$}").as_bytes())
            }
            Sink::Watch(stream) => {
                let line = format!("{{\"end\":{{\"session\":{session},\"status\":{end}}}}}\n");
                stream.write_all(line.as_bytes())
            }
        }
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.sync_data(),
            Sink::Watch(stream) => stream.flush(),
        }
    }
}

/// How many spaces go before a line. A process that is killed stops writing at the end of a page, so a line that would cross one
/// begins at it: then it is in the file whole, or not at all.
fn blank_before(start: u64, n_bytes: usize) -> usize {
    let used = (start % PAGE) as usize;
    let left = PAGE as usize - used;
    if used == 0 || n_bytes <= left {
        0
    } else {
        left
    }
}
