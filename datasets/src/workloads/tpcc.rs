//! A compact TPC-C as transactions over keys and values: one warehouse, ten districts, 30,000 customers, 100,000 items.
//!
//! A row is a key, and columns that different transactions update are keys of their own (the tax of a district is not its next order
//! number). Numbers that later steps need stand beside the values: the next order, an order's customer and number of lines, a line's
//! item. The five types come in the standard's 45, 43, 4, 4 and 4 percent.

use kingsnake_history::rng::Rng;

use super::Workload;
use super::keys::{Distribution, Keys};
use super::plan::{PlannedSteps, row};
use crate::store::{ClientTransaction, Key};

const N_DISTRICTS: usize = 10;
const N_CUSTOMERS: usize = 30_000;
const N_ITEMS: usize = 100_000;
/// How many of a district's last orders the stock level looks at. (The standard says 20.)
const LAST_ORDERS: i64 = 5;

pub(super) struct Tpcc {
    customers: Keys,
    items: Keys,
}

impl Tpcc {
    pub(super) fn new(distribution: Distribution) -> Self {
        Tpcc {
            customers: Keys::new(N_CUSTOMERS, distribution),
            items: Keys::new(N_ITEMS, distribution),
        }
    }
}

const WAREHOUSE: Key = 0;

fn warehouse_total() -> Key {
    row(1, 0)
}

fn district_tax(district: i64) -> Key {
    row(2, district)
}

fn district_total(district: i64) -> Key {
    row(3, district)
}

/// Beside it, how many orders the district has had.
fn orders_of(district: i64) -> Key {
    row(4, district)
}

/// Beside it, how many of them have been delivered.
fn delivered_of(district: i64) -> Key {
    row(5, district)
}

fn customer(id: i64) -> Key {
    row(6, id)
}

fn balance(customer: i64) -> Key {
    row(7, customer)
}

/// Beside it, the district and the number of the customer's last order.
fn last_order(customer: i64) -> Key {
    row(8, customer)
}

fn item(id: i64) -> Key {
    row(9, id)
}

fn stock(item: i64) -> Key {
    row(10, item)
}

/// Beside it, the customer and the number of lines.
fn order(district: i64, number: i64) -> Key {
    row(11, (district << 32) | number)
}

fn carrier(district: i64, number: i64) -> Key {
    row(12, (district << 32) | number)
}

/// Beside it, the item.
fn line(district: i64, number: i64, at: i64) -> Key {
    row(13, (district << 40) | (number << 8) | at)
}

fn payment(id: i64) -> Key {
    row(14, id)
}

/// The kinds of transactions.
pub(super) const KINDS: [&str; 5] = [
    "new-order",
    "payment",
    "order-status",
    "delivery",
    "stock-level",
];

/// A kind, as often as the benchmark asks for it.
pub(super) fn any_kind(rng: &mut Rng) -> &'static str {
    match rng.below(100) {
        0..45 => KINDS[0],
        45..88 => KINDS[1],
        88..92 => KINDS[2],
        92..96 => KINDS[3],
        _ => KINDS[4],
    }
}

impl Workload for Tpcc {
    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let kind = any_kind(rng);
        let mut plan = PlannedSteps::of(kind);
        match kind {
            "new-order" => self.new_order(&mut plan, rng),
            "payment" => self.payment(&mut plan, rng),
            "order-status" => self.order_status(&mut plan, rng),
            "delivery" => deliver(&mut plan),
            _ => stock_level(&mut plan, rng),
        }
        Box::new(plan)
    }

    fn transaction_kinds(&self) -> &'static [&'static str] {
        &KINDS
    }
}

fn any_district(rng: &mut Rng) -> i64 {
    rng.below(N_DISTRICTS) as i64
}

impl Tpcc {
    fn new_order(&self, plan: &mut PlannedSteps, rng: &mut Rng) {
        let district = any_district(rng);
        let buyer = self.customers.one(rng);
        let n_lines = rng.between(5, 15);
        let items = self.items.different(n_lines, rng);
        plan.read(WAREHOUSE);
        plan.read(district_tax(district));
        plan.read(customer(buyer));
        for &id in &items {
            plan.read(item(id));
            plan.update(stock(id), |sold| sold + 1);
        }
        plan.read_then(orders_of(district), move |number, plan| {
            plan.write(orders_of(district), number + 1);
            plan.write(order(district, number), (buyer << 8) | n_lines as i64);
            for (at, &id) in items.iter().enumerate() {
                plan.write(line(district, number, at as i64), id);
            }
            plan.write(last_order(buyer), (district << 32) | (number + 1));
        });
    }

    fn payment(&self, plan: &mut PlannedSteps, rng: &mut Rng) {
        let district = any_district(rng);
        let payer = self.customers.one(rng);
        let id = (rng.number() >> 16) as i64;
        plan.update(warehouse_total(), |n| n + 1);
        plan.update(district_total(district), |n| n + 1);
        plan.read(customer(payer));
        plan.update(balance(payer), |n| n + 1);
        plan.write(payment(id), 0);
    }

    fn order_status(&self, plan: &mut PlannedSteps, rng: &mut Rng) {
        let buyer = self.customers.one(rng);
        plan.read(customer(buyer));
        plan.read(balance(buyer));
        plan.read_then(last_order(buyer), |last, plan| {
            let (district, number) = (last >> 32, (last & 0xffff_ffff) - 1);
            if number >= 0 {
                plan.read(carrier(district, number));
                plan.read_then(order(district, number), move |order, plan| {
                    for at in 0..order & 0xff {
                        plan.read(line(district, number, at));
                    }
                });
            }
        });
    }
}

/// Delivers the oldest order of every district that has one.
fn deliver(plan: &mut PlannedSteps) {
    for district in 0..N_DISTRICTS as i64 {
        plan.read_then(delivered_of(district), move |number, plan| {
            plan.read_then(orders_of(district), move |n_orders, plan| {
                if number < n_orders {
                    deliver_one(plan, district, number);
                }
            });
        });
    }
}

fn deliver_one(plan: &mut PlannedSteps, district: i64, number: i64) {
    plan.write(delivered_of(district), number + 1);
    plan.write(carrier(district, number), 0);
    plan.read_then(order(district, number), move |order, plan| {
        for at in 0..order & 0xff {
            plan.read(line(district, number, at));
        }
        plan.update(balance(order >> 8), |n| n + 1);
    });
}

fn stock_level(plan: &mut PlannedSteps, rng: &mut Rng) {
    let district = any_district(rng);
    plan.read_then(orders_of(district), move |n_orders, plan| {
        for number in (n_orders - LAST_ORDERS).max(0)..n_orders {
            plan.read_then(order(district, number), move |order, plan| {
                for at in 0..order & 0xff {
                    plan.read_then(line(district, number, at), |id, plan| plan.read(stock(id)));
                }
            });
        }
    });
}
