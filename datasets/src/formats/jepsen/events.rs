//! What stands in a Jepsen log, as data: events, their steps, and the lists that they returned.
//!
//! A large log is read in parts by several threads. Each part has arrays and texts of its own, so nothing is copied when the
//! parts are put together.

use std::num::NonZeroU32;

use kingsnake_history::model::{HistoryBuilder, ObjectKind, Symbols, Token};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::lists::SharedLists;
use super::predicates::Asked;

/// What an event says of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    Invoke,
    Ok,
    Fail,
    Info,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write,
    Append,
    /// A compare-and-set of a register.
    Cas,
    /// A write that its client calls an insert.
    Insert,
    Delete,
    /// An element added to a set.
    Add,
    /// A number added to a counter.
    Increment,
    /// A read of all rows that satisfy a predicate, whose place among [`Events::asked`] is the key.
    Predicate,
}

impl Action {
    /// Whether it returns what only its completion knows.
    pub(super) fn is_read(self) -> bool {
        matches!(self, Action::Read | Action::Predicate)
    }
}

/// What a step read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// `nil`, or nothing at all.
    Nil,
    One(Token),
    /// The same, of the elements of a set; the set as one value stands behind them.
    Set(u32, u32),
    /// A range of [`Part::items`]; of a predicate, the keys and the values that it returned, in turns.
    List(u32, u32),
    /// A value that was never written, which is to be ignored.
    Unwritten,
    /// What a compare-and-set expects, and what it sets.
    Pair(Token, Token),
}

/// One `[:r k v]`, `[:w k v]`, `[:append k v]`, `[:insert k v]`, `[:delete k]`, `[:add k v]`, `[:inc k n]` or
/// `[:rp predicate {k v}]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct MicroOp {
    pub(super) action: Action,
    pub(super) key: Token,
    pub(super) content: Content,
}

/// One event of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientEvent {
    pub(super) kind: EventKind,
    pub(super) process: Option<i64>,
    pub(super) time: Stamp,
    pub(super) index: Stamp,
    /// Its number in its part, all events counted.
    pub(super) number: u32,
    /// Where it stands.
    pub(super) at: usize,
    /// Whether it says which steps it has; a completion may leave that to its invocation.
    pub(super) has_steps: bool,
    /// A range of [`Part::steps`].
    pub(super) steps: (u32, u32),
    /// How far behind [`ClientEvent::at`] the steps stand, if they were passed over.
    pub(super) skipped: Option<NonZeroU32>,
}

impl ClientEvent {
    /// Where the steps stand, if they were passed over.
    pub(super) fn skipped_at(&self) -> Option<usize> {
        self.skipped.map(|it| self.at + it.get() as usize)
    }
}

/// A number that may be missing, in eight bytes: large logs have millions. The least number of all counts as missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(i64);

impl Stamp {
    pub(super) fn new(number: Option<i64>) -> Self {
        Stamp(number.unwrap_or(i64::MIN))
    }

    pub(super) fn get(self) -> Option<i64> {
        (self.0 != i64::MIN).then_some(self.0)
    }
}

/// The events of one part of a file.
#[derive(Default)]
pub(super) struct Part {
    pub(super) all: Vec<ClientEvent>,
    pub(super) steps: Vec<MicroOp>,
    pub(super) items: Vec<Token>,
    pub(super) lists: SharedLists,
    pub(super) is_json: bool,
    /// The texts of this part's tokens, until [`Events::new`] gives them the builder's.
    pub(super) symbols: Symbols,
    /// What its predicates ask, each once.
    pub(super) asked: Vec<Asked>,
    /// What `:init` says that keys hold at first.
    pub(super) initial: Vec<(Token, Token)>,
    /// Some step is of a set or a counter.
    pub(super) has_objects: bool,
    /// Some step is `[:r k v]` or the like, so the history is of transactions.
    pub(super) has_txns: bool,
    /// The key of the only register, once there was one.
    pub(super) only_register: Option<Token>,
    /// How many events it has, of whatever kind.
    pub(super) n_events: u32,
    pub(super) n_nemesis: usize,
    /// Events of operations that are no transactions: how many, and the first one's place and name.
    pub(super) n_others: usize,
    pub(super) first_other: Option<(usize, String)>,
}

impl Part {
    pub(super) fn text(&mut self, text: &str) -> Token {
        Token::Text(self.symbols.intern(text))
    }

    /// The key of the only register.
    pub(super) fn register(&mut self) -> Token {
        match self.only_register {
            Some(register) => register,
            None => *self
                .only_register
                .insert(Token::Text(self.symbols.intern("register"))),
        }
    }

    /// The steps of an event.
    pub(super) fn steps(&self, event: &ClientEvent) -> &[MicroOp] {
        &self.steps[event.steps.0 as usize..event.steps.1 as usize]
    }

    /// Gives every text its token among `names`.
    fn rename(&mut self, names: &[Token]) {
        if names.is_empty() {
            return;
        }
        let rename = |token: &mut Token| {
            if let Token::Text(symbol) = *token {
                *token = names[symbol.index()];
            }
        };
        for step in &mut self.steps {
            rename(&mut step.key);
            match &mut step.content {
                Content::One(token) => rename(token),
                Content::Pair(expected, new) => {
                    rename(expected);
                    rename(new);
                }
                Content::Nil | Content::List(..) | Content::Set(..) | Content::Unwritten => {}
            }
        }
        self.items.iter_mut().for_each(rename);
        for (key, value) in &mut self.initial {
            rename(key);
            rename(value);
        }
        for asked in &mut self.asked {
            if let Asked::Equals(token) = asked {
                rename(token);
            }
        }
    }

    /// Gives every predicate its place among those of the whole file.
    fn place_predicates(&mut self, whole: &mut Vec<Asked>) {
        let mut place = |asked: &Asked| {
            let known = whole.iter().position(|it| it == asked);
            known.unwrap_or_else(|| {
                whole.push(*asked);
                whole.len() - 1
            })
        };
        let places: Vec<usize> = self.asked.iter().map(&mut place).collect();
        if places.is_empty() {
            return;
        }
        for step in &mut self.steps {
            if let (Action::Predicate, Token::Int(own)) = (step.action, step.key) {
                step.key = Token::Int(places[own as usize] as i64);
            }
        }
    }
}

/// Which event: those of earlier parts come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EventId {
    pub(super) part: u32,
    pub(super) index: u32,
}

/// The events of one file.
pub(super) struct Events {
    pub(super) parts: Vec<Part>,
    /// The number of each part's first event.
    first_number: Vec<i64>,
    /// What predicates ask, each once.
    pub(super) asked: Vec<Asked>,
    /// What `:init` says that keys hold at first.
    pub(super) initial: Vec<(Token, Token)>,
    /// The keys that are sets or counters.
    pub(super) objects: FxHashMap<Token, ObjectKind>,
}

impl Events {
    /// Puts the parts together: their texts become the builder's.
    pub(super) fn new(mut parts: Vec<Part>, builder: &mut HistoryBuilder) -> Self {
        let mut asked = Vec::new();
        let mut initial = Vec::new();
        let mut first_number = Vec::new();
        let mut number = 0;
        let mut names = |part: &Part| -> Vec<Token> {
            part.symbols.texts().map(|it| builder.text(it)).collect()
        };
        let names: Vec<Vec<Token>> = parts.iter().map(&mut names).collect();
        if parts.len() == 1 {
            parts[0].rename(&names[0]);
        } else {
            let renamed = parts.par_iter_mut().zip(&names);
            renamed.for_each(|(part, names)| part.rename(names));
        }
        for part in &mut parts {
            part.place_predicates(&mut asked);
            initial.append(&mut part.initial);
            first_number.push(number);
            number += i64::from(part.n_events);
        }
        let mut events = Events {
            parts,
            first_number,
            asked,
            initial,
            objects: FxHashMap::default(),
        };
        let with_objects = events.parts.iter().any(|part| part.has_objects);
        let parts = events.parts.iter().filter(|_| with_objects);
        let is_other = |step: &&MicroOp| {
            use Action::{Append, Cas, Delete, Insert, Write};
            matches!(step.action, Append | Cas | Delete | Insert | Write)
        };
        let others = parts.clone().flat_map(|part| &part.steps).filter(is_other);
        let others: FxHashSet<Token> = others.map(|step| step.key).collect();
        let kinds = parts.flat_map(|part| &part.steps).filter_map(|step| {
            let is_read = matches!(step.content, Content::Set(..)) && !others.contains(&step.key);
            let is_set = step.action == Action::Add || is_read;
            let is_counter = step.action == Action::Increment;
            let counter = is_counter.then_some(ObjectKind::Counter);
            Some((step.key, is_set.then_some(ObjectKind::Set).or(counter)?))
        });
        events.objects = kinds.collect();
        events.read_sets();
        events
    }

    /// A vector that was read of a set is its elements: JSON has no sets. A set that was read of a register is a value.
    fn read_sets(&mut self) {
        if !self.parts.iter().any(|part| part.has_objects) {
            return;
        }
        for part in &mut self.parts {
            for step in &mut part.steps {
                let is_object = self.objects.contains_key(&step.key);
                step.content = match step.content {
                    Content::List(first, end) if is_object && step.action == Action::Read => {
                        Content::Set(first, end)
                    }
                    Content::Set(_, end) if !is_object => Content::One(part.items[end as usize]),
                    other => other,
                };
            }
        }
    }

    pub(super) fn n_events(&self) -> usize {
        self.parts.iter().map(|part| part.all.len()).sum()
    }

    /// Every step, in the order of the file.
    pub(super) fn all_steps(&self) -> impl Iterator<Item = &MicroOp> {
        self.parts.iter().flat_map(|part| &part.steps)
    }

    pub(super) fn part(&self, id: EventId) -> &Part {
        &self.parts[id.part as usize]
    }

    pub(super) fn event(&self, id: EventId) -> &ClientEvent {
        &self.part(id).all[id.index as usize]
    }

    /// An event's number in the file, all events counted.
    pub(super) fn number(&self, id: EventId) -> i64 {
        self.first_number[id.part as usize] + i64::from(self.event(id).number)
    }

    /// The steps of an event.
    pub(super) fn steps(&self, id: EventId) -> &[MicroOp] {
        self.part(id).steps(self.event(id))
    }
}

/// Every event's id and the event, in the order of the file.
pub(super) fn numbered(parts: &[Part]) -> impl Iterator<Item = (EventId, &ClientEvent)> {
    parts.iter().zip(0..).flat_map(|(part, number)| {
        let with_id = move |(event, index)| {
            let part = number;
            (EventId { part, index }, event)
        };
        part.all.iter().zip(0..).map(with_id)
    })
}
