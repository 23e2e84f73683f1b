//! Twitter on tables with columns: 1,000 users; follows and tweets are inserted, deleted and chosen by conditions.

use kingsnake_history::model::Function;
use kingsnake_history::rng::Rng;

use super::keys::{Distribution, Keys};
use super::plan::PlannedSteps;
use super::{Workload, WorkloadKind};
use crate::store::{
    Cells, ClientTransaction, ColumnOf, Key, Schema, TableOf, Test, TxnStep, Where, key,
};

const N_USERS: usize = 1_000;
/// The users shown in a timeline.
const SHOWN_USERS: usize = 20;
/// How many tweets are kept when a user tidies up.
const KEPT_TWEETS: i64 = 3;

const fn number(name: &'static str) -> ColumnOf {
    ColumnOf::number(name)
}

#[rustfmt::skip]
const TABLES: Schema = Schema(&[
    TableOf { name: "user", columns: &[number("tweets"), ColumnOf::text("name", user_name)] },
    TableOf { name: "tweets", columns: &[number("uid"), number("id")] },
    TableOf { name: "follows", columns: &[number("f1"), number("f2")] },
    TableOf { name: "followers", columns: &[number("f1"), number("f2")] },
]);

const TWEETS: u8 = 1;
const FOLLOWS: u8 = 2;
const FOLLOWERS: u8 = 3;

fn user_name(number: i64) -> String {
    format!("user {number}")
}

fn user(id: i64) -> Key {
    key(0, id)
}

/// The key of a user's row of this number.
fn of(table: u8, user: i64, number: i64) -> Key {
    key(table, (user << 24) | number)
}

/// The rows of a user.
fn all_of(table: u8, user: i64) -> Where {
    let all = Where::table(table).is(0, user);
    all.from_key(of(table, user, 0), of(table, user + 1, 0) - 1)
}

fn pair(first: i64, second: i64) -> Cells {
    [first, second, 0, 0, 0, 0]
}

pub(super) struct TwitterTables {
    users: Keys,
}

impl TwitterTables {
    pub(super) fn new(distribution: Distribution) -> Self {
        TwitterTables {
            users: Keys::new(N_USERS, distribution),
        }
    }
}

impl Workload for TwitterTables {
    fn kind(&self) -> WorkloadKind {
        WorkloadKind::Table
    }

    fn schema(&self) -> Schema {
        TABLES
    }

    fn initial(&self) -> Vec<(Key, Cells)> {
        let users = 0..N_USERS as i64;
        users.map(|id| (user(id), pair(0, id))).collect()
    }

    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let drawn = self.users.different(2, rng);
        let (id, other) = (drawn[0], drawn[1]);
        let kind = match rng.below(100) {
            0..20 => "tweet",
            20..32 => "follow",
            32..40 => "unfollow",
            40..46 => "tidy-up",
            46..50 => "profile",
            50..75 => "timeline",
            75..82 => "followers",
            82..88 => "count",
            _ => "tweets",
        };
        let mut plan = PlannedSteps::of(kind);
        match kind {
            "tweet" => tweet(&mut plan, id),
            "follow" => {
                plan.step(TxnStep::Put(of(FOLLOWS, id, other), pair(id, other), true));
                plan.step(TxnStep::Put(
                    of(FOLLOWERS, other, id),
                    pair(other, id),
                    true,
                ));
            }
            "unfollow" => unfollow(&mut plan, id),
            "tidy-up" => tidy_up(&mut plan, id),
            "profile" => {
                let name = rng.below(1_000_000) as i64;
                plan.rows_then(TxnStep::Read(user(id)), move |rows, plan| {
                    if let Some(cells) = rows.first() {
                        plan.step(TxnStep::Put(user(id), pair(cells[0], name), false));
                    }
                });
            }
            "timeline" => timeline(&mut plan, id),
            "followers" => plan.step(TxnStep::Select(all_of(FOLLOWERS, id))),
            "count" => {
                let how_many = TxnStep::Aggregate(all_of(FOLLOWERS, id), Function::Count, None);
                plan.step(how_many);
            }
            _ => {
                plan.read(user(id));
                plan.step(TxnStep::Select(all_of(TWEETS, id)));
            }
        }
        Box::new(plan)
    }

    fn transaction_kinds(&self) -> &'static [&'static str] {
        &[
            "tweet",
            "follow",
            "unfollow",
            "tidy-up",
            "profile",
            "timeline",
            "followers",
            "count",
            "tweets",
        ]
    }
}

fn tweet(plan: &mut PlannedSteps, id: i64) {
    plan.rows_then(TxnStep::Read(user(id)), move |rows, plan| {
        if let Some(&[n_tweets, name, ..]) = rows.first() {
            plan.step(TxnStep::Put(user(id), pair(n_tweets + 1, name), false));
            let made = pair(id, n_tweets);
            plan.step(TxnStep::Put(of(TWEETS, id, n_tweets), made, true));
        }
    });
}

/// Unfollows the first of those that a user follows.
fn unfollow(plan: &mut PlannedSteps, id: i64) {
    plan.rows_then(TxnStep::Select(all_of(FOLLOWS, id)), move |rows, plan| {
        if let Some(&[_, other, ..]) = rows.first() {
            plan.step(TxnStep::DeleteWhere(all_of(FOLLOWS, id).is(1, other)));
            plan.step(TxnStep::DeleteWhere(all_of(FOLLOWERS, other).is(1, id)));
        }
    });
}

/// Deletes all tweets of a user but the last.
fn tidy_up(plan: &mut PlannedSteps, id: i64) {
    plan.read_then(user(id), move |n_tweets, plan| {
        let old = all_of(TWEETS, id).and(1, Test::Below(n_tweets - KEPT_TWEETS));
        plan.step(TxnStep::DeleteWhere(old));
    });
}

/// The tweets of those that a user follows.
fn timeline(plan: &mut PlannedSteps, id: i64) {
    plan.rows_then(TxnStep::Select(all_of(FOLLOWS, id)), |rows, plan| {
        let shown: Vec<i64> = rows.iter().take(SHOWN_USERS).map(|row| row[1]).collect();
        let (Some(&first), Some(&last)) = (shown.first(), shown.last()) else {
            return;
        };
        let theirs = Where::table(TWEETS)
            .and(0, Test::In(shown))
            .from_key(of(TWEETS, first, 0), of(TWEETS, last + 1, 0) - 1);
        plan.step(TxnStep::Select(theirs));
    });
}
