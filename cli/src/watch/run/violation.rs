//! Handles a violation, and the memory limit.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};

use super::{Watch, level_name};
use crate::voice::say;
use crate::watch::confirm::{CheckRequest, Confirmed, confirm};
use crate::watch::engine::{Engine, WatchViolation};
use crate::watch::status::Occasion;

impl Watch<'_> {
    /// Discards retained data that grew too large.
    pub(super) fn hold_limit(&mut self) -> Result<()> {
        let Some(limit) = self.args.memory_limit else {
            return Ok(());
        };
        let n_keys = self.feed.names.keys.len() as u64;
        let Some(engine) = &mut self.engine else {
            return Ok(());
        };
        // Approximate size of a key's entry in the dictionary, besides the stubs.
        if engine.n_bytes() as u64 + 40 * n_keys <= limit {
            return Ok(());
        }
        let is_first = !engine.is_partial();
        engine.forget();
        let words = "cannot keep up: violations only from here";
        if is_first {
            self.voice.warn(words);
        }
        if self.args.json {
            say(&format!("{{\"watch\":\"limit\",\"words\":\"{words}\"}}\n"))?;
        }
        Ok(())
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
        let confirmed = confirm(&request, violation, &pending, &self.feed, &self.input)?;
        if confirmed.holds == Some(false) {
            bail!("{}", confirmed.words.trim_end());
        }
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
                if let Some(engine) = &mut self.engine {
                    engine.forget();
                }
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
