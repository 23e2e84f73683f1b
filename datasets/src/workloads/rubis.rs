//! A compact `RUBiS`, an auction site: 20,000 users and 80,000 items. Half of the transactions only look.

use kingsnake_history::rng::Rng;

use super::Workload;
use super::keys::{Distribution, Keys};
use super::plan::{PlannedSteps, row};
use crate::store::{ClientTransaction, Key};

const N_USERS: usize = 20_000;
const N_ITEMS: usize = 80_000;
/// Items on a page.
const PAGE: usize = 8;

pub(super) struct Rubis {
    users: Keys,
    items: Keys,
}

impl Rubis {
    pub(super) fn new(distribution: Distribution) -> Self {
        Rubis {
            users: Keys::new(N_USERS, distribution),
            items: Keys::new(N_ITEMS, distribution),
        }
    }
}

fn user(id: i64) -> Key {
    row(1, id)
}

fn rating(user: i64) -> Key {
    row(2, user)
}

fn item(id: i64) -> Key {
    row(3, id)
}

/// Beside it, how many bids there were.
fn bids(item: i64) -> Key {
    row(4, item)
}

fn bid(item: i64, number: i64) -> Key {
    row(5, (item << 24) | number)
}

/// Beside it, how many were sold.
fn sold(item: i64) -> Key {
    row(6, item)
}

fn comment(id: i64) -> Key {
    row(7, id)
}

impl Workload for Rubis {
    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let mut plan = PlannedSteps::default();
        let who = self.users.one(rng);
        let what = self.items.one(rng);
        match rng.below(100) {
            0..20 => {
                for id in self.items.different(PAGE, rng) {
                    plan.read(item(id));
                }
            }
            20..40 => view_item(&mut plan, what),
            40..50 => {
                plan.read(user(who));
                plan.read(rating(who));
            }
            50..75 => {
                plan.read(user(who));
                plan.read(item(what));
                plan.read_then(bids(what), move |number, plan| {
                    plan.write(bids(what), number + 1);
                    plan.write(bid(what, number), who);
                });
            }
            75..85 => {
                plan.read(user(who));
                plan.read(item(what));
                plan.update(sold(what), |n| n + 1);
            }
            85..93 => {
                plan.read(user(who));
                plan.update(rating(who), |n| n + 1);
                plan.write(comment((rng.number() >> 16) as i64), who);
            }
            _ => {
                // A seller changes an item's description.
                plan.read(user(who));
                plan.write(item(what), who);
            }
        }
        Box::new(plan)
    }
}

/// The item, and the last bids for it with their bidders.
fn view_item(plan: &mut PlannedSteps, what: i64) {
    plan.read(item(what));
    plan.read_then(bids(what), move |n_bids, plan| {
        for number in (n_bids - 3).max(0)..n_bids {
            plan.read_then(bid(what, number), |bidder, plan| plan.read(user(bidder)));
        }
    });
}
