// closure: row(v) |= OR over the edges v -> s of (row(s) | bit(s)), for the nodes in reverse topological order by level.
//
// A round brings its own graph: the rows that can change, and of their edges those that are new or lead to such a row.
// A node's successors are all in earlier levels, so the nodes of a level do not depend on each other, and no strip
// depends on another. `sweep` gives a strip to one workgroup, which passes through many levels behind workgroup barriers:
// the whole closure is one dispatch. `level` spreads one level over many workgroups, for graphs that are wider than deep.
// O(m·n/64) words are OR-ed. Reachability only grows, so rows start from what they were.

struct Params {
    shape: Shape,
    first_step: u32,
    // sweep: the levels from first to end. level: the steps up to end.
    first: u32,
    end: u32,
    unused: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> band: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> strips: array<Strip>;
// The rows to compute, level by level, and in a level by place.
@group(0) @binding(3) var<storage, read> steps: array<u32>;
// For each step where its edges start in `targets`, and at the end how many there are.
@group(0) @binding(4) var<storage, read> starts: array<u32>;
@group(0) @binding(5) var<storage, read> targets: array<u32>;
// Where each level's steps end.
@group(0) @binding(6) var<storage, read> ends: array<u32>;

// What a successor brings to one quad of a row: what it reaches, and itself.
fn brought(strip: u32, limit: u32, quad: u32, row: u32) -> vec4<u32> {
    var bits = vec4<u32>(0u);
    if row < limit {
        bits = band[quad_at(params.shape, strip, row, quad)];
    }
    if strip_of(params.shape, row) == strip && quad_of(params.shape, row) == quad {
        bits |= bit_of(row);
    }
    return bits;
}

fn absorb(step: u32, strip: u32, limit: u32, quad: u32) {
    let at = quad_at(params.shape, strip, steps[step], quad);
    var bits = band[at];
    let end = starts[step + 1u];
    for (var edge = starts[step]; edge < end; edge++) {
        bits |= brought(strip, limit, quad, targets[edge]);
    }
    band[at] = bits;
}

@compute @workgroup_size(THREADS)
fn sweep(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let shift = params.shape.strip_shift - 2u;
    let quad = thread & ((1u << shift) - 1u);
    let lane = thread >> shift;
    let lanes = THREADS >> shift;
    let strip = strips[params.shape.first_strip + group.y];
    var start = params.first_step;
    let first = max(params.first, strip.first_level);
    if first > params.first {
        start = ends[first - 1u];
    }
    for (var level = first; level < params.end; level++) {
        let end = ends[level];
        for (var at = start + lane; at < end; at += lanes) {
            if steps[at] >= strip.limit {
                break;
            }
            absorb(at, group.y, strip.limit, quad);
        }
        // The next level reads what this one wrote, and only this workgroup touches the strip.
        storageBarrier();
        workgroupBarrier();
        start = end;
    }
}

@compute @workgroup_size(THREADS)
fn level(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let shift = params.shape.strip_shift - 2u;
    let at = params.first_step + group.x * (THREADS >> shift) + (thread >> shift);
    let limit = strips[params.shape.first_strip + group.y].limit;
    if at < params.end && steps[at] < limit {
        absorb(at, group.y, limit, thread & ((1u << shift) - 1u));
    }
}
