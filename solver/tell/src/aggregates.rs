//! Aggregates in words: the question, the result, and the possible results.

use kingsnake_history::model::{Act, Condition, KeyId, Predicate, Token, TxnId};

use crate::story::Teller;
use crate::verdict::Proof;
use crate::words::Words;

/// Further possible results are omitted.
const LISTED: usize = 4;

impl Words<'_> {
    /// `T5 asked for the sum of c1 over rows with c0 = 3 and was told 7`.
    pub(super) fn counted(&self, txn: TxnId, predicate: &Predicate) -> String {
        let history = self.meaning.history();
        let Act::Aggregate {
            function,
            column,
            result,
        } = predicate.act
        else {
            return format!("{} asked for rows", self.labels.txn(txn));
        };
        let query = &history.queries()[predicate.query as usize];
        if let Some((kind, name)) = history.tables()[query.table as usize].object {
            let (kind, show) = (kind.name(), |token| history.symbols().spell(token));
            let who = self.labels.txn(txn);
            return format!("{who} read {} from {kind} {}", show(result), show(name));
        }
        let what = match column {
            None => format!("the {}", function.name()),
            Some(column) => {
                let column = history.column_name(query.table, column);
                format!("the {} of {column}", function.name())
            }
        };
        let rows = match &query.condition {
            Condition::Always(true) => "all rows".to_owned(),
            _ => format!("rows with {}", history.condition_text(predicate.query)),
        };
        let result = history.symbols().show(result);
        let who = self.labels.txn(txn);
        format!("{who} asked for {what} over {rows} and was told {result}")
    }

    /// The first aggregate of a transaction over the table of a key.
    pub(super) fn aggregate_on(&self, txn: TxnId, key: KeyId) -> Option<String> {
        let history = self.meaning.history();
        let table = history.table_of(key)?;
        let mut predicates = history.predicates(txn);
        let predicate = predicates.find(|it| {
            matches!(it.act, Act::Aggregate { .. })
                && history.queries()[it.query as usize].table == table
        })?;
        let row = self.labels.key(key);
        Some(format!(
            "{}, for which it read row {row}",
            self.counted(txn, predicate)
        ))
    }
}

impl Teller<'_> {
    /// `T5 asked for the count over all rows and was told 2.` Then the versions that it cannot have counted, and the
    /// possible results.
    pub(super) fn tell_aggregate(
        &mut self,
        reader: TxnId,
        nth: usize,
        ruled_out: &[(KeyId, Option<TxnId>, Proof)],
        depth: usize,
    ) {
        let history = self.words.meaning.history();
        let Some(predicate) = history.predicates(reader).nth(nth) else {
            return;
        };
        let text = format!("{}.", self.words.counted(reader, predicate));
        self.say(depth, text);
        for (key, writer, proof) in ruled_out {
            let row = self.words.labels.key(*key);
            let version = match writer {
                None => "as it was at first".to_owned(),
                Some(txn) => format!("as {} left it", self.words.labels.txn(*txn)),
            };
            self.say(depth, format!("It cannot have read row {row} {version}:"));
            self.tell_source((reader, None, *key), *writer, proof, depth + 1);
        }
        let is_ruled_out = |key, version| ruled_out.iter().any(|it| (it.0, it.1) == (key, version));
        let results = self.words.meaning.results(reader, nth, is_ruled_out);
        let text = match results.as_deref() {
            Some(results) if !results.is_empty() => {
                let told = self.results(results);
                format!("What it can have read gives {told}: a contradiction.")
            }
            _ => "Nothing that it can have read gives this result: a contradiction.".to_owned(),
        };
        self.say(depth, text);
    }

    fn results(&self, results: &[Token]) -> String {
        let symbols = self.words.meaning.history().symbols();
        let told = results.iter().take(LISTED).map(|&it| symbols.show(it));
        let told: Vec<String> = told.collect();
        let more = if results.len() > LISTED {
            " or others"
        } else {
            ""
        };
        format!("{}{more}", told.join(" or "))
    }
}
