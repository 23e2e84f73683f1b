//! TPC-C on tables with columns: one warehouse, ten districts, 3,000 customers, 10,000 items.
//!
//! What the standard finds by a primary key is read and set by key; what it finds otherwise is chosen by a condition: customers by
//! their last names, the orders of a customer, the lines of orders, orders to deliver, stock below a threshold. A delivery
//! deletes its new order. Joins are two statements, the second with the list that the first returned. The five types come in
//! the standard's 45, 43, 4, 4 and 4 percent.

use kingsnake_history::model::Function;
use kingsnake_history::rng::Rng;

use super::keys::{Distribution, Keys};
use super::plan::PlannedSteps;
use super::tpcc::{KINDS, any_kind};
use super::{Workload, WorkloadKind};
use crate::store::{
    Cells, Change, ClientTransaction, ColumnOf, Key, NULL, Schema, TableOf, Test, TxnStep, Where,
    key,
};

const N_DISTRICTS: i64 = 10;
const N_CUSTOMERS: usize = 3_000;
const N_ITEMS: usize = 10_000;
const N_NAMES: i64 = 100;
/// How many of a district's last orders the stock level looks at.
const LAST_ORDERS: i64 = 20;
const THRESHOLD: i64 = 15;

const fn number(name: &'static str) -> ColumnOf {
    ColumnOf::number(name)
}

#[rustfmt::skip]
const TABLES: Schema = Schema(&[
    TableOf { name: "warehouse", columns: &[number("w_ytd")] },
    TableOf { name: "district", columns: &[number("d_next_o_id"), number("d_ytd")] },
    TableOf { name: "customer", columns: &[number("c_d_id"), number("c_id"), ColumnOf::text("c_last", last_name), number("c_balance")] },
    TableOf { name: "stock", columns: &[number("s_i_id"), number("s_quantity")] },
    TableOf { name: "orders", columns: &[number("o_d_id"), number("o_id"), number("o_c_id"), number("o_carrier_id")] },
    TableOf { name: "new_order", columns: &[number("no_d_id"), number("no_o_id")] },
    TableOf { name: "order_line", columns: &[number("ol_d_id"), number("ol_o_id"), number("ol_i_id"), number("ol_amount"), number("ol_delivery_d")] },
    TableOf { name: "history", columns: &[number("h_c_id"), number("h_amount")] },
]);

const CUSTOMER: u8 = 2;
const STOCK: u8 = 3;
const ORDERS: u8 = 4;
const NEW_ORDER: u8 = 5;
const ORDER_LINE: u8 = 6;

/// The standard's last names: three syllables, one for each digit.
fn last_name(number: i64) -> String {
    const SYLLABLES: [&str; 10] = [
        "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
    ];
    let digits = [number / 100 % 10, number / 10 % 10, number % 10];
    digits.map(|digit| SYLLABLES[digit as usize]).concat()
}

const WAREHOUSE: Key = 0;

fn district(d: i64) -> Key {
    key(1, d)
}

/// Customers of one district are every tenth.
fn customer(c: i64) -> Key {
    key(CUSTOMER, ((c % N_DISTRICTS) << 32) | c)
}

fn stock(item: i64) -> Key {
    key(STOCK, item)
}

fn order(table: u8, d: i64, o: i64) -> Key {
    key(table, (d << 32) | o)
}

fn line(d: i64, o: i64, at: i64) -> Key {
    key(ORDER_LINE, (d << 40) | (o << 8) | at)
}

fn row(cells: &[i64]) -> Cells {
    let mut row = [0; 6];
    row[..cells.len()].copy_from_slice(cells);
    row
}

fn of_district(table: u8, d: i64) -> Where {
    let all = Where::table(table).is(0, d);
    all.from_key(order(table, d, 0), order(table, d + 1, 0) - 1)
}

/// The order of a number, in `orders` or in `new_order`.
fn one_order(table: u8, d: i64, o: i64) -> Where {
    let (first, last) = (order(table, d, o), order(table, d, o));
    Where::table(table).is(0, d).is(1, o).from_key(first, last)
}

/// The lines of a range of orders.
fn lines(d: i64, first: i64, last: i64) -> Where {
    Where::table(ORDER_LINE)
        .is(0, d)
        .and(1, Test::Between(first, last))
        .from_key(line(d, first, 0), line(d, last + 1, 0) - 1)
}

pub(super) struct TpccTables {
    customers: Keys,
    items: Keys,
}

impl TpccTables {
    pub(super) fn new(distribution: Distribution) -> Self {
        TpccTables {
            customers: Keys::new(N_CUSTOMERS, distribution),
            items: Keys::new(N_ITEMS, distribution),
        }
    }
}

impl Workload for TpccTables {
    fn kind(&self) -> WorkloadKind {
        WorkloadKind::Table
    }

    fn schema(&self) -> Schema {
        TABLES
    }

    fn initial(&self) -> Vec<(Key, Cells)> {
        let mut rows = vec![(WAREHOUSE, row(&[0]))];
        rows.extend((0..N_DISTRICTS).map(|d| (district(d), row(&[1, 0]))));
        rows.extend((0..N_CUSTOMERS as i64).map(|c| {
            let name = c / N_DISTRICTS % N_NAMES;
            (customer(c), row(&[c % N_DISTRICTS, c, name, 0]))
        }));
        let items = 0..N_ITEMS as i64;
        rows.extend(items.map(|item| (stock(item), row(&[item, 10 + item % 90]))));
        rows
    }

    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let kind = any_kind(rng);
        let mut plan = PlannedSteps::of(kind);
        match kind {
            "new-order" => self.new_order(&mut plan, rng),
            "payment" => self.payment(&mut plan, rng),
            "order-status" => self.order_status(&mut plan, rng),
            "delivery" => deliver(&mut plan, rng),
            _ => stock_level(&mut plan, rng),
        }
        Box::new(plan)
    }

    fn transaction_kinds(&self) -> &'static [&'static str] {
        &KINDS
    }
}

fn any_district(rng: &mut Rng) -> i64 {
    rng.below(N_DISTRICTS as usize) as i64
}

/// Reads a row by its key and sets it to what becomes of it.
fn change(plan: &mut PlannedSteps, key: Key, to: impl FnOnce(&mut Cells) + Send + 'static) {
    plan.rows_then(TxnStep::Read(key), move |rows, plan| {
        if let Some(&(mut cells)) = rows.first() {
            to(&mut cells);
            plan.step(TxnStep::Put(key, cells, false));
        }
    });
}

impl TpccTables {
    fn new_order(&self, plan: &mut PlannedSteps, rng: &mut Rng) {
        let buyer = self.customers.one(rng);
        let d = buyer % N_DISTRICTS;
        let n_lines = rng.between(5, 15);
        let items = self.items.different(n_lines, rng);
        let quantities: Vec<i64> = items.iter().map(|_| rng.between(1, 10) as i64).collect();
        plan.read(WAREHOUSE);
        plan.read(customer(buyer));
        for (&item, &ordered) in items.iter().zip(&quantities) {
            change(plan, stock(item), move |cells| {
                let left = cells[1] - ordered;
                cells[1] = if left < 10 { left + 91 } else { left };
            });
        }
        plan.rows_then(TxnStep::Read(district(d)), move |rows, plan| {
            let Some(&(mut cells)) = rows.first() else {
                return;
            };
            let o = cells[0];
            cells[0] += 1;
            plan.step(TxnStep::Put(district(d), cells, false));
            let made = row(&[d, o, buyer, NULL]);
            plan.step(TxnStep::Put(order(ORDERS, d, o), made, true));
            plan.step(TxnStep::Put(order(NEW_ORDER, d, o), row(&[d, o]), true));
            for (at, (&item, &ordered)) in items.iter().zip(&quantities).enumerate() {
                let made = row(&[d, o, item, ordered * (1 + item % 100), NULL]);
                plan.step(TxnStep::Put(line(d, o, at as i64), made, true));
            }
        });
    }

    fn payment(&self, plan: &mut PlannedSteps, rng: &mut Rng) {
        let payer = self.customers.one(rng);
        let d = payer % N_DISTRICTS;
        let amount = rng.between(1, 5_000) as i64;
        let id = (rng.number() >> 20) as i64;
        let by_name = rng.chance(60);
        change(plan, WAREHOUSE, move |cells| cells[0] += amount);
        change(plan, district(d), move |cells| cells[1] += amount);
        let pay = move |c: i64, plan: &mut PlannedSteps| {
            change(plan, customer(c), move |cells| cells[3] -= amount);
            plan.step(TxnStep::Put(key(7, id), row(&[c, amount]), true));
        };
        find_customer(plan, payer, by_name, pay);
    }

    fn order_status(&self, plan: &mut PlannedSteps, rng: &mut Rng) {
        let buyer = self.customers.one(rng);
        let d = buyer % N_DISTRICTS;
        find_customer(plan, buyer, rng.chance(60), move |c, plan| {
            let theirs = of_district(ORDERS, d).is(2, c);
            plan.rows_then(TxnStep::Select(theirs), move |rows, plan| {
                if let Some(last) = rows.last() {
                    plan.step(TxnStep::Select(lines(d, last[1], last[1])));
                }
            });
        });
    }
}

/// Continues with a customer, found by number, or in the middle of those of the same last name.
fn find_customer(
    plan: &mut PlannedSteps,
    c: i64,
    by_name: bool,
    then: impl FnOnce(i64, &mut PlannedSteps) + Send + 'static,
) {
    if !by_name {
        return then(c, plan);
    }
    let name = c / N_DISTRICTS % N_NAMES;
    let same = of_district(CUSTOMER, c % N_DISTRICTS).is(2, name);
    plan.rows_then(TxnStep::Select(same), move |rows, plan| {
        if let Some(middle) = rows.get(rows.len() / 2) {
            then(middle[1], plan);
        }
    });
}

/// Delivers the oldest order of every district that has one.
fn deliver(plan: &mut PlannedSteps, rng: &mut Rng) {
    let carrier = rng.between(1, 10) as i64;
    for d in 0..N_DISTRICTS {
        let waiting = of_district(NEW_ORDER, d);
        plan.rows_then(TxnStep::Select(waiting), move |rows, plan| {
            if let Some(oldest) = rows.first() {
                deliver_one(plan, d, oldest[1], carrier);
            }
        });
    }
}

fn deliver_one(plan: &mut PlannedSteps, d: i64, o: i64, carrier: i64) {
    plan.step(TxnStep::DeleteWhere(one_order(NEW_ORDER, d, o)));
    let taken = TxnStep::UpdateWhere(one_order(ORDERS, d, o), vec![Change::To(3, carrier)]);
    plan.rows_then(taken, move |rows, plan| {
        let Some(&[_, _, buyer, ..]) = rows.first() else {
            return;
        };
        let delivered = TxnStep::UpdateWhere(lines(d, o, o), vec![Change::To(4, carrier)]);
        plan.step(delivered);
        let sum = TxnStep::Aggregate(lines(d, o, o), Function::Sum, Some(3));
        plan.number_then(sum, move |sum, plan| {
            change(plan, customer(buyer), move |cells| cells[3] += sum);
        });
    });
}

/// Counts the items of the last orders of a district that are low in stock.
fn stock_level(plan: &mut PlannedSteps, rng: &mut Rng) {
    let d = any_district(rng);
    plan.read_then(district(d), move |next, plan| {
        if next == 1 {
            return; // There is no order yet.
        }
        let recent = lines(d, (next - LAST_ORDERS).max(1), next - 1);
        plan.rows_then(TxnStep::Select(recent), |rows, plan| {
            let mut items: Vec<i64> = rows.iter().map(|cells| cells[2]).collect();
            items.sort_unstable();
            items.dedup();
            if items.is_empty() {
                return;
            }
            let low = Where::table(STOCK)
                .from_key(stock(items[0]), stock(items[items.len() - 1]))
                .and(0, Test::In(items))
                .and(1, Test::Below(THRESHOLD));
            plan.step(TxnStep::Select(low));
        });
    });
}
