//! Plain lines of a large file, scanned on several cores while their numbers are interned in the order of the file.
//!
//! A plain line is a transaction of whole numbers in the order and the spacing in which our writer writes it. Any other line is left to
//! the reader of all lines, and so is every error: what is plain here means the same there.

use std::ops::Range;
use std::sync::{Condvar, Mutex, PoisonError};

use kingsnake_history::model::{NumberOp, Status};

use crate::split::split;

/// Files smaller than this are read line by line.
pub(super) const LARGE: usize = 1 << 20;

/// About how many bytes are scanned at a time.
const BLOCK: usize = 1 << 18;

/// How many blocks may be scanned ahead of the one that is interned.
const AHEAD: usize = 8;

/// The most threads that scan.
const MAX_SCANNERS: usize = 4;

/// An operation on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListOp {
    Append {
        key: i64,
        value: i64,
    },
    /// The read of a list, which ends there among the items of its block.
    Read {
        key: i64,
        items_end: usize,
    },
}

/// What a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineContent {
    /// Reads and writes, which end there among the block's.
    Numbers(usize),
    /// Appends and reads of lists, which end there among the block's.
    Lists(usize),
    /// Something else.
    Other,
}

/// A line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Where it starts in the file.
    pub(super) at: usize,
    pub(super) content: LineContent,
    pub(super) id: i64,
    pub(super) session: i64,
    pub(super) status: Status,
    pub(super) begin: Option<i64>,
    pub(super) commit: Option<i64>,
}

/// Some lines.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Where they stand in the file.
    pub(super) range: Range<usize>,
    pub(super) lines: Vec<Line>,
    pub(super) numbers: Vec<NumberOp>,
    pub(super) lists: Vec<ListOp>,
    pub(super) items: Vec<i64>,
}

/// The blocks of a file, scanned in any order and handed out in the order of the file.
struct Blocks<'a> {
    bytes: &'a [u8],
    parts: Vec<Range<usize>>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    scanned: Vec<Option<Block>>,
    /// The first block whose scan has not begun.
    next: usize,
    /// The block that is wanted.
    wanted: usize,
    /// Whether no more blocks are needed.
    is_over: bool,
}

/// Hands the blocks of a text to `take`, in order; each starts and ends at a line's start. Others scan while it takes.
pub(super) fn for_each<E>(
    bytes: &[u8],
    from: usize,
    mut take: impl FnMut(Block) -> Result<(), E>,
) -> Result<(), E> {
    let parts = parts(bytes, from);
    let n_blocks = parts.len();
    let blocks = Blocks {
        bytes,
        parts,
        state: Mutex::new(State {
            scanned: (0..n_blocks).map(|_| None).collect(),
            next: 0,
            wanted: 0,
            is_over: false,
        }),
        changed: Condvar::new(),
    };
    // Asking for their number starts rayon's threads.
    let n_scanners = if n_blocks > 1 {
        rayon::current_num_threads().min(MAX_SCANNERS)
    } else {
        1
    };
    std::thread::scope(|scope| {
        for _ in 1..n_scanners {
            scope.spawn(|| blocks.scan_all());
        }
        let mut all = (0..n_blocks).map(|at| take(blocks.wait_for(at)));
        let done = all.by_ref().find(Result::is_err).unwrap_or(Ok(()));
        blocks.end();
        done
    })
}

/// Where blocks stand: from a line's start to another's.
fn parts(bytes: &[u8], from: usize) -> Vec<Range<usize>> {
    let rest = &bytes[from..];
    let begins = |at: usize| {
        let line = rest[at..].iter().position(|&byte| byte == b'\n')?;
        Some(at + line + 1).filter(|&next| next < rest.len())
    };
    let parts = split(rest.len(), BLOCK, begins).into_iter();
    parts
        .map(|part| from + part.start..from + part.end)
        .collect()
}

impl Blocks<'_> {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    /// Scans blocks until there are none left.
    fn scan_all(&self) {
        let mut state = self.state();
        while !state.is_over && state.next < state.scanned.len() {
            if state.next >= state.wanted + AHEAD {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            drop(state);
            self.scan_next();
            state = self.state();
        }
    }

    /// Scans the first block that is not begun, if it is near enough; returns whether there was one.
    fn scan_next(&self) -> bool {
        let mut state = self.state();
        let at = state.next;
        if at >= state.scanned.len() || at >= state.wanted + AHEAD {
            return false;
        }
        state.next += 1;
        drop(state);
        let block = scan(self.bytes, self.parts[at].clone());
        self.state().scanned[at] = Some(block);
        self.changed.notify_all();
        true
    }

    /// A block; scans others while another thread scans it.
    fn wait_for(&self, at: usize) -> Block {
        loop {
            let mut state = self.state();
            state.wanted = at;
            if let Some(block) = state.scanned[at].take() {
                state.wanted = at + 1;
                drop(state);
                self.changed.notify_all();
                return block;
            }
            drop(state);
            if !self.scan_next() {
                let state = self.state();
                if state.scanned[at].is_none() {
                    drop(self.changed.wait(state));
                }
            }
        }
    }
}

/// Scans the lines between two places.
fn scan(bytes: &[u8], part: Range<usize>) -> Block {
    let mut block = Block {
        range: part.clone(),
        ..Block::default()
    };
    block.numbers.reserve(part.len() / 16);
    let mut scanner = Scanner {
        bytes: &bytes[..part.end],
        at: part.start,
    };
    while scanner.at < part.end {
        let line = scanner.line(&mut block);
        block.lines.push(line);
    }
    block
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    /// The next line, with its operations added to the block.
    fn line(&mut self, block: &mut Block) -> Line {
        let at = self.at;
        let lengths = (block.numbers.len(), block.lists.len(), block.items.len());
        if let Some(line) = self.plain_line(block) {
            return line;
        }
        block.numbers.truncate(lengths.0);
        block.lists.truncate(lengths.1);
        block.items.truncate(lengths.2);
        let rest = &self.bytes[at..];
        let length = rest.iter().position(|&byte| byte == b'\n');
        self.at = length.map_or(self.bytes.len(), |length| at + length + 1);
        Line {
            at,
            content: LineContent::Other,
            id: 0,
            session: 0,
            status: Status::Committed,
            begin: None,
            commit: None,
        }
    }

    fn plain_line(&mut self, block: &mut Block) -> Option<Line> {
        let at = self.at;
        self.expect(b"{\"id\":")?;
        let id = self.int()?;
        self.expect(b",\"session\":")?;
        let session = self.int()?;
        let status = match () {
            () if self.pass(b",\"status\":\"aborted\"") => Status::Aborted,
            () if self.pass(b",\"status\":\"unknown\"") => Status::Unknown,
            () => Status::Committed,
        };
        let begin = self.time(b",\"begin\":")?;
        let commit = self.time(b",\"commit\":")?;
        if commit < begin && commit.is_some() {
            return None;
        }
        self.expect(b",\"ops\":[")?;
        let content = if self.bytes[self.at..].starts_with(b"[\"a\",")
            || self.bytes[self.at..].starts_with(b"[\"rl\",")
        {
            self.lists(block)?;
            LineContent::Lists(block.lists.len())
        } else {
            self.numbers(block)?;
            LineContent::Numbers(block.numbers.len())
        };
        self.expect(b"}\n")?;
        Some(Line {
            at,
            content,
            id,
            session,
            status,
            begin,
            commit,
        })
    }

    /// A number after a name, if the name comes next.
    #[allow(clippy::option_option)] // No plain line, no time, or one.
    fn time(&mut self, name: &[u8]) -> Option<Option<i64>> {
        if self.pass(name) {
            return self.int().map(Some);
        }
        Some(None)
    }

    /// Reads and writes, up to the end of the operations.
    fn numbers(&mut self, block: &mut Block) -> Option<()> {
        if self.pass(b"]") {
            return Some(());
        }
        loop {
            let is_write = match self.bytes.get(self.at..self.at + 5)? {
                b"[\"r\"," => false,
                b"[\"w\"," => true,
                _ => return None,
            };
            self.at += 5;
            let key = self.int()?;
            self.expect(b",")?;
            let value = self.int()?;
            block.numbers.push(NumberOp {
                is_write,
                key,
                value,
            });
            if !self.next_op()? {
                return Some(());
            }
        }
    }

    /// Appends and reads of lists, up to the end of the operations.
    fn lists(&mut self, block: &mut Block) -> Option<()> {
        loop {
            if self.pass(b"[\"a\",") {
                let key = self.int()?;
                self.expect(b",")?;
                let value = self.int()?;
                block.lists.push(ListOp::Append { key, value });
            } else {
                self.expect(b"[\"rl\",")?;
                let key = self.int()?;
                self.expect(b",[")?;
                if !self.pass(b"]") {
                    loop {
                        block.items.push(self.int()?);
                        if !self.pass(b",") {
                            break;
                        }
                    }
                    self.expect(b"]")?;
                }
                let items_end = block.items.len();
                block.lists.push(ListOp::Read { key, items_end });
            }
            if !self.next_op()? {
                return Some(());
            }
        }
    }

    /// Whether another operation follows this one.
    #[inline]
    fn next_op(&mut self) -> Option<bool> {
        let next = self.bytes.get(self.at..self.at + 2)?;
        self.at += 2;
        match next {
            b"]," => Some(true),
            b"]]" => Some(false),
            _ => None,
        }
    }

    #[inline]
    fn pass(&mut self, word: &[u8]) -> bool {
        let is_next = self.bytes[self.at..].starts_with(word);
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    #[inline]
    fn expect(&mut self, word: &[u8]) -> Option<()> {
        self.pass(word).then_some(())
    }

    /// A whole number of at most 18 digits, without zeros in front.
    #[inline]
    fn int(&mut self) -> Option<i64> {
        let is_negative = self.pass(b"-");
        let start = self.at;
        let mut number = 0_i64;
        while let Some(digit @ 0..=9) = self.bytes.get(self.at).map(|byte| byte.wrapping_sub(b'0'))
        {
            // 18 digits fit; whether there were more is asked below.
            number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
            self.at += 1;
        }
        let n_digits = self.at - start;
        let has_zeros = n_digits > 1 && self.bytes[start] == b'0';
        if !(1..=18).contains(&n_digits) || has_zeros {
            return None;
        }
        Some(if is_negative { -number } else { number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Block {
        scan(text.as_bytes(), 0..text.len())
    }

    #[test]
    fn plain_lines_are_scanned_and_others_are_left_as_they_stand() {
        let text = "{\"id\":1,\"session\":2,\"begin\":-3,\"commit\":4,\"ops\":[[\"r\",5,6],[\"w\",5,7]]}\n\
                    {\"id\":1, \"session\":2,\"ops\":[]}\n\
                    {\"id\":2,\"session\":2,\"status\":\"aborted\",\"ops\":[[\"rl\",5,[1,2]],[\"a\",5,3]]}\n\
                    {\"id\":3,\"session\":2,\"ops\":[[\"w\",5,7],[\"a\",5,3]]}\n\
                    {\"id\":4,\"session\":2,\"ops\":[[\"w\",05,7]]}\n\
                    {\"id\":5,\"session\":2,\"ops\":[]}\n\
                    {\"id\":6,\"session\":2,\"begin\":4,\"commit\":3,\"ops\":[]}\n";
        let block = scanned(text);
        let contents: Vec<LineContent> = block.lines.iter().map(|line| line.content).collect();
        assert_eq!(
            contents,
            [
                LineContent::Numbers(2),
                LineContent::Other,
                LineContent::Lists(2),
                LineContent::Other,
                LineContent::Other,
                LineContent::Numbers(2),
                LineContent::Other,
            ]
        );
        let starts: Vec<usize> = block.lines.iter().map(|line| line.at).collect();
        let lines = text.split_inclusive('\n').scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            Some(start)
        });
        assert_eq!(starts, lines.collect::<Vec<usize>>());
        assert_eq!(
            (block.lines[0].begin, block.lines[0].commit),
            (Some(-3), Some(4))
        );
        assert_eq!(block.lines[2].status, Status::Aborted);
        assert_eq!(block.items, [1, 2]);
        let read = ListOp::Read {
            key: 5,
            items_end: 2,
        };
        assert_eq!(block.lists, [read, ListOp::Append { key: 5, value: 3 }]);
    }

    #[test]
    fn blocks_come_in_the_order_of_the_file_and_hold_every_line() {
        let lines = (0..60_000).map(|id| format!("{{\"id\":{id},\"session\":1,\"ops\":[]}}\n"));
        let text: String = lines.collect();
        let (mut n_blocks, mut next) = (0, 0);
        let done: Result<(), ()> = for_each(text.as_bytes(), 0, |block| {
            n_blocks += 1;
            for line in block.lines {
                assert_eq!((line.id, line.content), (next, LineContent::Numbers(0)));
                next += 1;
            }
            Ok(())
        });
        assert_eq!((done, next), (Ok(()), 60_000));
        assert!(n_blocks > 3, "{n_blocks}");
    }

    #[test]
    fn an_error_ends_the_scanning() {
        let text = "{\"id\":1,\"session\":1,\"ops\":[]}\n".repeat(60_000);
        let mut n_blocks = 0;
        let done = for_each(text.as_bytes(), 0, |_| {
            n_blocks += 1;
            Err("enough")
        });
        assert_eq!((done, n_blocks), (Err("enough"), 1));
    }
}
