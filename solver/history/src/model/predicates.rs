//! Rows with columns, and operations that choose rows by a condition, as data beside the operations of a history.
//!
//! The rows that such an operation returned are plain reads among the operations of its transaction (and writes, for an
//! update or a delete). A [`Predicate`] tells which of them belong together and which condition chose them. A history
//! without predicates has none of these tables.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::ids::{TxnId, ValueId};
use super::names::{Symbols, Token};
use super::objects::{ObjectKind, Objects};

/// A table and its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: Token,
    /// The names of its columns, besides the built-in ones.
    pub columns: Vec<Token>,
    /// The set or counter that it stands for, and its name, where no file declared it.
    pub object: Option<(ObjectKind, Token)>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Column {
    /// `key`: the primary key of the row.
    Key,
    /// `value`: the value that names the version.
    Value,
    /// A column that the table declares, by its place.
    Cell(u32),
}

/// An operand of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A number, a text or null.
    Literal(Token),
    /// Another column of the same row.
    Column(Column),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `<>`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Comparison {
    /// Every comparison.
    pub const ALL: [Comparison; 6] = [
        Comparison::Eq,
        Comparison::Ne,
        Comparison::Lt,
        Comparison::Le,
        Comparison::Gt,
        Comparison::Ge,
    ];

    /// The sign, as SQL and our format write it.
    pub fn sign(self) -> &'static str {
        match self {
            Comparison::Eq => "=",
            Comparison::Ne => "<>",
            Comparison::Lt => "<",
            Comparison::Le => "<=",
            Comparison::Gt => ">",
            Comparison::Ge => ">=",
        }
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Ne => order.is_ne(),
            Comparison::Lt => order.is_lt(),
            Comparison::Le => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::Ge => order.is_ge(),
        }
    }
}

/// A WHERE expression, in SQL's logic of true, false and unknown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// True for every row, or for none.
    Always(bool),
    /// Every part is true.
    And(Vec<Condition>),
    /// Some part is true.
    Or(Vec<Condition>),
    /// The opposite; unknown stays unknown.
    Not(Box<Condition>),
    /// A comparison; unknown where a side is null, or one is a number and the other a text.
    Compare(Comparison, Column, Operand),
    /// At least the first operand and at most the second.
    Between(Column, Operand, Operand),
    /// Equal to one of the list.
    In(Column, Vec<Token>),
    /// Null, and never unknown.
    IsNull(Column),
}

impl Condition {
    /// Whether a row satisfies the condition; `None` is unknown, which counts as not satisfied. This is the definition;
    /// engines have faster ways.
    pub fn holds(&self, symbols: &Symbols, cell: &impl Fn(Column) -> Token) -> Option<bool> {
        let value = |operand: Operand| match operand {
            Operand::Literal(token) => token,
            Operand::Column(column) => cell(column),
        };
        let compare = |sign: Comparison, column: Column, with: Token| {
            compare_values(symbols, cell(column), with).map(|order| sign.holds(order))
        };
        match self {
            Condition::Always(is) => Some(*is),
            Condition::And(parts) => {
                let mut all = Some(true);
                for part in parts {
                    all = and(all, part.holds(symbols, cell));
                    if all == Some(false) {
                        break;
                    }
                }
                all
            }
            Condition::Or(parts) => {
                let mut none = Some(true);
                for part in parts {
                    none = and(none, part.holds(symbols, cell).map(|is| !is));
                }
                none.map(|is| !is)
            }
            Condition::Not(part) => part.holds(symbols, cell).map(|is| !is),
            Condition::Compare(sign, column, with) => compare(*sign, *column, value(*with)),
            Condition::Between(column, low, high) => and(
                compare(Comparison::Ge, *column, value(*low)),
                compare(Comparison::Le, *column, value(*high)),
            ),
            Condition::In(column, list) => {
                let mut none = Some(true);
                for &token in list {
                    let is = compare(Comparison::Eq, *column, token);
                    if is == Some(true) {
                        return is;
                    }
                    none = and(none, is.map(|is| !is));
                }
                none.map(|is| !is)
            }
            Condition::IsNull(column) => Some(cell(*column) == Token::Nil),
        }
    }

    /// The condition in SQL's notation.
    pub fn show(
        &self,
        show: &impl Fn(Token) -> String,
        name: &impl Fn(Column) -> String,
    ) -> String {
        let value = |operand: &Operand| match operand {
            Operand::Literal(Token::Nil) => "null".to_owned(),
            Operand::Literal(token @ Token::Text(_)) => format!("'{}'", show(*token)),
            Operand::Literal(token) => show(*token),
            Operand::Column(column) => name(*column),
        };
        let join = |parts: &[Condition], word: &str| {
            let each = parts.iter().map(|part| match part {
                Condition::And(_) | Condition::Or(_) => format!("({})", part.show(show, name)),
                _ => part.show(show, name),
            });
            each.collect::<Vec<_>>().join(word)
        };
        match self {
            Condition::Always(is) => is.to_string(),
            Condition::And(parts) => join(parts, " and "),
            Condition::Or(parts) => join(parts, " or "),
            Condition::Not(part) => format!("not ({})", part.show(show, name)),
            Condition::Compare(sign, column, with) => {
                format!("{} {} {}", name(*column), sign.sign(), value(with))
            }
            Condition::Between(column, low, high) => {
                format!(
                    "{} between {} and {}",
                    name(*column),
                    value(low),
                    value(high)
                )
            }
            Condition::In(column, list) => {
                let list = list.iter().map(|&token| value(&Operand::Literal(token)));
                format!(
                    "{} in ({})",
                    name(*column),
                    list.collect::<Vec<_>>().join(", ")
                )
            }
            Condition::IsNull(column) => format!("{} is null", name(*column)),
        }
    }
}

fn and(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// The order of two values of one kind: numbers by size, texts by their bytes. `None` for others, and for null.
pub fn compare_values(symbols: &Symbols, one: Token, other: Token) -> Option<Ordering> {
    match (one, other) {
        (Token::Int(one), Token::Int(other)) => Some(one.cmp(&other)),
        (Token::Text(one), Token::Text(other)) => Some(symbols.text(one).cmp(symbols.text(other))),
        _ => None,
    }
}

/// A table and the condition that its rows must satisfy. Equal queries are kept once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// The table, by its place.
    pub table: u32,
    /// The condition.
    pub condition: Condition,
}

/// The function of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// How many rows, or how many values other than null.
    Count,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// The sum of the numbers.
    Sum,
}

impl Function {
    /// Every function.
    pub const ALL: [Function; 4] = [Function::Count, Function::Min, Function::Max, Function::Sum];

    /// The name, as SQL and our format write it.
    pub fn name(self) -> &'static str {
        match self {
            Function::Count => "count",
            Function::Min => "min",
            Function::Max => "max",
            Function::Sum => "sum",
        }
    }

    /// Whether a value would replace the least or greatest one that was returned. Never for the other functions, which have no
    /// such value.
    pub fn is_beyond(self, symbols: &Symbols, value: Token, result: Token) -> bool {
        let wanted = match self {
            Function::Min => Ordering::Less,
            Function::Max => Ordering::Greater,
            Function::Count | Function::Sum => return false,
        };
        let is_better = || super::ranges::compare(symbols, value, result) == wanted;
        value != Token::Nil && (result == Token::Nil || is_better())
    }

    /// The result over the values of a column, or over one value per row if there is no column (then nothing is null).
    /// `None` if there is no such result: a sum of texts, or one beyond 64 bits.
    pub fn apply(self, symbols: &Symbols, values: impl Iterator<Item = Token>) -> Option<Token> {
        let values = values.filter(|&value| value != Token::Nil);
        let best = |values: &mut dyn Iterator<Item = Token>, wanted: Ordering| {
            let better = |best: Token, value: Token| {
                let order = super::ranges::compare(symbols, value, best);
                if order == wanted { value } else { best }
            };
            values.reduce(better).unwrap_or(Token::Nil)
        };
        let mut values = values;
        match self {
            Function::Count => Some(Token::Int(values.count() as i64)),
            Function::Min => Some(best(&mut values, Ordering::Less)),
            Function::Max => Some(best(&mut values, Ordering::Greater)),
            Function::Sum => {
                let mut sum: Option<i128> = None;
                for value in values {
                    let Token::Int(number) = value else {
                        return None;
                    };
                    sum = Some(sum.unwrap_or(0) + i128::from(number));
                }
                match sum {
                    None => Some(Token::Nil),
                    Some(sum) => i64::try_from(sum).ok().map(Token::Int),
                }
            }
        }
    }
}

/// What happens to the rows that satisfy the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// They are returned.
    Select,
    /// They are changed.
    Update,
    /// They are deleted.
    Delete,
    /// A function of them is returned.
    Aggregate {
        /// Which function.
        function: Function,
        /// Of which column; `None` counts rows.
        column: Option<Column>,
        /// What was returned.
        result: Token,
    },
}

/// The least or greatest value of a column, as it was returned. It depends on fewer rows than the condition chooses: on those that
/// have it, and on those beyond it that are not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extreme {
    /// Least or greatest.
    pub function: Function,
    /// Of which column.
    pub column: Column,
    /// What was returned; null where no row has a value.
    pub result: Token,
}

impl Act {
    /// The least or greatest value, if that was the query.
    pub fn extreme(self) -> Option<Extreme> {
        match self {
            Act::Aggregate {
                function: function @ (Function::Min | Function::Max),
                column: Some(column),
                result,
            } => Some(Extreme {
                function,
                column,
                result,
            }),
            _ => None,
        }
    }
}

/// Which version of every row a predicate was evaluated on. The transaction's own earlier writes override them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// These versions; of every other row the initial one.
    Set(Vec<ValueId>),
    /// The newest versions whose transactions have a `commit_ts` not above this.
    At(i64),
    /// `xmin:xmax:xip` of `pg_current_snapshot()`: what transactions below `xmax` committed that were not running then.
    Postgres {
        /// Every transaction below had ended.
        xmin: i64,
        /// No transaction from here on had begun.
        xmax: i64,
        /// Transactions between that were still running, sorted.
        running: Vec<i64>,
    },
}

/// An operation that chooses rows by a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// What it does with them.
    pub act: Act,
    /// Which query, by its place.
    pub query: u32,
    /// Where its reads and writes begin among the operations of its transaction.
    pub at: u32,
    /// How many reads and writes it has.
    pub n_ops: u32,
    /// The versions that it was evaluated on, if known.
    pub snapshot: Option<Snapshot>,
}

/// The database's record of when a transaction ran; each part may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Its number, as snapshots name it.
    pub xid: Option<i64>,
    /// The timestamp at which it reads.
    pub start_ts: Option<i64>,
    /// The timestamp at which it commits.
    pub commit_ts: Option<i64>,
}

impl Stamps {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Stamps::default()
    }
}

/// The side tables. They are empty in a history without rows, predicates and stamps.
#[derive(Clone, Debug, Default)]
pub(super) struct RowTables {
    pub(super) tables: Vec<Table>,
    /// Where declared tables and their columns stand, by their names.
    pub(super) table_ids: FxHashMap<Token, u32>,
    pub(super) column_ids: FxHashMap<(u32, Token), u32>,
    pub(super) objects: Objects,
    /// Where the cells of a version's row begin; `u32::MAX` where it has none. Shorter than the values where the rest have none.
    pub(super) row_start: Vec<u32>,
    pub(super) cells: Vec<Token>,
    pub(super) queries: Vec<Query>,
    pub(super) query_ids: FxHashMap<Query, u32>,
    /// Transaction by transaction, each in program order.
    pub(super) predicates: Vec<(TxnId, Predicate)>,
    /// One per transaction, or none at all.
    pub(super) stamps: Vec<Stamps>,
}

pub(super) const NO_ROW: u32 = u32::MAX;

impl RowTables {
    /// The table of a key: that of its set or counter, the only declared one, or the one whose name stands before the first `/`
    /// of the key.
    pub(super) fn table_of(&self, symbols: &Symbols, key: Token) -> Option<u32> {
        if self.objects.len() > 0
            && let Some(row) = self.objects.rows.get(&key)
        {
            return Some(row.table);
        }
        match (self.table_ids.len(), key) {
            (0, _) | (_, Token::Nil) => None,
            (1, _) => self.table_ids.values().next().copied(),
            (_, Token::Text(symbol)) => {
                let (name, _) = symbols.text(symbol).split_once('/')?;
                self.find_table(symbols, name)
            }
            (_, Token::Int(_)) => None,
        }
    }

    /// The table of this name.
    pub(super) fn find_table(&self, symbols: &Symbols, name: &str) -> Option<u32> {
        let name = Token::Text(symbols.find(name)?);
        self.table_ids.get(&name).copied()
    }

    /// Makes room for one more transaction, which has no stamps.
    pub(super) fn add_txn(&mut self) {
        if !self.stamps.is_empty() {
            self.stamps.push(Stamps::default());
        }
    }

    pub(super) fn row(&self, value: ValueId) -> Option<usize> {
        match self.row_start.get(value.index()) {
            None | Some(&NO_ROW) => None,
            Some(&start) => Some(start as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &Condition, cell: Token) -> Option<bool> {
        condition.holds(&Symbols::default(), &|_| cell)
    }

    #[test]
    fn conditions_follow_the_logic_of_three_values() {
        let c = Column::Cell(0);
        let less = |n| Condition::Compare(Comparison::Lt, c, Operand::Literal(Token::Int(n)));
        let null = Condition::Compare(Comparison::Eq, c, Operand::Literal(Token::Nil));
        assert_eq!(holds(&less(5), Token::Int(4)), Some(true));
        assert_eq!(holds(&less(5), Token::Int(5)), Some(false));
        assert_eq!(holds(&less(5), Token::Nil), None);
        assert_eq!(holds(&null, Token::Nil), None);
        assert_eq!(holds(&Condition::IsNull(c), Token::Nil), Some(true));
        let both = |one: Condition, other| Condition::And(vec![one, other]);
        let any = |one: Condition, other| Condition::Or(vec![one, other]);
        let four = Token::Int(4);
        assert_eq!(holds(&both(less(5), null.clone()), four), None);
        assert_eq!(holds(&both(less(3), null.clone()), four), Some(false));
        assert_eq!(holds(&any(less(5), null.clone()), four), Some(true));
        assert_eq!(holds(&any(less(3), null.clone()), four), None);
        assert_eq!(holds(&Condition::Not(Box::new(null)), four), None);
        let list = |list: &[Token]| Condition::In(c, list.to_vec());
        assert_eq!(holds(&list(&[four, Token::Nil]), four), Some(true));
        assert_eq!(holds(&list(&[Token::Int(1), Token::Nil]), four), None);
        assert_eq!(holds(&list(&[Token::Int(1)]), four), Some(false));
        assert_eq!(holds(&list(&[]), Token::Nil), Some(false));
    }

    #[test]
    fn values_of_two_kinds_are_not_comparable() {
        let mut symbols = Symbols::default();
        let text = Token::Text(symbols.intern("4"));
        let equal = Condition::Compare(Comparison::Eq, Column::Key, Operand::Literal(text));
        assert_eq!(equal.holds(&symbols, &|_| Token::Int(4)), None);
        assert_eq!(equal.holds(&symbols, &|_| text), Some(true));
    }

    #[test]
    fn aggregates_skip_nulls_and_know_the_empty_set() {
        let symbols = Symbols::default();
        let some = [Token::Int(3), Token::Nil, Token::Int(-1)];
        let apply =
            |function: Function, values: &[Token]| function.apply(&symbols, values.iter().copied());
        assert_eq!(apply(Function::Count, &some), Some(Token::Int(2)));
        assert_eq!(apply(Function::Min, &some), Some(Token::Int(-1)));
        assert_eq!(apply(Function::Max, &some), Some(Token::Int(3)));
        assert_eq!(apply(Function::Sum, &some), Some(Token::Int(2)));
        assert_eq!(apply(Function::Count, &[]), Some(Token::Int(0)));
        for function in [Function::Min, Function::Max, Function::Sum] {
            assert_eq!(apply(function, &[]), Some(Token::Nil));
        }
        let much = [Token::Int(i64::MAX), Token::Int(1)];
        assert_eq!(apply(Function::Sum, &much), None);
    }
}
