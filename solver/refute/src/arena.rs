//! A small graph with open splits, in which a refutation is searched; independent of databases.
//!
//! Invariant: an arc belongs to no split, and always holds, or to one side of one split.

use kingsnake_graph::paths::cheapest;

/// One point comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arc {
    /// The earlier point.
    pub(super) from: u32,
    /// The later point.
    pub(super) to: u32,
    /// How hard it is to explain.
    pub(super) cost: u32,
    /// The split and its side on which the arc depends.
    pub(super) split: Option<(u32, usize)>,
}

/// Points, arcs and splits. Of each split one side or the other holds.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    n_points: usize,
    arcs: Vec<Arc>,
    /// The arcs by source.
    out: Vec<Vec<u32>>,
    /// The arcs of each side of each split.
    sides: Vec<[Vec<u32>; 2]>,
}

/// Since when each side of each split holds; `u32::MAX` where it does not.
pub(super) type Stamps = Vec<[u32; 2]>;

impl Arena {
    /// Sorts the arcs.
    pub(super) fn new(n_points: usize, n_splits: usize, arcs: Vec<Arc>) -> Self {
        let mut out = vec![Vec::new(); n_points];
        let mut sides = vec![[Vec::new(), Vec::new()]; n_splits];
        for (index, arc) in arcs.iter().enumerate() {
            out[arc.from as usize].push(index as u32);
            if let Some((split, side)) = arc.split {
                sides[split as usize][side].push(index as u32);
            }
        }
        Arena {
            n_points,
            arcs,
            out,
            sides,
        }
    }

    /// The number of points.
    pub(super) fn n_points(&self) -> usize {
        self.n_points
    }

    /// The number of splits.
    pub(super) fn n_splits(&self) -> usize {
        self.sides.len()
    }

    /// Every arc.
    pub(super) fn arcs(&self) -> &[Arc] {
        &self.arcs
    }

    /// An arc.
    pub(super) fn arc(&self, index: u32) -> Arc {
        self.arcs[index as usize]
    }

    /// The arcs of one side of a split.
    pub(super) fn side(&self, split: u32, side: usize) -> &[u32] {
        &self.sides[split as usize][side]
    }

    /// The cheapest cycle through one of the arcs `through`, over the arcs that hold before `time` and those of the side
    /// `assumed`.
    pub(super) fn cheapest_cycle(
        &self,
        through: &[u32],
        stamps: &Stamps,
        time: u32,
        assumed: Option<(u32, usize)>,
    ) -> Option<Vec<u32>> {
        let holds = |arc: &Arc| match arc.split {
            None => true,
            Some(split) if Some(split) == assumed => true,
            Some((split, side)) => stamps[split as usize][side] < time,
        };
        let mut best: Option<(u32, Vec<u32>)> = None;
        let mut starts: Vec<u32> = through.iter().map(|&it| self.arc(it).to).collect();
        starts.sort_unstable();
        starts.dedup();
        for start in starts {
            let bound = best.as_ref().map_or(u32::MAX, |(cost, _)| *cost);
            let (distance, parent) = cheapest(self.n_points, start, bound, |point| {
                let arcs = self.out[point as usize].iter();
                let arcs = arcs.map(|&index| (index, &self.arcs[index as usize]));
                let arcs = arcs.filter(|(_, arc)| holds(arc));
                arcs.map(|(index, arc)| (arc.to, arc.cost, index))
            });
            for &index in through.iter().filter(|&&it| self.arc(it).to == start) {
                let arc = self.arc(index);
                let back = distance[arc.from as usize];
                let cost = back.saturating_add(arc.cost);
                if back == u32::MAX || best.as_ref().is_some_and(|(least, _)| cost >= *least) {
                    continue;
                }
                let mut cycle = vec![index];
                let mut at = arc.from;
                while at != start {
                    let step = parent[at as usize];
                    cycle.push(step);
                    at = self.arc(step).from;
                }
                cycle.reverse();
                best = Some((cost, cycle));
            }
        }
        best.map(|(_, cycle)| cycle)
    }
}
