//! The certificate of a weak level as a file: a header line, then a transaction's name a line, in the order of commits, then a line
//! for each read that several can explain: `[reader, operation, key's number, writer]`, where no writer is `false`.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use kingsnake_solver::model::{History, KeyId, Token, TxnId};
use kingsnake_solver::weak::{OperationSource, WeakLevel, WeakSpec};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::certificate::fingerprint;

/// What tells this order from those of the other levels.
const MODEL: &str = "co";

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    kingsnake_certificate: u32,
    model: String,
    level: String,
    session_order: bool,
    transactions: usize,
    operations: usize,
    fingerprint: String,
}

/// A certificate that was read.
#[derive(Debug)]
pub struct CommitClaim {
    /// The commits, earliest first.
    pub order: Vec<TxnId>,
    /// Whom the reads are of that several can explain.
    pub sources: Vec<OperationSource>,
    /// The level that it was made for.
    pub spec: WeakSpec,
    /// Whether it was made for a history with the same transactions and operations.
    pub same_history: bool,
}

/// The file's text.
pub fn write(
    history: &History,
    spec: WeakSpec,
    order: &[TxnId],
    sources: &[OperationSource],
) -> String {
    let header = Header {
        kingsnake_certificate: 1,
        model: MODEL.to_owned(),
        level: spec.level.name().to_owned(),
        session_order: spec.session_order,
        transactions: history.n_txns(),
        operations: history.n_ops(),
        fingerprint: fingerprint(history),
    };
    let mut text = serde_json::to_string(&header).unwrap_or_default();
    for &txn in order {
        let _ = write!(text, "\n{}", name(history, txn));
    }
    push_sources(&mut text, history, sources);
    text.push('\n');
    text
}

/// Writes a line for each read that several can explain.
pub fn push_sources(text: &mut String, history: &History, sources: &[OperationSource]) {
    for it in sources {
        let (reader, key) = (name(history, it.reader), it.key.0);
        let writer = it.writer.map_or("false".to_owned(), |it| name(history, it));
        let _ = write!(text, "\n[{reader},{},{key},{writer}]", it.op);
    }
}

/// Reads a certificate of commits for this history; `None` if the file is of another kind.
pub fn read(path: &Path, bytes: &[u8], history: &History) -> Result<Option<CommitClaim>> {
    let shown = path.display();
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(None);
    };
    let mut lines = text.lines().enumerate();
    let header: Header = match lines.next().map(|(_, first)| serde_json::from_str(first)) {
        Some(Ok(header)) => header,
        _ => return Ok(None),
    };
    if header.model != MODEL {
        return Ok(None);
    }
    ensure!(
        header.kingsnake_certificate == 1,
        "{shown}: line 1: certificate version {}; this program reads version 1",
        header.kingsnake_certificate
    );
    let level = header.level.parse::<WeakLevel>();
    let level = level.map_err(|why| anyhow::anyhow!("{shown}: line 1: {why}"))?;
    let by_name: FxHashMap<String, TxnId> = history
        .txns()
        .map(|txn| (name(history, txn), txn))
        .collect();
    let (mut order, mut sources) = (Vec::new(), Vec::new());
    for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            bail!("{shown}: line {}: expected a transaction's name", at + 1);
        };
        if let Value::Array(fields) = &value {
            let txn = |name: &Value| by_name.get(&name.to_string()).copied();
            let Some(source) = source(fields, txn) else {
                bail!(
                    "{shown}: line {}: expected a read as [reader, operation, key's number, writer or false]",
                    at + 1
                );
            };
            sources.push(source);
            continue;
        }
        let Some(&txn) = by_name.get(&value.to_string()) else {
            bail!(
                "{shown}: line {}: the history has no transaction {value}",
                at + 1
            );
        };
        order.push(txn);
    }
    Ok(Some(CommitClaim {
        order,
        sources,
        spec: WeakSpec {
            level,
            session_order: header.session_order,
        },
        same_history: header.transactions == history.n_txns()
            && header.operations == history.n_ops()
            && header.fingerprint == fingerprint(history),
    }))
}

/// Reads a line of a read that several can explain; `txn` is the transaction of a name.
pub fn source(fields: &[Value], txn: impl Fn(&Value) -> Option<TxnId>) -> Option<OperationSource> {
    let [reader, op, key, writer] = fields else {
        return None;
    };
    Some(OperationSource {
        reader: txn(reader)?,
        op: usize::try_from(op.as_u64()?).ok()?,
        key: KeyId(u32::try_from(key.as_u64()?).ok()?),
        writer: match writer {
            Value::Bool(false) => None,
            name => Some(txn(name)?),
        },
    })
}

fn name(history: &History, txn: TxnId) -> String {
    match history.txn_token(txn) {
        Token::Nil => "null".to_owned(),
        Token::Int(number) => number.to_string(),
        Token::Text(symbol) => Value::from(history.symbols().text(symbol)).to_string(),
    }
}
