//! `bank`: transfers move money between accounts, so every read shows the same total.

use std::collections::BTreeMap;

use kingsnake_history::model::{History, Interval, KeyId, Op, Token, TxnId, ValueId};
use kingsnake_history::operations::{Operation, Value};
use rustc_hash::FxHashSet;

use crate::{JepsenWorkload, Plot, RuleOptions, RuleReport, RuleViolation, Unfit, count, seconds};

/// Checks that every read shows the known accounts, with balances, of the right total, none negative unless allowed.
pub(crate) fn check(log: &[Operation], options: &RuleOptions) -> Result<RuleReport, Unfit> {
    let reads: Vec<(usize, &Operation)> = log
        .iter()
        .enumerate()
        .filter(|(_, op)| op.f == "read" && op.is_ok())
        .collect();
    let accounts_of = |op: &Operation| match &op.output {
        Value::Map(entries) => Some(entries.clone()),
        _ => None,
    };
    let first = reads.iter().find_map(|(_, op)| accounts_of(op));
    let Some(first) = first else {
        let what = "no read returned a map of accounts and balances";
        return Err(Unfit::new(JepsenWorkload::Bank, what));
    };
    let known: FxHashSet<Value> = first.iter().map(|(account, _)| account.clone()).collect();
    // Balances of a hostile log add up to more than one of them can be.
    let sum = |entries: &[(Value, Value)]| -> i128 {
        let balances = entries.iter().filter_map(|(_, it)| it.int());
        balances.map(i128::from).sum()
    };
    let total = options.total.map_or_else(|| sum(&first), i128::from);
    let mut violations = Vec::new();
    let mut totals = Vec::new();
    for &(at, op) in &reads {
        let mut add = |words: String| {
            violations.push(RuleViolation {
                words,
                operations: vec![at],
            });
        };
        let Some(entries) = accounts_of(op) else {
            add(format!("{op} returned no accounts"));
            continue;
        };
        if let Some((account, _)) = entries.iter().find(|(account, _)| !known.contains(account)) {
            add(format!(
                "{op} shows account {account}, which does not exist"
            ));
            continue;
        }
        if let Some((account, _)) = entries.iter().find(|(_, it)| it.int().is_none()) {
            add(format!("{op} shows no balance of account {account}"));
            continue;
        }
        let found = sum(&entries);
        totals.push((seconds(op), found as f64));
        if found != total {
            add(format!(
                "{op} shows a total of {found}, and the total is {total}: {} {}",
                (found - total).abs(),
                if found > total { "too much" } else { "missing" }
            ));
            continue;
        }
        let negative = entries
            .iter()
            .find(|(_, it)| it.int().is_some_and(|it| it < 0));
        if let Some((account, balance)) = negative.filter(|_| !options.allow_negative) {
            add(format!(
                "{op} shows a negative balance, {balance}, of account {account}"
            ));
        }
    }
    let mut report = RuleReport::new(
        "every read shows the same total, and no account below zero",
        violations,
    );
    let n_transfers = log
        .iter()
        .filter(|op| op.f == "transfer" && op.is_ok())
        .count();
    report.facts = vec![
        ("total", total.to_string()),
        ("accounts", known.len().to_string()),
        ("reads", count(reads.len(), "read")),
        ("transfers", count(n_transfers, "transfer")),
    ];
    report.plot = Some(Plot {
        title: "total of all accounts".to_owned(),
        unit: "amount".to_owned(),
        series: vec![("total".to_owned(), totals)],
    });
    Ok(report)
}

/// A history of transactions as a bank's log: a transaction that only reads, and reads every key, is a `read` of all accounts, one
/// that writes is a `transfer`. One that reads only some accounts shows no total, and is a `look`.
pub fn log(history: &History) -> Vec<Operation> {
    let mut log = Vec::with_capacity(history.n_txns());
    for txn in history.txns() {
        let shown = balances(history, txn);
        let writes = history.ops(txn).iter().any(|op| op.is_write());
        let f = if writes {
            "transfer"
        } else if shown.len() == history.n_keys() {
            "read"
        } else {
            "look"
        };
        let entries = shown.into_iter();
        let entries = entries.map(|(key, value)| (plain(history, history.key_token(key)), value));
        let Interval { begin, commit } = history.interval(txn);
        log.push(Operation {
            name: match history.txn_token(txn) {
                Token::Int(number) => number,
                _ => i64::from(txn.0) + 1,
            },
            process: match history.session_token(history.session(txn)) {
                Token::Int(number) => Some(number),
                _ => None,
            },
            f: f.to_owned(),
            status: history.status(txn),
            input: Value::Nil,
            output: Value::Map(entries.collect()),
            invoked: 2 * txn.index(),
            completed: Some(2 * txn.index() + 1),
            begin: (begin != Interval::UNKNOWN.begin).then_some(begin),
            end: (commit != Interval::UNKNOWN.commit).then_some(commit),
        });
    }
    log
}

/// The first value that a transaction saw of each key.
fn balances(history: &History, txn: TxnId) -> BTreeMap<KeyId, Value> {
    let mut shown = BTreeMap::new();
    let mut show = |key: KeyId, value: ValueId| {
        let balance = if history.is_absence(value) {
            Value::Nil
        } else {
            plain(history, history.value_token(value))
        };
        shown.entry(key).or_insert(balance);
    };
    for &op in history.ops(txn) {
        match op {
            Op::Read { key, value } => show(key, value),
            Op::Range { range } => {
                for &value in history.range(range).rows {
                    show(history.value_key(value), value);
                }
            }
            Op::Write { .. } | Op::Append { .. } | Op::ReadList { .. } => {}
        }
    }
    shown
}

fn plain(history: &History, token: Token) -> Value {
    match token {
        Token::Int(number) => Value::Int(number),
        Token::Nil => Value::Nil,
        Token::Text(_) => Value::Text(history.symbols().show(token)),
    }
}
