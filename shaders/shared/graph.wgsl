// The known graph. What was known before pruning is stored by source; the edges that pruning added are linked lists, so
// that a round only appends to them.

struct Extra {
    to: u32,
    // The source's edge that was added before, or NONE.
    next: u32,
}

// A node whose row is to be computed, and the last edge that was added to it, or NONE.
struct Step {
    node: u32,
    head: u32,
}
