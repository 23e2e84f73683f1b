// The bit matrix: row r has bit c where the node at place r reaches the node at place c.
//
// Places follow a topological order, so most bits below the diagonal are zero. Columns are cut into strips of
// 2^strip_shift words; a strip keeps the rows up to its limit only, one after the other, so that a workgroup that owns it
// sweeps a small piece of memory and neighbouring threads read neighbouring words. Words are read four at a time: a quad.
// A band is a buffer that holds some of the strips; a dispatch sees one band.

struct Shape {
    n_rows: u32,
    strip_shift: u32,
    // The band's first strip, and how many it has.
    first_strip: u32,
    n_strips: u32,
}

struct Strip {
    // Where its rows start in the band, in quads.
    base: u32,
    // Rows from here on have no bit in the strip.
    limit: u32,
    // The first level of the round that has a row in the strip.
    first_level: u32,
}

const THREADS: u32 = 256u;
const NONE: u32 = 0xffffffffu;

// Where a quad of a row stands in the band; the strip is counted from the band's first.
fn quad_at(shape: Shape, strip: u32, row: u32, quad: u32) -> u32 {
    return strips[shape.first_strip + strip].base + (row << (shape.strip_shift - 2u)) + quad;
}

// The strip of a column, counted from the band's first: n_strips or more where the column is in another band.
fn strip_of(shape: Shape, column: u32) -> u32 {
    return (column >> (5u + shape.strip_shift)) - shape.first_strip;
}

// The quad of a column in its strip.
fn quad_of(shape: Shape, column: u32) -> u32 {
    return (column >> 7u) & ((1u << (shape.strip_shift - 2u)) - 1u);
}

// The bit of a column in its quad.
fn bit_of(column: u32) -> vec4<u32> {
    let word = vec4<u32>((column >> 5u) & 3u) == vec4<u32>(0u, 1u, 2u, 3u);
    return select(vec4<u32>(0u), vec4<u32>(1u << (column & 31u)), word);
}
