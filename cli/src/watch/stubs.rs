//! Last values of keys that no retained transaction uses, in a file: entries of 32 bytes, a key's name and its value,
//! sorted by name.
//!
//! In memory is the first name of each block of entries, so a lookup reads one block.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kingsnake_datasets::write_whole;
use kingsnake_watch::ValueName;

const ENTRY: usize = 32;
const BLOCK: usize = 128;

/// A name and a value.
type StubEntry = (ValueName, ValueName);

/// The file; it is removed on drop.
pub struct StubFile {
    path: PathBuf,
    file: File,
    n_entries: usize,
    firsts: Vec<ValueName>,
}

impl StubFile {
    /// An empty file.
    pub fn create(path: &Path) -> io::Result<Self> {
        File::create(path)?;
        Ok(StubFile {
            path: path.to_owned(),
            file: File::open(path)?,
            n_entries: 0,
            firsts: Vec::new(),
        })
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.n_entries
    }

    /// Discards all of them.
    pub fn clear(&mut self) -> io::Result<()> {
        (self.n_entries, self.firsts) = (0, Vec::new());
        self.file = File::create(&self.path).and_then(|_| File::open(&self.path))?;
        Ok(())
    }

    /// The value of a name.
    pub fn get(&self, name: ValueName) -> io::Result<Option<ValueName>> {
        let Some(block) = self.firsts.partition_point(|&it| it <= name).checked_sub(1) else {
            return Ok(None);
        };
        let n_entries = BLOCK.min(self.n_entries - block * BLOCK);
        let mut bytes = [0; BLOCK * ENTRY];
        let bytes = &mut bytes[..n_entries * ENTRY];
        self.file
            .read_exact_at(bytes, (block * BLOCK * ENTRY) as u64)?;
        let mut entries = bytes.chunks_exact(ENTRY).map(entry);
        Ok(entries.find(|it| it.0 == name).map(|it| it.1))
    }

    /// Adds entries with different names; the value of an existing name is replaced.
    pub fn put(&mut self, mut entries: Vec<StubEntry>) -> io::Result<()> {
        entries.sort_unstable();
        let mut old = StoredEntries {
            bytes: BufReader::with_capacity(1 << 20, File::open(&self.path)?),
            n_left: self.n_entries,
        };
        let (mut n_entries, mut firsts) = (0, Vec::new());
        write_whole(&self.path, |file| -> io::Result<()> {
            let mut out = BufWriter::with_capacity(1 << 20, file);
            let mut put = |(name, value): StubEntry| {
                if n_entries % BLOCK == 0 {
                    firsts.push(name);
                }
                n_entries += 1;
                out.write_all(&name.to_le_bytes())?;
                out.write_all(&value.to_le_bytes())
            };
            let mut before = old.next()?;
            for entry in entries {
                while let Some(it) = before.filter(|it| it.0 <= entry.0) {
                    if it.0 < entry.0 {
                        put(it)?;
                    }
                    before = old.next()?;
                }
                put(entry)?;
            }
            while let Some(it) = before {
                put(it)?;
                before = old.next()?;
            }
            out.flush()
        })?;
        self.file = File::open(&self.path)?;
        (self.n_entries, self.firsts) = (n_entries, firsts);
        Ok(())
    }
}

impl Drop for StubFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

struct StoredEntries {
    bytes: BufReader<File>,
    n_left: usize,
}

impl StoredEntries {
    fn next(&mut self) -> io::Result<Option<StubEntry>> {
        if self.n_left == 0 {
            return Ok(None);
        }
        self.n_left -= 1;
        let mut bytes = [0; ENTRY];
        self.bytes.read_exact(&mut bytes)?;
        Ok(Some(entry(&bytes)))
    }
}

fn entry(bytes: &[u8]) -> StubEntry {
    let half = |at: usize| {
        let mut half = [0; ENTRY / 2];
        half.copy_from_slice(&bytes[at..at + ENTRY / 2]);
        ValueName::from_le_bytes(half)
    };
    (half(0), half(ENTRY / 2))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kingsnake_history::rng::Rng;

    use super::*;

    #[test]
    fn the_file_answers_like_a_map() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("stubs");
        let mut file = StubFile::create(&path).expect("a file");
        let mut map = BTreeMap::new();
        let mut rng = Rng::new(3);
        for round in 0..20_u32 {
            let n_entries = rng.below(400);
            let names = (0..n_entries).map(|_| rng.below(2000) as ValueName * 3);
            let added: BTreeMap<_, _> = names.map(|it| (it, it ^ ValueName::from(round))).collect();
            map.extend(added.clone());
            file.put(added.into_iter().collect()).expect("written");
            assert_eq!(file.len(), map.len());
            for name in 0..6100 {
                let value = file.get(name).expect("read");
                assert_eq!(value, map.get(&name).copied(), "{name} in round {round}");
            }
        }
        drop(file);
        assert!(!path.exists());
    }
}
