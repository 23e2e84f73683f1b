//! What happens at a violation.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{FIRST, Watch, level_name};
use crate::voice::say;
use crate::watch::confirm::{CheckRequest, Confirmed, confirm};
use crate::watch::engine::{Engine, WatchViolation};
use crate::watch::status::Occasion;

/// What is said where the writer's session may be missing.
const UNANNOUNCED: &str = "No session that was heard of wrote it. If one was not announced, state the number of sessions \
     (\"sessions\":N in the header, `open` lines, or --sessions N).\n";

impl Watch<'_> {
    /// Whether a violation is a read whose writer may be in a session that was not announced. It gets a moment to appear: it begins
    /// below the watermark, which is an error that names it.
    pub(super) fn awaits_writer(&mut self) -> bool {
        let since = *self.unexplained.get_or_insert_with(Instant::now);
        self.may_lack_session() && since.elapsed() < FIRST
    }

    fn may_lack_session(&self) -> bool {
        let is_unexplained = self.engine.as_ref().is_some_and(Engine::is_unexplained);
        is_unexplained && self.feed.sessions.is_unannounced()
    }

    /// Confirms and reports a violation; returns whether the watch continues.
    pub(super) fn violated(&mut self, violation: WatchViolation) -> Result<bool> {
        if let Some(found) = self.found {
            found.store(true, Ordering::Relaxed);
        }
        self.write_kept()?;
        if let Some(keep) = &mut self.keep {
            keep.flush()?;
        }
        self.teller.clear();
        let level = level_name(self.args.level);
        let request = CheckRequest {
            level: if level == "timestamps" { "si" } else { &level },
            drift_ms: self.args.drift as f64 / 1e6,
            unknown_limit: self.args.unknown_limit.map(|it| it.as_nanos() as i64),
            keep: self.args.keep.as_deref(),
            report: self.args.report.as_deref(),
            json: self.args.json,
        };
        let pending = self
            .engine
            .as_ref()
            .map(Engine::pending)
            .unwrap_or_default();
        let mut confirmed = confirm(&request, violation, &pending, &self.feed, &self.input)?;
        if confirmed.holds == Some(false) {
            bail!("{}", confirmed.words.trim_end());
        }
        if self.may_lack_session() {
            confirmed.words.push_str(UNANNOUNCED);
        }
        self.unexplained = None;
        self.n_violations += 1;
        self.tell_violation(&level, &confirmed)?;
        if let Ok(mut shared) = self.teller.shared.lock() {
            shared.story = Some(confirmed.words);
        }
        self.tell(Occasion::Now, "violated")?;
        match self.args.on_violation.as_str() {
            "stop" => Ok(false),
            "continue" => {
                let words = "continuing with later transactions: reads of older values are no longer judged";
                self.voice.warn(words);
                self.forget()?;
                Ok(true)
            }
            command => {
                let mut shell = Command::new("sh");
                shell
                    .args(["-c", command])
                    .env("KINGSNAKE_LEVEL", &level)
                    .stdin(Stdio::null());
                if self.args.json {
                    shell.stdout(std::io::stderr());
                }
                let status = shell.status();
                let status = status.with_context(|| format!("cannot run {command}"))?;
                if !status.success() {
                    self.voice.warn(&format!("{command}: {status}"));
                }
                Ok(false)
            }
        }
    }

    fn tell_violation(&self, level: &str, confirmed: &Confirmed) -> Result<()> {
        let n_txns = self.engine.as_ref().map_or(0, |it| it.n_txns);
        if self.args.json {
            let line = serde_json::json!({
                "watch": "violation",
                "level": level,
                "transactions": n_txns,
                "confirmed": confirmed.holds,
                "words": confirmed.words,
                "check": confirmed.document,
            });
            say(&format!("{line}\n"))?;
            return Ok(());
        }
        say(&format!(
            "Violated: {level}, found after {n_txns} transactions.\n{}",
            confirmed.words
        ))?;
        Ok(())
    }
}
