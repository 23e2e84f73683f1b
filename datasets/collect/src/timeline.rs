//! How a collection went over time: transactions that ended in each of some equal spans, and the events between.

use serde_json::Value;

use crate::read::{Status, Txn};

/// How many spans there are.
const N_SPANS: usize = 60;

/// How a collection went over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollectTimeline {
    /// How long one span is, in nanoseconds.
    pub span: i64,
    /// Committed, and not committed, by the span in which they ended or, for the latter, began.
    pub spans: Vec<[u64; 2]>,
    /// What was done to the database, and when, in nanoseconds.
    pub events: Vec<(i64, String)>,
}

impl CollectTimeline {
    pub(crate) fn new(txns: &[Txn], events: &[Value]) -> Self {
        let when = |txn: &Txn| txn.commit.unwrap_or(txn.begin);
        let end = txns.iter().map(when).max().unwrap_or(0).saturating_add(1);
        let span = (end / N_SPANS as i64).max(1);
        let mut spans = vec![[0; 2]; N_SPANS + 1];
        for txn in txns {
            let at = (when(txn) / span) as usize;
            spans[at.min(N_SPANS)][usize::from(txn.status != Status::Committed)] += 1;
        }
        let event = |event: &Value| {
            let what = event["what"].as_str()?.to_owned();
            Some((event["time"].as_i64()?, what))
        };
        let events = events.iter().filter_map(event).collect();
        CollectTimeline {
            span,
            spans,
            events,
        }
    }
}
