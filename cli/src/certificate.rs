//! The certificate as a file: a header line that says what it is for, then a point a line, earliest first.
//!
//! docs/certificates.md is the format's description. Reading takes one pass and one hash table, so verifying stays linear.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use kingsnake_solver::certify::linearizable::moments;
use kingsnake_solver::level::{Model, RealTime, Snapshots, Spec, Times};
use kingsnake_solver::model::{History, KeyId, Op, Token, TxnId};
use kingsnake_solver::verdict::{Certificate, Moment, OperationSource, Point};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

const VERSION: u32 = 1;

/// The model of a certificate whose lines are moments.
const LINEARIZABLE: &str = "linearizable";

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    /// The format's version; its name tells the file from any other JSON Lines.
    kingsnake_certificate: u32,
    model: String,
    session_order: bool,
    real_time: bool,
    /// Whether refused compare-and-sets say that the key held something else, where the model is `linearizable`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    refusals_count: bool,
    /// How the clock counts, where it does not count as for `strict-ser`.
    #[serde(default, skip_serializing_if = "Clock::is_strict")]
    clock: Clock,
    transactions: usize,
    operations: usize,
    fingerprint: String,
}

/// How the clock counts.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Clock {
    snapshots: String,
    times: String,
    drift_ns: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Clock::of(RealTime::STRICT)
    }
}

impl Clock {
    fn of(real_time: RealTime) -> Self {
        Clock {
            snapshots: real_time.snapshots.name().to_owned(),
            times: real_time.times.name().to_owned(),
            drift_ns: real_time.drift,
        }
    }

    fn is_strict(&self) -> bool {
        *self == Clock::default()
    }

    fn real_time(&self) -> Result<RealTime> {
        let snapshots = [Snapshots::Older, Snapshots::Current];
        let snapshots = snapshots.into_iter().find(|it| it.name() == self.snapshots);
        let times = [Times::Bounds, Times::Exact];
        let times = times.into_iter().find(|it| it.name() == self.times);
        match (snapshots, times) {
            (Some(snapshots), Some(times)) => Ok(RealTime {
                snapshots,
                times,
                drift: self.drift_ns,
            }),
            _ => bail!(
                "no such clock: {} snapshots, {} times",
                self.snapshots,
                self.times
            ),
        }
    }
}

/// A certificate that was read, and what it claims.
#[derive(Debug)]
pub struct CertificateClaim {
    /// The order.
    pub certificate: Certificate,
    /// The level that it was made for.
    pub spec: Spec,
    /// The moments of the operations, where it claims linearizability.
    pub moments: Option<Vec<kingsnake_solver::certify::linearizable::OperationMoment>>,
    /// Whether refused compare-and-sets count.
    pub refusals_count: bool,
    /// Whether it was made for a history with the same transactions and operations.
    pub same_history: bool,
}

/// The file's text.
pub fn write(history: &History, spec: Spec, certificate: &Certificate) -> String {
    let header = Header {
        kingsnake_certificate: VERSION,
        model: spec.model.name().to_owned(),
        session_order: spec.session_order,
        real_time: spec.real_time.is_some(),
        refusals_count: false,
        clock: Clock::of(spec.real_time.unwrap_or(RealTime::STRICT)),
        transactions: history.n_txns(),
        operations: history.n_ops(),
        fingerprint: fingerprint(history),
    };
    let mut text = serde_json::to_string(&header).unwrap_or_default();
    text.reserve(certificate.order.len() * 12);
    for point in &certificate.order {
        text.push('\n');
        text.push_str(match point.moment {
            Moment::Whole => "",
            Moment::Begin => "[\"begin\",",
            Moment::Commit => "[\"commit\",",
        });
        push_name(&mut text, history, point.txn);
        if point.moment != Moment::Whole {
            text.push(']');
        }
    }
    for it in &certificate.sources {
        text.push_str("\n[");
        push_name(&mut text, history, it.reader);
        let _ = write!(text, ",{},{},", it.op, it.key.0);
        match it.writer {
            None => text.push_str("false"),
            Some(writer) => push_name(&mut text, history, writer),
        }
        text.push(']');
    }
    text.push('\n');
    text
}

/// The text of a certificate of linearizability: a moment and its operation a line.
pub fn write_linearizable(
    history: &History,
    spec: Spec,
    refusals_count: bool,
    certificate: &Certificate,
) -> String {
    let header = Header {
        kingsnake_certificate: VERSION,
        model: LINEARIZABLE.to_owned(),
        session_order: spec.session_order,
        real_time: true,
        refusals_count,
        clock: Clock::of(spec.real_time.unwrap_or(RealTime::STRICT)),
        transactions: history.n_txns(),
        operations: history.n_ops(),
        fingerprint: fingerprint(history),
    };
    let mut text = serde_json::to_string(&header).unwrap_or_default();
    let order = certificate.order.iter().map(|point| point.txn);
    for moment in moments(history, order) {
        let _ = write!(text, "\n[{},", moment.at);
        push_name(&mut text, history, moment.txn);
        text.push(']');
    }
    text.push('\n');
    text
}

fn push_name(text: &mut String, history: &History, txn: TxnId) {
    match history.txn_token(txn) {
        Token::Nil => text.push_str("null"),
        Token::Int(number) => {
            let _ = write!(text, "{number}");
        }
        Token::Text(symbol) => {
            text.push_str(&Value::from(history.symbols().text(symbol)).to_string());
        }
    }
}

/// Whether a file claims each transaction's own level, which has to be set before it is read.
pub fn is_mixed(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let header = text.lines().next().map(serde_json::from_str::<Header>);
    header.is_some_and(|it| it.is_ok_and(|it| it.model == Model::Mixed.name()))
}

/// Reads a certificate for this history.
pub fn read(path: &Path, bytes: &[u8], history: &History) -> Result<CertificateClaim> {
    let shown = path.display();
    let Ok(text) = std::str::from_utf8(bytes) else {
        bail!("{shown}: not UTF-8, so no certificate");
    };
    parse(text, history).with_context(|| format!("{shown}"))
}

fn parse(text: &str, history: &History) -> Result<CertificateClaim> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let Some((_, first)) = lines.next() else {
        bail!("empty, so no certificate");
    };
    let header: Header = serde_json::from_str(first).context("line 1: no certificate's header")?;
    ensure!(
        header.kingsnake_certificate == VERSION,
        "line 1: certificate version {}; this program reads version {VERSION}",
        header.kingsnake_certificate
    );
    let spec = Spec {
        model: if header.model == LINEARIZABLE {
            Model::Ser
        } else {
            model(&header.model).context("line 1")?
        },
        session_order: header.session_order,
        real_time: if header.real_time {
            Some(header.clock.real_time().context("line 1")?)
        } else {
            None
        },
    };
    let by_name: FxHashMap<Token, TxnId> = history
        .txns()
        .map(|txn| (history.txn_token(txn), txn))
        .collect();
    let mut order = Vec::with_capacity(text.len() / 8);
    let mut sources = Vec::new();
    let mut moments = (header.model == LINEARIZABLE).then(Vec::new);
    for (at, line) in lines {
        if let Some(moments) = &mut moments {
            let moment =
                moment(line, history, &by_name).with_context(|| format!("line {}", at + 1))?;
            moments.push(moment);
            order.push(Point {
                txn: moment.txn,
                moment: Moment::Whole,
            });
            continue;
        }
        if line.matches(',').count() >= 3
            && let Ok(Value::Array(fields)) = serde_json::from_str(line)
            && fields.len() == 4
        {
            let source = source(&fields, |name| txn(name, history, &by_name).ok());
            sources.push(source.with_context(|| {
                format!(
                    "line {}: expected a read as [reader, operation, key's number, writer or false]",
                    at + 1
                )
            })?);
            continue;
        }
        let point = point(line, spec.has_begins(history), history, &by_name)
            .with_context(|| format!("line {}", at + 1))?;
        order.push(point);
    }
    Ok(CertificateClaim {
        certificate: Certificate { order, sources },
        spec,
        moments,
        refusals_count: header.refusals_count,
        // A rolling certificate begins before its history is known.
        same_history: header.fingerprint.is_empty()
            || header.transactions == history.n_txns()
                && header.operations == history.n_ops()
                && header.fingerprint == fingerprint(history),
    })
}

fn point(
    line: &str,
    has_begins: bool,
    history: &History,
    by_name: &FxHashMap<Token, TxnId>,
) -> Result<Point> {
    let (moment, name) = match (has_begins, serde_json::from_str(line)?) {
        (false, name @ (Value::Null | Value::Number(_) | Value::String(_))) => {
            (Moment::Whole, name)
        }
        (true, Value::Array(pair)) => match <[Value; 2]>::try_from(pair) {
            Ok([Value::String(moment), name]) if moment == "begin" => (Moment::Begin, name),
            Ok([Value::String(moment), name]) if moment == "commit" => (Moment::Commit, name),
            _ => bail!("expected [\"begin\", transaction] or [\"commit\", transaction]"),
        },
        (false, _) => bail!("expected a transaction's name"),
        (true, _) => bail!("expected [\"begin\", transaction] or [\"commit\", transaction]"),
    };
    let txn = txn(&name, history, by_name)?;
    Ok(Point { txn, moment })
}

/// A line of a certificate of linearizability.
fn moment(
    line: &str,
    history: &History,
    by_name: &FxHashMap<Token, TxnId>,
) -> Result<kingsnake_solver::certify::linearizable::OperationMoment> {
    let (at, name): (i64, Value) =
        serde_json::from_str(line).context("expected [moment, operation]")?;
    let txn = txn(&name, history, by_name)?;
    Ok(kingsnake_solver::certify::linearizable::OperationMoment { txn, at })
}

/// A line of a read that several can explain; `txn` is the transaction of a name.
fn source(fields: &[Value], txn: impl Fn(&Value) -> Option<TxnId>) -> Option<OperationSource> {
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

/// The transaction of a name.
fn txn(name: &Value, history: &History, by_name: &FxHashMap<Token, TxnId>) -> Result<TxnId> {
    let token = match name {
        Value::Null => Some(Token::Nil),
        Value::Number(number) => number.as_i64().map(Token::Int),
        Value::String(text) => history.symbols().find(text).map(Token::Text),
        _ => bail!("expected a transaction's name"),
    };
    match token.and_then(|token| by_name.get(&token)) {
        Some(&txn) => Ok(txn),
        None => bail!("the history has no transaction {name}"),
    }
}

fn model(name: &str) -> Result<Model> {
    let models = || Model::ALL.into_iter().chain([Model::Mixed]);
    let found = models().find(|model| model.name() == name);
    found.with_context(|| {
        let names: Vec<String> = models()
            .map(|model| format!("{:?}", model.name()))
            .collect();
        format!("model {name:?}; the models are {}", names.join(", "))
    })
}

/// Sixteen hexadecimal digits (FNV-1a) over every transaction's name, session and operations. It only serves to warn
/// about a mix-up of files: what a certificate proves, it proves by being replayed.
fn fingerprint(history: &History) -> String {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    for txn in history.txns() {
        hash.token(history, history.txn_token(txn));
        hash.token(history, history.session_token(history.session(txn)));
        for &op in history.ops(txn) {
            if let Some(key) = op.key() {
                hash.token(history, history.key_token(key));
            }
            match op {
                Op::Read { value, .. } if history.is_tombstone(value) => {
                    hash.value(history, b'n', value);
                }
                Op::Write { value, .. } if history.is_tombstone(value) => {
                    hash.value(history, b'd', value);
                }
                Op::Range { range } => {
                    let query = history.range(range);
                    let span = query.span.show(|end| history.symbols().show(end));
                    hash.bytes(span.as_bytes());
                    for &row in query.rows {
                        hash.token(history, history.key_token(history.value_key(row)));
                        let letter = if history.is_tombstone(row) {
                            b'd'
                        } else {
                            b'r'
                        };
                        hash.value(history, letter, row);
                    }
                    hash.bytes(if query.shows_deleted { b")" } else { b"]" });
                }
                Op::Read { value, .. } => hash.value(history, b'r', value),
                Op::Write { value, .. } => hash.value(history, b'w', value),
                Op::Append { value, .. } => hash.value(history, b'a', value),
                Op::ReadList { list, .. } => {
                    for &value in history.list(list) {
                        hash.value(history, b'l', value);
                    }
                    hash.bytes(b"]");
                }
            }
        }
    }
    format!("{:016x}", hash.0)
}

struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn token(&mut self, history: &History, token: Token) {
        match token {
            Token::Nil => self.bytes(b"n"),
            Token::Int(number) => {
                self.bytes(b"i");
                self.bytes(&number.to_le_bytes());
            }
            Token::Text(symbol) => {
                self.bytes(b"t");
                self.bytes(history.symbols().text(symbol).as_bytes());
                self.bytes(&[0]);
            }
        }
    }

    fn value(&mut self, history: &History, kind: u8, value: kingsnake_solver::model::ValueId) {
        self.bytes(&[kind]);
        self.token(history, history.value_token(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kingsnake_solver::model::{HistoryBuilder, Status};

    fn history() -> History {
        let mut builder = HistoryBuilder::new();
        let session = builder.session(Token::Int(1));
        let name = builder.text("a \"quoted\" name");
        for token in [name, Token::Int(-7)] {
            builder.begin(session, token, Status::Committed).unwrap();
            builder.write(Token::Int(1), token);
        }
        builder.finish().unwrap()
    }

    fn spec(model: Model) -> Spec {
        Spec {
            model,
            session_order: true,
            real_time: None,
        }
    }

    fn point(txn: u32, moment: Moment) -> Point {
        Point {
            txn: TxnId(txn),
            moment,
        }
    }

    #[test]
    fn what_was_written_is_read_again() {
        let history = history();
        let whole = vec![point(1, Moment::Whole), point(0, Moment::Whole)];
        let halves = vec![
            point(0, Moment::Begin),
            point(1, Moment::Begin),
            point(1, Moment::Commit),
            point(0, Moment::Commit),
        ];
        for (model, order) in [(Model::Ser, whole), (Model::Si, halves)] {
            let certificate = Certificate::from(order);
            let claim = parse(&write(&history, spec(model), &certificate), &history).unwrap();
            assert_eq!(claim.certificate, certificate);
            assert_eq!(claim.spec, spec(model));
            assert!(claim.same_history);
        }
    }

    #[test]
    fn the_clock_is_kept() {
        let history = history();
        let strict = Spec {
            real_time: Some(RealTime::STRICT),
            ..spec(Model::Si)
        };
        let loose = Spec {
            real_time: Some(RealTime {
                times: Times::Exact,
                drift: 7,
                ..RealTime::GENERALISED
            }),
            ..strict
        };
        for spec in [strict, loose] {
            let text = write(&history, spec, &Certificate::from(Vec::new()));
            assert_eq!(parse(&text, &history).unwrap().spec, spec);
        }
        let text = write(&history, loose, &Certificate::from(Vec::new()));
        assert!(parse(&text.replace("older", "odder"), &history).is_err());
    }

    #[test]
    fn a_damaged_line_is_named() {
        let history = history();
        let order = vec![point(0, Moment::Whole), point(1, Moment::Whole)];
        let good = write(&history, spec(Model::Ser), &Certificate::from(order));
        for (from, to, line) in [
            ("-7", "-8", "line 3"),
            ("-7", "-7.5", "line 3"),
            ("-7", "[\"begin\",-7]", "line 3"),
            ("-7", "{", "line 3"),
            ("\"ser\"", "\"sir\"", "line 1"),
            ("certificate\":1", "certificate\":2", "line 1"),
        ] {
            let bad = good.replace(from, to);
            assert_ne!(bad, good);
            let error = format!("{:#}", parse(&bad, &history).unwrap_err());
            assert!(error.contains(line), "{error}");
        }
        assert!(parse("", &history).is_err());
    }

    #[test]
    fn another_history_has_another_fingerprint() {
        let history = history();
        let good = write(&history, spec(Model::Ser), &Certificate::from(Vec::new()));
        let mut builder = HistoryBuilder::new();
        let session = builder.session(Token::Int(1));
        builder
            .begin(session, Token::Int(-7), Status::Committed)
            .unwrap();
        let other = builder.finish().unwrap();
        assert!(!parse(&good, &other).unwrap().same_history);
    }
}
