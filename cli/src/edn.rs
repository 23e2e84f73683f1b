//! `--edn`: Elle's result map, so that Jepsen users can compare.

use std::fmt::Write;

use kingsnake_solver::certify::Meaning;
use kingsnake_solver::lattice::Names;
use kingsnake_solver::model::{History, KeyId, Op, Status, Token, TxnId, ValueId};
use kingsnake_solver::verdict::{Counterexample, Finding, Proof, Step, StepReason};

use kingsnake_report::anomalies::FoundAnomalies;
use kingsnake_report::meaning::TracedHistory;

/// Further examples of a class are only counted.
const MOST_EXAMPLES: usize = 100;

/// The map; `status` is the exit status.
pub fn document(traced: &TracedHistory<'_>, found: Option<&FoundAnomalies>, status: u8) -> String {
    let valid = match status {
        0 => "true",
        1 => "false",
        _ => ":unknown",
    };
    let mut out = format!("{{:valid? {valid}");
    if let Some(found) = found {
        let writer = Writer {
            meaning: traced.meaning(),
            history: traced.history(),
        };
        let classes = &found.anomalies.classes;
        let names: Vec<String> = classes.iter().map(|it| format!(":{}", it.name)).collect();
        let _ = write!(out, ",\n :anomaly-types ({})", names.join(" "));
        out.push_str(",\n :anomalies {");
        for (at, class) in classes.iter().enumerate() {
            let separator = if at == 0 { "" } else { ",\n             " };
            let _ = write!(out, "{separator}:{} [", class.name);
            let some = class.examples.iter().take(MOST_EXAMPLES);
            let some: Vec<String> = some.map(|it| writer.example(class.name, it)).collect();
            out.push_str(&some.join("\n               "));
            out.push(']');
        }
        out.push('}');
        let _ = write!(out, ",\n :not {}", set(&found.boundary.not));
        let _ = write!(out, ",\n :also-not {}", set(&found.boundary.also_not));
    }
    out.push_str("}\n");
    out
}

fn set(names: &Names) -> String {
    let names: Vec<String> = names.iter().map(|it| format!(":{it}")).collect();
    format!("#{{{}}}", names.join(" "))
}

struct Writer<'h> {
    meaning: &'h Meaning<'h>,
    history: &'h History,
}

impl Writer<'_> {
    fn example(&self, class: &str, example: &Counterexample) -> String {
        match example {
            Counterexample::Local(findings) => {
                let found: Vec<String> = findings.iter().map(|it| self.finding(it)).collect();
                found.join(" ")
            }
            Counterexample::Cyclic(Proof::Cycle(steps)) => self.cycle(class, steps),
            Counterexample::Cyclic(_)
            | Counterexample::Stuck(_)
            | Counterexample::Recorded(_)
            | Counterexample::EitherWay { .. } => format!("{{:type :{class}}}"),
        }
    }

    fn cycle(&self, class: &str, steps: &[Step]) -> String {
        let kept = steps.iter().filter(|it| it.reason != StepReason::Begin);
        let kept: Vec<&Step> = kept.collect();
        let mut ops: Vec<String> = kept.iter().map(|it| self.txn(it.from.txn)).collect();
        ops.extend(kept.first().map(|it| self.txn(it.from.txn)));
        let told: Vec<String> = kept.iter().map(|it| self.step(it)).collect();
        format!(
            "{{:cycle [{}], :steps [{}], :type :{class}}}",
            ops.join(" "),
            told.join(" ")
        )
    }

    fn step(&self, step: &Step) -> String {
        let (from, to) = (step.from.txn, step.to.txn);
        let left = |txn: TxnId, key: KeyId| {
            let left = self.meaning.left(txn, key);
            left.map_or("nil".to_owned(), |value| self.value(value))
        };
        match step.reason {
            StepReason::Begin => String::new(),
            StepReason::Session => "{:type :process}".to_owned(),
            StepReason::RealTime => "{:type :realtime}".to_owned(),
            StepReason::Stated { edge } => {
                let name = self.history.given_edges().get(edge as usize);
                format!(
                    "{{:type :given, :name {}}}",
                    text(name.map_or("", |it| &it.name))
                )
            }
            StepReason::Wr { key, value } => {
                let (key, value) = (self.key(key), self.value(value));
                format!("{{:type :wr, :key {key}, :value {value}}}")
            }
            StepReason::Ww { key, .. } => format!(
                "{{:type :ww, :key {}, :value {}, :value' {}}}",
                self.key(key),
                left(from, key),
                left(to, key)
            ),
            StepReason::Rw { key, writer, .. } => format!(
                "{{:type :rw, :key {}, :value {}, :value' {}}}",
                self.key(key),
                writer.map_or("nil".to_owned(), |writer| left(writer, key)),
                left(to, key)
            ),
            StepReason::Vis { key, .. } => format!("{{:type :vis, :key {}}}", self.key(key)),
        }
    }

    fn finding(&self, finding: &Finding) -> String {
        let mut out = format!("{{:op {}", self.txn(finding.txn));
        if let Some(&op) = self.history.ops(finding.txn).get(finding.op) {
            let _ = write!(out, ", :mop {}", self.op(op));
        }
        if let Some((other, at)) = finding.other {
            let _ = write!(out, ", :other {}", self.txn(other));
            if let Some(&op) = self.history.ops(other).get(at) {
                let _ = write!(out, ", :other-mop {}", self.op(op));
            }
        }
        out.push('}');
        out
    }

    fn txn(&self, txn: TxnId) -> String {
        let history = self.history;
        let kind = match history.status(txn) {
            Status::Committed => "ok",
            Status::Aborted => "fail",
            Status::Unknown => "info",
        };
        let ops: Vec<String> = history.ops(txn).iter().map(|&op| self.op(op)).collect();
        let process = self.token(history.session_token(history.session(txn)));
        let index = self.token(history.txn_token(txn));
        format!(
            "{{:index {index}, :type :{kind}, :process {process}, :f :txn, :value [{}]}}",
            ops.join(" ")
        )
    }

    fn op(&self, op: Op) -> String {
        match op {
            Op::Read { key, value } => format!("[:r {} {}]", self.key(key), self.value(value)),
            Op::Write { key, value } => format!("[:w {} {}]", self.key(key), self.value(value)),
            Op::Append { key, value } => {
                format!("[:append {} {}]", self.key(key), self.value(value))
            }
            Op::ReadList { key, list } => {
                let items = self.history.list(list).iter().map(|&it| self.value(it));
                let items: Vec<String> = items.collect();
                format!("[:r {} [{}]]", self.key(key), items.join(" "))
            }
            Op::Range { range } => {
                let rows = self.history.range(range).rows.iter().map(|&row| {
                    let key = self.key(self.history.value_key(row));
                    format!("{key} {}", self.value(row))
                });
                let rows: Vec<String> = rows.collect();
                format!("[:rp nil {{{}}}]", rows.join(", "))
            }
        }
    }

    fn key(&self, key: KeyId) -> String {
        self.token(self.history.key_token(key))
    }

    fn value(&self, value: ValueId) -> String {
        self.token(self.history.value_token(value))
    }

    fn token(&self, token: Token) -> String {
        match token {
            Token::Nil => "nil".to_owned(),
            Token::Int(number) => number.to_string(),
            Token::Text(symbol) => text(self.history.symbols().text(symbol)),
        }
    }
}

/// Keywords unchanged, everything else as a string.
fn text(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.?!*+/".contains(letter);
    match text.strip_prefix(':') {
        Some(name) if !name.is_empty() && name.chars().all(is_plain) => text.to_owned(),
        _ => {
            let mut out = String::from("\"");
            for letter in text.chars() {
                match letter {
                    '"' | '\\' => {
                        out.push('\\');
                        out.push(letter);
                    }
                    '\n' => out.push_str("\\n"),
                    '\t' => out.push_str("\\t"),
                    '\r' => out.push_str("\\r"),
                    letter if letter.is_control() => {
                        let _ = write!(out, "\\u{:04x}", u32::from(letter));
                    }
                    letter => out.push(letter),
                }
            }
            out.push('"');
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn keywords_stay_keywords_and_texts_are_quoted() {
        assert_eq!(text(":x"), ":x");
        assert_eq!(text("x"), "\"x\"");
        assert_eq!(text(": }"), "\": }\"");
        assert_eq!(text("a\"\\\n"), "\"a\\\"\\\\\\n\"");
    }
}
