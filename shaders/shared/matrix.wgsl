// The bit matrix: row r has bit c where node r reaches node c.
//
// Columns are cut into strips of 2^strip_shift words. A strip is contiguous, row after row, so that a workgroup that owns
// it sweeps a small piece of memory and neighbouring threads read neighbouring words. A band is a buffer that holds some
// of the strips; a dispatch sees one band.

struct Shape {
    n_rows: u32,
    strip_shift: u32,
    // The band's first strip, and how many it has.
    first_strip: u32,
    n_strips: u32,
}

const THREADS: u32 = 256u;
const NONE: u32 = 0xffffffffu;

// Where a word stands in the band; the strip is counted from the band's first.
fn word_at(shape: Shape, strip: u32, row: u32, word: u32) -> u32 {
    return ((strip * shape.n_rows + row) << shape.strip_shift) + word;
}

// The strip of a column, counted from the band's first: n_strips or more where the column is in another band.
fn strip_of(shape: Shape, column: u32) -> u32 {
    return (column >> (5u + shape.strip_shift)) - shape.first_strip;
}

// The word of a column in its strip.
fn word_of(shape: Shape, column: u32) -> u32 {
    return (column >> 5u) & ((1u << shape.strip_shift) - 1u);
}
