// prune: for two runs a, b of one key, a cannot come before b if begin(head b) reaches commit(last a), or commit(head b)
// reaches the begin of a reader of a. If one order is impossible, the edges of the other that no path implies are forced.
//
// A dispatch sees one band of the matrix, and a question is asked in the band of its column. What is impossible is
// collected over all bands, two bits per pair: by `judge`, one thread per pair, or by `judge_rows`, one workgroup per run, with
// the run's two rows in workgroup memory, which reads less where a key has many runs. Then `emit` lists the edges, each in
// the one band that holds its column, and after the last band the pairs that are still open. The lists are unordered; the
// host sorts them.

struct Run {
    head_begin: u32,
    head_commit: u32,
    last_commit: u32,
    // The readers of the last version, in `lists`.
    readers: u32,
    readers_end: u32,
    is_unread: u32,
    // The runs of its key.
    first: u32,
    end: u32,
}

struct Params {
    shape: Shape,
    // The items from first on, as many as the dispatch has threads, but not beyond the end. Those of `judge_rows` are runs.
    first: u32,
    end: u32,
    n_runs: u32,
    mode: u32,
}

// The items are pairs listed in `open`; else item i is pair i.
const LISTED: u32 = 1u;
// The dispatch is the last that sees these items.
const LAST_BAND: u32 = 2u;
// All items are open; list the edges that paths imply, both ways round.
const IMPLIED: u32 = 4u;
// The listed items are in the upper half of `open`, and those that stay open go to the lower; else the other way round.
const UPPER: u32 = 8u;

// Places in `counters`.
const EDGES: u32 = 0u;
const OPEN: u32 = 1u;
const VIOLATIONS: u32 = 2u;
const VIOLATED: u32 = 4u;
const MOST_VIOLATED: u32 = 60u;

// Set in the second word of an edge where the pair's first run comes before the second.
const FIRST_BEFORE: u32 = 0x80000000u;

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> band: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> strips: array<Strip>;
@group(0) @binding(3) var<storage, read> runs: array<Run>;
// For each run its first pair, then the number of pairs, then the places where readers begin.
@group(0) @binding(4) var<storage, read> lists: array<u32>;
// For each 32 pairs, which cannot be ordered first to second, and which not second to first.
@group(0) @binding(5) var<storage, read_write> impossible: array<atomic<u32>>;
// The open pairs in one half, those that stay open in the other.
@group(0) @binding(6) var<storage, read_write> open: array<u32>;
@group(0) @binding(7) var<storage, read_write> counters: array<atomic<u32>>;
@group(0) @binding(8) var<storage, read_write> edges: array<vec2<u32>>;

fn is_here(column: u32) -> bool {
    return strip_of(params.shape, column) < params.shape.n_strips;
}

// Whether there is a path, as far as this band knows.
fn reaches(row: u32, column: u32) -> bool {
    let strip = strip_of(params.shape, column);
    if strip >= params.shape.n_strips || row >= strips[params.shape.first_strip + strip].limit {
        return false;
    }
    let bits = band[quad_at(params.shape, strip, row, quad_of(params.shape, column))];
    return any((bits & bit_of(column)) != vec4<u32>(0u));
}

// Where a half of `open` starts.
fn half(is_upper: bool) -> u32 {
    return select(0u, arrayLength(&open) / 2u, is_upper);
}

fn item_pair(item: u32) -> u32 {
    if (params.mode & LISTED) != 0u {
        return open[half((params.mode & UPPER) != 0u) + item];
    }
    return item;
}

// The first run of a pair: the last one whose pairs start at or before it.
fn first_run(pair: u32) -> u32 {
    var low = 0u;
    var high = params.n_runs;
    while high - low > 1u {
        let middle = (low + high) >> 1u;
        if lists[middle] <= pair {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

fn is_impossible(before: Run, after: Run) -> bool {
    if reaches(after.head_begin, before.last_commit) {
        return true;
    }
    for (var at = before.readers; at < before.readers_end; at++) {
        if reaches(after.head_commit, lists[at]) {
            return true;
        }
    }
    return false;
}

// Notes that a pair cannot be ordered one way: 0 is first to second, 1 second to first.
fn note(pair: u32, way: u32) {
    atomicOr(&impossible[(pair >> 5u) * 2u + way], 1u << (pair & 31u));
}

@compute @workgroup_size(THREADS)
fn judge(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let item = params.first + group.x * THREADS + thread;
    if item >= params.end {
        return;
    }
    let pair = item_pair(item);
    let first = first_run(pair);
    let one = runs[first];
    let other = runs[first + 1u + pair - lists[first]];
    if is_impossible(one, other) {
        note(pair, 0u);
    }
    if is_impossible(other, one) {
        note(pair, 1u);
    }
}

// The threads of `judge_rows`, and the quads of a row that it has in workgroup memory at once.
const GROUP: u32 = 64u;
const PIECE: u32 = 256u;
var<workgroup> begin_row: array<vec4<u32>, PIECE>;
var<workgroup> commit_row: array<vec4<u32>, PIECE>;

// A quad of a row, counted over the strips of the band.
fn row_quad(row: u32, at: u32) -> vec4<u32> {
    let shift = params.shape.strip_shift - 2u;
    let strip = at >> shift;
    if strip >= params.shape.n_strips || row >= strips[params.shape.first_strip + strip].limit {
        return vec4<u32>(0u);
    }
    return band[quad_at(params.shape, strip, row, at & ((1u << shift) - 1u))];
}

// Where a column's quad is in the piece that starts at a quad: PIECE or more where it is not.
fn in_piece(column: u32, piece: u32) -> u32 {
    return (column >> 7u) - (params.shape.first_strip << (params.shape.strip_shift - 2u)) - piece;
}

// Whether the run whose rows are in workgroup memory cannot come after another, as far as this piece knows.
fn cannot_follow(other: Run, piece: u32) -> bool {
    let last = in_piece(other.last_commit, piece);
    if last < PIECE && any((begin_row[last] & bit_of(other.last_commit)) != vec4<u32>(0u)) {
        return true;
    }
    for (var at = other.readers; at < other.readers_end; at++) {
        let reader = lists[at];
        let place = in_piece(reader, piece);
        if place < PIECE && any((commit_row[place] & bit_of(reader)) != vec4<u32>(0u)) {
            return true;
        }
    }
    return false;
}

@compute @workgroup_size(GROUP)
fn judge_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let own = params.first + group.x;
    let run = runs[own];
    let n_quads = params.shape.n_strips << (params.shape.strip_shift - 2u);
    for (var piece = 0u; piece < n_quads; piece += PIECE) {
        workgroupBarrier();
        for (var at = thread; at < PIECE; at += GROUP) {
            let bits = row_quad(run.head_begin, piece + at);
            begin_row[at] = bits;
            if run.head_commit == run.head_begin {
                commit_row[at] = bits;
            } else {
                commit_row[at] = row_quad(run.head_commit, piece + at);
            }
        }
        workgroupBarrier();
        for (var other = run.first + thread; other < run.end; other += GROUP) {
            if other == own || !cannot_follow(runs[other], piece) {
                continue;
            }
            if other < own {
                note(lists[other] + own - other - 1u, 0u);
            } else {
                note(lists[own] + other - own - 1u, 1u);
            }
        }
    }
}

// Lists the edges of one run before another that paths imply or do not, from a place on; without a place, only counts.
fn list_side(pair: u32, before: Run, after: Run, way: u32, implied: bool, start: u32) -> u32 {
    var count = 0u;
    if is_here(after.head_begin) && reaches(before.last_commit, after.head_begin) == implied {
        put(start, count, vec2<u32>(pair, way));
        count++;
    }
    if is_here(after.head_commit) {
        for (var at = before.readers; at < before.readers_end; at++) {
            let reader = lists[at];
            if reader != after.head_begin && reaches(reader, after.head_commit) == implied {
                put(start, count, vec2<u32>(pair, way | (at - before.readers + 1u)));
                count++;
            }
        }
    }
    return count;
}

fn put(start: u32, count: u32, edge: vec2<u32>) {
    if start != NONE && start + count < arrayLength(&edges) {
        edges[start + count] = edge;
    }
}

// The edges of a pair, those of its second run before its first in front.
fn list_pair(pair: u32, one: Run, other: Run, ways: vec2<bool>, start: u32) -> u32 {
    let implied = (params.mode & IMPLIED) != 0u;
    var count = 0u;
    if ways.x {
        count = list_side(pair, other, one, 0u, implied, start);
    }
    if ways.y {
        let next = select(start + count, NONE, start == NONE);
        count += list_side(pair, one, other, FIRST_BEFORE, implied, next);
    }
    return count;
}

@compute @workgroup_size(THREADS)
fn emit(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let item = params.first + group.x * THREADS + thread;
    var pair = 0u;
    var one: Run;
    var other: Run;
    // Second before first, first before second.
    var ways = vec2<bool>(false, false);
    var is_open = false;
    if item < params.end {
        pair = item_pair(item);
        let first = first_run(pair);
        one = runs[first];
        other = runs[first + 1u + pair - lists[first]];
        let is_constraint = (one.is_unread & other.is_unread) == 0u;
        if (params.mode & IMPLIED) != 0u {
            ways = vec2<bool>(true, true);
        } else if is_constraint {
            let word = (pair >> 5u) * 2u;
            let words = vec2<u32>(atomicLoad(&impossible[word]), atomicLoad(&impossible[word + 1u]));
            let bits = words >> vec2<u32>(pair & 31u);
            ways = (bits & vec2<u32>(1u)) == vec2<u32>(1u);
            is_open = !any(ways);
        }
    }
    let count = list_pair(pair, one, other, ways, NONE);
    let start = claim(EDGES, count, thread);
    if count > 0u {
        list_pair(pair, one, other, ways, start);
    }
    if (params.mode & (LAST_BAND | IMPLIED)) == LAST_BAND {
        let place = claim(OPEN, select(0u, 1u, is_open), thread);
        if is_open && place < arrayLength(&open) / 2u {
            open[half((params.mode & UPPER) == 0u) + place] = pair;
        }
        if all(ways) {
            let at = atomicAdd(&counters[VIOLATIONS], 1u);
            if at < MOST_VIOLATED {
                atomicStore(&counters[VIOLATED + at], pair);
            }
        }
    }
}
