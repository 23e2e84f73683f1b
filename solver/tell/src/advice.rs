//! What a level promises, in one line, and what usually causes an anomaly.

use kingsnake_history::adya::PlLevel;

use crate::level::{Model, Snapshots, Spec};
use crate::promise::Promise;

const LINEARIZABLE: &str = "Linearizability promises: each operation takes effect at one moment between its start and its end.";

/// What a level promises.
pub fn definition(spec: Spec) -> String {
    let promise = match spec.model {
        Model::Ser => "some order of all transactions, one after another, explains every read",
        Model::Si => {
            "each transaction reads from the snapshot at its begin, and of two that overlap at most one writes a key"
        }
        Model::Psi => {
            "each transaction reads from all that happened before it, and of two concurrent ones at most one writes a key"
        }
        Model::Pc => {
            "each transaction reads from the snapshot at its begin, and commits have one order for all"
        }
        Model::Cc => "a transaction that sees a write also sees everything that happened before it",
        Model::Ra => {
            "a transaction that sees a write of another sees all writes of that transaction"
        }
        Model::RcSo | Model::Rc => {
            "reads return committed values only, and within a transaction they never go back"
        }
        Model::Mixed => "each transaction is given what its own level promises",
    };
    let session = if spec.session_order {
        "; the transactions of a session keep their order"
    } else {
        ""
    };
    let clock = match spec.real_time {
        None => "",
        Some(it) if it.snapshots == Snapshots::Older && spec.model != Model::Ser => {
            "; commits keep the order of the clock"
        }
        Some(_) => "; what had ended when another began comes before it",
    };
    let name = match spec.model {
        Model::Ser if spec.real_time.is_some() => "Strict serializability",
        Model::Ser => "Serializability",
        Model::Si => "Snapshot isolation",
        Model::Psi => "Parallel snapshot isolation",
        Model::Pc => "Prefix consistency",
        Model::Cc => "Causal consistency",
        Model::Ra => "Read atomic",
        Model::RcSo | Model::Rc => "Read committed",
        Model::Mixed => "A mixed history",
    };
    format!("{name} promises: {promise}{session}{clock}.")
}

/// The promise in one line.
pub fn promised(promise: &Promise) -> String {
    match promise {
        Promise::Level(spec) => definition(*spec),
        Promise::Linearizable(_) => LINEARIZABLE.to_owned(),
        Promise::Recorded(level) => pl_definition(*level).to_owned(),
        Promise::Along(_) => "The expected order promises: run one after another in it, the transactions read what they recorded.".to_owned(),
    }
}

fn pl_definition(level: PlLevel) -> &'static str {
    match level {
        PlLevel::Pl1 => "PL-1 promises: writes of two transactions are not interleaved (no G0).",
        PlLevel::Pl2 => {
            "PL-2 promises: reads return committed, final values, and information flows one way (no G1)."
        }
        PlLevel::Pl2Plus => {
            "PL-2+ promises: PL-2, and no transaction misses a write that what it saw depends on (no G-single)."
        }
        PlLevel::Pl299 => {
            "PL-2.99 promises: PL-2, and what a transaction read stays as it was until it ends (no G2-item)."
        }
        PlLevel::PlSi => {
            "PL-SI promises: each transaction reads from the snapshot at its recorded begin, and of two that overlap at most one writes a key."
        }
        PlLevel::Pl3 => {
            "PL-3 promises: the recorded order of versions, with every read and query, has no cycle (no G2)."
        }
    }
}

/// What usually causes an anomaly, the most likely first. The name is [`AnomalyName::short`](crate::AnomalyName::short).
pub fn causes(name: &str) -> &'static [&'static str] {
    match name {
        "lost update" => &[
            "The application reads a value, computes a new one and writes it back, without a lock (SELECT … FOR UPDATE) and \
             without comparing versions.",
            "The database ran the transaction at read committed, not at the level that was asked for.",
            "Two nodes accepted writes of one key at the same time.",
        ],
        "write skew" | "anti-dependency cycle" => &[
            "Snapshot isolation is the strongest level that the database gives, whatever it calls it: Oracle's SERIALIZABLE \
             and PostgreSQL's REPEATABLE READ are snapshot isolation.",
            "Reads on which a decision rests do not lock what they read.",
        ],
        "phantom" => &[
            "Locks or conflict checks cover the rows that a query returned, not those that it would return.",
            "A secondary index is read at another moment than the table.",
        ],
        "fractured read" | "non-monotonic read" | "single anti-dependency cycle" => &[
            "Each statement reads from a snapshot of its own, as at read committed.",
            "Reads go to several nodes or shards that are not at the same point.",
            "A cache answers some of the reads.",
        ],
        "long fork" | "cycle with nonadjacent anti-dependencies" => &[
            "Replicas apply commits in different orders (parallel snapshot isolation).",
            "Readers take snapshots from nodes that have not seen each other's commits.",
        ],
        "read your writes violated"
        | "monotonic reads violated"
        | "a session that forgets its past"
        | "stale read"
        | "stale read of the initial state" => &[
            "Reads go to a replica that lags behind.",
            "The client was moved to another node between two transactions.",
            "A cache was not invalidated.",
        ],
        "monotonic writes violated" | "writes follow reads violated" | "causality violation" => &[
            "Replication delivers writes without waiting for those that they depend on.",
            "Sessions move between nodes without carrying what they have seen.",
        ],
        "read of the future" => &[
            "The clients' clocks disagree by more than --clock-drift allows.",
            "The log gives the transactions of a session in another order than they ran in.",
        ],
        "circular information flow" | "cyclic information flow" => &[
            "Transactions read each other's writes before they committed (dirty reads).",
            "The log joins operations of several transactions under one id.",
        ],
        "write cycle" => &[
            "Writers do not lock, or release their locks before they commit (dirty writes).",
            "Replicas resolve conflicting writes key by key.",
        ],
        "thin-air read" => &[
            "The log lacks the state before the test: say it in the header, as \"initial\".",
            "The log lacks a transaction, or spells a value in two ways; `kingsnake lint` looks for that.",
            "A write took effect although its client saw an error.",
        ],
        "aborted read" | "aborted version" => &[
            "The database shows writes before they commit (read uncommitted).",
            "The client logged \"aborted\" for a commit whose end it does not know: log \"unknown\".",
        ],
        "intermediate read" => {
            &["The database shows writes before they commit (read uncommitted)."]
        }
        "no linearization" => &[
            "Reads are answered by a replica, or by a leader that has been replaced.",
            "A write that timed out took effect later.",
            "The clients' clocks disagree.",
        ],
        "duplicate elements" => &["A write was retried although it had taken effect."],
        "incompatible order" | "scattered appends" | "cyclic versions" => {
            &["Two nodes accepted writes of one key at the same time, and one of them was dropped."]
        }
        "not my own write"
        | "not my last write"
        | "future read"
        | "internal inconsistency"
        | "non-repeatable read" => &[
            "Statements of one transaction ran on several connections, or outside of the transaction (autocommit).",
            "Each statement reads from a snapshot of its own, as at read committed.",
        ],
        "missing row" => {
            &["A query was answered from an index or a node that had not seen the row yet."]
        }
        "impossible result" => &[
            "The database counted rows of one moment together with rows of another.",
            "The log lacks a transaction that changed rows which the aggregate counted.",
        ],
        "impossible read" => &[
            "The log lacks a transaction, or what a query returned was logged in part.",
            "A query was answered from an index that does not agree with the table.",
        ],
        _ => {
            &["The database ran the transactions at a weaker level than the one that was checked."]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;

    /// Every name that an anomaly can have.
    const NAMES: [&str; 38] = [
        "lost update",
        "write skew",
        "anti-dependency cycle",
        "phantom",
        "fractured read",
        "non-monotonic read",
        "single anti-dependency cycle",
        "long fork",
        "cycle with nonadjacent anti-dependencies",
        "read your writes violated",
        "monotonic reads violated",
        "a session that forgets its past",
        "stale read",
        "stale read of the initial state",
        "monotonic writes violated",
        "writes follow reads violated",
        "causality violation",
        "read of the future",
        "circular information flow",
        "cyclic information flow",
        "write cycle",
        "thin-air read",
        "aborted read",
        "aborted version",
        "intermediate read",
        "no linearization",
        "duplicate elements",
        "incompatible order",
        "scattered appends",
        "cyclic versions",
        "not my own write",
        "not my last write",
        "future read",
        "internal inconsistency",
        "non-repeatable read",
        "missing row",
        "impossible read",
        "impossible result",
    ];

    #[test]
    fn every_anomaly_has_causes_of_its_own() {
        let general = causes("no such name");
        for name in NAMES {
            assert_ne!(causes(name), general, "{name}");
        }
    }

    #[test]
    fn every_level_is_defined_in_one_line() {
        for level in Level::ALL {
            let spec = level.spec(None).expect("the level stands for itself");
            let line = definition(spec);
            assert!(line.ends_with('.') && !line.contains('\n'), "{line}");
            assert!(line.contains(" promises: ") && line.len() < 240, "{line}");
        }
        for model in Model::ALL {
            let spec = Spec {
                model,
                session_order: false,
                real_time: None,
            };
            assert!(definition(spec).contains(" promises: "));
        }
        for level in PlLevel::ALL {
            assert!(pl_definition(level).contains(" promises: "));
        }
    }
}
