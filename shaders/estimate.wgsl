// estimate: descendants(v) = the bits of row v, ancestors(v) = the bits of column v.
//
// A workgroup takes 256 rows of one strip and reads each quad once: a popcount for the row, and a bit-sliced counter (six
// planes, one addition to 128 columns at a time) for the columns. Sums meet in workgroup memory, then in one atomic each.

struct Params {
    shape: Shape,
    first_row: u32,
    unused: u32,
    unused_too: u32,
    unused_also: u32,
}

const MOST_COLUMNS: u32 = 1024u;
// A thread adds up 8 rows at most.
const PLANES: u32 = 4u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> band: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> strips: array<Strip>;
// The descendants of all places, then the ancestors.
@group(0) @binding(3) var<storage, read_write> relatives: array<atomic<u32>>;

var<workgroup> by_row: array<atomic<u32>, THREADS>;
var<workgroup> by_column: array<atomic<u32>, MOST_COLUMNS>;

@compute @workgroup_size(THREADS)
fn estimate(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let shift = params.shape.strip_shift - 2u;
    let n_rows = params.shape.n_rows;
    let columns = 128u << shift;
    atomicStore(&by_row[thread], 0u);
    for (var column = thread; column < columns; column += THREADS) {
        atomicStore(&by_column[column], 0u);
    }
    workgroupBarrier();
    let quad = thread & ((1u << shift) - 1u);
    let first = params.first_row + group.x * THREADS;
    let end = min(n_rows, strips[params.shape.first_strip + group.y].limit);
    var planes: array<vec4<u32>, PLANES>;
    for (var row = thread >> shift; row < THREADS; row += THREADS >> shift) {
        if first + row >= end {
            break;
        }
        let bits = band[quad_at(params.shape, group.y, first + row, quad)];
        let ones = countOneBits(bits);
        let count = ones.x + ones.y + ones.z + ones.w;
        if count != 0u {
            atomicAdd(&by_row[row], count);
        }
        var carry = bits;
        for (var plane = 0u; plane < PLANES; plane++) {
            let both = planes[plane] & carry;
            planes[plane] ^= carry;
            carry = both;
        }
    }
    for (var at = 0u; at < 128u; at++) {
        var count = 0u;
        for (var plane = 0u; plane < PLANES; plane++) {
            count += ((planes[plane][at >> 5u] >> (at & 31u)) & 1u) << plane;
        }
        if count != 0u {
            atomicAdd(&by_column[quad * 128u + at], count);
        }
    }
    workgroupBarrier();
    let descendants = atomicLoad(&by_row[thread]);
    if first + thread < n_rows && descendants != 0u {
        atomicAdd(&relatives[first + thread], descendants);
    }
    let first_column = (params.shape.first_strip + group.y) * columns;
    for (var column = thread; column < columns; column += THREADS) {
        let ancestors = atomicLoad(&by_column[column]);
        if first_column + column < n_rows && ancestors != 0u {
            atomicAdd(&relatives[n_rows + first_column + column], ancestors);
        }
    }
}
