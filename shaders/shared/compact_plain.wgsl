// Compaction without subgroups: a prefix sum over the workgroup, and one atomic for all its threads.

var<workgroup> sums: array<u32, THREADS>;
var<workgroup> claimed: u32;

// Claims `count` places of a list for each thread, and says where they start. All threads must call it.
fn claim(list: u32, count: u32, thread: u32) -> u32 {
    sums[thread] = count;
    workgroupBarrier();
    for (var step = 1u; step < THREADS; step <<= 1u) {
        var before = 0u;
        if thread >= step {
            before = sums[thread - step];
        }
        workgroupBarrier();
        sums[thread] += before;
        workgroupBarrier();
    }
    if thread == THREADS - 1u {
        claimed = atomicAdd(&counters[list], sums[thread]);
    }
    workgroupBarrier();
    let start = claimed + sums[thread] - count;
    workgroupBarrier();
    return start;
}
