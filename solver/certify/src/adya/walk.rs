//! Checks an order on a given certificate again: that it agrees with every dependency that the level looks at.
//!
//! Dependencies are not collected. Along an order, a predicate is compared with the state that the order has reached: it agrees
//! if nothing between the state's version of a row and the one that was looked at changes what satisfies the condition.

use kingsnake_history::adya::PlLevel;
use kingsnake_history::model::{Act, History, KeyId, Op, Predicate, Token, TxnId, ValueId};

use super::reading::{Reading, View};
use super::window::Window;
use crate::Refusal;
use crate::conditions::Conditions;
use crate::standing::Standing;

/// Checks that an order of all counted transactions satisfies the level.
pub fn check_order(history: &History, level: PlLevel, order: &[TxnId]) -> Result<(), Refusal> {
    explain(history, level, order).map_err(Refusal::Order)
}

fn explain(history: &History, level: PlLevel, order: &[TxnId]) -> Result<(), String> {
    let reading = Reading::new(history)?;
    let mut place = vec![None; history.n_txns()];
    for (at, txn) in order.iter().enumerate() {
        if !reading.counts(*txn) || place[txn.index()].replace(at).is_some() {
            return Err(format!("{} has no single place", history.txn_name(*txn)));
        }
    }
    if order.len() != reading.n_counted() {
        return Err("a transaction is missing in the order".to_owned());
    }
    let is_graph = matches!(level, PlLevel::Pl2Plus | PlLevel::PlSi);
    let mut walk = Walk {
        history,
        reading: &reading,
        conditions: is_graph.then(|| Conditions::of(history)).flatten(),
        standing: Standing::new(history),
        window: Window::new(&reading),
        own: OwnWrites::new(history),
        links: Vec::new(),
        level,
    };
    walk.run(order, &place)
}

struct Walk<'a> {
    history: &'a History,
    reading: &'a Reading<'a>,
    /// Which rows can ever satisfy a condition, for levels with dependencies; other rows neither change nor are chosen.
    conditions: Option<Conditions>,
    /// The state that the order has reached.
    standing: Standing<'a>,
    /// Of which rows snapshots may show something else.
    window: Window,
    /// What the transaction at hand wrote so far.
    own: OwnWrites,
    /// The dependencies, and whether each is an anti-dependency; for levels that ask for them.
    links: Vec<(TxnId, TxnId, bool)>,
    level: PlLevel,
}

/// The last write of each key so far, of one transaction.
struct OwnWrites {
    written: Vec<(KeyId, ValueId)>,
    /// Where each key stands among them, plus one.
    at: Vec<u32>,
}

impl OwnWrites {
    fn new(history: &History) -> Self {
        OwnWrites {
            written: Vec::new(),
            at: vec![0; history.n_keys()],
        }
    }

    fn clear(&mut self) {
        for (key, _) in self.written.drain(..) {
            self.at[key.index()] = 0;
        }
    }

    fn write(&mut self, key: KeyId, value: ValueId) {
        let at = &mut self.at[key.index()];
        if *at == 0 {
            self.written.push((key, value));
            *at = self.written.len() as u32;
        } else {
            self.written[*at as usize - 1].1 = value;
        }
    }

    fn of(&self, key: KeyId) -> Option<ValueId> {
        let at = self.at[key.index()].checked_sub(1)?;
        Some(self.written[at as usize].1)
    }
}

impl Walk<'_> {
    fn run(&mut self, order: &[TxnId], place: &[Option<usize>]) -> Result<(), String> {
        // How many versions of each key the order has installed.
        let mut state = vec![0_usize; self.history.n_keys()];
        for &txn in order {
            if self.level.forbids_g1() {
                self.own.clear();
                self.operations(txn, &state)?;
            }
            self.install(txn, &mut state)?;
        }
        match self.level {
            PlLevel::Pl2Plus => self.no_single(place),
            PlLevel::PlSi => self.start_ordered(),
            _ => Ok(()),
        }
    }

    fn is_graph(&self) -> bool {
        matches!(self.level, PlLevel::Pl2Plus | PlLevel::PlSi)
    }

    fn install(&mut self, txn: TxnId, state: &mut [usize]) -> Result<(), String> {
        let reading = self.reading;
        for (key, at) in reading.installed(txn) {
            if at != state[key.index()] + 1 {
                return Err(format!(
                    "{} installs a version of {} out of turn",
                    self.history.txn_name(txn),
                    self.history.key_name(key)
                ));
            }
            let versions = reading.versions(key);
            if self.is_graph() {
                let before = versions[at - 1].0;
                self.links.extend(before.map(|it| (it, txn, false)));
            }
            state[key.index()] = at;
            self.window.install(key, at);
            if let Some(value) = versions[at].1 {
                self.standing.put(key, value);
            }
        }
        Ok(())
    }

    /// What a transaction read and asked for, in its order.
    fn operations(&mut self, txn: TxnId, state: &[usize]) -> Result<(), String> {
        let reading = self.reading;
        let mut predicates = reading.predicates(txn).peekable();
        let ops = self.history.ops(txn);
        let mut appends = false;
        for (at, op) in ops.iter().enumerate() {
            while let Some((number, it)) = predicates.next_if(|it| it.1.at as usize <= at) {
                self.predicate(txn, number, it, state)?;
            }
            let (key, seen) = match *op {
                Op::Read { key, value } if appends => (key, reading.read(txn, at, key, value)?),
                Op::Read { key, value } => (key, reading.read_after(self.own.of(key), txn, value)?),
                Op::ReadList { key, list } => {
                    let list = self.history.list(list);
                    (key, reading.read_list(txn, at, key, list)?)
                }
                Op::Write { key, value } => {
                    self.own.write(key, value);
                    continue;
                }
                Op::Append { .. } => {
                    appends = true;
                    continue;
                }
                Op::Range { range } => match reading.untouched(txn, at, range)? {
                    None => continue,
                    Some(key) => (key, Some(0)),
                },
            };
            if let Some(seen) = seen {
                self.item(txn, key, seen, state)?;
            }
        }
        predicates.try_for_each(|(number, it)| self.predicate(txn, number, it, state))
    }

    /// A version that was read is the state's, as far as the level looks at it.
    fn item(&mut self, txn: TxnId, key: KeyId, seen: usize, state: &[usize]) -> Result<(), String> {
        let now = state[key.index()];
        let sees_missed = matches!(self.level, PlLevel::Pl299 | PlLevel::Pl3);
        if seen > now || (sees_missed && seen < now) {
            return Err(format!(
                "{} read another version of {} than the order implies",
                self.history.txn_name(txn),
                self.history.key_name(key)
            ));
        }
        if self.is_graph() {
            let versions = self.reading.versions(key);
            let links = &mut self.links;
            links.extend(versions[seen].0.map(|writer| (writer, txn, false)));
            let next = versions.get(seen + 1).and_then(|version| version.0);
            links.extend(next.map(|writer| (txn, writer, true)));
        }
        Ok(())
    }

    fn predicate(
        &mut self,
        txn: TxnId,
        number: u32,
        predicate: &Predicate,
        state: &[usize],
    ) -> Result<(), String> {
        let reading = self.reading;
        let query = predicate.query;
        let view = reading.view(txn, predicate)?;
        let mut chosen = Vec::new();
        let table = self.history.queries()[query as usize].table;
        for &(key, value) in &self.own.written {
            if reading.is_in(key, table) && self.history.satisfies(query, value) {
                chosen.push((key, value));
            }
        }
        for key in self.looked_at(query, table, &view) {
            if self.own.of(key).is_some() {
                continue;
            }
            let seen = reading.visible_near(&view, key, state[key.index()]);
            let is = |at: usize| reading.bears_on(predicate, key, at);
            let versions = reading.versions(key);
            if reading.matches(query, key, seen) {
                let value = versions[seen].1.ok_or("a version without a value")?;
                chosen.push((key, value));
                if reading.computes_with(predicate, value) {
                    self.item(txn, key, seen, state)?;
                }
            }
            let now = state[key.index()];
            let is_missed = self.level == PlLevel::Pl3 && seen < now;
            if seen > now || is_missed {
                let between = seen.min(now) + 1..=seen.max(now);
                let changes = |&at: &usize| is(at) != is(at - 1) && versions[at].0 != Some(txn);
                if between.clone().any(|at| changes(&at)) {
                    return Err(format!(
                        "predicate {number} of {} does not fit the order at {}",
                        self.history.txn_name(txn),
                        self.history.key_name(key)
                    ));
                }
            }
            if self.is_graph() {
                let before = (1..=seen).rev().find(|&at| is(at) != is(at - 1));
                let after = (seen + 1..versions.len()).find(|&at| is(at) != is(at - 1));
                let links = &mut self.links;
                links.extend(before.and_then(|at| Some((versions[at].0?, txn, false))));
                links.extend(after.and_then(|at| Some((txn, versions[at].0?, true))));
            }
        }
        match reading.difference(txn, predicate, &chosen)? {
            None => Ok(()),
            Some(_) => Err(format!(
                "predicate {number} of {} did not return what its version set implies",
                self.history.txn_name(txn)
            )),
        }
    }

    /// The rows that can matter to a predicate: those that satisfy its condition now, and those that its snapshot may show otherwise.
    fn looked_at(&self, query: u32, table: u32, view: &View<'_>) -> Vec<KeyId> {
        if let Some(conditions) = &self.conditions {
            return conditions.keys(query).to_vec();
        }
        let mut keys = Vec::new();
        if !self.window.keys(view, &mut keys) {
            return self.reading.table(table).to_vec();
        }
        keys.retain(|&key| self.reading.is_in(key, table));
        keys.extend(self.standing.keys(query));
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// No anti-dependency has a way back by other dependencies. Ways are searched within the order only.
    fn no_single(&self, place: &[Option<usize>]) -> Result<(), String> {
        let links = &self.links;
        let at = |txn: TxnId| place[txn.index()].unwrap_or(usize::MAX);
        let mut out: Vec<Vec<TxnId>> = vec![Vec::new(); self.history.n_txns()];
        for &(from, to, is_anti) in links {
            if !is_anti && from != to {
                out[from.index()].push(to);
            }
        }
        let mut seen = vec![u32::MAX; self.history.n_txns()];
        let mut round = 0;
        for &(from, to, is_anti) in links {
            if !is_anti || from == to || at(to) > at(from) {
                continue;
            }
            round += 1;
            let mut stack = vec![to];
            while let Some(txn) = stack.pop() {
                if txn == from {
                    return Err("an anti-dependency has a way back".to_owned());
                }
                for &next in &out[txn.index()] {
                    if at(next) <= at(from) && seen[next.index()] != round {
                        seen[next.index()] = round;
                        stack.push(next);
                    }
                }
            }
        }
        Ok(())
    }

    fn start_ordered(&self) -> Result<(), String> {
        for &(from, to, is_anti) in &self.links {
            if from == to {
                continue;
            }
            if is_anti
                == self.reading.precedes(
                    if is_anti { to } else { from },
                    if is_anti { from } else { to },
                )?
            {
                return Err("a dependency is against the start order".to_owned());
            }
        }
        Ok(())
    }
}

impl Reading<'_> {
    /// What an aggregate of these rows is, where it is not what was returned; for others whether the rows differ (then null).
    pub(crate) fn difference(
        &self,
        txn: TxnId,
        predicate: &Predicate,
        chosen: &[(KeyId, ValueId)],
    ) -> Result<Option<Token>, String> {
        let history = self.history();
        if let Act::Aggregate {
            function,
            column,
            result,
        } = predicate.act
        {
            let values = chosen.iter().map(|&(_, value)| match column {
                None => Token::Int(1),
                Some(column) => history.cell(value, column),
            });
            let expected = function.apply(history.symbols(), values);
            let expected = expected.ok_or("a sum without a result")?;
            return Ok((expected != result).then_some(expected));
        }
        let mut n_returned = 0;
        let start = predicate.at as usize;
        let mut last = None;
        for op in &history.ops(txn)[start..start + predicate.n_ops as usize] {
            n_returned += usize::from(op.key() != last);
            last = op.key();
        }
        let is_same = n_returned == chosen.len() && self.are_returned(txn, predicate, chosen);
        Ok((!is_same).then_some(Token::Nil))
    }
}
