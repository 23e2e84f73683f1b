//! What the tests of the oracle need: histories written as text, and a more literal oracle.

pub mod literal;

use kingsnake_solver::model::{History, HistoryBuilder, Status, Token};

/// Reads `session: operations`, one transaction per line. Operations are `r KEY VALUE`, `w KEY VALUE`, `l KEY VALUE`
/// (append), `rl KEY VALUES`, separated by commas; then perhaps `aborted` or `unknown`, then perhaps `@ BEGIN COMMIT`.
/// A line `order KEY VALUES` gives a version order. The initial value is 0.
pub fn parse(text: &str) -> History {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Int(0));
    for (name, line) in text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .enumerate()
    {
        if let Some(order) = line.strip_prefix("order ") {
            let (key, values) = key_and_values(&mut builder, order);
            builder.version_order(key, values).expect("an order");
            continue;
        }
        let (session, rest) = line.split_once(':').expect("a session and a colon");
        let (rest, times) = rest.split_once('@').unwrap_or((rest, ""));
        let rest = rest.trim();
        let aborted = rest
            .strip_suffix("aborted")
            .map(|ops| (ops, Status::Aborted));
        let unknown = rest
            .strip_suffix("unknown")
            .map(|ops| (ops, Status::Unknown));
        let (ops, status) = aborted.or(unknown).unwrap_or((rest, Status::Committed));
        let session = builder.text(session);
        let session = builder.session(session);
        builder
            .begin(session, Token::Int(name as i64 + 1), status)
            .expect("a transaction");
        let times: Vec<i64> = times
            .split_whitespace()
            .map(|time| time.parse().expect("a number"))
            .collect();
        builder.times(times.first().copied(), times.get(1).copied());
        for op in ops.split(',').map(str::trim) {
            let (kind, rest) = op.split_once(' ').expect("an operation and a key");
            let (key, values) = key_and_values(&mut builder, rest);
            match kind {
                "r" => {
                    builder.read(key, values[0]);
                }
                "w" => {
                    builder.write(key, values[0]);
                }
                "l" => {
                    builder.append(key, values[0]);
                }
                "rl" => builder.read_list(key, values),
                _ => panic!("no operation {kind}"),
            }
        }
    }
    builder.finish().expect("a history")
}

fn key_and_values(builder: &mut HistoryBuilder, text: &str) -> (Token, Vec<Token>) {
    let mut words = text.split_whitespace();
    let key = builder.text(words.next().expect("a key"));
    let values = words.map(|word| Token::Int(word.parse().expect("a number")));
    (key, values.collect())
}
