//! Resident size of the process, its peak, and its limit, as the system reports them.

use kingsnake_studies::machine;

/// A history of so many bytes is worth huge pages. Those of a smaller one would mostly be cleared for nothing.
#[cfg(target_os = "linux")]
const LARGE: u64 = 64 << 20;

/// The resident size of this process, in bytes; `None` if the system does not report it.
pub fn resident() -> Option<u64> {
    memory_stats::memory_stats().map(|stats| stats.physical_mem as u64)
}

/// The peak resident size, in bytes; `None` if the system does not report it.
pub fn peak() -> Option<u64> {
    machine::peak_of(std::process::id())
}

/// Counts the largest resident size anew, where the system lets it.
pub fn forget_peak() {
    if cfg!(target_os = "linux") {
        let _ = std::fs::write("/proc/self/clear_refs", "5");
    }
}

/// What new structures may take without swapping, in bytes; `None` where the system does not tell.
pub fn available() -> Option<u64> {
    machine::available()
}

/// Asks the system for huge pages, where so many bytes are about to be read: large structures are read all over, and would wait for the
/// tables of pages. A system that refuses changes nothing.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)] // The allocator and the system are C libraries; there is no other way to tell them.
pub fn expect(bytes: u64) {
    /// `mi_option_allow_large_os_pages`.
    const LARGE_PAGES: libc::c_int = 6;
    unsafe extern "C" {
        fn mi_option_enable(option: libc::c_int);
    }
    if bytes < LARGE {
        return;
    }
    // SAFETY: the allocator is linked, and takes an option at any time: it counts for what is asked of the system from now on.
    unsafe { mi_option_enable(LARGE_PAGES) };
    let own = Box::new(0_u8);
    let place = std::ptr::from_ref(&*own).addr();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    if let Some((start, end)) = maps.lines().find_map(|line| mapping(line, place)) {
        // SAFETY: this is advice about memory that is mapped, and changes nothing of what it holds.
        unsafe {
            libc::madvise(
                std::ptr::without_provenance_mut(start),
                end - start,
                libc::MADV_HUGEPAGE,
            );
        }
    }
}

/// Huge pages are left to the system.
#[cfg(not(target_os = "linux"))]
pub fn expect(_: u64) {}

/// The mapping of a line of `/proc/self/maps`, if it holds a place.
#[cfg(target_os = "linux")]
fn mapping(line: &str, place: usize) -> Option<(usize, usize)> {
    let (start, rest) = line.split_once('-')?;
    let (end, _) = rest.split_once(' ')?;
    let number = |digits| usize::from_str_radix(digits, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    (start..end).contains(&place).then_some((start, end))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_in_its_mapping_alone() {
        let line = "7f10a0000000-7f10e0000000 rw-p 00000000 00:00 0";
        let found = (0x7f10_a000_0000, 0x7f10_e000_0000);
        assert_eq!(mapping(line, 0x7f10_a000_0000), Some(found));
        assert_eq!(mapping(line, 0x7f10_e000_0000), None);
        assert_eq!(mapping("no mapping", 1), None);
    }

    #[test]
    fn asking_for_huge_pages_keeps_what_is_held() {
        let held: Vec<u64> = (0..1 << 20).collect();
        expect(u64::MAX);
        let more: Vec<u64> = (0..1 << 20).collect();
        assert!(held == more);
    }
}
