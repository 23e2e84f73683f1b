//! A session's journal: an append-only file of JSON lines, written through a memory map.
//!
//! A line that was appended belongs to the kernel, so a crash or a kill -9 of the collector loses nothing of it, and
//! appending costs a copy and no system call. A file ends at its first zero byte; what follows the last line end was
//! under way.
//!
//! Writes are appended before they are sent and reads after they were answered: whatever the database may have seen is in
//! the journal. `["c"]` is appended before the commit is sent, so a transaction that ends before it did not commit. The lines
//! that every transaction has are short, because fresh pages cost more than anything else here: `b` begins, `n` is a rank,
//! and `ok` is a commit, with the nanoseconds since the begin.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use memmap2::MmapMut;

use crate::adapter::Key;

const STEP: usize = 1 << 20;

/// Number of bytes requested at a time, so that not every page causes a fault of its own.
const AHEAD: usize = 1 << 16;

/// A line of a short name and up to three numbers is shorter.
const SHORT: usize = 128;

/// Appends lines to a file.
pub(crate) struct Journal {
    file: File,
    map: MmapMut,
    end: usize,
    /// Up to where the kernel was asked for pages.
    asked: usize,
    line: String,
    /// When the transaction at hand began.
    began: i64,
}

/// How a transaction ended, as its client saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Committed,
    Aborted(&'static str),
    Unknown,
}

/// A longer map of the file. Its blocks are taken first: a page that the disk has no room for would end the process by a signal.
#[allow(unsafe_code)] // The file is ours alone: no other process truncates it while it is mapped.
fn map(file: &File, from: usize, to: usize) -> io::Result<MmapMut> {
    allocate(file, from as u64, to as u64)?;
    unsafe { MmapMut::map_mut(file) }
}

/// Takes blocks for these bytes, which are zeros.
fn allocate(file: &File, from: u64, to: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    loop {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(file, FallocateFlags::empty(), from, to - from) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            // Not every file system knows this; all know how to write.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let mut at = from;
    let zeros = [0; 4096];
    while at < to {
        let n_bytes = (to - at).min(zeros.len() as u64) as usize;
        std::os::unix::fs::FileExt::write_all_at(file, &zeros[..n_bytes], at)?;
        at += n_bytes as u64;
    }
    Ok(())
}

impl Journal {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(path)?;
        let map = map(&file, 0, STEP)?;
        Ok(Journal {
            file,
            map,
            end: 0,
            asked: 0,
            line: String::with_capacity(256),
            began: 0,
        })
    }

    /// Appends the line that was put together.
    fn append(&mut self) -> io::Result<()> {
        self.line.push('\n');
        self.reserve(self.line.len())?;
        let end = self.end + self.line.len();
        self.map[self.end..end].copy_from_slice(self.line.as_bytes());
        self.end = end;
        self.line.clear();
        Ok(())
    }

    /// Makes room for this many bytes and a zero byte after them.
    #[inline]
    fn reserve(&mut self, n_bytes: usize) -> io::Result<()> {
        if self.end + n_bytes < self.asked {
            return Ok(());
        }
        self.grow(self.end + n_bytes)
    }

    #[cold]
    fn grow(&mut self, end: usize) -> io::Result<()> {
        if end >= self.map.len() {
            let size = (end + 1).next_multiple_of(STEP).max(self.map.len() + STEP);
            self.map = map(&self.file, self.map.len(), size)?;
            self.asked = self.end / AHEAD * AHEAD;
        }
        while end >= self.asked {
            self.ask();
        }
        Ok(())
    }

    /// Asks for the next pages. Where the kernel does not know this, they come one by one when they are written.
    fn ask(&mut self) {
        #[cfg(target_os = "linux")]
        let _ = self
            .map
            .advise_range(memmap2::Advice::PopulateWrite, self.asked, AHEAD);
        self.asked += AHEAD;
    }

    /// A name and up to three numbers, as a line. Nearly every line is of this sort, so it is written in its place.
    #[inline(always)]
    #[allow(clippy::inline_always)] // The name is known where it is called.
    fn numbers<const N: usize>(&mut self, name: &str, numbers: [i64; N]) -> io::Result<()> {
        let mut start = [0; 16];
        start[..2].copy_from_slice(b"[\"");
        start[2..2 + name.len()].copy_from_slice(name.as_bytes());
        start[2 + name.len()] = b'"';
        self.put((start, name.len() + 3), numbers)
    }

    #[inline]
    fn put<const N: usize>(
        &mut self,
        start: ([u8; 16], usize),
        numbers: [i64; N],
    ) -> io::Result<()> {
        self.reserve(SHORT)?;
        let mut line = Short {
            bytes: &mut self.map[self.end..self.end + SHORT],
            length: 0,
        };
        line.piece(start.0, start.1);
        for number in numbers {
            line.number(number);
        }
        line.piece(*b"]\n", 2);
        self.end += line.length;
        Ok(())
    }

    pub(crate) fn begin(&mut self, id: i64, session: i64, time: i64) -> io::Result<()> {
        self.began = time;
        self.numbers("b", [id, session, time])
    }

    pub(crate) fn read(&mut self, key: Key, value: Option<i64>) -> io::Result<()> {
        if let Some(value) = value {
            return self.numbers("r", [key, value]);
        }
        let _ = write!(self.line, "[\"r\",{key},null]");
        self.append()
    }

    #[inline]
    pub(crate) fn write(&mut self, name: &str, key: Key, value: i64) -> io::Result<()> {
        self.numbers(name, [key, value])
    }

    /// The name of a key in the history.
    pub(crate) fn key_name(&mut self, key: Key, name: &str) -> io::Result<()> {
        let name = serde_json::Value::from(name);
        let _ = write!(self.line, "[\"key\",{key},{name}]");
        self.append()
    }

    /// An operation in full, as our format writes it.
    pub(crate) fn op(&mut self, op: &str) -> io::Result<()> {
        self.line.push_str(op);
        self.append()
    }

    /// Whether the delete that was appended last found a row.
    pub(crate) fn found(&mut self, found: bool) -> io::Result<()> {
        let _ = write!(self.line, "[\"found\",{found}]");
        self.append()
    }

    /// The ranks of all versions of the operation that was appended last.
    pub(crate) fn ranks(&mut self, ranks: &[i64]) -> io::Result<()> {
        let _ = write!(self.line, "[\"ranks\",{ranks:?}]");
        self.append()
    }

    /// What a compare-and-set found, and whether it wrote. Its value was appended before, as `cas`.
    pub(crate) fn held(&mut self, held: Option<i64>, has_written: bool) -> io::Result<()> {
        let _ = match held {
            Some(value) => write!(self.line, "[\"held\",{value},{has_written}]"),
            None => write!(self.line, "[\"held\",null,{has_written}]"),
        };
        self.append()
    }

    pub(crate) fn rank(&mut self, rank: i64) -> io::Result<()> {
        self.numbers("n", [rank])
    }

    pub(crate) fn read_list(&mut self, key: Key, list: &[i64]) -> io::Result<()> {
        let _ = write!(self.line, "[\"rl\",{key},{list:?}]");
        self.append()
    }

    pub(crate) fn range(&mut self, low: Key, high: Key, rows: &[(Key, i64)]) -> io::Result<()> {
        let _ = write!(self.line, "[\"range\",{low},{high},[");
        for (at, (key, value)) in rows.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(self.line, "{comma}[{key},{value}]");
        }
        self.line.push_str("]]");
        self.append()
    }

    /// A text about the transaction: its name in the database, or a snapshot.
    pub(crate) fn text(&mut self, what: &str, text: &str) -> io::Result<()> {
        let text = serde_json::Value::from(text);
        let _ = write!(self.line, "[\"{what}\",{text}]");
        self.append()
    }

    pub(crate) fn committing(&mut self) -> io::Result<()> {
        self.numbers("c", [])
    }

    pub(crate) fn end(&mut self, end: End, time: i64) -> io::Result<()> {
        match end {
            End::Committed => self.numbers("ok", [time - self.began]),
            End::Unknown => {
                let _ = write!(self.line, "[\"end\",\"unknown\",{time}]");
                self.append()
            }
            // The reason is one of our own words, which need no escapes.
            End::Aborted(reason) => {
                let _ = write!(self.line, "[\"end\",\"aborted\",{time},\"{reason}\"]");
                self.append()
            }
        }
    }
}

/// A line that is written in its place, in pieces of fixed sizes: copying a few bytes is a store or two then, not a call.
struct Short<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl Short<'_> {
    /// Appends the first bytes of a piece. Those behind them are zero, and are written over by the next piece.
    #[inline]
    fn piece<const N: usize>(&mut self, piece: [u8; N], length: usize) {
        self.bytes[self.length..self.length + N].copy_from_slice(&piece);
        self.length += length;
    }

    /// A comma and a number.
    #[inline]
    fn number(&mut self, number: i64) {
        // The digits end in the middle, so that as many bytes follow the first one as the longest number has.
        let mut digits = [0_u8; 2 * LONGEST];
        let mut at = LONGEST;
        let mut rest = number.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        at -= 1;
        digits[at] = b',';
        let mut piece = [0; LONGEST];
        piece.copy_from_slice(&digits[at..at + LONGEST]);
        self.piece(piece, LONGEST - at);
    }
}

/// A comma, a sign and nineteen digits are shorter.
const LONGEST: usize = 24;

impl Drop for Journal {
    fn drop(&mut self) {
        // Only tidies up: a reader stops at the first zero byte anyway.
        let _ = self.file.set_len(self.end as u64);
    }
}

/// The journals of a collection, in order.
pub(crate) fn journals(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or("");
        let number = name.strip_prefix("session-");
        if let Some(number) = number.and_then(|it| it.strip_suffix(".journal"))
            && let Ok(number) = number.parse::<usize>()
        {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The name of a session's journal.
pub(crate) fn journal_name(session: usize) -> String {
    format!("session-{session}.journal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_numbers_are_json() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(journal_name(0));
        let mut journal = Journal::create(&path).unwrap();
        let numbers = [0, 7, -1, 10, 999, -1_000, i64::MAX, i64::MIN];
        for number in numbers {
            journal.begin(number, number, number).unwrap();
            journal.write("insert", number, number).unwrap();
        }
        drop(journal);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut expected = String::new();
        for it in numbers {
            let _ = writeln!(expected, "[\"b\",{it},{it},{it}]\n[\"insert\",{it},{it}]");
        }
        assert_eq!(text, expected);
    }

    #[test]
    fn a_journal_that_was_never_closed_keeps_every_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(journal_name(3));
        let mut journal = Journal::create(&path).unwrap();
        for id in 0..50_000 {
            journal.begin(id, 3, id).unwrap();
        }
        // As after a kill: nothing is flushed, nothing is truncated.
        std::mem::forget(journal);
        let text = std::fs::read(&path).unwrap();
        let end = text.iter().position(|&byte| byte == 0).unwrap();
        let lines = std::str::from_utf8(&text[..end]).unwrap().lines().count();
        assert_eq!(lines, 50_000);
        assert_eq!(journals(directory.path()).unwrap(), [path]);
    }
}
