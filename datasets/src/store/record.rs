//! What happened, as a history, with the version order that the store knows to be true.

use kingsnake_solver::model::{BuildError, History, HistoryBuilder, Status, Token};

use super::Key;
use super::engine::INITIAL;

/// One operation as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Read(Key, i64),
    Write(Key, i64),
    ReadList(Key, Vec<i64>),
    Append(Key, i64),
}

/// A transaction as its client saw it.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) client: usize,
    pub(super) status: Status,
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) events: Vec<Event>,
}

/// Everything that a run left behind.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub(super) n_clients: usize,
    /// In the order in which they ended.
    pub(super) records: Vec<Record>,
    pub(super) version_orders: Vec<(Key, Vec<i64>)>,
    pub(super) n_aborted: usize,
}

impl Recorded {
    /// How many attempts were aborted, recorded or not.
    pub fn n_aborted(&self) -> usize {
        self.n_aborted
    }

    /// The history, with its version order and with begin and commit times unless they are left out.
    pub fn history(&self, version_order: bool, times: bool) -> Result<History, BuildError> {
        let mut builder = HistoryBuilder::new();
        builder.initial_everywhere(Token::Int(INITIAL));
        let clients = 0..self.n_clients as i64;
        let sessions: Vec<_> = clients.map(|it| builder.session(Token::Int(it))).collect();
        for (index, record) in self.records.iter().enumerate() {
            let name = Token::Int(index as i64 + 1);
            builder.begin(sessions[record.client], name, record.status)?;
            if times {
                builder.times(Some(record.begin), Some(record.end));
            }
            for event in &record.events {
                add(&mut builder, event);
            }
        }
        if version_order {
            for (key, values) in &self.version_orders {
                let values = values.iter().map(|&value| Token::Int(value));
                builder.version_order(Token::Int(*key), values)?;
            }
        }
        builder.finish()
    }
}

fn add(builder: &mut HistoryBuilder, event: &Event) {
    match *event {
        Event::Read(key, value) => {
            builder.read(Token::Int(key), Token::Int(value));
        }
        Event::Write(key, value) => {
            builder.write(Token::Int(key), Token::Int(value));
        }
        Event::Append(key, value) => {
            builder.append(Token::Int(key), Token::Int(value));
        }
        Event::ReadList(key, ref list) => {
            let values = list.iter().map(|&value| Token::Int(value));
            builder.read_list(Token::Int(key), values);
        }
    }
}
