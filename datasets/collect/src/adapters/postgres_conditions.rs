//! Conditions over a column in `PostgreSQL`: each statement returns one row, with its snapshot and all rows that it chose in one
//! text, so that the snapshot is known where nothing was chosen.

use postgres::types::ToSql;
use postgres::{Client as Connection, Error, Statement};

use crate::adapter::Chosen;

/// The statements; each chooses rows whose number lies between its first two parameters.
pub(super) struct Conditions {
    pub(super) select: Statement,
    pub(super) update: Statement,
    pub(super) delete: Statement,
    pub(super) count: Statement,
    pub(super) sum: Statement,
    pub(super) min: Statement,
    pub(super) max: Statement,
}

impl Conditions {
    pub(super) fn prepare(connection: &mut Connection, has_snapshots: bool) -> Result<Self, Error> {
        let snapshot = if has_snapshots {
            "txid_current_snapshot()::text"
        } else {
            "NULL::text"
        };
        let chosen = "b BETWEEN $1 AND $2";
        let all = "coalesce(string_agg(k || ':' || v || ':' || n, ','), '')";
        let plain = |function: &str| {
            format!(
                "SELECT {snapshot}, (SELECT {function} FROM kingsnake_registers WHERE {chosen})"
            )
        };
        let changing = |change: &str| {
            format!("WITH chosen AS ({change}) SELECT {snapshot}, (SELECT {all} FROM chosen)")
        };
        let mut prepare = |text: String| connection.prepare(&text);
        Ok(Conditions {
            select: prepare(plain(all))?,
            update: prepare(changing(&format!(
                "UPDATE kingsnake_registers SET v = $3, b = $4, n = n + 1 WHERE {chosen} RETURNING k, v, n"
            )))?,
            delete: prepare(changing(&format!(
                "DELETE FROM kingsnake_registers WHERE {chosen} RETURNING k, v, n + 1 AS n"
            )))?,
            // In the form of rows: what is counted stands as the value.
            count: prepare(plain("'0:' || count(*) || ':0'"))?,
            sum: prepare(plain("coalesce('0:' || sum(b) || ':0', '')"))?,
            min: prepare(plain("coalesce('0:' || min(k) || ':0', '')"))?,
            max: prepare(plain("coalesce('0:' || max(k) || ':0', '')"))?,
        })
    }
}

/// Runs a statement: the rows, and the snapshot.
pub(super) fn ask(
    connection: &mut Connection,
    statement: &Statement,
    parameters: &[i64],
) -> Result<(Vec<Chosen>, Option<String>), Error> {
    let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|it| it as _).collect();
    let row = connection.query_one(statement, &parameters)?;
    let rows: &str = row.get(1);
    Ok((rows.split(',').filter_map(chosen).collect(), row.get(0)))
}

/// A row of the text.
fn chosen(text: &str) -> Option<Chosen> {
    let mut fields = text.split(':').map(str::parse);
    let mut next = || fields.next()?.ok();
    Some(Chosen {
        key: next()?,
        value: next()?,
        rank: Some(next()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_rows_is_read() {
        let rank = Some(4);
        let found = Chosen {
            key: -3,
            value: 12,
            rank,
        };
        assert_eq!(chosen("-3:12:4"), Some(found));
        assert_eq!(chosen(""), None);
    }
}
