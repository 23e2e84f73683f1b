//! Lines whose outcomes may still be filled in: in the file, or by a line of their client.

use anyhow::{Context, Result, ensure};
use kingsnake_history::model::Status;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Feed;
use super::lines::EndFields;
use crate::watch::input::LogInput;
use crate::watch::reduce::LoggedTxn;

/// A line whose outcome may still be filled in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct HeldLine {
    pub(super) source: usize,
    pub(super) offset: u64,
    pub(super) line: u64,
    pub(super) text: String,
    pub(super) begin: i64,
    /// Whether it was delivered with an unknown outcome because it took too long.
    pub(super) is_given_up: bool,
}

impl Feed {
    /// Sets the outcome of a transaction that was sent with an unknown one.
    pub(super) fn fill(&mut self, end: &EndFields, input: &LogInput) -> Result<()> {
        let session = self.names.sessions.json(&end.session)?;
        let held = self.held.get_mut(&session);
        let held = held.context("end of a session that has no transaction with an unknown end")?;
        let mut txn: Value = serde_json::from_str(&held.text)?;
        txn["status"] = end.status.clone();
        if let Some(commit) = end.commit {
            txn["commit"] = commit.into();
        }
        held.text = txn.to_string();
        ensure!(
            !input.is_on_disk(),
            "ends are filled in where the line stands in a file"
        );
        self.go_on(session, input)
    }

    /// A session continues or ends: its held lines are final now.
    pub(super) fn go_on(&mut self, session: u32, input: &LogInput) -> Result<()> {
        let Some(held) = self.held.remove(&session) else {
            return Ok(());
        };
        if !held.is_given_up {
            self.keep(held.text.as_bytes());
        }
        for txn in self.held_txns(&held, input)? {
            if held.is_given_up {
                ensure!(
                    txn.status == Status::Unknown,
                    "{}, line {}: its end became known after --unknown-limit",
                    input.name(held.source),
                    held.line
                );
            } else {
                if let Some(commit) = txn.commit
                    && !self.has_stamps
                {
                    let promised = self.sessions.promise(Some(session), commit);
                    self.named(promised, session)?;
                }
                self.push(txn)?;
            }
        }
        Ok(())
    }

    /// The current content of a held line.
    fn held_txns(&mut self, held: &HeldLine, input: &LogInput) -> Result<Vec<LoggedTxn>> {
        let again = input.read_again(held.source, held.offset, held.text.len())?;
        let line = again.unwrap_or_else(|| held.text.clone().into_bytes());
        let header = self.sources[held.source].header.clone().unwrap_or_default();
        let file = input.name(held.source);
        let (txns, _) = self.names.read(&header, &line, &file, held.line)?;
        Ok(txns)
    }

    /// Gives up on outcomes that take longer than the limit.
    pub fn give_up(&mut self, input: &LogInput) -> Result<()> {
        let Some(limit) = self.unknown_limit else {
            return Ok(());
        };
        let latest = self.latest;
        let is_over = |it: &HeldLine| !it.is_given_up && it.begin.saturating_add(limit) < latest;
        let over: Vec<u32> = self
            .held
            .iter()
            .filter(|it| is_over(it.1))
            .map(|it| *it.0)
            .collect();
        for session in over {
            let Some(mut held) = self.held.remove(&session) else {
                continue;
            };
            for txn in self.held_txns(&held, input)? {
                if txn.status == Status::Unknown {
                    let over = held.begin.saturating_add(limit);
                    let promised = self.sessions.promise(Some(session), over);
                    self.named(promised, session)?;
                    held.is_given_up = true;
                }
                self.keep(held.text.as_bytes());
                self.push(txn)?;
            }
            if held.is_given_up {
                self.held.insert(session, held);
            }
        }
        Ok(())
    }
}
