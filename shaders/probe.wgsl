// probe: whether place p reaches place q, for each pair (p, q) of a list. One thread per pair, one bit per answer.
//
// A dispatch sees one band of the matrix and answers the pairs whose column it holds; the other bits stay as they are.

struct Params {
    shape: Shape,
    // The pairs from first on, but not beyond the end.
    first: u32,
    end: u32,
    unused: u32,
    unused_too: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> band: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> strips: array<Strip>;
@group(0) @binding(3) var<storage, read> pairs: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> answers: array<atomic<u32>>;

@compute @workgroup_size(THREADS)
fn probe(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let item = params.first + group.x * THREADS + thread;
    if item >= params.end {
        return;
    }
    let row = pairs[item].x;
    let column = pairs[item].y;
    let strip = strip_of(params.shape, column);
    if strip >= params.shape.n_strips || row >= strips[params.shape.first_strip + strip].limit {
        return;
    }
    let bits = band[quad_at(params.shape, strip, row, quad_of(params.shape, column))];
    if any((bits & bit_of(column)) != vec4<u32>(0u)) {
        atomicOr(&answers[item >> 5u], 1u << (item & 31u));
    }
}
