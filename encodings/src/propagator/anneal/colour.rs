//! Colours the nodes so that no move of a node reads the point of another of its colour: all nodes of a colour can move at once.
//!
//! Greedy, nodes that read most first. The heat bath stays exact, because a node's new place is drawn with all points that it
//! depends on held fast. Reading is symmetric: the nodes of a constraint read each other, and so do known neighbours.

use super::field::Field;

/// The ids that some constraint touches, by colour; in each colour in ascending order.
pub(super) fn colours(field: &Field) -> Vec<Vec<u32>> {
    let n_nodes = field.n_nodes();
    let mut ids: Vec<u32> = (0..n_nodes as u32)
        .filter(|&id| field.is_touched(id))
        .collect();
    let n_reads = |id: u32| {
        let mut n_reads = 0u32;
        field.for_each_read(id, |_| n_reads += 1);
        n_reads
    };
    ids.sort_by_cached_key(|&id| std::cmp::Reverse(n_reads(id)));
    let mut colour_of = vec![u32::MAX; n_nodes];
    // By colour, the last node that may not have it, plus one.
    let mut taken: Vec<u32> = Vec::new();
    for &id in &ids {
        field.for_each_read(id, |other| {
            if let Some(taken) = taken.get_mut(colour_of[other as usize] as usize) {
                *taken = id + 1;
            }
        });
        let free = taken.iter().position(|&last| last != id + 1);
        let colour = free.unwrap_or_else(|| {
            taken.push(0);
            taken.len() - 1
        });
        colour_of[id as usize] = colour as u32;
    }
    let mut colours = vec![Vec::new(); taken.len()];
    ids.sort_unstable();
    for id in ids {
        colours[colour_of[id as usize] as usize].push(id);
    }
    colours
}
