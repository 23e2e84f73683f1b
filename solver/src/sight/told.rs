//! What the reads are of along an order: those that are attended to are of a candidate that holds; transactions at pc, si and ser read the
//! newest version; a weak transaction's other reads are of the oldest candidates that what it sees allows, because the older a source
//! is the less it asks of the other reads.
//!
//! Transactions are walked in the order of their commits, so what happened before each is known when it is looked at.

use rustc_hash::{FxHashMap, FxHashSet};

use super::causal::{CausalLemma, Pasts};
use super::narrow::State;
use super::pose::FoundOrder;
use super::{Scene, Taken};
use crate::budget::StopReason;
use crate::level::Model;
use crate::model::KeyId;
use crate::resolve::{Node, VersionId};

/// What an order determines about the open reads.
pub(super) struct Told {
    /// What each is of; nothing where the order leaves it nothing.
    pub(super) versions: Vec<Option<VersionId>>,
    /// The reads that have to be attended to, sorted by their readers' places.
    pub(super) missed: Vec<usize>,
    /// What the reads that are attended to break.
    pub(super) lemmas: Vec<CausalLemma>,
}

pub(super) struct Telling<'t, 'a> {
    pub(super) scene: &'t Scene<'a>,
    pub(super) state: &'t State,
    found: &'t FoundOrder,
    pub(super) versions: Vec<Option<VersionId>>,
    missed: Vec<usize>,
    pub(super) lemmas: Vec<CausalLemma>,
    pub(super) pasts: Option<Pasts>,
}

/// What the reads are of along an order.
pub(super) fn told(
    scene: &Scene<'_>,
    state: &State,
    found: &FoundOrder,
) -> Result<Told, StopReason> {
    let n_txns = scene.base.n_txns();
    let mut nodes: Vec<Node> = (0..n_txns as Node).collect();
    nodes.sort_unstable_by_key(|&it| found.place[scene.places.commit(it) as usize]);
    let mut telling = Telling {
        scene,
        state,
        found,
        versions: vec![None; scene.reads.len()],
        missed: Vec::new(),
        lemmas: Vec::new(),
        pasts: if scene.has_causal {
            Some(Pasts::new(n_txns, &scene.budget)?)
        } else {
            None
        },
    };
    let mut poll = scene.budget.poll();
    for node in nodes {
        poll.step()?;
        telling.transaction(node);
    }
    telling.aggregates();
    let mut seen = FxHashSet::default();
    telling.missed.retain(|&it| seen.insert(it));
    Ok(Told {
        versions: telling.versions,
        missed: telling.missed,
        lemmas: telling.lemmas,
    })
}

/// A read of the transaction under way.
struct Own {
    /// Its number among the open reads.
    open: Option<usize>,
    statement: u32,
    key: KeyId,
    version: VersionId,
    /// Whether another version may be taken.
    is_free: bool,
}

impl Telling<'_, '_> {
    /// Where a version is installed; 0 for the initial one.
    pub(super) fn place(&self, version: VersionId) -> u32 {
        let versions = self.scene.base.versions();
        if versions.is_initial(version) {
            return 0;
        }
        self.place_of(versions.writer(version))
    }

    pub(super) fn place_of(&self, node: Node) -> u32 {
        self.found.place[self.scene.places.commit(node) as usize] + 1
    }

    fn transaction(&mut self, node: Node) {
        match self.scene.model(node) {
            Model::Psi => self.parallel(node),
            model if model.is_weak() => self.weak(node),
            _ => self.strong(node),
        }
    }

    /// A transaction all of whose reads are attended to.
    fn parallel(&mut self, node: Node) {
        for &read in self.scene.of_reader.get(&node).into_iter().flatten() {
            self.versions[read] = self.held(read);
        }
    }

    /// A transaction that reads the newest versions.
    fn strong(&mut self, node: Node) {
        let scene = self.scene;
        let versions = scene.base.versions();
        let snap = self.found.place[scene.places.snap(node) as usize] + 1;
        for &read in scene.of_reader.get(&node).into_iter().flatten() {
            let open = &scene.reads[read];
            let there = versions.of_key(open.key).map(VersionId);
            let there = there.filter(|&it| versions.writer(it) != node && self.place(it) < snap);
            let newest = there.max_by_key(|&it| self.place(it));
            self.versions[read] = newest;
            let is_one = newest.is_some_and(|it| open.candidates.binary_search(&it).is_ok());
            if !is_one {
                self.missed.push(read);
            }
        }
        self.note_past(node);
    }

    /// Keeps what happened before a transaction, by what its reads are of.
    fn note_past(&mut self, node: Node) {
        if let Some(mut pasts) = self.pasts.take() {
            pasts.begin(node, self.session_before(node));
            let sources: Vec<Node> = self.sources_of(node).map(|it| it.0).collect();
            for source in sources {
                pasts.see(node, source);
            }
            self.pasts = Some(pasts);
        }
    }

    /// The one before a transaction in its session, where that counts.
    pub(super) fn session_before(&self, node: Node) -> Option<Node> {
        let sessions = self.scene.base.sessions();
        let session = &sessions[sessions.partition_point(|it| it.end <= node)];
        let counts = self.scene.check.spec.session_order && node > session.start;
        counts.then(|| node - 1)
    }

    /// The writers of the reads of a transaction, with the open read if it is one.
    pub(super) fn sources_of(
        &self,
        node: Node,
    ) -> impl Iterator<Item = (Node, Option<Taken>)> + '_ {
        let (scene, program) = (self.scene, self.scene.base.reads());
        let versions = scene.base.versions();
        program.of(node).filter_map(move |read| {
            let open = scene.open_of.get(&read);
            let version = match open {
                None => program.version(read),
                Some(&open) => self.versions[open]?,
            };
            let taken = open.map(|&open| (open, version));
            let is_written = !versions.is_initial(version);
            is_written.then(|| (versions.writer(version), taken))
        })
    }

    /// The latest candidate that holds of a read that is attended to.
    fn held(&self, read: usize) -> Option<VersionId> {
        if let Some(version) = self.state.version(read) {
            return Some(version);
        }
        let candidates = self.state.candidates[read].iter().copied();
        let held = candidates.filter(|&it| self.found.holds.contains(&(read, it)));
        held.max_by_key(|&it| self.place(it))
    }

    /// The oldest candidate of a read that is no older than a place and comes before the reader.
    fn oldest(&self, reader: Node, read: usize, floor: u32) -> Option<VersionId> {
        let end = self.place_of(reader);
        let candidates = self.scene.reads[read].candidates.iter().copied();
        let possible = candidates.filter(|&it| (floor..end).contains(&self.place(it)));
        possible.min_by_key(|&it| self.place(it))
    }

    fn weak(&mut self, node: Node) {
        let scene = self.scene;
        let (program, versions) = (scene.base.reads(), scene.base.versions());
        let mut reads: Vec<Own> = Vec::new();
        let mut is_missed = false;
        for read in program.of(node) {
            let mut version = program.version(read);
            let key = versions.key(version);
            let open = scene.open_of.get(&read).copied();
            let mut is_free = false;
            if let Some(open) = open {
                is_free = !self.state.attends(open);
                let chosen = if is_free {
                    self.oldest(node, open, 0)
                } else {
                    self.held(open)
                };
                let Some(chosen) = chosen else {
                    is_missed = true;
                    continue;
                };
                version = chosen;
            }
            reads.push(Own {
                open,
                statement: program.statement(read),
                key,
                version,
                is_free,
            });
        }
        let mut floors = Floors::new(self, node, &reads);
        while !is_missed {
            let mut is_changed = false;
            floors.raise(self, &reads);
            for read in &mut reads {
                let floor = floors.of(self, read);
                if self.place(read.version) >= floor || !read.is_free {
                    continue;
                }
                let open = read.open.expect("a free read is open");
                match self.oldest(node, open, floor) {
                    Some(version) => {
                        read.version = version;
                        is_changed = true;
                    }
                    None => is_missed = true,
                }
            }
            if !is_changed {
                break;
            }
        }
        let has_free = reads.iter().any(|it| it.is_free) || is_missed;
        for read in &reads {
            let floor = floors.of(self, read);
            if self.place(read.version) < floor && scene.model(node) != Model::Cc {
                // What is stated of reads that are attended to holds, so a free read is in the way.
                is_missed = true;
            }
        }
        is_missed |= floors.is_in_a_gap(self, &reads) && has_free && scene.model(node) != Model::Cc;
        for read in &reads {
            if let Some(open) = read.open {
                self.versions[open] = Some(read.version);
            }
        }
        self.note_past(node);
        if is_missed {
            self.miss(node);
        } else if scene.model(node) == Model::Cc {
            let broken = self.broken_paths(node);
            if broken && has_free {
                self.miss(node);
            }
        }
    }

    /// All open reads of a transaction have to be attended to.
    fn miss(&mut self, node: Node) {
        let open = self.scene.of_reader.get(&node).into_iter().flatten();
        let state = self.state;
        self.missed
            .extend(open.copied().filter(|&it| !state.attends(it)));
    }

    /// A read has to be attended to.
    pub(super) fn miss_read(&mut self, read: usize) {
        if !self.state.attends(read) {
            self.missed.push(read);
        }
    }

    /// Aggregates that have another result.
    fn aggregates(&mut self) {
        let scene = self.scene;
        for counting in &scene.aggregates {
            let versions = &self.versions;
            let told = counting.rows.iter().all(|it| versions[it.read].is_some());
            let version = |read: usize| versions[read].unwrap_or(VersionId(0));
            if told && counting.is_given(scene.check.history, version) {
                continue;
            }
            let n_before = self.missed.len();
            for row in &counting.rows {
                if !self.state.attends(row.read) {
                    self.missed.push(row.read);
                }
            }
            if told && self.missed.len() == n_before {
                // Too much to state: these versions are forbidden.
                let rows = counting.rows.iter();
                let guard = rows.map(|it| (it.read, version(it.read)));
                self.lemmas.push(CausalLemma::new(guard.collect(), None));
            }
        }
    }
}

/// How new the reads of a weak transaction must be.
struct Floors {
    node: Node,
    in_order: bool,
    /// The newest writer of each key that was written earlier in the session, or that happened before.
    before: FxHashMap<KeyId, u32>,
    /// For each key that the transaction reads: the writers that it sees, from which statement on, and its place.
    seen: FxHashMap<KeyId, Vec<(u32, u32)>>,
}

impl Floors {
    fn new(telling: &Telling<'_, '_>, node: Node, reads: &[Own]) -> Self {
        let scene = telling.scene;
        let model = scene.model(node);
        let mut before: FxHashMap<KeyId, u32> = FxHashMap::default();
        if model != Model::Rc && scene.check.spec.session_order {
            let sessions = scene.base.sessions();
            let session = &sessions[sessions.partition_point(|it| it.end <= node)];
            for read in reads {
                let versions = scene.base.versions();
                let of_key = versions.of_key(read.key).skip(1).map(VersionId);
                let earlier = of_key.filter(|&it| {
                    let writer = versions.writer(it);
                    (session.start..node).contains(&writer)
                });
                let last = earlier.map(|it| telling.place(it)).max();
                before.insert(read.key, last.unwrap_or(0));
            }
        }
        Floors {
            node,
            in_order: model.reads_may_differ(),
            before,
            seen: FxHashMap::default(),
        }
    }

    /// Records what the reads see.
    fn raise(&mut self, telling: &Telling<'_, '_>, reads: &[Own]) {
        let scene = telling.scene;
        let versions = scene.base.versions();
        let keys: FxHashSet<KeyId> = reads.iter().map(|it| it.key).collect();
        self.seen.clear();
        for read in reads.iter().filter(|it| !versions.is_initial(it.version)) {
            let seen = versions.writer(read.version);
            let place = telling.place_of(seen);
            for key in scene.written.by(seen) {
                if keys.contains(key) {
                    let of_key = self.seen.entry(*key).or_default();
                    of_key.push((read.statement, place));
                }
            }
        }
        if scene.model(self.node) == Model::Cc
            && let Some(pasts) = &telling.pasts
        {
            let sources = reads.iter().filter(|it| !versions.is_initial(it.version));
            let sources = sources.map(|it| versions.writer(it.version));
            let past = pasts.joined(sources.chain(telling.session_before(self.node)));
            for &key in &keys {
                let writers = versions.of_key(key).skip(1).map(VersionId);
                let is_seen = |&it: &VersionId| {
                    let writer = versions.writer(it);
                    writer != self.node && past.has(writer)
                };
                let newest = writers.filter(is_seen).map(|it| telling.place(it)).max();
                if let Some(newest) = newest {
                    let before = self.before.entry(key).or_default();
                    *before = newest.max(*before);
                }
            }
        }
    }

    /// How new a read must be.
    fn of(&self, _: &Telling<'_, '_>, read: &Own) -> u32 {
        let before = self.before.get(&read.key).copied().unwrap_or(0);
        let seen = self.seen.get(&read.key).into_iter().flatten();
        let seen = seen.filter(|it| !self.in_order || it.0 <= read.statement);
        seen.map(|it| it.1).max().unwrap_or(0).max(before)
    }

    /// Whether a read saw a writer of what a range query found absent.
    fn is_in_a_gap(&self, telling: &Telling<'_, '_>, reads: &[Own]) -> bool {
        let (scene, base) = (telling.scene, telling.scene.base);
        let gaps = base.reads().gaps_of(self.node);
        if gaps.is_empty() {
            return false;
        }
        let mut reads = reads.iter().filter(|it| it.open.is_some());
        reads.any(|read| {
            if base.versions().is_initial(read.version) {
                return false;
            }
            let seen = base.versions().writer(read.version);
            let mut keys = scene.written.by(seen).iter();
            keys.any(|&key| {
                let mut places = base.gaps().places(key);
                places.any(|place| {
                    let visible = |it: &&crate::resolve::ProgramGap| {
                        !self.in_order || it.op >= read.statement
                    };
                    let mut gaps = gaps.iter().filter(visible);
                    gaps.any(|gap| gap.places.contains(&place))
                })
            })
        })
    }
}
