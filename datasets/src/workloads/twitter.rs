//! A compact Twitter of 1,000 users: half of the transactions read a timeline, the others tweet and follow.

use kingsnake_history::rng::Rng;

use super::Workload;
use super::keys::{Distribution, Keys};
use super::plan::{PlannedSteps, row};
use crate::store::{ClientTransaction, Key};

const N_USERS: usize = 1_000;
/// The users shown in a timeline, and how many tweets of each.
const SHOWN_USERS: i64 = 5;
const SHOWN_TWEETS: i64 = 2;

pub(super) struct Twitter {
    users: Keys,
}

impl Twitter {
    pub(super) fn new(distribution: Distribution) -> Self {
        Twitter {
            users: Keys::new(N_USERS, distribution),
        }
    }
}

fn profile(user: i64) -> Key {
    row(1, user)
}

/// Beside it, how many tweets the user has written.
fn tweets(user: i64) -> Key {
    row(2, user)
}

fn tweet(user: i64, number: i64) -> Key {
    row(3, (user << 32) | number)
}

/// Beside it, how many others the user follows.
fn following(user: i64) -> Key {
    row(4, user)
}

/// Beside it, who that is.
fn followed(user: i64, number: i64) -> Key {
    row(5, (user << 32) | number)
}

fn followers(user: i64) -> Key {
    row(6, user)
}

impl Workload for Twitter {
    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let pair = self.users.different(2, rng);
        let (user, other) = (pair[0], pair[1]);
        let kind = match rng.below(100) {
            0..30 => "tweet",
            30..45 => "follow",
            45..50 => "profile",
            _ => "timeline",
        };
        let mut plan = PlannedSteps::of(kind);
        match kind {
            "tweet" => {
                plan.read(profile(user));
                plan.read_then(tweets(user), move |number, plan| {
                    plan.write(tweet(user, number), 0);
                    plan.write(tweets(user), number + 1);
                });
            }
            "follow" => {
                plan.read_then(following(user), move |number, plan| {
                    plan.write(followed(user, number), other);
                    plan.write(following(user), number + 1);
                });
                plan.update(followers(other), |n| n + 1);
            }
            "profile" => plan.write(profile(user), 0),
            _ => timeline(&mut plan, user),
        }
        Box::new(plan)
    }

    fn transaction_kinds(&self) -> &'static [&'static str] {
        &["tweet", "follow", "profile", "timeline"]
    }
}

/// The last tweets of the users who were followed last.
fn timeline(plan: &mut PlannedSteps, user: i64) {
    plan.read_then(following(user), move |n_followed, plan| {
        for number in (n_followed - SHOWN_USERS).max(0)..n_followed {
            plan.read_then(followed(user, number), |other, plan| {
                plan.read(profile(other));
                plan.read_then(tweets(other), move |n_tweets, plan| {
                    for number in (n_tweets - SHOWN_TWEETS).max(0)..n_tweets {
                        plan.read(tweet(other, number));
                    }
                });
            });
        }
    });
}
