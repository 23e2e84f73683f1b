// Compaction with subgroups: a prefix sum in registers, and one atomic for each subgroup.

// Claims `count` places of a list for each thread, and says where they start. All threads must call it.
fn claim(list: u32, count: u32, thread: u32) -> u32 {
    let before = subgroupExclusiveAdd(count);
    let total = subgroupAdd(count);
    var start = 0u;
    if thread == subgroupBroadcastFirst(thread) {
        start = atomicAdd(&counters[list], total);
    }
    return subgroupBroadcastFirst(start) + before;
}
