//! A scanner for EDN and for JSON, one value at a time, into a small tree that borrows from the file.
//!
//! In EDN commas are blanks, `;` begins a comment, `#_` discards a value, and a tag stands before the value that it
//! tags and is dropped. JSON differs by the colon after a key and by `null`.

use std::borrow::Cow;

use crate::cursor::Cursor;
use crate::error::ReadError;

/// Deeper nesting than this is refused, so that no file can exhaust the stack.
const MAX_DEPTH: usize = 100;

/// Which of the two languages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Edn,
    Json,
}

/// A value. Compound values keep their source, which stands for them where a plain value is wanted.
#[derive(Debug)]
pub(super) enum Datum<'a> {
    Nil,
    Int(i64),
    Text(Cow<'a, str>),
    /// A keyword, without its colon.
    Keyword(&'a str),
    /// Fractions, symbols, characters, truth values.
    Other(&'a str),
    Seq(Vec<Datum<'a>>, &'a str),
    Map(Vec<(Datum<'a>, Datum<'a>)>, &'a str),
    Set(Vec<Datum<'a>>, &'a str),
}

impl<'a> Datum<'a> {
    /// The word of a keyword, or of a text as JSON writes keywords.
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Datum::Keyword(word) => Some(word),
            Datum::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of a vector or list.
    pub(super) fn seq(&self) -> Option<&[Datum<'a>]> {
        match self {
            Datum::Seq(items, _) => Some(items),
            _ => None,
        }
    }
}

/// Passes blanks, comments and discarded values.
pub(super) fn pass_ignored(cursor: &mut Cursor<'_>, dialect: Dialect) -> Result<(), ReadError> {
    pass_ignored_within(cursor, dialect, MAX_DEPTH)
}

fn pass_ignored_within(
    cursor: &mut Cursor<'_>,
    dialect: Dialect,
    depth: usize,
) -> Result<(), ReadError> {
    loop {
        cursor.pass_space();
        match cursor.peek() {
            b',' | 0x0c => cursor.at += 1,
            b';' if dialect == Dialect::Edn => {
                while cursor.peek() != b'\n' && !cursor.done() {
                    cursor.at += 1;
                }
            }
            b'#' if dialect == Dialect::Edn && cursor.rest().starts_with(b"#_") => {
                cursor.at += 2;
                scan_within(cursor, dialect, depth - 1)?;
            }
            _ => return Ok(()),
        }
    }
}

/// The next value.
pub(super) fn scan<'a>(cursor: &mut Cursor<'a>, dialect: Dialect) -> Result<Datum<'a>, ReadError> {
    scan_within(cursor, dialect, MAX_DEPTH)
}

fn scan_within<'a>(
    cursor: &mut Cursor<'a>,
    dialect: Dialect,
    depth: usize,
) -> Result<Datum<'a>, ReadError> {
    if depth == 0 {
        return Err(cursor.wrong("at most 100 levels of nesting"));
    }
    pass_ignored_within(cursor, dialect, depth)?;
    let start = cursor.at;
    match cursor.peek() {
        b'"' => scan_text(cursor),
        b'[' => scan_seq(cursor, dialect, depth, b']'),
        b'(' if dialect == Dialect::Edn => scan_seq(cursor, dialect, depth, b')'),
        b'{' => scan_map(cursor, dialect, depth),
        b':' if dialect == Dialect::Edn => {
            cursor.at += 1;
            Ok(Datum::Keyword(scan_word(cursor)?))
        }
        b'^' if dialect == Dialect::Edn => {
            cursor.at += 1;
            scan_within(cursor, dialect, depth - 1)?;
            scan_within(cursor, dialect, depth - 1)
        }
        b'#' if dialect == Dialect::Edn => scan_tagged(cursor, depth),
        b'\\' if dialect == Dialect::Edn => {
            cursor.at += 1;
            // The character itself may be one that ends words.
            cursor.at = (cursor.at + 1).min(cursor.input.bytes.len());
            while !ends_word(cursor.peek()) && !cursor.done() {
                cursor.at += 1;
            }
            Ok(Datum::Other(source(cursor, start)?))
        }
        _ => {
            let word = scan_word(cursor)?;
            Ok(match word {
                "nil" | "null" => Datum::Nil,
                _ => whole_number(word).map_or(Datum::Other(word), Datum::Int),
            })
        }
    }
}

fn scan_text<'a>(cursor: &mut Cursor<'a>) -> Result<Datum<'a>, ReadError> {
    let start = cursor.at;
    cursor.at += 1;
    let mut has_escape = false;
    loop {
        match cursor.peek() {
            _ if cursor.done() => {
                cursor.at = start;
                return Err(cursor.wrong("`\"`, which ends the text, before the end of the file"));
            }
            b'"' => break,
            b'\\' => {
                has_escape = true;
                cursor.at = (cursor.at + 2).min(cursor.input.bytes.len());
            }
            _ => cursor.at += 1,
        }
    }
    cursor.at += 1;
    let quoted = source(cursor, start)?;
    if !has_escape {
        return Ok(Datum::Text(Cow::Borrowed(&quoted[1..quoted.len() - 1])));
    }
    // EDN allows a text to run over several lines, JSON does not; their escapes are the same.
    let one_line = quoted
        .replace('\n', "\\n")
        .replace('\r', "\\r")
        .replace('\t', "\\t");
    let Ok(text) = serde_json::from_str(&one_line) else {
        cursor.at = start;
        return Err(cursor.wrong("a text with valid escapes"));
    };
    Ok(Datum::Text(Cow::Owned(text)))
}

fn scan_seq<'a>(
    cursor: &mut Cursor<'a>,
    dialect: Dialect,
    depth: usize,
    close: u8,
) -> Result<Datum<'a>, ReadError> {
    let start = cursor.at;
    cursor.at += 1;
    let mut items = Vec::new();
    loop {
        pass_ignored_within(cursor, dialect, depth)?;
        if cursor.pass(close) {
            return Ok(Datum::Seq(items, source(cursor, start)?));
        }
        items.push(scan_within(cursor, dialect, depth - 1)?);
    }
}

fn scan_map<'a>(
    cursor: &mut Cursor<'a>,
    dialect: Dialect,
    depth: usize,
) -> Result<Datum<'a>, ReadError> {
    let start = cursor.at;
    cursor.at += 1;
    let mut entries = Vec::new();
    loop {
        pass_ignored_within(cursor, dialect, depth)?;
        if cursor.pass(b'}') {
            return Ok(Datum::Map(entries, source(cursor, start)?));
        }
        let key = scan_within(cursor, dialect, depth - 1)?;
        pass_ignored_within(cursor, dialect, depth)?;
        if dialect == Dialect::Json {
            cursor.expect(b':')?;
        }
        entries.push((key, scan_within(cursor, dialect, depth - 1)?));
    }
}

/// A set, a special number, or a tag and its value.
fn scan_tagged<'a>(cursor: &mut Cursor<'a>, depth: usize) -> Result<Datum<'a>, ReadError> {
    let start = cursor.at;
    cursor.at += 1;
    match cursor.peek() {
        b'{' => {
            cursor.at += 1;
            let mut items = Vec::new();
            loop {
                pass_ignored_within(cursor, Dialect::Edn, depth)?;
                if cursor.pass(b'}') {
                    return Ok(Datum::Set(items, source(cursor, start)?));
                }
                items.push(scan_within(cursor, Dialect::Edn, depth - 1)?);
            }
        }
        b'#' => {
            cursor.at += 1;
            scan_word(cursor)?;
            Ok(Datum::Other(source(cursor, start)?))
        }
        _ => {
            cursor.pass(b':');
            scan_word(cursor)?;
            scan_within(cursor, Dialect::Edn, depth - 1)
        }
    }
}

fn scan_word<'a>(cursor: &mut Cursor<'a>) -> Result<&'a str, ReadError> {
    let start = cursor.at;
    while !ends_word(cursor.peek()) {
        cursor.at += 1;
    }
    if cursor.at == start {
        return Err(cursor.wrong("a value"));
    }
    source(cursor, start)
}

/// Whether a byte cannot belong to a number, keyword or symbol. The end of the file counts as a zero byte.
fn ends_word(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f || b",;\"()[]{}\\^".contains(&byte)
}

fn source<'a>(cursor: &Cursor<'a>, start: usize) -> Result<&'a str, ReadError> {
    let bytes = &cursor.input.bytes[start..cursor.at];
    std::str::from_utf8(bytes).map_err(|wrong| {
        let at = start + wrong.valid_up_to();
        Cursor { at, ..*cursor }.wrong("UTF-8 text")
    })
}

/// A whole number of 64 bits; EDN may mark it with a plus before it or an N after it.
fn whole_number(word: &str) -> Option<i64> {
    let digits = word.strip_prefix('+').unwrap_or(word);
    let digits = digits.strip_suffix('N').unwrap_or(digits);
    if !digits.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
