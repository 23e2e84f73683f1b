//! A collector's notes about transactions, for people: the node, the database's own name, snapshots; and the faults
//! injected meanwhile. Notes order nothing.

use super::builder::HistoryBuilder;
use super::history::History;
use super::ids::TxnId;
use super::names::Token;

/// The notes about one transaction; [`Token::Nil`] if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The server that it ran on.
    pub node: Token,
    /// The database's own name for it.
    pub name: Token,
    /// The snapshots of its reads, as the text of a JSON array.
    pub snapshots: Token,
}

impl Note {
    /// Nothing is noted.
    pub const NONE: Note = Note {
        node: Token::Nil,
        name: Token::Nil,
        snapshots: Token::Nil,
    };
}

/// An event in the database, such as a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, by the clock of the transactions.
    pub time: i64,
    /// What, in words.
    pub what: Token,
}

/// Every note of a history; no row if no transaction has one.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes {
    pub(super) of_txns: Vec<Note>,
    pub(super) events: Vec<Event>,
}

impl Notes {
    /// Gives each transaction its row, in a new order.
    pub(super) fn permute(&mut self, order: &[u32]) {
        if self.of_txns.is_empty() {
            return;
        }
        let note = |&index: &u32| self.of_txns.get(index as usize).copied();
        let moved = order.iter().map(|index| note(index).unwrap_or(Note::NONE));
        self.of_txns = moved.collect();
    }
}

impl History {
    /// The notes about a transaction.
    pub fn note(&self, txn: TxnId) -> Note {
        let note = self.notes.of_txns.get(txn.index());
        note.copied().unwrap_or(Note::NONE)
    }

    /// The events, in the order of the file.
    pub fn events(&self) -> &[Event] {
        &self.notes.events
    }
}

impl HistoryBuilder {
    /// Adds notes to the transaction begun last.
    pub fn note(&mut self, note: Note) {
        let n_txns = self.history.txns.len();
        let notes = &mut self.history.notes.of_txns;
        notes.resize(n_txns, Note::NONE);
        if let Some(last) = notes.last_mut() {
            *last = note;
        }
    }

    /// Adds an event.
    pub fn event(&mut self, event: Event) {
        self.history.notes.events.push(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Status;

    #[test]
    fn notes_follow_their_transactions_when_sessions_are_sorted() {
        let mut builder = HistoryBuilder::new();
        for (id, session) in [(1, 7), (2, 8), (3, 7), (4, 8)] {
            let session = builder.session(Token::Int(session));
            builder
                .begin(session, Token::Int(id), Status::Committed)
                .unwrap();
            if id == 2 || id == 3 {
                let node = Token::Int(10 * id);
                builder.note(Note { node, ..Note::NONE });
            }
        }
        let history = builder.finish().unwrap();
        let nodes = (0..4).map(|txn| {
            let txn = TxnId(txn);
            (history.txn_token(txn), history.note(txn).node)
        });
        let expected = [
            (Token::Int(1), Token::Nil),
            (Token::Int(3), Token::Int(30)),
            (Token::Int(2), Token::Int(20)),
            (Token::Int(4), Token::Nil),
        ];
        assert_eq!(nodes.collect::<Vec<_>>(), expected);
    }
}
