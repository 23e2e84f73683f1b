//! The reasons of the known edges of reads, as reasons of steps: reads-from, and visibility of weak transactions.

use crate::model::History;
use crate::relate::{Edge, Polygraph, Reason, reasons};
use crate::resolve::VersionId;
use crate::verdict::StepReason;
use kingsnake_relate::visible::Why;

/// The reason of an edge that is no order of versions.
pub(super) fn stated(polygraph: &Polygraph, history: &History, edge: Edge) -> Option<StepReason> {
    let resolved = polygraph.resolved();
    let versions = resolved.versions();
    if let Some(sight) = polygraph.sight(edge.reason) {
        let Why::Vis {
            reader, version, ..
        } = sight.why
        else {
            return None;
        };
        return Some(StepReason::Vis {
            reader: resolved.txn(reader),
            key: versions.key(version),
        });
    }
    if let Some(edge) = reasons::given_edge(edge.reason) {
        return Some(StepReason::Stated { edge });
    }
    match edge.reason {
        reasons::BEGIN => Some(StepReason::Begin),
        reasons::SESSION => Some(StepReason::Session),
        reasons::REAL_TIME => Some(StepReason::RealTime),
        // The only other kind: the later read a version.
        Reason::Stated { about, .. } => {
            let version = VersionId(about);
            let key = versions.key(version);
            let txn = resolved.txn(versions.writer(version));
            let value = history.last_written(txn, key)?;
            Some(StepReason::Wr { key, value })
        }
        Reason::Ww { .. } | Reason::Rw { .. } => None,
    }
}
