//! Counts which edges of the program ran, in a build for it (`make fuzz`; scripts/with-coverage): LLVM gives every edge
//! a counter of one byte and the address of its code (`SanitizerCoverage`).

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Start addresses and lengths of the counters and the code addresses.
static COUNTERS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
static PLACES: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

fn note(part: &[AtomicUsize; 2], start: usize, n: usize) {
    part[0].store(start, Ordering::Relaxed);
    part[1].store(n, Ordering::Relaxed);
}

// LLVM calls these two functions by name before `main`, with the whole linked tables.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *const u8, stop: *const u8) {
    note(&COUNTERS, start as usize, stop as usize - start as usize);
}

#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_pcs_init(start: *const [usize; 2], stop: *const [usize; 2]) {
    let size = size_of::<[usize; 2]>();
    let n_places = (stop as usize - start as usize) / size;
    note(&PLACES, start as usize, n_places);
}

/// Address and number of the counters; zero in a build without them.
fn counters() -> (*mut u8, usize) {
    let [start, n] = COUNTERS.each_ref().map(|it| it.load(Ordering::Relaxed));
    (start as *mut u8, n)
}

/// An address in each edge's code, and whether the edge enters a function.
fn places() -> &'static [[usize; 2]] {
    let [start, n] = PLACES.each_ref().map(|it| it.load(Ordering::Relaxed));
    if n == 0 {
        return &[];
    }
    // A table written by the compiler.
    #[allow(unsafe_code)]
    unsafe {
        std::slice::from_raw_parts(start as *const [usize; 2], n)
    }
}

/// Whether edges are counted.
pub fn is_counted() -> bool {
    counters().1 > 0
}

/// Counters skipped at a time if none of them counted.
const BLOCK: usize = 64;

/// The edges that executions reached, each with a rough count per execution.
#[derive(Default)]
pub struct Reached {
    by_edge: Vec<u8>,
    last: Vec<u8>,
}

impl Reached {
    /// Clears the counts from before an execution.
    pub fn begin() {
        let (start, n) = counters();
        // The program's own memory. A thread that counts at the same time loses a count.
        #[allow(unsafe_code)]
        unsafe {
            std::ptr::write_bytes(start, 0, n);
        }
    }

    /// Whether the last execution reached a new edge, or one more often than any before.
    pub fn add(&mut self) -> bool {
        let (start, n) = counters();
        self.by_edge.resize(n, 0);
        self.last.resize(n, 0);
        // As above; `last` has the same length.
        #[allow(unsafe_code)]
        unsafe {
            std::ptr::copy_nonoverlapping(start, self.last.as_mut_ptr(), n);
        }
        let mut is_new = false;
        let blocks = self.last.chunks(BLOCK).zip(self.by_edge.chunks_mut(BLOCK));
        for (last, seen) in blocks.filter(|it| *it.0 != [0; BLOCK][..it.0.len()]) {
            for (&n, seen) in last.iter().zip(seen) {
                // Buckets: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more.
                let often = match n {
                    0 => continue,
                    1..=3 => 1 << (n - 1),
                    4..=7 => 8,
                    8..=15 => 16,
                    16..=31 => 32,
                    32..=127 => 64,
                    _ => 128,
                };
                is_new |= *seen & often == 0;
                *seen |= often;
            }
        }
        is_new
    }

    /// Number of edges reached.
    pub fn n_edges(&self) -> usize {
        self.by_edge.iter().filter(|&&it| it > 0).count()
    }

    /// Edges reached, and all edges, in functions whose names contain one of these words.
    pub fn within(&self, functions: &Functions, words: &[&str]) -> (usize, usize) {
        let (mut n_reached, mut n_all) = (0, 0);
        for (place, &reached) in places().iter().zip(&self.by_edge) {
            let name = functions.name(place[0]);
            if words.iter().any(|it| name.contains(it)) {
                n_all += 1;
                n_reached += usize::from(reached > 0);
            }
        }
        (n_reached, n_all)
    }
}

/// The functions of this program by address, from `nm`.
pub struct Functions {
    by_address: BTreeMap<usize, String>,
}

impl Functions {
    pub fn read() -> Option<Functions> {
        let program = std::env::current_exe().ok()?;
        let listed = Command::new("nm").arg("-C").arg(program).output().ok()?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let mut by_address = BTreeMap::new();
        for line in listed.lines() {
            let mut words = line.splitn(3, ' ');
            let address = usize::from_str_radix(words.next()?, 16);
            if let (Ok(address), Some("t" | "T" | "w" | "W"), Some(name)) =
                (address, words.next(), words.next())
            {
                by_address.insert(address, name.to_owned());
            }
        }
        // The program is loaded at other addresses than the file has.
        let ours = by_address
            .iter()
            .find(|it| it.1 == "__sanitizer_cov_pcs_init");
        let moved = (__sanitizer_cov_pcs_init as *const () as usize).wrapping_sub(*ours?.0);
        let by_address = by_address
            .into_iter()
            .map(|(at, name)| (at.wrapping_add(moved), name));
        Some(Functions {
            by_address: by_address.collect(),
        })
    }

    fn name(&self, address: usize) -> &str {
        let before = self.by_address.range(..=address).next_back();
        before.map_or("", |it| it.1)
    }
}
