//! Checks answers on a given certificate again: that an order agrees with every dependency, or that a refutation holds.
//!
//! Dependencies are not collected. Along an order, a predicate is compared with the state that the order has reached: it agrees
//! if nothing between the state's version of a row and the one that was looked at changes what satisfies the condition.

use kingsnake_history::adya::{
    AdyaStep, Dependency, DependencyReason, Difference, Mismatch, Phenomenon, PlLevel, Refutation,
};
use kingsnake_history::model::{Act, History, KeyId, Op, Predicate, Token, TxnId, ValueId};
use kingsnake_history::verdict::{Finding, LocalAnomaly};

use crate::Refusal;
use crate::adya_reading::{Reading, View};
use crate::adya_window::Window;
use crate::conditions::Conditions;
use crate::graphs::is_cycle;
use crate::standing::Standing;

/// Makes sure that an order of all counted transactions shows the level.
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
        level,
    };
    walk.run(order, &place)
}

struct Walk<'a> {
    history: &'a History,
    reading: &'a Reading<'a>,
    /// Which rows can ever satisfy a condition, for levels that ask for dependencies; the others neither change nor are chosen.
    conditions: Option<Conditions>,
    /// The state that the order has reached.
    standing: Standing<'a>,
    /// Of which rows snapshots may show something else.
    window: Window<'a>,
    level: PlLevel,
}

impl Walk<'_> {
    fn run(&mut self, order: &[TxnId], place: &[Option<usize>]) -> Result<(), String> {
        let history = self.history;
        // How many versions of each key the order has installed.
        let mut state = vec![0_usize; history.n_keys()];
        let mut links = Vec::new();
        let is_graph = matches!(self.level, PlLevel::Pl2Plus | PlLevel::PlSi);
        for &txn in order {
            if self.level.forbids_g1() {
                self.reads(txn, &state, &mut links)?;
                for (number, predicate) in self.reading.predicates(txn) {
                    self.predicate(txn, number, predicate, &state, &mut links)?;
                }
            }
            for (key, at) in self.reading.installed(txn) {
                if at != state[key.index()] + 1 {
                    return Err(format!(
                        "{} installs a version of {} out of turn",
                        history.txn_name(txn),
                        history.key_name(key)
                    ));
                }
                let before = self.reading.versions(key)[at - 1].0;
                links.extend(before.filter(|_| is_graph).map(|it| (it, txn, false)));
                state[key.index()] = at;
                self.window.install(txn, key, at);
                if let Some(value) = self.reading.versions(key)[at].1 {
                    self.standing.put(key, value);
                }
            }
        }
        match self.level {
            PlLevel::Pl2Plus => self.no_single(&links, place),
            PlLevel::PlSi => self.start_ordered(&links),
            _ => Ok(()),
        }
    }

    fn reads(
        &self,
        txn: TxnId,
        state: &[usize],
        links: &mut Vec<(TxnId, TxnId, bool)>,
    ) -> Result<(), String> {
        for (at, op) in self.history.ops(txn).iter().enumerate() {
            let (key, seen) = match *op {
                Op::Read { key, value } => (key, self.reading.read(txn, at, key, value)?),
                Op::ReadList { key, list } => {
                    let list = self.history.list(list);
                    (key, self.reading.read_list(txn, at, key, list)?)
                }
                _ => continue,
            };
            if let Some(seen) = seen {
                self.item(txn, key, seen, state, links)?;
            }
        }
        Ok(())
    }

    /// A version that was read is the state's, as far as the level looks at it.
    fn item(
        &self,
        txn: TxnId,
        key: KeyId,
        seen: usize,
        state: &[usize],
        links: &mut Vec<(TxnId, TxnId, bool)>,
    ) -> Result<(), String> {
        let now = state[key.index()];
        let sees_missed = matches!(self.level, PlLevel::Pl299 | PlLevel::Pl3);
        if seen > now || (sees_missed && seen < now) {
            return Err(format!(
                "{} read another version of {} than the order implies",
                self.history.txn_name(txn),
                self.history.key_name(key)
            ));
        }
        let versions = self.reading.versions(key);
        links.extend(versions[seen].0.map(|writer| (writer, txn, false)));
        let next = versions.get(seen + 1).and_then(|version| version.0);
        links.extend(next.map(|writer| (txn, writer, true)));
        Ok(())
    }

    fn predicate(
        &self,
        txn: TxnId,
        number: u32,
        predicate: &Predicate,
        state: &[usize],
        links: &mut Vec<(TxnId, TxnId, bool)>,
    ) -> Result<(), String> {
        let reading = self.reading;
        let query = predicate.query;
        let own = reading.own_writes(txn, predicate.at as usize);
        let view = reading.view(txn, predicate)?;
        let mut chosen = Vec::new();
        let is_graph = matches!(self.level, PlLevel::Pl2Plus | PlLevel::PlSi);
        let table = self.history.queries()[query as usize].table;
        for &(key, value) in &own {
            let is_asked = self.history.table_of(key) == Some(table);
            if is_asked && self.history.satisfies(query, value) {
                chosen.push((key, value));
            }
        }
        for key in self.looked_at(query, table, &view) {
            if own.iter().any(|it| it.0 == key) {
                continue;
            }
            let seen = reading.visible_near(&view, key, state[key.index()]);
            let is = |at: usize| reading.bears_on(predicate, key, at);
            let versions = reading.versions(key);
            if reading.matches(query, key, seen) {
                let value = versions[seen].1.ok_or("a version without a value")?;
                chosen.push((key, value));
                if reading.computes_with(predicate, value) {
                    self.item(txn, key, seen, state, links)?;
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
            if is_graph {
                let before = (1..=seen).rev().find(|&at| is(at) != is(at - 1));
                let after = (seen + 1..versions.len()).find(|&at| is(at) != is(at - 1));
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
        let Some(others) = self.window.keys(view) else {
            return self.reading.table(table).to_vec();
        };
        let others = others.into_iter();
        let others = others.filter(|&key| self.history.table_of(key) == Some(table));
        let mut keys = self.standing.keys(query);
        keys.extend(others);
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// No anti-dependency has a way back by other dependencies. Ways are searched within the order only.
    fn no_single(
        &self,
        links: &[(TxnId, TxnId, bool)],
        place: &[Option<usize>],
    ) -> Result<(), String> {
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

    fn start_ordered(&self, links: &[(TxnId, TxnId, bool)]) -> Result<(), String> {
        for &(from, to, is_anti) in links {
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

/// Makes sure that a refutation holds.
pub fn check_refutation(
    history: &History,
    level: PlLevel,
    refutation: &Refutation,
) -> Result<(), Refusal> {
    refute(history, level, refutation).map_err(Refusal::Refutation)
}

fn refute(history: &History, level: PlLevel, refutation: &Refutation) -> Result<(), String> {
    let reading = Reading::new(history)?;
    match refutation {
        Refutation::Findings(found) if level.forbids_g1() && !found.is_empty() => {
            found.iter().try_for_each(|it| finding(&reading, it))
        }
        Refutation::Mismatches(found) if level.forbids_g1() && !found.is_empty() => {
            found.iter().try_for_each(|it| mismatch(&reading, it))
        }
        Refutation::Cycle(phenomenon, steps) => cycle(&reading, level, *phenomenon, steps),
        _ => Err("the level does not forbid it, or there is nothing".to_owned()),
    }
}

fn finding(reading: &Reading<'_>, found: &Finding) -> Result<(), String> {
    let wrong = || Err(format!("{:?} is not there", found.anomaly));
    if found.anomaly == LocalAnomaly::AbortedVersion {
        let is_aborted = !reading.counts(found.txn);
        return if is_aborted { Ok(()) } else { wrong() };
    }
    let op = reading.history().ops(found.txn).get(found.op);
    let read = match op {
        Some(&Op::Read { key, value }) => reading.read(found.txn, found.op, key, value),
        Some(&Op::ReadList { key, list }) => {
            let list = reading.history().list(list);
            reading.read_list(found.txn, found.op, key, list)
        }
        _ => return wrong(),
    };
    match read {
        Err(_) if reading.counts(found.txn) => Ok(()),
        _ => wrong(),
    }
}

fn mismatch(reading: &Reading<'_>, found: &Mismatch) -> Result<(), String> {
    let wrong = || "a predicate returned what it should".to_owned();
    let history = reading.history();
    let all = history.all_predicates();
    let (txn, predicate) = all.get(found.predicate as usize).ok_or_else(wrong)?;
    if *txn != found.txn || !reading.counts(*txn) {
        return Err(wrong());
    }
    let own = reading.own_writes(*txn, predicate.at as usize);
    let view = reading.view(*txn, predicate)?;
    let seen = |key: KeyId| match own.iter().find(|it| it.0 == key) {
        Some(it) => Some(it.1),
        None => reading.versions(key)[reading.visible(&view, key)].1,
    };
    let chosen = |key: KeyId| seen(key).filter(|&it| history.satisfies(predicate.query, it));
    let returned = |key: KeyId| reading.returned(*txn, predicate, key);
    let holds = match found.what {
        Difference::Missing(value) => {
            let key = history.value_key(value);
            chosen(key) == Some(value) && returned(key).is_none()
        }
        Difference::Extra(key, visible) => {
            let there = seen(key).filter(|&value| !history.is_absence(value));
            returned(key).is_some() && chosen(key).is_none() && there == visible
        }
        Difference::Other {
            returned: it,
            visible,
        } => {
            let key = history.value_key(it);
            it != visible && chosen(key) == Some(visible) && returned(key) == Some(Some(it))
        }
        Difference::Aggregate(expected) => {
            let table = history.queries()[predicate.query as usize].table;
            let keys = reading.table(table).iter();
            let all: Vec<(KeyId, ValueId)> =
                keys.filter_map(|&key| Some((key, chosen(key)?))).collect();
            reading.difference(*txn, predicate, &all)? == Some(expected)
        }
    };
    if holds { Ok(()) } else { Err(wrong()) }
}

fn cycle(
    reading: &Reading<'_>,
    level: PlLevel,
    phenomenon: Phenomenon,
    steps: &[AdyaStep],
) -> Result<(), String> {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return Err("a cycle without steps".to_owned());
    };
    for pair in steps.windows(2) {
        if pair[0].to != pair[1].from {
            return Err("the steps are not connected".to_owned());
        }
    }
    let mut kinds = Vec::new();
    for step in steps {
        match &step.because {
            Some(because) => {
                holds(reading, step, because)?;
                kinds.push(because.dependency);
            }
            None if reading.precedes(step.from, step.to)? => {}
            None => return Err("the times do not say so".to_owned()),
        }
    }
    let n_anti = kinds.iter().filter(|it| it.is_rw()).count();
    let n_pred = kinds.iter().filter(|&&it| it == Dependency::PredRw).count();
    let is_timed = steps.iter().any(|step| step.because.is_none());
    let is_named = match phenomenon {
        Phenomenon::G0 => kinds.iter().all(|&it| it == Dependency::Ww) && !is_timed,
        Phenomenon::G1c => n_anti == 0 && !is_timed && level.forbids_g1(),
        Phenomenon::GSingle => {
            let is_forbidden = match level {
                PlLevel::Pl2Plus | PlLevel::Pl3 => true,
                PlLevel::Pl299 => n_pred == 0,
                _ => false,
            };
            n_anti == 1 && !is_timed && is_forbidden
        }
        Phenomenon::G2Item => {
            let is_forbidden = matches!(level, PlLevel::Pl299 | PlLevel::Pl3);
            n_anti > 0 && n_pred == 0 && !is_timed && is_forbidden
        }
        Phenomenon::G2 => n_anti > 0 && !is_timed && level == PlLevel::Pl3,
        Phenomenon::GSib => n_anti == 1 && level == PlLevel::PlSi,
        // One dependency, and the start order says otherwise.
        Phenomenon::GSia => {
            return if steps.len() == 1
                && n_anti == 0
                && kinds.len() == 1
                && level == PlLevel::PlSi
                && !reading.precedes(first.from, first.to)?
            {
                Ok(())
            } else {
                Err("the dependency agrees with the start order".to_owned())
            };
        }
    };
    let is_cycle = is_cycle(steps.iter().map(|step| (step.from, step.to)));
    if last.to != first.from || !is_cycle || !is_named {
        return Err(format!("this is no {}", phenomenon.name()));
    }
    Ok(())
}

/// Whether a dependency is there.
fn holds(reading: &Reading<'_>, step: &AdyaStep, because: &DependencyReason) -> Result<(), String> {
    let history = reading.history();
    let key = because.key;
    let versions = reading.versions(key);
    let at = |value: Option<ValueId>| match value {
        None => Some(0),
        Some(value) => (1..versions.len()).find(|&at| versions[at].1 == Some(value)),
    };
    let wrong = || format!("a step of {} is not there", because.dependency.name());
    let installed = at(Some(because.installed)).ok_or_else(wrong)?;
    let seen = at(because.seen).ok_or_else(wrong)?;
    let writer = |at: usize| versions[at].0;
    if !reading.counts(step.from) || !reading.counts(step.to) || step.from == step.to {
        return Err(wrong());
    }
    let is = match because.dependency {
        Dependency::Ww => {
            installed == seen + 1
                && writer(seen) == Some(step.from)
                && writer(installed) == Some(step.to)
        }
        Dependency::Wr => {
            writer(installed) == Some(step.from) && reads(reading, step.to, key, installed)?
        }
        Dependency::Rw => {
            installed == seen + 1
                && writer(installed) == Some(step.to)
                && reads(reading, step.from, key, seen)?
        }
        Dependency::PredWr | Dependency::PredRw => {
            let number = because.predicate.ok_or_else(wrong)? as usize;
            let (txn, predicate) = history.all_predicates().get(number).ok_or_else(wrong)?;
            let view = reading.view(*txn, predicate)?;
            let looked = reading.visible(&view, key);
            let table = history.queries()[predicate.query as usize].table;
            let is_own = reading.own_writes(*txn, predicate.at as usize);
            let is_own = is_own.iter().any(|it| it.0 == key);
            let is_change = reading.bears_on(predicate, key, installed)
                != reading.bears_on(predicate, key, installed - 1);
            let is_side = if because.dependency == Dependency::PredWr {
                *txn == step.to && writer(installed) == Some(step.from) && installed <= looked
            } else {
                *txn == step.from && writer(installed) == Some(step.to) && installed > looked
            };
            history.table_of(key) == Some(table) && !is_own && is_change && is_side
        }
    };
    if is { Ok(()) } else { Err(wrong()) }
}

/// Whether a transaction reads the version at a place, by itself or through an aggregate.
fn reads(reading: &Reading<'_>, txn: TxnId, key: KeyId, at: usize) -> Result<bool, String> {
    let history = reading.history();
    for (place, op) in history.ops(txn).iter().enumerate() {
        let seen = match *op {
            Op::Read { key: it, value } if it == key => reading.read(txn, place, key, value),
            Op::ReadList { key: it, list } if it == key => {
                reading.read_list(txn, place, key, history.list(list))
            }
            _ => continue,
        };
        if seen == Ok(Some(at)) {
            return Ok(true);
        }
    }
    for (_, predicate) in reading.predicates(txn) {
        let value = reading.versions(key)[at].1;
        let is_read = value.is_some_and(|value| reading.computes_with(predicate, value));
        let own = reading.own_writes(txn, predicate.at as usize);
        let table = history.queries()[predicate.query as usize].table;
        if is_read
            && own.iter().all(|it| it.0 != key)
            && history.table_of(key) == Some(table)
            && reading.visible(&reading.view(txn, predicate)?, key) == at
            && reading.matches(predicate.query, key, at)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What an aggregate of these rows is, where it is not what was returned; for others whether the rows differ (then null).
impl Reading<'_> {
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
        let fits = |&(key, value): &(KeyId, ValueId)| match self.returned(txn, predicate, key) {
            None => false,
            Some(returned) => returned.is_none_or(|it| it == value),
        };
        let is_same = n_returned == chosen.len() && chosen.iter().all(fits);
        Ok((!is_same).then_some(Token::Nil))
    }
}
