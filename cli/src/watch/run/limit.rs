//! The memory limit: keys that no retained transaction uses go to the file of stubs, and if that is not enough
//! everything is discarded.

use anyhow::{Context, Result};

use super::Watch;
use crate::voice::say;
use crate::watch::engine::Engine;

/// Approximate size of a key's entry in the dictionary, besides its stub.
const KEY: u64 = 40;

impl Watch<'_> {
    /// Moves or discards retained data that grew too large.
    pub(super) fn hold_limit(&mut self) -> Result<()> {
        if self.is_within_limit() {
            return Ok(());
        }
        self.spill()?;
        if self.is_within_limit() {
            return Ok(());
        }
        let is_first = !self.engine.as_ref().is_some_and(Engine::is_partial);
        self.forget()?;
        let words = "cannot keep up: violations only from here";
        if is_first {
            self.voice.warn(words);
        }
        if self.args.json {
            say(&format!("{{\"watch\":\"limit\",\"words\":\"{words}\"}}\n"))?;
        }
        Ok(())
    }

    fn is_within_limit(&self) -> bool {
        let n_keys = self.feed.names.keys.len() as u64;
        let n_bytes = self.engine.as_ref().map_or(0, Engine::n_bytes) as u64 + KEY * n_keys;
        self.args.memory_limit.is_none_or(|limit| n_bytes <= limit)
    }

    /// Discards everything that arrived so far.
    pub(super) fn forget(&mut self) -> Result<()> {
        if let Some(engine) = &mut self.engine {
            engine.forget();
        }
        if let Some(stubs) = &mut self.stubs {
            stubs.clear().context("cannot write the file of stubs")?;
        }
        Ok(())
    }

    /// Moves keys that no retained transaction uses to the file of stubs.
    fn spill(&mut self) -> Result<()> {
        let watcher = self.engine.as_mut().and_then(Engine::watcher);
        let (Some(stubs), Some(watcher)) = (&mut self.stubs, watcher) else {
            return Ok(());
        };
        let is_idle = watcher.idle_keys();
        let fence = self.feed.fence();
        let is_used = |key: u32| fence == Some(key) || !is_idle(key);
        let gone = self.feed.names.keys.give_back(is_used);
        let gone = gone.into_iter();
        let gone = gone.filter_map(|(name, key)| Some((name, watcher.take_stub(key)?)));
        stubs
            .put(gone.collect())
            .context("cannot write the file of stubs")
    }

    /// Restores the stubs of keys that are used again.
    pub(super) fn recall_stubs(&mut self) -> Result<()> {
        let watcher = self.engine.as_mut().and_then(Engine::watcher);
        let (Some(stubs), Some(watcher)) = (&self.stubs, watcher) else {
            return Ok(());
        };
        for (name, key) in self.feed.names.keys.take_new() {
            let stub = stubs.get(name).context("cannot read the file of stubs")?;
            if let Some(value) = stub {
                watcher.set_stub(key, value);
            }
        }
        Ok(())
    }
}
