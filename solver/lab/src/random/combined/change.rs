//! Random changes of a history, after which its level may no longer hold.

use std::ops::RangeBounds;

use kingsnake_history::model::{Status, Token};
use kingsnake_history::rng::Rng;

use super::{Cell, Combined, Event, INITIAL};

/// What nobody writes.
const NEVER: i64 = 999;

impl Combined {
    /// Every value that was written to a row, and the initial state.
    pub(super) fn cells(&self, key: usize) -> Vec<Cell> {
        let mut cells = vec![Cell::Initial];
        for event in self.runs.iter().flat_map(|run| &run.events) {
            match event {
                Event::Write(at, value) | Event::Insert(at, value) if *at == key => {
                    cells.push(Cell::Value(*value));
                }
                Event::Delete(at, name) if *at == key => cells.push(Cell::Deleted(*name)),
                Event::Update(_, rows) => {
                    let rows = rows.iter().filter(|row| row.0 == key);
                    cells.extend(rows.map(|row| Cell::Value(row.2)));
                }
                Event::DeleteWhere(_, rows) => {
                    let rows = rows.iter().filter(|row| row.0 == key);
                    cells.extend(rows.map(|row| Cell::Deleted(row.2)));
                }
                _ => {}
            }
        }
        cells
    }

    /// Makes one random change.
    pub(super) fn mutate(&mut self, rng: &mut Rng) {
        let txn = rng.below(self.runs.len());
        match rng.below(12) {
            0..=6 => self.change_read(rng),
            7 => {
                let other = rng.below(self.runs.len());
                self.runs[txn].session = self.runs[other].session;
            }
            8 => {
                let statuses = [Status::Committed, Status::Aborted, Status::Unknown];
                self.runs[txn].status = statuses[rng.below(3)];
            }
            9 if !self.orders.is_empty() => {
                let at = rng.below(self.orders.len());
                let order = &mut self.orders[at].2;
                let (one, other) = (rng.below(order.len()), rng.below(order.len()));
                order.swap(one, other);
            }
            9 | 10 => {
                let by = rng.between(0, 40) as i64 - 20;
                let run = &mut self.runs[txn];
                run.begin = run.begin.map(|time| time + by);
                run.commit = run.commit.map(|time| time + by);
                run.stamps = run.stamps.map(|(start, commit)| (start, commit + by / 5));
            }
            _ => {
                let events = &mut self.runs[txn].events;
                let (one, other) = (rng.below(events.len()), rng.below(events.len()));
                events.swap(one, other);
            }
        }
    }

    fn change_read(&mut self, rng: &mut Rng) {
        let is_read = |event: &Event| {
            !matches!(
                event,
                Event::Write(..)
                    | Event::Insert(..)
                    | Event::Delete(..)
                    | Event::Append(..)
                    | Event::Add(_)
                    | Event::Increment(_)
            )
        };
        let mut places: Vec<(usize, usize)> = Vec::new();
        for (txn, run) in self.runs.iter().enumerate() {
            let reads = (0..run.events.len()).filter(|&at| is_read(&run.events[at]));
            places.extend(reads.map(|at| (txn, at)));
        }
        let Some(&(txn, at)) = rng.pick(&places) else {
            return;
        };
        let key = rng.below(self.there.len());
        let mut event = self.runs[txn].events[at].clone();
        match &mut event {
            Event::Read(key, held, _) => {
                *held = *rng.pick(&self.cells(*key)).unwrap_or(held);
                if rng.chance(3) {
                    *held = Cell::Value(NEVER);
                }
            }
            Event::ReadList(list, items) => {
                let events = self.runs.iter().flat_map(|run| &run.events);
                let appended = events.filter_map(|event| match event {
                    Event::Append(it, value) if it == list => Some(*value),
                    _ => None,
                });
                let appended: Vec<i64> = appended.collect();
                change_list(items, &appended, rng);
            }
            Event::ReadSet(items) => {
                let events = self.runs.iter().flat_map(|run| &run.events);
                let added = events.filter_map(|event| match event {
                    Event::Add(element) => Some(*element),
                    _ => None,
                });
                let added: Vec<i64> = added.collect();
                change_list(items, &added, rng);
            }
            Event::ReadCounter(value) => *value += rng.between(0, 2) as i64 - 1,
            Event::Range {
                low,
                high,
                rows,
                shows_deleted,
            } => {
                rows.retain(|row| row.0 != key);
                let held = *rng.pick(&self.cells(key)).unwrap_or(&Cell::Initial);
                let is_row = match held {
                    Cell::Initial => self.there[key],
                    Cell::Value(_) => true,
                    Cell::Deleted(_) => *shows_deleted,
                };
                if is_row && (*low, *high).contains(&key) {
                    rows.push((key, held));
                }
            }
            Event::Select(asked, rows) if asked.table == self.tables[key] => {
                rows.retain(|row| row.0 != key);
                match *rng.pick(&self.cells(key)).unwrap_or(&Cell::Initial) {
                    Cell::Value(value) => rows.push((key, value)),
                    Cell::Initial if self.there[key] => rows.push((key, INITIAL)),
                    _ => {}
                }
            }
            Event::Update(_, rows) => rows.retain(|row| row.0 != key),
            Event::DeleteWhere(_, rows) => rows.retain(|row| row.0 != key),
            Event::Aggregate(_, _, _, result) => {
                *result = match *result {
                    Token::Int(number) => Token::Int(number + rng.between(0, 2) as i64 - 1),
                    _ => Token::Int(rng.below(4) as i64),
                };
            }
            _ => {}
        }
        self.runs[txn].events[at] = event;
    }
}

fn change_list(items: &mut Vec<i64>, appended: &[i64], rng: &mut Rng) {
    match rng.below(4) {
        0 if !items.is_empty() => {
            items.remove(rng.below(items.len()));
        }
        1 if items.len() > 1 => {
            let (one, other) = (rng.below(items.len()), rng.below(items.len()));
            items.swap(one, other);
        }
        2 => {
            items.pop();
        }
        _ => {
            let fresh = rng.pick(appended).filter(|it| !items.contains(it));
            items.extend(fresh.copied());
        }
    }
}
