//! How much memory Linux's control groups leave this process: those of version 2 and of version 1, its own and all above it.

use std::fs;
use std::path::Path;

/// The files of a version: limits, what is used, and which line of `memory.stat` can be given back at once.
struct Version {
    limits: &'static [&'static str],
    used: &'static str,
    reclaimable: &'static str,
}

const TWO: Version = Version {
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    reclaimable: "inactive_file",
};
const ONE: Version = Version {
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};

/// What is left, in bytes; `None` where no group limits it. `listing` is `/proc/self/cgroup`, `root` where groups are mounted.
pub fn room(root: &Path, listing: &str) -> Option<u64> {
    let groups = listing.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        if controllers.is_empty() {
            // Beside version 1, version 2 is mounted elsewhere.
            let beside = root.join("unified");
            let mount = if beside.is_dir() {
                beside
            } else {
                root.to_owned()
            };
            return Some((TWO, mount, path));
        }
        let is_memory = controllers.split(',').any(|it| it == "memory");
        is_memory.then(|| (ONE, root.join("memory"), path))
    });
    let left = groups.filter_map(|(version, mount, path)| {
        // In a container the path may be that of the host, which is not there; its own group is the mount then.
        let below = Path::new(path.trim_start_matches('/'));
        let all = below.ancestors().map(|it| mount.join(it));
        all.filter_map(|group| left_in(&group, &version)).min()
    });
    left.min()
}

fn left_in(group: &Path, version: &Version) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(group.join(name)).ok()?;
        text.trim().parse().ok()
    };
    // Version 1 spells no limit as a number near the largest; version 2 as a word.
    let limits = version.limits.iter().filter_map(|name| number(name));
    let limit = limits.filter(|&it| it < 1 << 60).min()?;
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let given_back = stat.lines().find_map(|line| {
        let (name, bytes) = line.split_once(' ')?;
        (name == version.reclaimable).then(|| bytes.parse::<u64>().ok())?
    });
    let used = number(version.used).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(given_back.unwrap_or(0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_tightest_group_above_counts_in_version_two() {
        let scratch = tempfile::TempDir::new().unwrap();
        let root = scratch.path();
        put(root, "a/memory.max", "1000\n");
        put(root, "a/memory.current", "900\n");
        put(root, "a/memory.stat", "anon 300\ninactive_file 500\n");
        put(root, "a/b/memory.max", "max\n");
        put(root, "a/b/memory.high", "700\n");
        put(root, "a/b/memory.current", "50\n");
        assert_eq!(room(root, "0::/a/b\n"), Some(600));
        assert_eq!(room(root, "0::/a\n"), Some(600));
        put(root, "a/b/memory.high", "500\n");
        assert_eq!(room(root, "0::/a/b\n"), Some(450));
        assert_eq!(room(root, "0::/elsewhere\n"), None);
    }

    #[test]
    fn version_one_and_a_path_of_the_host() {
        let scratch = tempfile::TempDir::new().unwrap();
        let root = scratch.path();
        put(root, "memory/memory.limit_in_bytes", "2000\n");
        put(root, "memory/memory.usage_in_bytes", "500\n");
        let listing = "5:cpu,cpuacct:/\n3:memory:/docker/0123\n0::/\n";
        assert_eq!(room(root, listing), Some(1500));
        put(
            root,
            "memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(room(root, listing), None);
    }
}
