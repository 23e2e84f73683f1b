//! The certificate as a file: a header line, then one point per line, earliest first.
//!
//! docs/certificates.md is the format's description. Reading takes one pass and one hash table, so verifying stays linear.

use std::fmt::Write;

use kingsnake_certify::linearizable::moments;
use kingsnake_history::level::RealTime;
use kingsnake_history::model::{History, KeyId, Token, TxnId};
use kingsnake_history::promise::{Along, Promise};
use kingsnake_history::verdict::{Certificate, Moment, OperationSource, Point, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claim::EvidenceClaim;
use crate::fingerprint::fingerprint;
use crate::level::{promise, real_time};
use crate::names::NameReader;
use crate::{Read, wrong};

const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The format's version; its name distinguishes the file from any other JSON Lines.
    kingsnake_certificate: u32,
    pub(crate) model: String,
    session_order: bool,
    real_time: bool,
    /// Whether refused compare-and-sets show that the key held something else, if the model is `linearizable`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    refusals_count: bool,
    /// The expected order, if the model is `along`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    along: Option<String>,
    /// The clock, unless as for `strict-ser`.
    #[serde(default, skip_serializing_if = "Clock::is_strict")]
    clock: Clock,
    transactions: usize,
    operations: usize,
    fingerprint: String,
}

/// The clock.
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
}

/// The text of a certificate.
pub fn certificate(history: &History, promise: &Promise, certificate: &Certificate) -> String {
    let spec = promise.spec();
    let header = Header {
        kingsnake_certificate: VERSION,
        model: promise.name().to_owned(),
        session_order: spec.session_order,
        real_time: spec.real_time.is_some(),
        refusals_count: promise.refusals_count(),
        along: match promise {
            Promise::Along(along) => Some(along.name().to_owned()),
            _ => None,
        },
        clock: Clock::of(spec.real_time.unwrap_or(RealTime::STRICT)),
        transactions: history.n_txns(),
        operations: history.n_ops(),
        fingerprint: fingerprint(history),
    };
    let mut text = serde_json::to_string(&header).unwrap_or_default();
    text.reserve(certificate.order.len() * 12);
    if matches!(promise, Promise::Linearizable(_)) {
        for moment in moments(history, certificate.order.iter().map(|point| point.txn)) {
            let _ = write!(text, "\n[{},", moment.at);
            push_name(&mut text, history, moment.txn);
            text.push(']');
        }
        text.push('\n');
        return text;
    }
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

/// The header of a certificate, if the text is one.
pub(crate) fn header(text: &str) -> Read<Header> {
    let Some(first) = text.lines().find(|line| !line.trim().is_empty()) else {
        return Err(wrong("empty, so not a certificate"));
    };
    let header: Header = serde_json::from_str(first)
        .map_err(|why| wrong(format!("not the header of a certificate: {why}")).at(1))?;
    if header.kingsnake_certificate != VERSION {
        let version = header.kingsnake_certificate;
        let why = format!("certificate version {version}; this program reads version {VERSION}");
        return Err(wrong(why).at(1));
    }
    Ok(header)
}

fn promised(header: &Header) -> Read<Promise> {
    let clock = &header.clock;
    let clock = header
        .real_time
        .then(|| real_time(&clock.snapshots, &clock.times, clock.drift_ns));
    promise(
        &header.model,
        header.session_order,
        clock.transpose()?,
        header.refusals_count,
        header.along.as_deref(),
    )
}

/// Reads a certificate for this history.
pub(crate) fn read_certificate(text: &str, history: &History) -> Read<EvidenceClaim> {
    let header = header(text)?;
    let mut promise = promised(&header).map_err(|why| why.at(1))?;
    let reader = PointReader {
        names: NameReader::new(history),
        is_timed: matches!(promise, Promise::Linearizable(_)),
        has_begins: !promise.is_recorded() && promise.spec().has_begins(history),
    };
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty()).skip(1);
    let mut order = Vec::with_capacity(text.len() / 8);
    let (mut sources, mut times) = (Vec::new(), Vec::new());
    for (at, line) in lines {
        match reader.line(line).map_err(|why| why.at(at + 1))? {
            Line::Point(point) => order.push(point),
            Line::Source(source) => sources.push(source),
            Line::Timed(time, txn) => {
                times.push(time);
                let moment = Moment::Whole;
                order.push(Point { txn, moment });
            }
        }
    }
    if let Promise::Along(Along::Order(expected)) = &mut promise {
        *expected = order.iter().map(|point| point.txn).collect();
    }
    Ok(EvidenceClaim {
        promise,
        verdict: Verdict::Satisfied(Certificate { order, sources }),
        // A rolling certificate starts before its history is known.
        same_history: header.fingerprint.is_empty()
            || header.transactions == history.n_txns()
                && header.operations == history.n_ops()
                && header.fingerprint == fingerprint(history),
        times,
    })
}

enum Line {
    Point(Point),
    Source(OperationSource),
    Timed(i64, TxnId),
}

struct PointReader<'h> {
    names: NameReader<'h>,
    /// Whether the lines are moments of operations.
    is_timed: bool,
    /// Whether they are begins and commits.
    has_begins: bool,
}

impl PointReader<'_> {
    fn line(&self, line: &str) -> Read<Line> {
        if self.is_timed {
            let (time, name): (i64, Value) = serde_json::from_str(line)
                .map_err(|why| wrong(format!("expected [moment, operation]: {why}")))?;
            return Ok(Line::Timed(time, self.names.named_txn(&name)?));
        }
        if line.matches(',').count() >= 3
            && let Ok(Value::Array(fields)) = serde_json::from_str(line)
            && fields.len() == 4
        {
            let source = self.source(&fields).ok_or_else(|| {
                wrong("expected a read as [reader, operation, key's number, writer or false]")
            })?;
            return Ok(Line::Source(source));
        }
        self.point(line).map(Line::Point)
    }

    fn point(&self, line: &str) -> Read<Point> {
        let value = serde_json::from_str(line).map_err(|why| wrong(why.to_string()))?;
        let (moment, name) = match (self.has_begins, value) {
            (false, name @ (Value::Null | Value::Number(_) | Value::String(_))) => {
                (Moment::Whole, name)
            }
            (false, _) => return Err(wrong("expected a transaction's name")),
            (true, Value::Array(pair)) => match <[Value; 2]>::try_from(pair) {
                Ok([Value::String(moment), name]) if moment == "begin" => (Moment::Begin, name),
                Ok([Value::String(moment), name]) if moment == "commit" => (Moment::Commit, name),
                _ => return Err(no_moment()),
            },
            (true, _) => return Err(no_moment()),
        };
        let txn = self.names.named_txn(&name)?;
        Ok(Point { txn, moment })
    }

    /// A read with several possible writers.
    fn source(&self, fields: &[Value]) -> Option<OperationSource> {
        let [reader, op, key, writer] = fields else {
            return None;
        };
        Some(OperationSource {
            reader: self.names.named_txn(reader).ok()?,
            op: usize::try_from(op.as_u64()?).ok()?,
            key: KeyId(u32::try_from(key.as_u64()?).ok()?),
            writer: match writer {
                Value::Bool(false) => None,
                name => Some(self.names.named_txn(name).ok()?),
            },
        })
    }
}

fn no_moment() -> crate::EvidenceError {
    wrong("expected [\"begin\", transaction] or [\"commit\", transaction]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use kingsnake_history::level::{Model, Spec, Times};
    use kingsnake_history::model::{HistoryBuilder, Status};

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

    fn write(history: &History, spec: Spec, order: &Certificate) -> String {
        certificate(history, &spec.into(), order)
    }

    fn parse(text: &str, history: &History) -> Read<EvidenceClaim> {
        read_certificate(text, history)
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
            assert_eq!(claim.verdict, Verdict::Satisfied(certificate));
            assert_eq!(claim.promise, spec(model).into());
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
            assert_eq!(parse(&text, &history).unwrap().promise, spec.into());
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
            let error = parse(&bad, &history).unwrap_err().to_string();
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
