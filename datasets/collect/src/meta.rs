//! The description of a collection: `collection.json`, written before the first transaction, so that journals can be
//! merged however the collector ended.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::adapter::Initially;

const NAME: &str = "collection.json";

/// As many keys as `--keys` takes.
const MOST_ROWS: i64 = 10_000_000;

/// The description of a collection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Meta {
    /// The database, as typed.
    pub database: String,
    /// Its own name and version.
    pub version: String,
    /// The isolation level that was asked for.
    pub isolation: String,
    /// The workload.
    pub workload: String,
    /// Clients.
    pub sessions: usize,
    /// The seed.
    pub seed: u64,
    /// How versions were put in order.
    pub version_order: String,
    /// Which keys have a row at first.
    pub initially: Initially,
    /// Whether keys hold lists.
    pub lists: bool,
    /// The node of each client, where there are several.
    pub nodes: Vec<Option<String>>,
    /// Settings of the database.
    pub settings: BTreeMap<String, String>,
}

impl Meta {
    /// What every key holds at first that has no line of its own.
    pub(crate) fn initial(&self) -> Value {
        match self.initially {
            Initially::Rows(_) => Value::from(0),
            _ => Value::Null,
        }
    }

    /// The rows at first that need a line of their own.
    pub(crate) fn initial_rows(&self) -> Vec<(i64, i64)> {
        match self.initially {
            Initially::Rows(_) => Vec::new(),
            other => other.rows(),
        }
    }

    /// Whether rows have columns.
    pub(crate) fn has_tables(&self) -> bool {
        matches!(self.initially, Initially::NumberedRows(_))
    }

    pub(crate) fn node(&self, client: usize) -> Option<&str> {
        self.nodes.get(client)?.as_deref()
    }

    /// In a line.
    pub fn about(&self) -> String {
        let settings: Vec<String> = self
            .settings
            .iter()
            .map(|(name, value)| format!(", {name}={value}"))
            .collect();
        let settings = settings.concat();
        format!(
            "{} ({}), isolation {}, workload {}, {} sessions, seed {}, version order {}{settings}",
            self.version,
            self.database,
            self.isolation,
            self.workload,
            self.sessions,
            self.seed,
            self.version_order
        )
    }

    pub(crate) fn write(&self, directory: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        std::fs::write(directory.join(NAME), text)
    }

    pub(crate) fn read(directory: &Path) -> io::Result<Self> {
        /// The most bytes of the file.
        const MOST_META: u64 = 16 << 20;
        let text = kingsnake_datasets::bounded::read_regular(&directory.join(NAME), MOST_META)?;
        let meta: Meta = serde_json::from_str(&text).map_err(io::Error::other)?;
        match meta.initially {
            Initially::Blocks { blocks, stride, .. }
                if stride < 1 || blocks.checked_mul(stride).is_none_or(|n| n > MOST_ROWS) =>
            {
                let words = format!(
                    "{NAME} claims {blocks} blocks of {stride} keys; at most {MOST_ROWS} rows are taken"
                );
                Err(io::Error::other(words))
            }
            Initially::Rows(n)
            | Initially::EvenRows(n)
            | Initially::MarkedRows(n)
            | Initially::NumberedRows(n)
                if n > MOST_ROWS =>
            {
                let words = format!("{NAME} claims {n} rows; at most {MOST_ROWS} are taken");
                Err(io::Error::other(words))
            }
            _ => Ok(meta),
        }
    }
}
