//! Which results an aggregate can have, row by row: a layered graph whose nodes are partial results.
//!
//! Layer *i* has the partial results over the first *i* rows from which the result can still be reached. Stated as clauses, a partial result and
//! the version that was read of the next row imply the next partial result; what leads out of the graph is forbidden.

use rustc_hash::FxHashSet;

use crate::model::{Function, History, Symbols, Token};
use kingsnake_graph::{Literal, Logic};

/// Maximum number of transitions between partial results; beyond it there is no answer.
const MOST: usize = 1 << 20;

/// A function of some of the rows: how many there were, their sum, or the best of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Partial {
    n: i128,
    best: Token,
}

/// The query: the function and its result.
#[derive(Clone, Copy)]
pub(crate) struct Tally<'h> {
    symbols: &'h Symbols,
    function: Function,
    result: Token,
}

impl<'h> Tally<'h> {
    /// What an aggregate of a history asks.
    pub(crate) fn of(history: &'h History, function: Function, result: Token) -> Self {
        Tally {
            symbols: history.symbols(),
            function,
            result,
        }
    }

    /// The partial result over these rows; none where there is no such result.
    pub(crate) fn over(self, cells: impl IntoIterator<Item = Token>) -> Option<Partial> {
        let none = Partial {
            n: 0,
            best: Token::Nil,
        };
        let mut cells = cells.into_iter();
        cells.try_fold(none, |partial, cell| self.add(partial, cell))
    }

    /// With one more row. Of a sum, `best` tells that there is a row.
    fn add(self, partial: Partial, cell: Token) -> Option<Partial> {
        if cell == Token::Nil {
            return Some(partial);
        }
        Some(match (self.function, cell) {
            (Function::Count, _) => Partial {
                n: partial.n + 1,
                ..partial
            },
            (Function::Sum, Token::Int(number)) => Partial {
                n: partial.n + i128::from(number),
                best: Token::Int(1),
            },
            (Function::Sum, _) => return None,
            (Function::Min | Function::Max, _) => {
                let of_two = [partial.best, cell].into_iter();
                let best = self.function.apply(self.symbols, of_two)?;
                Partial { n: 0, best }
            }
        })
    }

    pub(crate) fn is_result(self, partial: Partial) -> bool {
        let result = match self.function {
            Function::Min | Function::Max => return partial.best == self.result,
            Function::Sum if partial.best == Token::Nil => return self.result == Token::Nil,
            Function::Count | Function::Sum => partial.n,
        };
        matches!(self.result, Token::Int(number) if i128::from(number) == result)
    }

    /// The partial results from which the result can be reached, layer by layer; `None` where there are too many. The first layer is
    /// empty where the result cannot be.
    fn layers(self, start: Partial, rows: &[Vec<Token>]) -> Option<Vec<FxHashSet<Partial>>> {
        let mut layers: Vec<FxHashSet<Partial>> = vec![std::iter::once(start).collect()];
        let mut n_made = 0;
        for (at, cells) in rows.iter().enumerate() {
            let mut next = FxHashSet::default();
            for &partial in &layers[at] {
                n_made += cells.len();
                next.extend(cells.iter().filter_map(|&cell| self.add(partial, cell)));
            }
            if n_made > MOST {
                return None;
            }
            layers.push(next);
        }
        layers[rows.len()].retain(|&partial| self.is_result(partial));
        for at in (0..rows.len()).rev() {
            let (before, after) = layers.split_at_mut(at + 1);
            before[at].retain(|&partial| {
                let mut next = rows[at].iter().filter_map(|&cell| self.add(partial, cell));
                next.any(|it| after[0].contains(&it))
            });
        }
        Some(layers)
    }

    /// Whether some choice of one cell of each row gives the result; `None` if that is too expensive to find out.
    pub(crate) fn is_possible(self, start: Option<Partial>, rows: &[Vec<Token>]) -> Option<bool> {
        let Some(start) = start else {
            return Some(false);
        };
        Some(!self.layers(start, rows)?[0].is_empty())
    }

    /// States that the rows give the result, where each cell of a row has literals one of which holds if it was read. Whether that is
    /// said.
    pub(crate) fn state(
        self,
        logic: &mut Logic,
        start: Partial,
        rows: &[Vec<(Token, Vec<Literal>)>],
    ) -> bool {
        let cells = rows.iter();
        let cells = cells.map(|row| row.iter().map(|it| it.0).collect());
        let cells: Vec<Vec<Token>> = cells.collect();
        let Some(layers) = self.layers(start, &cells) else {
            return false;
        };
        let mut here: Vec<(Partial, Option<Literal>)> = vec![(start, None)];
        for (at, row) in rows.iter().enumerate() {
            let row: Vec<(Token, Literal)> = row
                .iter()
                .map(|(cell, literals)| (*cell, any_of(logic, literals)))
                .collect();
            let is_last = at + 1 == rows.len();
            let mut next: Vec<(Partial, Option<Literal>)> = Vec::new();
            if !is_last {
                let sorted = layers[at + 1].iter();
                next.extend(sorted.map(|&partial| (partial, None)));
                next.sort_unstable_by_key(|it| (it.0.n, it.0.best));
                for (_, literal) in &mut next {
                    *literal = Some(Literal::Variable(logic.variable(), true));
                }
            }
            for &(partial, known) in &here {
                for &(cell, read) in &row {
                    let after = self.add(partial, cell);
                    let after = after.filter(|it| layers[at + 1].contains(it));
                    let mut clause: Vec<Literal> = known.iter().map(|&it| !it).collect();
                    clause.push(!read);
                    match after {
                        None => logic.clause(&clause),
                        Some(_) if is_last => {}
                        Some(after) => {
                            let by = |it: &(Partial, _)| (it.0.n, it.0.best);
                            let place = next.binary_search_by_key(&(after.n, after.best), by);
                            clause.extend(place.ok().and_then(|place| next[place].1));
                            logic.clause(&clause);
                        }
                    }
                }
            }
            here = next;
        }
        true
    }
}

/// A literal that holds if one of these does.
fn any_of(logic: &mut Logic, literals: &[Literal]) -> Literal {
    if let &[only] = literals {
        return only;
    }
    let any = Literal::Variable(logic.variable(), true);
    for &literal in literals {
        logic.clause(&[!literal, any]);
    }
    any
}
