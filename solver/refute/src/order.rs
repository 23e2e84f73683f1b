//! The known part of one key's version order without any assumption, and which versions stay together.
//!
//! A transaction that read a version and then wrote the key put its own version directly after. So versions linked by
//! read-modify-writes form a *family*: a tree, and a path unless two transactions overwrote one version. No other version
//! of the key comes between two of a family, so what is known, or assumed, of one member against another family holds for all.
//! Where a level lets updates be lost, a version still comes after the one that its writer read, but begins a family of its own. Where reads
//! of one key may differ, a version continues none of them: that it comes after each is what the reads say.

use rustc_hash::FxHashMap;

use crate::model::KeyId;
use crate::relate::Polygraph;
use crate::resolve::VersionId;
use crate::verdict::Fact;

/// What is known about `before` ≪ `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It holds, for this reason; the number is the effort to explain it.
    Yes(Fact, u32),
    /// It is open: these two families are not ordered.
    Open(u32, u32),
    /// It does not hold.
    No,
}

/// The families of a key's versions, and where given orders put them.
#[derive(Clone, Debug)]
pub(super) struct KeyOrder {
    start: u32,
    /// The version that each was made of.
    parents: Vec<Option<u32>>,
    family: Vec<u32>,
    /// When a walk over the trees enters and leaves each version: an ancestor's span contains its descendants'.
    enter: Vec<u32>,
    leave: Vec<u32>,
    lists: Vec<ListedOrder>,
}

/// A given order: places of versions, and for each family its first and last place.
#[derive(Clone, Debug)]
pub(super) struct ListedOrder {
    listed: Vec<u32>,
    place: FxHashMap<u32, u32>,
    first: FxHashMap<u32, u32>,
    last: FxHashMap<u32, u32>,
    /// Whether unlisted versions come after the listed ones.
    is_prefix: bool,
}

impl KeyOrder {
    /// Reads off what is known of a key.
    pub(super) fn of(polygraph: &Polygraph, key: KeyId) -> Self {
        let (resolved, places) = (polygraph.resolved(), polygraph.places());
        let versions = resolved.versions();
        let range = versions.of_key(key);
        let (start, n_versions) = (range.start, range.len());
        let mut order = KeyOrder {
            start,
            parents: Vec::new(),
            family: (0..n_versions as u32).collect(),
            enter: vec![0; n_versions],
            leave: vec![0; n_versions],
            lists: Vec::new(),
        };
        let is_tied: Vec<bool> = range
            .clone()
            .map(|version| {
                let version = VersionId(version);
                !versions.is_initial(version) && places.is_atomic(versions.writer(version))
            })
            .collect();
        let parent = |version: VersionId| {
            let parent = versions.predecessor(version)?;
            let writer = places.model(versions.writer(version));
            (!writer.reads_may_differ()).then_some(parent.0 - start)
        };
        let parents = range.map(|version| parent(VersionId(version)));
        let parents: Vec<Option<u32>> = parents.collect();
        order.walk(&parents, &is_tied);
        order.parents = parents;
        let given = resolved.given();
        let from = given.partition_point(|it| it.key < key);
        for list in given[from..].iter().take_while(|it| it.key == key) {
            let places = list.versions.iter().map(|version| version.0 - start);
            order.add_list(places, list.is_prefix);
        }
        order
    }

    /// Numbers the trees from their roots. Versions in a circle of read-modify-writes have no root: each stays a family of
    /// its own, since the reads alone contradict each other.
    fn walk(&mut self, parents: &[Option<u32>], is_tied: &[bool]) {
        let n_versions = parents.len();
        let mut children_start = vec![0_u32; n_versions + 1];
        for parent in parents.iter().flatten() {
            children_start[*parent as usize + 1] += 1;
        }
        for version in 0..n_versions {
            children_start[version + 1] += children_start[version];
        }
        let mut next = children_start.clone();
        let mut children = vec![0_u32; children_start[n_versions] as usize];
        for (version, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[next[*parent as usize] as usize] = version as u32;
                next[*parent as usize] += 1;
            }
        }
        next.copy_from_slice(&children_start);
        let mut clock = 0;
        for root in (0..n_versions).filter(|&version| parents[version].is_none()) {
            let mut stack = vec![root];
            clock += 1;
            self.enter[root] = clock;
            while let Some(&top) = stack.last() {
                clock += 1;
                if next[top] == children_start[top + 1] {
                    self.leave[top] = clock;
                    stack.pop();
                    continue;
                }
                let child = children[next[top] as usize] as usize;
                next[top] += 1;
                self.enter[child] = clock;
                if is_tied[child] {
                    self.family[child] = self.family[top];
                }
                stack.push(child);
            }
        }
    }

    fn add_list(&mut self, listed: impl Iterator<Item = u32>, is_prefix: bool) {
        let mut order = ListedOrder {
            listed: Vec::new(),
            place: FxHashMap::default(),
            first: FxHashMap::default(),
            last: FxHashMap::default(),
            is_prefix,
        };
        for (place, version) in listed.enumerate() {
            let (place, family) = (place as u32, self.family[version as usize]);
            order.listed.push(version);
            order.place.insert(version, place);
            order.first.entry(family).or_insert(place);
            order.last.insert(family, place);
        }
        if is_prefix {
            // Beyond the end of the list stand the versions that it leaves out.
            for (version, &family) in self.family.iter().enumerate() {
                if !order.place.contains_key(&(version as u32)) && version > 0 {
                    order.last.insert(family, u32::MAX);
                }
            }
        }
        self.lists.push(order);
    }

    /// The family of a version, by the place of its first version among the key's; the initial one's is 0.
    pub(super) fn family(&self, version: VersionId) -> u32 {
        self.family_of(version.0 - self.start)
    }

    /// The version that one was made of.
    pub(super) fn parent(&self, version: VersionId) -> Option<VersionId> {
        let parent = self.parents[(version.0 - self.start) as usize]?;
        Some(VersionId(self.start + parent))
    }

    /// Whether a version's family has a first one: it has not where versions were made of each other in a circle.
    pub(super) fn is_rooted(&self, version: VersionId) -> bool {
        self.enter[(version.0 - self.start) as usize] > 0
    }

    /// Whether some version was not made of the initial one.
    pub(super) fn has_several_families(&self) -> bool {
        self.family.iter().any(|&family| family != 0)
    }

    /// The orders that were given.
    pub(super) fn lists(&self) -> &[ListedOrder] {
        &self.lists
    }

    /// What is known about `before` ≪ `after`.
    pub(super) fn known(&self, before: VersionId, after: VersionId) -> Known {
        let (before, after) = (before.0 - self.start, after.0 - self.start);
        if let Some((fact, cost)) = self.why(before, after) {
            return Known::Yes(fact, cost);
        }
        if before == after || self.why(after, before).is_some() {
            return Known::No;
        }
        Known::Open(self.family_of(before), self.family_of(after))
    }

    fn why(&self, before: u32, after: u32) -> Option<(Fact, u32)> {
        if before == after || after == 0 {
            return None;
        }
        if before == 0 {
            return Some((Fact::Initial, 0));
        }
        let (family, other) = (self.family_of(before), self.family_of(after));
        if self.is_ancestor(before, after) {
            return Some((Fact::Run, 1));
        }
        if self.lists.iter().any(|list| list.shows(before, after)) {
            return Some((Fact::Given, 1));
        }
        if family == other {
            // Neither is behind the other: both continue one version, which cannot be, and each comes before the other.
            return (!self.is_ancestor(after, before)).then_some((Fact::Run, 3));
        }
        if family == 0 {
            return Some((Fact::Initial, 2));
        }
        // Made of some version of the family, and none of it: no other version comes between two of a family.
        if self.is_ancestor(family, after) {
            return Some((Fact::Run, 2));
        }
        if other != 0 && self.lists.iter().any(|list| list.implies(family, other)) {
            return Some((Fact::Given, 3));
        }
        None
    }

    fn family_of(&self, version: u32) -> u32 {
        self.family[version as usize]
    }

    fn is_ancestor(&self, before: u32, after: u32) -> bool {
        let (before, after) = (before as usize, after as usize);
        self.enter[before] < self.enter[after] && self.leave[after] < self.leave[before]
    }
}

impl ListedOrder {
    /// The versions that it lists, by their places among the key's.
    pub(super) fn listed(&self) -> &[u32] {
        &self.listed
    }

    /// The versions that come after those that it lists.
    pub(super) fn unlisted(&self, order: &KeyOrder) -> Vec<u32> {
        let all = 1..order.family.len() as u32;
        all.filter(|version| self.is_prefix && !self.place.contains_key(version))
            .collect()
    }

    /// The first versions of the families that come after those that it lists.
    pub(super) fn unlisted_families(&self, order: &KeyOrder) -> Vec<u32> {
        let unlisted = self.unlisted(order).into_iter();
        unlisted
            .filter(|&it| order.family_of(it) == it && !self.first.contains_key(&it))
            .collect()
    }

    /// The families that it lists, in its order, each with all its versions, the first one first. `None` where that says no more
    /// than the versions do, or where families are not kept together.
    pub(super) fn families(&self, order: &KeyOrder) -> Option<Vec<Vec<u32>>> {
        let mut families: Vec<u32> = self.listed.iter().map(|&it| order.family_of(it)).collect();
        families.dedup();
        if families.len() != self.first.len() {
            return None;
        }
        let place: FxHashMap<u32, usize> = families
            .iter()
            .enumerate()
            .map(|(at, &family)| (family, at))
            .collect();
        let mut members: Vec<Vec<u32>> = families.into_iter().map(|it| vec![it]).collect();
        let mut n_members = members.len();
        for (version, family) in order.family.iter().enumerate() {
            if let Some(&at) = place.get(family)
                && version as u32 != *family
            {
                members[at].push(version as u32);
                n_members += 1;
            }
        }
        let has_unlisted_end = |members: &Vec<u32>| {
            let is_unlisted = |it: &u32| *it > 0 && !self.place.contains_key(it);
            self.is_prefix && members.iter().any(is_unlisted)
        };
        let (_, before) = members.split_last()?;
        if n_members == self.listed.len() || before.iter().any(has_unlisted_end) {
            return None;
        }
        Some(members)
    }

    fn shows(&self, before: u32, after: u32) -> bool {
        match (self.place.get(&before), self.place.get(&after)) {
            (Some(before), Some(after)) => before < after,
            (Some(_), None) => self.is_prefix,
            _ => false,
        }
    }

    fn implies(&self, family: u32, other: u32) -> bool {
        match (self.first.get(&family), self.last.get(&other)) {
            (Some(first), Some(last)) => first < last,
            _ => false,
        }
    }
}
