// warshall: for each k, row(i) |= row(k) where i reaches k. For graphs that may have cycles; blocked (128 nodes at a time)
// and bit-packed, n^3/32 words OR-ed at most.
//
// A block K takes five kernels: `seed` (once, for all blocks) sets the edges; `column` copies the columns of K, so that
// the others need no band but their own; `pivot` closes K x K; `panel` closes the rows of K under it; `rest` lets every
// other row absorb the rows of K that it reaches. A path leaves K's nodes for the last time through a row that `panel`
// has closed, so one pass over the blocks is enough.

struct Params {
    shape: Shape,
    // seed: the steps from first to end. Others: the block's first node and the node after its last.
    first: u32,
    end: u32,
    // The first row of the dispatch.
    first_row: u32,
    unused: u32,
}

const BLOCK: u32 = 128u;
const BLOCK_WORDS: u32 = 4u;
const MOST_WORDS: u32 = 32u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> band: array<u32>;
@group(0) @binding(2) var<storage, read> starts: array<u32>;
@group(0) @binding(3) var<storage, read> targets: array<u32>;
@group(0) @binding(4) var<storage, read> extras: array<Extra>;
@group(0) @binding(5) var<storage, read> steps: array<Step>;
// For each row, which nodes of the block it reaches.
@group(0) @binding(6) var<storage, read_write> through: array<u32>;

var<workgroup> tile: array<u32, BLOCK * MOST_WORDS>;
var<workgroup> square: array<u32, BLOCK * BLOCK_WORDS>;

fn mark(row: u32, column: u32) {
    let strip = strip_of(params.shape, column);
    if strip < params.shape.n_strips {
        band[word_at(params.shape, strip, row, word_of(params.shape, column))] |= 1u << (column & 31u);
    }
}

@compute @workgroup_size(THREADS)
fn seed(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let at = params.first + group.x * THREADS + thread;
    if at >= params.end {
        return;
    }
    let step = steps[at];
    let end = starts[step.node + 1u];
    for (var edge = starts[step.node]; edge < end; edge++) {
        mark(step.node, targets[edge]);
    }
    var link = step.head;
    while link != NONE {
        mark(step.node, extras[link].to);
        link = extras[link].next;
    }
}

@compute @workgroup_size(THREADS)
fn column(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.x * THREADS + thread;
    if row >= params.shape.n_rows {
        return;
    }
    let strip = strip_of(params.shape, params.first);
    let word = word_of(params.shape, params.first);
    for (var at = 0u; at < BLOCK_WORDS; at++) {
        through[row * BLOCK_WORDS + at] = band[word_at(params.shape, strip, row, word + at)];
    }
}

@compute @workgroup_size(BLOCK)
fn pivot(@builtin(local_invocation_index) thread: u32) {
    let row = params.first + thread;
    let is_row = row < params.end;
    for (var at = 0u; at < BLOCK_WORDS; at++) {
        var bits = 0u;
        if is_row {
            bits = through[row * BLOCK_WORDS + at];
        }
        square[thread * BLOCK_WORDS + at] = bits;
    }
    workgroupBarrier();
    for (var k = 0u; k < BLOCK; k++) {
        let reaches = (square[thread * BLOCK_WORDS + (k >> 5u)] >> (k & 31u)) & 1u;
        // Row k only absorbs itself, so nobody writes what the others read.
        if reaches == 1u && thread != k {
            for (var at = 0u; at < BLOCK_WORDS; at++) {
                square[thread * BLOCK_WORDS + at] |= square[k * BLOCK_WORDS + at];
            }
        }
        workgroupBarrier();
    }
    if is_row {
        for (var at = 0u; at < BLOCK_WORDS; at++) {
            through[row * BLOCK_WORDS + at] = square[thread * BLOCK_WORDS + at];
        }
    }
}

// Copies the rows of the block in one strip.
fn load_tile(strip: u32, thread: u32) {
    let shift = params.shape.strip_shift;
    for (var at = thread; at < (BLOCK << shift); at += THREADS) {
        let row = params.first + (at >> shift);
        var bits = 0u;
        if row < params.end {
            bits = band[word_at(params.shape, strip, row, at & ((1u << shift) - 1u))];
        }
        tile[at] = bits;
    }
}

// The union of the block's rows that a row reaches, in one word.
fn gathered(row: u32, word: u32) -> u32 {
    var bits = 0u;
    for (var at = 0u; at < BLOCK_WORDS; at++) {
        var reached = through[row * BLOCK_WORDS + at];
        while reached != 0u {
            let k = at * 32u + countTrailingZeros(reached);
            bits |= tile[(k << params.shape.strip_shift) + word];
            reached &= reached - 1u;
        }
    }
    return bits;
}

@compute @workgroup_size(THREADS)
fn panel(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    load_tile(group.y, thread);
    workgroupBarrier();
    let shift = params.shape.strip_shift;
    for (var at = thread; at < (BLOCK << shift); at += THREADS) {
        let row = params.first + (at >> shift);
        let word = at & ((1u << shift) - 1u);
        if row < params.end {
            band[word_at(params.shape, group.y, row, word)] |= gathered(row, word);
        }
    }
}

@compute @workgroup_size(THREADS)
fn rest(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    load_tile(group.y, thread);
    workgroupBarrier();
    let shift = params.shape.strip_shift;
    for (var at = thread; at < (THREADS << shift); at += THREADS) {
        let row = params.first_row + group.x * THREADS + (at >> shift);
        let word = at & ((1u << shift) - 1u);
        let is_block = row >= params.first && row < params.end;
        if row < params.shape.n_rows && !is_block {
            band[word_at(params.shape, group.y, row, word)] |= gathered(row, word);
        }
    }
}
