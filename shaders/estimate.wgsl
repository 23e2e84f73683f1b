// estimate: descendants(v) = the bits of row v, ancestors(v) = the bits of column v.
//
// A workgroup takes 256 rows of one strip and reads each word once: a popcount for the row, and a bit-sliced counter (six
// planes, one addition to 32 columns at a time) for the columns. Sums meet in workgroup memory, then in one atomic each.

struct Params {
    shape: Shape,
    first_row: u32,
    unused: u32,
    unused_too: u32,
    unused_also: u32,
}

const MOST_COLUMNS: u32 = 1024u;
const PLANES: u32 = 6u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> band: array<u32>;
// The descendants of all nodes, then the ancestors.
@group(0) @binding(2) var<storage, read_write> relatives: array<atomic<u32>>;

var<workgroup> by_row: array<atomic<u32>, THREADS>;
var<workgroup> by_column: array<atomic<u32>, MOST_COLUMNS>;

@compute @workgroup_size(THREADS)
fn estimate(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let shift = params.shape.strip_shift;
    let n_rows = params.shape.n_rows;
    let columns = 32u << shift;
    atomicStore(&by_row[thread], 0u);
    for (var column = thread; column < columns; column += THREADS) {
        atomicStore(&by_column[column], 0u);
    }
    workgroupBarrier();
    let word = thread & ((1u << shift) - 1u);
    let first = params.first_row + group.x * THREADS;
    var planes: array<u32, PLANES>;
    for (var row = thread >> shift; row < THREADS; row += THREADS >> shift) {
        if first + row >= n_rows {
            break;
        }
        let bits = band[word_at(params.shape, group.y, first + row, word)];
        if bits != 0u {
            atomicAdd(&by_row[row], countOneBits(bits));
        }
        var carry = bits;
        for (var plane = 0u; plane < PLANES && carry != 0u; plane++) {
            let both = planes[plane] & carry;
            planes[plane] ^= carry;
            carry = both;
        }
    }
    for (var bit = 0u; bit < 32u; bit++) {
        var count = 0u;
        for (var plane = 0u; plane < PLANES; plane++) {
            count += ((planes[plane] >> bit) & 1u) << plane;
        }
        if count != 0u {
            atomicAdd(&by_column[word * 32u + bit], count);
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
