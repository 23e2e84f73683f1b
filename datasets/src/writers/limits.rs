//! What a history may hold so that a poorer format can express it.

use kingsnake_history::model::{History, Op, Status, Token, TxnId, ValueId};

use crate::error::WriteError;

/// A history about to be written in some format.
#[derive(Clone, Copy)]
pub(super) struct Limits<'h> {
    pub(super) history: &'h History,
    pub(super) format: &'static str,
}

impl Limits<'_> {
    /// The format lacks this.
    pub(super) fn refuse<T>(&self, what: String) -> Result<T, WriteError> {
        Err(WriteError::Inexpressible {
            format: self.format,
            what,
        })
    }

    /// Makes sure that all is reads and writes of numbers with a known end, without times, and an initial value that can
    /// be written as 0; returns what is not kept.
    pub(super) fn plain_registers(&self) -> Result<Vec<String>, WriteError> {
        self.no_lists()?;
        self.no_rows()?;
        self.no_times()?;
        self.no_extras()?;
        self.none_is(Status::Unknown, "transactions whose end is unknown")?;
        self.numbers_only()?;
        self.zero_is_free()?;
        Ok(self.notes())
    }

    /// The same, of any keys and values, where they are numbered anew.
    pub(super) fn any_registers(&self) -> Result<Vec<String>, WriteError> {
        self.no_lists()?;
        self.no_rows()?;
        self.no_times()?;
        self.no_extras()?;
        self.none_is(Status::Unknown, "transactions whose end is unknown")?;
        Ok(self.notes())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        self.note_zero(&mut notes);
        notes
    }

    /// Only reads and writes.
    pub(super) fn no_lists(&self) -> Result<(), WriteError> {
        for txn in self.history.txns() {
            let is_list = |op: &&Op| matches!(op, Op::Append { .. } | Op::ReadList { .. });
            if self.history.ops(txn).iter().any(|op| is_list(&op)) {
                let name = self.history.txn_name(txn);
                return self.refuse(format!("lists (transaction {name} appends or reads one)"));
            }
        }
        Ok(())
    }

    /// Neither range queries, deletes, tables nor stamps; what was inserted may be called written.
    pub(super) fn no_rows(&self) -> Result<(), WriteError> {
        if !self.history.tables().is_empty() {
            return self.refuse("rows with columns, predicates, sets and counters".to_owned());
        }
        if self.history.has_stamps() {
            return self.refuse("xid, start_ts and commit_ts".to_owned());
        }
        for txn in self.history.txns() {
            for op in self.history.ops(txn) {
                let what = match *op {
                    Op::Range { .. } => "range queries",
                    Op::Write { value, .. } | Op::Read { value, .. }
                        if self.history.is_tombstone(value) =>
                    {
                        "deletes"
                    }
                    Op::Write { value, .. } if self.history.is_absence(value) => "deletes",
                    _ => continue,
                };
                let name = self.history.txn_name(txn);
                return self.refuse(format!("{what} (transaction {name} has one)"));
            }
        }
        Ok(())
    }

    /// No begin and commit times.
    pub(super) fn no_times(&self) -> Result<(), WriteError> {
        if self.history.has_times() {
            return self.refuse("begin and commit times".to_owned());
        }
        Ok(())
    }

    /// Neither isolation levels nor version orders.
    pub(super) fn no_extras(&self) -> Result<(), WriteError> {
        let history = self.history;
        if let Some(txn) = history.txns().find(|&txn| history.isolation(txn).is_some()) {
            let name = history.txn_name(txn);
            return self.refuse(format!(
                "isolation levels (transaction {name} asks for one)"
            ));
        }
        if let Some(order) = history.version_orders().first() {
            let key = history.key_name(order.key);
            return self.refuse(format!("version orders (key {key} has one)"));
        }
        Ok(())
    }

    /// No transaction with this status.
    pub(super) fn none_is(&self, status: Status, words: &str) -> Result<(), WriteError> {
        let history = self.history;
        match history.txns().find(|&txn| history.status(txn) == status) {
            None => Ok(()),
            Some(txn) => self.refuse(format!("{words} (transaction {})", history.txn_name(txn))),
        }
    }

    /// Keys are numbers; so are values, except initial ones.
    pub(super) fn numbers_only(&self) -> Result<(), WriteError> {
        for op in self.ops() {
            let (Op::Read { key, value } | Op::Write { key, value }) = op else {
                continue;
            };
            if !matches!(self.history.key_token(key), Token::Int(_)) {
                let key = self.history.key_name(key);
                return self.refuse(format!("key {key}, which is no whole number"));
            }
            let is_number = matches!(self.history.value_token(value), Token::Int(_));
            if !is_number && !self.history.is_initial(value) {
                let value = self.history.value_name(value);
                return self.refuse(format!("value {value}, which is no whole number"));
            }
        }
        Ok(())
    }

    /// Initial values can be written as 0: no key has another value 0.
    fn zero_is_free(&self) -> Result<(), WriteError> {
        for op in self.ops() {
            let (Op::Read { key, value } | Op::Write { key, value }) = op else {
                continue;
            };
            if self.history.value_token(value) == Token::Int(0) && !self.history.is_initial(value) {
                let key = self.history.key_name(key);
                return self.refuse(format!(
                    "value 0 of key {key}, which is not its initial value"
                ));
            }
        }
        Ok(())
    }

    /// Says if some initial value is not 0 and will be.
    fn note_zero(&self, notes: &mut Vec<String>) {
        let is_other = |op: Op| match op {
            Op::Read { value, .. } | Op::Write { value, .. } => {
                self.history.is_initial(value) && self.history.value_token(value) != Token::Int(0)
            }
            _ => false,
        };
        if self.ops().any(is_other) {
            notes.push("initial values are written as 0".to_owned());
        }
    }

    fn ops(&self) -> impl Iterator<Item = Op> {
        let history = self.history;
        history
            .txns()
            .flat_map(move |txn: TxnId| history.ops(txn).iter().copied())
    }
}

/// A key or value that [`Limits::numbers_only`] has seen.
pub(super) fn number(token: Token) -> i64 {
    match token {
        Token::Int(number) => number,
        Token::Nil | Token::Text(_) => 0,
    }
}

/// A value, 0 for an initial one.
pub(super) fn number_or_zero(history: &History, value: ValueId) -> i64 {
    if history.is_initial(value) {
        return 0;
    }
    number(history.value_token(value))
}
