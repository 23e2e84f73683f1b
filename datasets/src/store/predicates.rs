//! Rows chosen by their number: select, update and aggregate, and the validation that keeps phantoms out.
//!
//! A serializable transaction that writes commits only if no condition that it asked would choose other rows now: no version
//! that somebody installed since its snapshot satisfies one, or replaces a version that did. Without these predicate locks
//! phantoms come through, while rows that were returned are still protected.

use std::collections::BTreeMap;

use super::Key;
use super::engine::{Open, Sort, Store};
use super::record::{Chosen, StoreEvent};

/// The numbers that a condition spans, both included.
pub(super) type Span = (i64, i64);

impl Store {
    /// Sets a row and its number; others see it after the commit.
    pub(super) fn put(&mut self, open: &mut Open, key: Key, number: i64, is_insert: bool) {
        let value = self.change(open, key, number, Sort::Set);
        open.events.push(StoreEvent::Put {
            key,
            value,
            number,
            is_insert,
        });
    }

    /// Reads every row whose number the span holds.
    pub(super) fn select(&mut self, open: &mut Open, span: Span) {
        self.tick();
        let rows = self.chosen(open, span);
        let at = self.visible(open);
        open.events.push(StoreEvent::Select { span, rows, at });
    }

    /// Sets the number of every row whose number the span holds.
    pub(super) fn update_where(&mut self, open: &mut Open, span: Span, number: i64) {
        let at = self.visible(open);
        let rows = self.chosen(open, span);
        let mut changed = Vec::with_capacity(rows.len());
        for row in rows {
            let new = self.change(open, row.key, number, Sort::Set);
            changed.push((row, new));
        }
        open.events.push(StoreEvent::UpdateWhere {
            span,
            rows: changed,
            number,
            at,
        });
    }

    /// Reads the least or the greatest number that the span holds.
    pub(super) fn extreme(&mut self, open: &mut Open, span: Span, is_greatest: bool) {
        self.tick();
        let rows = self.chosen(open, span);
        let numbers = rows.iter().map(|row| row.number);
        let result = if is_greatest {
            numbers.max()
        } else {
            numbers.min()
        };
        let at = self.visible(open);
        open.events.push(StoreEvent::Extreme {
            span,
            is_greatest,
            result,
            at,
        });
    }

    /// The rows that a condition chooses for a transaction, its own writes on top.
    fn chosen(&self, open: &mut Open, span: Span) -> Vec<Chosen> {
        let visible = self.visible(open);
        let mut rows: BTreeMap<Key, (i64, i64, bool)> = BTreeMap::new();
        for (&key, versions) in &self.keys {
            if let Some(version) = versions.at(visible) {
                rows.insert(key, (version.value, version.beside, false));
            }
        }
        for write in &open.pending {
            rows.insert(write.key, (write.value, write.beside, true));
        }
        let holds = |number: i64| span.0 <= number && number <= span.1;
        let mut chosen = Vec::new();
        for (key, (value, number, is_own)) in rows {
            if holds(number) {
                chosen.push(Chosen { key, value, number });
                if !is_own {
                    open.read.push(key);
                }
            }
        }
        open.conditions.push(span);
        chosen
    }

    /// Whether a condition of a transaction would choose other rows than it did.
    pub(super) fn has_phantom(&self, open: &Open) -> bool {
        open.conditions.iter().any(|&(low, high)| {
            let holds = |number: i64| low <= number && number <= high;
            self.keys.values().any(|versions| {
                let newer = versions.newer(open.snapshot());
                let old = versions.at(open.snapshot());
                !newer.is_empty()
                    && (old.is_some_and(|version| holds(version.beside))
                        || newer.iter().any(|version| holds(version.beside)))
            })
        })
    }
}
