// closure: row(v) |= OR over the edges v -> s of (row(s) | bit(s)), for the nodes in reverse topological order by level.
//
// A node's successors are all in earlier levels, so the nodes of a level do not depend on each other, and no strip
// depends on another. `sweep` gives a strip to one workgroup, which passes through many levels behind workgroup barriers:
// the whole closure is one dispatch. `level` spreads one level over many workgroups, for graphs that are wider than deep.
// O(m·n/32) words are OR-ed. Reachability only grows, so rows start from what they were.

struct Params {
    shape: Shape,
    first_step: u32,
    // sweep: the levels from first to end. level: the steps up to end.
    first: u32,
    end: u32,
    unused: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> band: array<u32>;
@group(0) @binding(2) var<storage, read> starts: array<u32>;
@group(0) @binding(3) var<storage, read> targets: array<u32>;
@group(0) @binding(4) var<storage, read> extras: array<Extra>;
@group(0) @binding(5) var<storage, read> steps: array<Step>;
// Where each level's steps end.
@group(0) @binding(6) var<storage, read> ends: array<u32>;

// What a successor brings to one word of a row: what it reaches, and itself.
fn brought(strip: u32, word: u32, node: u32) -> u32 {
    let is_own = strip_of(params.shape, node) == strip && word_of(params.shape, node) == word;
    return band[word_at(params.shape, strip, node, word)] | select(0u, 1u << (node & 31u), is_own);
}

fn absorb(step: Step, strip: u32, word: u32) {
    let at = word_at(params.shape, strip, step.node, word);
    var bits = band[at];
    let end = starts[step.node + 1u];
    for (var edge = starts[step.node]; edge < end; edge++) {
        bits |= brought(strip, word, targets[edge]);
    }
    var link = step.head;
    while link != NONE {
        let extra = extras[link];
        bits |= brought(strip, word, extra.to);
        link = extra.next;
    }
    band[at] = bits;
}

@compute @workgroup_size(THREADS)
fn sweep(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let shift = params.shape.strip_shift;
    let word = thread & ((1u << shift) - 1u);
    let lane = thread >> shift;
    let lanes = THREADS >> shift;
    var start = params.first_step;
    for (var level = params.first; level < params.end; level++) {
        let end = ends[level];
        for (var at = start + lane; at < end; at += lanes) {
            absorb(steps[at], group.y, word);
        }
        // The next level reads what this one wrote, and only this workgroup touches the strip.
        storageBarrier();
        workgroupBarrier();
        start = end;
    }
}

@compute @workgroup_size(THREADS)
fn level(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let shift = params.shape.strip_shift;
    let at = params.first_step + group.x * (THREADS >> shift) + (thread >> shift);
    if at < params.end {
        absorb(steps[at], group.y, thread & ((1u << shift) - 1u));
    }
}
