//! Known reachability within each component, as a bit row for each node.

/// A square of bits for each component.
pub(crate) struct BitRows {
    /// The first node of each component, and one past the last.
    starts: Vec<u32>,
    component: Vec<u32>,
    /// Where each component's bits start.
    offsets: Vec<usize>,
    bits: Vec<u64>,
}

impl BitRows {
    /// The bytes that components of these sizes take.
    pub fn bytes(sizes: impl Iterator<Item = usize>) -> u64 {
        sizes
            .map(|size| 8 * size as u64 * size.div_ceil(64) as u64)
            .sum()
    }

    /// No node reaches another yet.
    pub fn new(starts: Vec<u32>) -> BitRows {
        let mut offsets = vec![0];
        let mut component = Vec::new();
        for (at, range) in starts.windows(2).enumerate() {
            let size = (range[1] - range[0]) as usize;
            offsets.push(offsets[at] + size * size.div_ceil(64));
            component.resize(component.len() + size, at as u32);
        }
        BitRows {
            bits: vec![0; offsets[starts.len() - 1]],
            starts,
            component,
            offsets,
        }
    }

    /// Sets which nodes of its component a node reaches.
    pub fn set(&mut self, node: u32, row: &[u64]) {
        let range = self.range(node);
        self.bits[range].copy_from_slice(row);
    }

    fn range(&self, node: u32) -> std::ops::Range<usize> {
        let component = self.component[node as usize] as usize;
        let first = self.starts[component];
        let size = (self.starts[component + 1] - first) as usize;
        let width = size.div_ceil(64);
        let start = self.offsets[component] + (node - first) as usize * width;
        start..start + width
    }

    /// The component of a node.
    #[inline]
    pub fn component(&self, node: u32) -> usize {
        self.component[node as usize] as usize
    }

    /// The nodes of a component.
    #[inline]
    pub fn members(&self, component: usize) -> std::ops::Range<u32> {
        self.starts[component]..self.starts[component + 1]
    }

    pub fn n_components(&self) -> usize {
        self.starts.len() - 1
    }

    /// The nodes of its component that a node reaches, except itself.
    #[inline]
    pub fn row(&self, node: u32) -> &[u64] {
        &self.bits[self.range(node)]
    }

    /// Whether a known path leads from one node to another of its component.
    #[inline]
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        let bit = (to - self.starts[self.component(from)]) as usize;
        self.row(from)[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Whether neither reaches the other, nor are they the same.
    #[inline]
    pub fn open(&self, a: u32, b: u32) -> bool {
        a != b && !self.reaches(a, b) && !self.reaches(b, a)
    }
}
