//! Our own JSON Lines: a header, then one transaction per line (docs/formats.md specifies it).
//!
//! The hot path allocates nothing; fields may come in any order, though operations after id and session are read once.

mod blocks;
mod objects;
mod ops;

use kingsnake_history::model::{
    Event, HistoryBuilder, Note, NumberOp, SessionId, Stamps, Status, Token,
};

use super::kingsnake_predicates::{Predicates, read_tables};
use super::kingsnake_rows::{RowBuffers, next_is_comma, read_installed};
use crate::cursor::{Cursor, Input, Polled};
use crate::error::{InputProblem, ReadError};
use blocks::{Block, LineContent, ListOp};
use objects::Savepoints;
use ops::feed_ops;

const VERSION: i64 = 1;

/// Reads one file.
pub(crate) fn read(
    input: Input<'_>,
    builder: &mut HistoryBuilder,
    _warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    if input.bytes.is_empty() {
        return Err(input.empty());
    }
    let mut cursor = input.cursor();
    cursor.pass_space();
    read_header(&mut cursor, builder)?;
    // The shortest operation is `["r",1,1],`.
    builder.reserve_ops(input.bytes.len() / 16);
    let mut buffers = Buffers::default();
    let mut polled = input.polled();
    // A write to a table with columns needs its row, so no line would be plain.
    if input.bytes.len() >= blocks::LARGE && !builder.has_columns() {
        cursor.pass_space();
        blocks::for_each(input.bytes, cursor.at, |block| {
            let taken = read_block(&block, &mut cursor, builder, &mut buffers, &mut polled);
            input.release(block.range);
            taken
        })?;
        cursor.at = input.bytes.len();
    }
    loop {
        polled.step()?;
        cursor.pass_space();
        if cursor.done() {
            return buffers.predicates.finish(&mut cursor, builder);
        }
        read_line(&mut cursor, builder, &mut buffers)?;
        cursor.end_line()?;
    }
}

/// Takes the lines of a block: what was scanned, and the others by reading them.
fn read_block(
    block: &Block,
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    buffers: &mut Buffers,
    polled: &mut Polled<'_>,
) -> Result<(), ReadError> {
    let (mut numbers, mut lists, mut items) = (0, 0, 0);
    for line in &block.lines {
        polled.step()?;
        cursor.at = line.at;
        let session = match line.content {
            LineContent::Other => {
                // Blank lines hold nothing.
                cursor.pass_blanks();
                if !cursor.done() && !matches!(cursor.peek(), b'\n' | b'\r') {
                    read_line(cursor, builder, buffers)?;
                    cursor.end_line()?;
                }
                continue;
            }
            _ => builder.session(Token::Int(line.session)),
        };
        if builder
            .begin(session, Token::Int(line.id), line.status)
            .is_err()
        {
            // The reader of lines words what is wrong with it.
            read_line(cursor, builder, buffers)?;
            continue;
        }
        match line.content {
            LineContent::Numbers(end) => {
                builder.extend(&block.numbers[numbers..end]);
                numbers = end;
            }
            LineContent::Lists(end) => {
                for op in &block.lists[lists..end] {
                    match *op {
                        ListOp::Append { key, value } => {
                            builder.append(Token::Int(key), Token::Int(value));
                        }
                        ListOp::Read { key, items_end } => {
                            let list = block.items[items..items_end].iter();
                            builder.read_list(Token::Int(key), list.map(|&it| Token::Int(it)));
                            items = items_end;
                        }
                    }
                }
                lists = end;
            }
            LineContent::Other => {}
        }
        if line.begin.is_some() || line.commit.is_some() {
            builder.times(line.begin, line.commit);
        }
    }
    Ok(())
}

/// Reads a file of version orders that stands beside a history.
pub(crate) fn read_version_orders(
    input: Input<'_>,
    builder: &mut HistoryBuilder,
) -> Result<(), ReadError> {
    let mut cursor = input.cursor();
    let mut polled = input.polled();
    loop {
        polled.step()?;
        cursor.pass_space();
        if cursor.done() {
            return Ok(());
        }
        cursor.json_punct(b'{')?;
        let name = cursor.json_text()?;
        if name != "version_order" {
            return Err(cursor.fail(InputProblem::Unsupported(format!(
                "field `{name}` in a file of version orders; each line is {{\"version_order\":{{\"key\":…,\"values\":[…]}}}}"
            ))));
        }
        cursor.json_punct(b':')?;
        read_version_order(&mut cursor, builder)?;
        cursor.json_punct(b'}')?;
        cursor.end_line()?;
    }
}

fn read_header(cursor: &mut Cursor<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    cursor.expect(b'{')?;
    let (mut version, mut has_initial) = (None, false);
    let mut first = true;
    while cursor.json_more(&mut first, b'}')? {
        let name = cursor.json_text()?;
        cursor.json_punct(b':')?;
        match &*name {
            "kingsnake" => version = Some(cursor.json_int()?),
            "initial" if !has_initial => {
                has_initial = true;
                read_initial_values(cursor, builder)?;
            }
            "about" => drop(cursor.json_text()?),
            "sessions" => drop(cursor.json_int()?),
            "tables" => read_tables(cursor, builder)?,
            "id" | "session" | "ops" => {
                return Err(cursor.fail(InputProblem::Syntax {
                    found: "a transaction, not a header".to_owned(),
                    expected: "a first line like {\"kingsnake\":1,\"initial\":0} before it"
                        .to_owned(),
                }));
            }
            other => {
                let known = "kingsnake, initial, about, sessions, tables";
                return Err(unknown_field(cursor, other, known));
            }
        }
    }
    if version != Some(VERSION) {
        let problem = InputProblem::Syntax {
            found: version.map_or("a header without a version".to_owned(), |it| {
                format!("version {it}")
            }),
            expected: "a first line like {\"kingsnake\":1,\"initial\":0}".to_owned(),
        };
        return Err(cursor.fail(problem));
    }
    if !has_initial {
        builder.initial_everywhere(Token::Nil);
    }
    cursor.end_line()
}

fn read_initial_values(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
) -> Result<(), ReadError> {
    if !cursor.pass(b'[') {
        let value = cursor.json_token(builder)?;
        builder.initial_everywhere(value);
        return Ok(());
    }
    cursor.pass_blanks();
    let mut first = true;
    while cursor.json_more(&mut first, b']')? {
        let value = cursor.json_token(builder)?;
        builder.initial_everywhere(value);
    }
    Ok(())
}

/// Space that every line uses again.
#[derive(Default)]
struct Buffers {
    run: Vec<NumberOp>,
    list: Vec<Token>,
    rows: RowBuffers,
    predicates: Predicates,
    savepoints: Savepoints,
}

/// What the fields of a line said so far.
struct Fields {
    id: Option<Token>,
    session: Option<SessionId>,
    status: Option<Status>,
    begin: Option<i64>,
    commit: Option<i64>,
    isolation: Option<Token>,
    note: Note,
    stamps: Stamps,
    begun: bool,
    /// Where operations stand that came before id and session.
    ops_at: Option<usize>,
}

fn read_line(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    buffers: &mut Buffers,
) -> Result<(), ReadError> {
    let start = cursor.at;
    cursor.expect(b'{')?;
    let mut fields = Fields::new();
    let mut first = true;
    while cursor.json_more(&mut first, b'}')? {
        let name_at = cursor.at;
        let name = cursor.json_text()?;
        cursor.json_punct(b':')?;
        let repeated = match &*name {
            "id" => fields.id.replace(cursor.json_token(builder)?).is_some(),
            "session" => {
                let session = cursor.json_token(builder)?;
                fields.session.replace(builder.session(session)).is_some()
            }
            "status" => fields.status.replace(read_status(cursor)?).is_some(),
            "begin" => fields.begin.replace(cursor.json_int()?).is_some(),
            "commit" => fields.commit.replace(cursor.json_int()?).is_some(),
            "isolation" => {
                let level = cursor.json_text()?;
                fields.isolation.replace(builder.text(&level)).is_some()
            }
            // What a collector notes beside it orders nothing.
            "node" | "name" => {
                let text = cursor.json_text()?;
                let token = builder.text(&text);
                let field = match &*name {
                    "node" => &mut fields.note.node,
                    _ => &mut fields.note.name,
                };
                std::mem::replace(field, token) != Token::Nil
            }
            "snapshots" => {
                let start = cursor.at;
                cursor.json_skip()?;
                let text = String::from_utf8_lossy(&cursor.input.bytes[start..cursor.at]);
                let token = builder.text(text.trim());
                std::mem::replace(&mut fields.note.snapshots, token) != Token::Nil
            }
            "xid" | "start_ts" | "commit_ts" => read_stamp(cursor, &name, &mut fields.stamps)?,
            "ops" => read_ops(cursor, builder, &mut fields, buffers)?,
            "initial" if fields.is_empty() => {
                read_initial(cursor, builder, &mut buffers.predicates)?;
                return cursor.json_punct(b'}');
            }
            "version_order" if fields.is_empty() => {
                read_version_order(cursor, builder)?;
                return cursor.json_punct(b'}');
            }
            // What a session promises is for `kingsnake watch`; it orders nothing.
            "heartbeat" | "open" | "close" if fields.is_empty() => {
                read_promise(cursor)?;
                return cursor.json_punct(b'}');
            }
            "event" if fields.is_empty() => {
                read_event(cursor, builder)?;
                return cursor.json_punct(b'}');
            }
            other => {
                let known = "id, session, status, begin, commit, isolation, xid, start_ts, commit_ts, node, name, snapshots, ops; or initial, version_order, event, heartbeat, open or close alone";
                cursor.at = name_at;
                return Err(unknown_field(cursor, other, known));
            }
        };
        if repeated {
            cursor.at = name_at;
            return Err(cursor.fail(InputProblem::Contradiction(format!(
                "field `{name}` appears twice"
            ))));
        }
    }
    let end = cursor.at;
    finish_line(cursor, start, builder, fields, buffers)?;
    cursor.at = end;
    Ok(())
}

impl Fields {
    fn new() -> Self {
        Fields {
            id: None,
            session: None,
            status: None,
            begin: None,
            commit: None,
            isolation: None,
            note: Note::NONE,
            stamps: Stamps::default(),
            begun: false,
            ops_at: None,
        }
    }

    fn is_empty(&self) -> bool {
        self.id.is_none()
            && self.session.is_none()
            && self.status.is_none()
            && self.begin.is_none()
            && self.commit.is_none()
            && self.isolation.is_none()
            && self.note == Note::NONE
            && self.stamps.is_empty()
            && self.ops_at.is_none()
            && !self.begun
    }

    fn begin(
        &mut self,
        cursor: &Cursor<'_>,
        builder: &mut HistoryBuilder,
    ) -> Result<bool, ReadError> {
        let (Some(id), Some(session)) = (self.id, self.session) else {
            return Ok(false);
        };
        builder
            .begin(session, id, Status::Committed)
            .map_err(|error| cursor.fail(error))?;
        self.begun = true;
        Ok(true)
    }
}

/// Reads the operations, or remembers where they stand; tells whether there were operations before.
fn read_ops(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    fields: &mut Fields,
    buffers: &mut Buffers,
) -> Result<bool, ReadError> {
    if fields.begun || fields.ops_at.is_some() {
        return Ok(true);
    }
    fields.ops_at = Some(cursor.at);
    if fields.begin(cursor, builder)? {
        feed_ops(cursor, builder, buffers)?;
    } else {
        cursor.json_skip()?;
    }
    Ok(false)
}

fn finish_line(
    cursor: &mut Cursor<'_>,
    start: usize,
    builder: &mut HistoryBuilder,
    mut fields: Fields,
    buffers: &mut Buffers,
) -> Result<(), ReadError> {
    let missing = match (fields.id, fields.session, fields.ops_at) {
        (None | Some(Token::Nil), _, _) => "id",
        (_, None, _) => "session",
        (_, _, None) => "ops",
        (Some(_), Some(_), Some(ops_at)) => {
            if !fields.begun {
                cursor.at = ops_at;
                fields.begin(cursor, builder)?;
                feed_ops(cursor, builder, buffers)?;
            }
            ""
        }
    };
    if !missing.is_empty() {
        cursor.at = start;
        let problem = InputProblem::Syntax {
            found: format!("a transaction without field `{missing}`"),
            expected: "id, session and ops".to_owned(),
        };
        return Err(cursor.fail(problem));
    }
    builder.status(fields.status.unwrap_or(Status::Committed));
    if let (Some(begin), Some(commit)) = (fields.begin, fields.commit)
        && commit < begin
    {
        let problem = format!("the transaction commits at {commit}, before it begins at {begin}");
        return Err(cursor.fail(InputProblem::Contradiction(problem)));
    }
    if fields.begin.is_some() || fields.commit.is_some() {
        builder.times(fields.begin, fields.commit);
    }
    if let Some(level) = fields.isolation {
        builder.isolation(level);
    }
    if fields.note != Note::NONE {
        builder.note(fields.note);
    }
    if !fields.stamps.is_empty() {
        builder.stamps(fields.stamps);
    }
    Ok(())
}

/// `{"session":name,"time":nanoseconds,"ts":timestamp}`, all optional.
fn read_promise(cursor: &mut Cursor<'_>) -> Result<(), ReadError> {
    each_field(cursor, "session, time and ts", |cursor, name| {
        match name {
            "session" => cursor.json_skip()?,
            "time" | "ts" => drop(cursor.json_int()?),
            _ => return Ok(false),
        }
        Ok(true)
    })
}

/// Reads an object whose fields have these names; `read` takes the value of a field, or tells that it does not know the name.
fn each_field<'a>(
    cursor: &mut Cursor<'a>,
    names: &'static str,
    mut read: impl FnMut(&mut Cursor<'a>, &str) -> Result<bool, ReadError>,
) -> Result<(), ReadError> {
    cursor.expect(b'{')?;
    let mut first = true;
    while cursor.json_more(&mut first, b'}')? {
        let name_at = cursor.at;
        let name = cursor.json_text()?;
        cursor.json_punct(b':')?;
        if !read(cursor, &name)? {
            cursor.at = name_at;
            return Err(unknown_field(cursor, &name, names));
        }
    }
    Ok(())
}

/// `{"time":nanoseconds,"what":text}`.
fn read_event(cursor: &mut Cursor<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let start = cursor.at;
    let (mut time, mut what) = (None, None);
    each_field(cursor, "time and what", |cursor, name| {
        match name {
            "time" => time = Some(cursor.json_int()?),
            "what" => what = Some(builder.text(&cursor.json_text()?)),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let (Some(time), Some(what)) = (time, what) else {
        cursor.at = start;
        return Err(cursor.fail(InputProblem::Syntax {
            found: "an event without one of its fields".to_owned(),
            expected: "time and what".to_owned(),
        }));
    };
    builder.event(Event { time, what });
    Ok(())
}

/// A number that the database gave to the transaction, or `null`; tells whether it was there before.
fn read_stamp(cursor: &mut Cursor<'_>, name: &str, stamps: &mut Stamps) -> Result<bool, ReadError> {
    let stamp = match name {
        "xid" => &mut stamps.xid,
        "start_ts" => &mut stamps.start_ts,
        _ => &mut stamps.commit_ts,
    };
    if cursor.rest().starts_with(b"null") {
        cursor.at += 4;
        return Ok(stamp.is_some());
    }
    Ok(stamp.replace(cursor.json_int()?).is_some())
}

fn read_status(cursor: &mut Cursor<'_>) -> Result<Status, ReadError> {
    let at = cursor.at;
    match &*cursor.json_text()? {
        "committed" => Ok(Status::Committed),
        "aborted" => Ok(Status::Aborted),
        "unknown" => Ok(Status::Unknown),
        _ => {
            cursor.at = at;
            Err(cursor.wrong("\"committed\", \"aborted\" or \"unknown\""))
        }
    }
}

/// `{"key":…,"value":…}` or `{"key":…,"value":…,"row":{…}}`
fn read_initial(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    predicates: &mut Predicates,
) -> Result<(), ReadError> {
    let key = read_named_key(cursor, builder, "value")?;
    let value = cursor.json_token(builder)?;
    builder.initial(key, value);
    if next_is_comma(cursor) {
        cursor.json_punct(b',')?;
        expect_field(cursor, "row")?;
        let value = builder.version(key, value.into());
        predicates.read_cells(cursor, builder, key, value)?;
    }
    cursor.json_punct(b'}')
}

/// `{"key":…,"values":[…]}`
fn read_version_order(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
) -> Result<(), ReadError> {
    let key = read_named_key(cursor, builder, "values")?;
    let mut versions = Vec::new();
    cursor.json_punct(b'[')?;
    let mut first = true;
    while cursor.json_more(&mut first, b']')? {
        versions.push(read_installed(cursor, builder)?);
    }
    cursor.json_punct(b'}')?;
    builder
        .version_order(key, versions)
        .map_err(|error| cursor.fail(error))
}

/// `{"key":…,"<then>":`
fn read_named_key(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    then: &str,
) -> Result<Token, ReadError> {
    cursor.json_punct(b'{')?;
    expect_field(cursor, "key")?;
    let key = cursor.json_token(builder)?;
    cursor.json_punct(b',')?;
    expect_field(cursor, then)?;
    Ok(key)
}

fn expect_field(cursor: &mut Cursor<'_>, name: &str) -> Result<(), ReadError> {
    let at = cursor.at;
    if cursor.json_text()? != name {
        cursor.at = at;
        return Err(cursor.wrong(&format!("field \"{name}\"")));
    }
    cursor.json_punct(b':')
}

#[cold]
fn unknown_field(cursor: &Cursor<'_>, name: &str, known: &str) -> ReadError {
    cursor.fail(InputProblem::Syntax {
        found: format!("field `{name}`"),
        expected: known.to_owned(),
    })
}
