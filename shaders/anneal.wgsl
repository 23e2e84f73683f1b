// anneal: moves all nodes of a colour to new points, each drawn by how few constraints it violates there (heat bath).
//
// No node reads another of its colour, so all of them move at once, and each draw is exact. A workgroup moves one node: its
// threads gather where constraints are violated, and where the cost may change; each such mark starts a piece of the line, whose
// cost and weight are counted by comparing it with all others, O(S²) for S marks, without a sort. `count` says how many
// constraints are violated, `keep` copies the points if that is the fewest so far. All arithmetic is in whole numbers: points
// have 32 bits, weights 16, and their products add up in two words, so the result does not depend on the device.

struct Params {
    // anneal: the movers from first to end. count, keep: the items.
    first: u32,
    end: u32,
    seed: u32,
    // Counts the colours that were moved.
    turn: u32,
    sweep: u32,
    unused: u32,
    unused_too: u32,
    unused_also: u32,
}

struct Reads {
    before: u32,
    after: u32,
    between: u32,
    below: u32,
    above: u32,
    rest: u32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> points: array<u32>;
@group(0) @binding(2) var<storage, read> movers: array<u32>;
@group(0) @binding(3) var<storage, read> reads: array<Reads>;
@group(0) @binding(4) var<storage, read> field: array<u32>;
@group(0) @binding(5) var<storage, read> side_starts: array<u32>;
@group(0) @binding(6) var<storage, read> sides: array<vec2<u32>>;
@group(0) @binding(7) var<storage, read> weights: array<u32>;
// By sweep, how many constraints are violated; the first is before the first sweep.
@group(0) @binding(8) var<storage, read_write> violated: array<atomic<u32>>;
// By sweep, the fewest so far.
@group(0) @binding(9) var<storage, read_write> least: array<u32>;
@group(0) @binding(10) var<storage, read_write> best: array<u32>;

const GROUP: u32 = 64u;
// Maximum number of intervals per node; a node that could have more stays where it is.
const MOST: u32 = 448u;
const N_MARKS: u32 = 2u * MOST + 1u;
const N_WEIGHTS: u32 = 64u;
const LAST: u32 = 0xffffffffu;

var<workgroup> low: atomic<u32>;
var<workgroup> high: atomic<u32>;
var<workgroup> n_bad: atomic<u32>;
var<workgroup> bad: array<vec2<u32>, MOST>;
var<workgroup> n_marks: atomic<u32>;
var<workgroup> marks: array<u32, N_MARKS>;
var<workgroup> cheapest: atomic<u32>;
// By mark, the cost and the length of its piece; then, in their place, its weight times its length.
var<workgroup> masses: array<vec2<u32>, N_MARKS>;

// The 64-bit product of two words, high word first.
fn product(a: u32, b: u32) -> vec2<u32> {
    let a_low = a & 0xffffu;
    let a_high = a >> 16u;
    let b_low = b & 0xffffu;
    let b_high = b >> 16u;
    let low_low = a_low * b_low;
    let high_low = a_high * b_low;
    let low_high = a_low * b_high;
    let middle = (low_low >> 16u) + (high_low & 0xffffu) + (low_high & 0xffffu);
    let upper = a_high * b_high + (high_low >> 16u) + (low_high >> 16u) + (middle >> 16u);
    return vec2(upper, (middle << 16u) | (low_low & 0xffffu));
}

fn sum(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let lower = a.y + b.y;
    return vec2(a.x + b.x + select(0u, 1u, lower < a.y), lower);
}

fn is_below(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x < b.x || (a.x == b.x && a.y < b.y);
}

fn mixed(number: u32) -> u32 {
    var bits = number;
    bits = (bits ^ (bits >> 16u)) * 0x7feb352du;
    bits = (bits ^ (bits >> 15u)) * 0x846ca68bu;
    return bits ^ (bits >> 16u);
}

// A random number of a node in a turn.
fn random(id: u32, which: u32) -> u32 {
    return mixed(mixed(mixed(params.seed + which * 0x9e3779b9u) ^ params.turn) + id * 0x85ebca6bu);
}

// Notes that a constraint is violated from one point to another, both included, if that makes a difference between the bounds.
fn violated_between(from_point: u32, to_point: u32, lower: u32, upper: u32) {
    if from_point <= to_point && from_point < upper && to_point > lower
        && (from_point > lower + 1u || to_point < upper - 1u) {
        bad[atomicAdd(&n_bad, 1u)] = vec2(from_point, to_point);
    }
}

// Where a side of a constraint holds: strictly between the two points. Empty where the first is not below the second.
fn span(start: u32, end: u32, id: u32) -> vec2<u32> {
    var found = vec2(0u, LAST);
    for (var at = start; at < end; at++) {
        let edge = sides[at];
        if edge.x == id {
            found.y = min(found.y, points[edge.y]);
        } else if edge.y == id {
            found.x = max(found.x, points[edge.x]);
        } else if points[edge.x] >= points[edge.y] {
            return vec2(LAST, 0u);
        }
    }
    return found;
}

// What the spans of both sides leave out.
fn gaps(one: vec2<u32>, other: vec2<u32>, lower: u32, upper: u32) {
    var first = one;
    var second = other;
    if other.x < one.x {
        first = other;
        second = one;
    }
    if first.x >= first.y && second.x >= second.y {
        return;
    }
    if first.x >= first.y {
        first = second;
    }
    if second.x >= second.y {
        second = first;
    }
    violated_between(0u, first.x, lower, upper);
    violated_between(first.y, second.x, lower, upper);
    violated_between(max(first.y, second.y), LAST, lower, upper);
}

fn gather(id: u32, thread: u32, lower: u32, upper: u32) {
    let own = reads[id];
    let end = reads[id + 1u].before;
    for (var at = own.between + 2u * thread; at < own.below; at += 2u * GROUP) {
        violated_between(points[field[at]], points[field[at + 1u]], lower, upper);
    }
    for (var at = own.below + 3u * thread; at < own.above; at += 3u * GROUP) {
        if points[field[at + 1u]] >= points[field[at + 2u]] {
            violated_between(points[field[at]], LAST, lower, upper);
        }
    }
    for (var at = own.above + 3u * thread; at < own.rest; at += 3u * GROUP) {
        if points[field[at + 1u]] >= points[field[at + 2u]] {
            violated_between(0u, points[field[at]], lower, upper);
        }
    }
    for (var at = own.rest + thread; at < end; at += GROUP) {
        let sides_at = 2u * field[at];
        let middle = side_starts[sides_at + 1u];
        let one = span(side_starts[sides_at], middle, id);
        gaps(one, span(middle, side_starts[sides_at + 2u], id), lower, upper);
    }
}

// Whether a node could have more intervals than there is room for.
fn is_too_wide(own: Reads, end: u32) -> bool {
    let entries = (own.below - own.between) / 2u + (own.above - own.below) / 3u + (own.rest - own.above) / 3u;
    return entries + 3u * (end - own.rest) > MOST;
}

@compute @workgroup_size(GROUP)
fn anneal(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let id = movers[params.first + group.x];
    let own = reads[id];
    if thread == 0u {
        atomicStore(&low, 0u);
        atomicStore(&high, LAST);
        atomicStore(&n_bad, 0u);
        atomicStore(&n_marks, 1u);
        atomicStore(&cheapest, LAST);
    }
    workgroupBarrier();
    for (var at = own.before + thread; at < own.after; at += GROUP) {
        atomicMax(&low, points[field[at]]);
    }
    for (var at = own.after + thread; at < own.between; at += GROUP) {
        atomicMin(&high, points[field[at]]);
    }
    workgroupBarrier();
    let lower = atomicLoad(&low);
    let upper = atomicLoad(&high);
    // The same for all threads: there is room between the bounds, and for the intervals.
    let is_held = upper - lower < 2u || is_too_wide(own, reads[id + 1u].before);
    if !is_held {
        gather(id, thread, lower, upper);
    }
    workgroupBarrier();
    let n_intervals = atomicLoad(&n_bad);
    if thread == 0u {
        marks[0] = lower + 1u;
    }
    for (var at = thread; at < n_intervals; at += GROUP) {
        let interval = bad[at];
        if interval.x > lower + 1u {
            marks[atomicAdd(&n_marks, 1u)] = interval.x;
        }
        if interval.y < upper - 1u {
            marks[atomicAdd(&n_marks, 1u)] = interval.y + 1u;
        }
    }
    workgroupBarrier();
    let n_pieces = select(atomicLoad(&n_marks), 0u, is_held);
    // A piece goes from its mark to the next. Of equal marks the first has the piece.
    for (var at = thread; at < n_pieces; at += GROUP) {
        let start = marks[at];
        var next = upper;
        for (var other = 0u; other < n_pieces; other++) {
            let mark = marks[other];
            if mark > start {
                next = min(next, mark);
            } else if mark == start && other < at {
                next = start;
                break;
            }
        }
        var cost = 0u;
        for (var other = 0u; other < n_intervals; other++) {
            let interval = bad[other];
            cost += select(0u, 1u, interval.x <= start && start <= interval.y);
        }
        masses[at] = vec2(cost, next - start);
        if next > start {
            atomicMin(&cheapest, cost);
        }
    }
    workgroupBarrier();
    let at_least = atomicLoad(&cheapest);
    for (var at = thread; at < n_pieces; at += GROUP) {
        let piece = masses[at];
        let above = piece.x - min(piece.x, at_least);
        var weight = 0u;
        if above < N_WEIGHTS {
            weight = weights[params.sweep * N_WEIGHTS + above];
        }
        masses[at] = product(piece.y, weight);
    }
    workgroupBarrier();
    var total = vec2(0u, 0u);
    for (var other = 0u; other < n_pieces; other++) {
        total = sum(total, masses[other]);
    }
    // A share of the total: (random · total) / 2^32.
    let chance = random(id, 0u);
    let drawn = sum(product(chance, total.x), vec2(0u, product(chance, total.y).x));
    for (var at = thread; at < n_pieces; at += GROUP) {
        let mass = masses[at];
        var before = vec2(0u, 0u);
        for (var other = 0u; other < n_pieces; other++) {
            if marks[other] < marks[at] {
                before = sum(before, masses[other]);
            }
        }
        let is_drawn = !is_below(drawn, before) && is_below(drawn, sum(before, mass));
        if is_drawn {
            var next = upper;
            for (var other = 0u; other < n_pieces; other++) {
                if marks[other] > marks[at] {
                    next = min(next, marks[other]);
                }
            }
            points[id] = marks[at] + product(random(id, 1u), next - marks[at]).x;
        }
    }
}

fn holds(start: u32, end: u32) -> bool {
    for (var at = start; at < end; at++) {
        let edge = sides[at];
        if points[edge.x] >= points[edge.y] {
            return false;
        }
    }
    return true;
}

@compute @workgroup_size(GROUP)
fn count(@builtin(global_invocation_id) global: vec3<u32>) {
    let constraint = params.first + global.x;
    if constraint >= params.end {
        return;
    }
    let middle = side_starts[2u * constraint + 1u];
    let is_met = holds(side_starts[2u * constraint], middle) || holds(middle, side_starts[2u * constraint + 2u]);
    if !is_met {
        atomicAdd(&violated[params.sweep], 1u);
    }
}

@compute @workgroup_size(GROUP)
fn keep(@builtin(global_invocation_id) global: vec3<u32>) {
    let id = params.first + global.x;
    let now = atomicLoad(&violated[params.sweep]);
    var before = LAST;
    if params.sweep > 0u {
        before = least[params.sweep - 1u];
    }
    if id == 0u {
        least[params.sweep] = min(now, before);
    }
    if id < params.end && now < before {
        best[id] = points[id];
    }
}
