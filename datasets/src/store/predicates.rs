//! Rows of tables chosen by conditions: select, update, delete and aggregate, and the validation that keeps phantoms out.
//!
//! A serializable transaction that writes commits only if no condition that it asked would choose other rows now: no version
//! that was installed since its snapshot satisfies one, or replaces a version that did. Without these predicate locks
//! phantoms come through, while rows that were returned are still protected.

use std::collections::BTreeMap;

use kingsnake_history::model::Function;

use super::Key;
use super::engine::{Open, Sort, Store, Version};
use super::record::{Chosen, StoreEvent};
use super::schema::{Cells, Change, NULL, Where};

impl Store {
    /// Puts a row where it is before the first transaction.
    pub(super) fn load(&mut self, key: Key, cells: Cells) {
        let place = self.place(cells);
        let value = self.fresh(key);
        self.keys
            .entry(key)
            .or_default()
            .installed
            .push(Version::initial(value, place));
    }

    /// The initial rows that an operation met: the others satisfied no condition that was asked.
    pub(super) fn initial_rows(&self) -> Vec<Chosen> {
        let met = |key: &Key| self.met.contains(key);
        let keys = self.keys.iter().filter(|(key, _)| met(key));
        keys.filter_map(|(&key, versions)| {
            let version = versions.at(0)?;
            Some(Chosen {
                key,
                value: version.value,
                place: version.beside,
            })
        })
        .collect()
    }

    /// Where a row stands.
    fn place(&mut self, cells: Cells) -> i64 {
        self.rows.push(cells);
        self.rows.len() as i64 - 1
    }

    pub(super) fn cells(&self, place: i64) -> &Cells {
        &self.rows[place as usize]
    }

    /// Sets a row; others see it after the commit.
    pub(super) fn put(&mut self, open: &mut Open, key: Key, cells: Cells, is_insert: bool) {
        self.met.insert(key);
        let place = self.place(cells);
        let value = self.change(open, key, place, Sort::Set);
        open.events.push(StoreEvent::Put {
            row: Chosen { key, value, place },
            is_insert,
        });
    }

    /// Reads every row that a condition chooses.
    pub(super) fn select(&mut self, open: &mut Open, asked: Where) -> Vec<Cells> {
        self.tick();
        let at = self.visible(open);
        let rows = self.chosen(open, &asked);
        let cells = rows.iter().map(|row| *self.cells(row.place)).collect();
        open.events.push(StoreEvent::Select { asked, rows, at });
        cells
    }

    /// Changes every row that a condition chooses; returns the rows as they are then.
    pub(super) fn update_where(
        &mut self,
        open: &mut Open,
        asked: Where,
        changes: &[Change],
    ) -> Vec<Cells> {
        let at = self.visible(open);
        let mut old = self.chosen(open, &asked);
        if self.replace_worn(open, &old) {
            old = self.chosen(open, &asked);
        }
        let (mut rows, mut new) = (Vec::with_capacity(old.len()), Vec::new());
        for row in old {
            let mut cells = *self.cells(row.place);
            for change in changes {
                change.apply(&mut cells);
            }
            let place = self.place(cells);
            let value = self.change(open, row.key, place, Sort::Set);
            let key = row.key;
            rows.push((row, Chosen { key, value, place }));
            new.push(cells);
        }
        open.events
            .push(StoreEvent::UpdateWhere { asked, rows, at });
        new
    }

    /// Deletes every row that a condition chooses; returns them.
    pub(super) fn delete_where(&mut self, open: &mut Open, asked: Where) -> Vec<Cells> {
        let at = self.visible(open);
        let old = self.chosen(open, &asked);
        let (mut rows, mut gone) = (Vec::with_capacity(old.len()), Vec::new());
        for row in old {
            gone.push(*self.cells(row.place));
            let tombstone = self.change(open, row.key, 0, Sort::Delete);
            rows.push((row, tombstone));
        }
        open.events
            .push(StoreEvent::DeleteWhere { asked, rows, at });
        gone
    }

    /// Reads a function of the rows that a condition chooses; 0 stands for null.
    pub(super) fn aggregate(
        &mut self,
        open: &mut Open,
        asked: Where,
        function: Function,
        column: Option<u8>,
    ) -> i64 {
        self.tick();
        let at = self.visible(open);
        let rows = self.chosen(open, &asked);
        let cells = rows.iter().map(|row| self.cells(row.place));
        let numbers = cells.map(|cells| column.map_or(0, |column| cells[usize::from(column)]));
        let mut numbers = numbers.filter(|&number| number != NULL);
        let result = match function {
            Function::Count => Some(numbers.count() as i64),
            Function::Min => numbers.min(),
            Function::Max => numbers.max(),
            Function::Sum => numbers.next().map(|first| first + numbers.sum::<i64>()),
        };
        open.events.push(StoreEvent::Aggregate {
            asked,
            function,
            column,
            result,
            at,
        });
        result.unwrap_or(0)
    }

    /// The rows that a condition chooses for a transaction, its own writes on top.
    fn chosen(&mut self, open: &mut Open, asked: &Where) -> Vec<Chosen> {
        let visible = self.visible(open);
        let mut rows: BTreeMap<Key, (i64, i64, bool)> = BTreeMap::new();
        for (&key, versions) in self.keys.range(asked.keys()) {
            if let Some(version) = versions.at(visible).filter(|it| !it.is_tombstone) {
                rows.insert(key, (version.value, version.beside, false));
            }
        }
        for write in &open.pending {
            if !asked.keys().contains(&write.key) {
                continue;
            }
            match write.sort {
                Sort::Delete => rows.remove(&write.key),
                _ => rows.insert(write.key, (write.value, write.beside, true)),
            };
        }
        let mut chosen = Vec::new();
        for (key, (value, place, is_own)) in rows {
            if asked.holds(self.cells(place)) {
                self.met.insert(key);
                chosen.push(Chosen { key, value, place });
                if !is_own {
                    open.read.push(key);
                }
            }
        }
        open.conditions.push(asked.clone());
        chosen
    }

    /// Whether a condition of a transaction would choose other rows than it did.
    pub(super) fn has_phantom(&self, open: &Open) -> bool {
        let holds = |asked: &Where, version: &Version| {
            !version.is_tombstone && asked.holds(self.cells(version.beside))
        };
        open.conditions.iter().any(|asked| {
            self.keys.range(asked.keys()).any(|(_, versions)| {
                let newer = versions.newer(open.snapshot());
                let old = versions.at(open.snapshot());
                !newer.is_empty()
                    && (old.is_some_and(|version| holds(asked, version))
                        || newer.iter().any(|version| holds(asked, version)))
            })
        })
    }
}
