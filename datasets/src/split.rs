//! Splits a file into parts that several threads read.

use std::ops::Range;

/// Minimum size of a part: smaller ones do not justify a thread.
const LEAST: usize = 1 << 20;

/// Number of parts per thread, so that no thread waits long for the last one.
const PARTS_A_THREAD: usize = 4;

/// About how many bytes a part of a file of this size has.
pub(crate) fn part_size(n_bytes: usize) -> usize {
    if n_bytes <= LEAST {
        // Asking for their number starts rayon's threads.
        return LEAST;
    }
    let n_parts = PARTS_A_THREAD * rayon::current_num_threads();
    n_bytes.div_ceil(n_parts).max(LEAST)
}

/// The parts of a file: each but the first begins where `begins` finds that a record begins, at or after a place. They
/// are contiguous and cover the file; an empty file is one part.
pub(crate) fn split(
    n_bytes: usize,
    part_size: usize,
    begins: impl Fn(usize) -> Option<usize>,
) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut start = 0;
    while n_bytes - start > part_size {
        let Some(next) = begins(start + part_size) else {
            break;
        };
        parts.push(start..next);
        start = next;
    }
    parts.push(start..n_bytes);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_a_file_and_begin_with_records() {
        let bytes = b"one\ntwo\nthree\nfour\n";
        let line = |at: usize| {
            let end = bytes[at..].iter().position(|&it| it == b'\n')?;
            Some(at + end + 1).filter(|&next| next < bytes.len())
        };
        for size in 1..30 {
            let parts = split(bytes.len(), size, line);
            assert_eq!(parts[0].start, 0);
            assert_eq!(parts[parts.len() - 1].end, bytes.len());
            for pair in parts.windows(2) {
                assert_eq!(pair[0].end, pair[1].start);
                assert_eq!(bytes[pair[1].start - 1], b'\n');
                assert!(pair[0].len() >= size);
            }
        }
        assert_eq!(split(0, 1, |_| None), vec![Range { start: 0, end: 0 }]);
    }
}
