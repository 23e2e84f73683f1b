//! How far repairing the order goes: random serial histories without session order, pruned by reachability, then decided.
//!
//! `cargo run --release -p kingsnake-encodings --example planted -- TXNS KEYS READ_PERCENT [SEED] [repair|surest|vsids] [TIMEOUT_S]`

// An example is a program of its own and may print.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_context::rng::Rng;
use kingsnake_encodings::{BACKENDS, BackendOptions, Decide, PropagatorOptions, backend};
use kingsnake_graph::decide::{Constraints, Decision, Question};
use kingsnake_graph::{Edge, Reason};

/// For each pair of transactions, the edges that follow from either coming first.
type Pairs = BTreeMap<(u32, u32), [Vec<(u32, u32)>; 2]>;

/// A serial history of blind reads and writes; the names of the transactions are shuffled.
fn history(
    n_txns: usize,
    n_keys: usize,
    read_percent: usize,
    random: &mut Rng,
) -> (Vec<(u32, u32)>, Pairs) {
    let mut name: Vec<u32> = (0..n_txns as u32).collect();
    for i in (1..n_txns).rev() {
        name.swap(i, random.below(i + 1));
    }
    let mut versions: Vec<Vec<(u32, Vec<u32>)>> = vec![Vec::new(); n_keys];
    let mut first_readers: Vec<Vec<u32>> = vec![Vec::new(); n_keys];
    for &txn in &name {
        for _ in 0..8 {
            let key = random.below(n_keys);
            let latest = versions[key].last_mut();
            if random.below(100) < read_percent {
                match latest {
                    None => first_readers[key].push(txn),
                    Some((writer, readers)) if *writer != txn && !readers.contains(&txn) => {
                        readers.push(txn);
                    }
                    Some(_) => {}
                }
            } else if latest.is_none_or(|(writer, _)| *writer != txn) {
                versions[key].push((txn, Vec::new()));
            }
        }
    }
    let (mut known, mut pairs) = (Vec::new(), Pairs::new());
    for (versions, first) in versions.iter().zip(&first_readers) {
        for (at, (writer, readers)) in versions.iter().enumerate() {
            known.extend(readers.iter().map(|&reader| (*writer, reader)));
            known.extend(first.iter().filter(|&r| r != writer).map(|&r| (r, *writer)));
            for (other, other_readers) in &versions[at + 1..] {
                if readers.is_empty() && other_readers.is_empty() {
                    continue;
                }
                let pair = (*writer.min(other), *writer.max(other));
                let sides = pairs.entry(pair).or_default();
                for (w, r, o) in [(writer, readers, other), (other, other_readers, writer)] {
                    let side = &mut sides[usize::from(w > o)];
                    side.push((*w, *o));
                    side.extend(r.iter().filter(|&r| r != o).map(|&r| (r, *o)));
                }
            }
        }
    }
    (known, pairs)
}

struct Closure {
    order: Vec<u32>,
    starts: Vec<u32>,
    targets: Vec<u32>,
    rows: Vec<u64>,
    words: usize,
}

impl Closure {
    fn of(n: usize, edges: &[(u32, u32)]) -> Closure {
        let mut starts = vec![0u32; n + 1];
        let mut waiting = vec![0u32; n];
        for &(from, to) in edges {
            starts[from as usize + 1] += 1;
            waiting[to as usize] += 1;
        }
        for i in 0..n {
            starts[i + 1] += starts[i];
        }
        let mut at = starts.clone();
        let mut targets = vec![0u32; edges.len()];
        for &(from, to) in edges {
            targets[at[from as usize] as usize] = to;
            at[from as usize] += 1;
        }
        let mut order: Vec<u32> = (0..n as u32)
            .filter(|&v| waiting[v as usize] == 0)
            .collect();
        let mut next = 0;
        while next < order.len() {
            let node = order[next] as usize;
            next += 1;
            for &to in &targets[starts[node] as usize..starts[node + 1] as usize] {
                waiting[to as usize] -= 1;
                if waiting[to as usize] == 0 {
                    order.push(to);
                }
            }
        }
        assert_eq!(
            order.len(),
            n,
            "the planted history's known graph has a cycle"
        );
        let words = n.div_ceil(64);
        let mut rows = vec![0u64; n * words];
        let mut row = vec![0u64; words];
        for &node in order.iter().rev() {
            let node = node as usize;
            row.fill(0);
            for &to in &targets[starts[node] as usize..starts[node + 1] as usize] {
                let to = to as usize;
                for (a, b) in row.iter_mut().zip(&rows[to * words..(to + 1) * words]) {
                    *a |= b;
                }
                row[to / 64] |= 1 << (to % 64);
            }
            rows[node * words..(node + 1) * words].copy_from_slice(&row);
        }
        Closure {
            order,
            starts,
            targets,
            rows,
            words,
        }
    }

    fn reaches(&self, from: u32, to: u32) -> bool {
        self.rows[from as usize * self.words + to as usize / 64] >> (to % 64) & 1 == 1
    }

    /// Ancestors minus descendants.
    fn estimate(&self) -> Vec<f32> {
        let n = self.order.len();
        let mut estimate = vec![0f32; n];
        for from in 0..n {
            for (at, &word) in self.rows[from * self.words..][..self.words]
                .iter()
                .enumerate()
            {
                estimate[from] -= word.count_ones() as f32;
                let mut bits = word;
                while bits != 0 {
                    estimate[at * 64 + bits.trailing_zeros() as usize] += 1.0;
                    bits &= bits - 1;
                }
            }
        }
        estimate
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        args.get(at)
            .and_then(|arg| arg.parse().ok())
            .unwrap_or(default)
    };
    let (n, n_keys, read_percent) = (
        number(0, 10_000) as usize,
        number(1, 10_000) as usize,
        number(2, 20) as usize,
    );
    let mut random = Rng::new(number(3, 1));
    let decide = match args.get(4).map(String::as_str) {
        Some("surest") => Decide::SurestFirst,
        Some("vsids") => Decide::Vsids,
        _ => Decide::Repair,
    };
    let started = Instant::now();
    let (mut known, mut pairs) = history(n, n_keys, read_percent, &mut random);
    let before = pairs.len();
    let closure = loop {
        let closure = Closure::of(n, &known);
        let n_known = known.len();
        pairs.retain(|_, sides| {
            let impossible =
                |side: &Vec<(u32, u32)>| side.iter().any(|&(from, to)| closure.reaches(to, from));
            match (impossible(&sides[0]), impossible(&sides[1])) {
                (false, false) => {
                    // Edges that are known already constrain nothing.
                    for side in sides.iter_mut() {
                        side.retain(|&(from, to)| !closure.reaches(from, to));
                    }
                    sides.iter().all(|side| !side.is_empty())
                }
                (either, _) => {
                    known.extend(&sides[usize::from(either)]);
                    false
                }
            }
        });
        if known.len() == n_known {
            break closure;
        }
    };
    let mut constraints = Constraints::default();
    let edge = |&(from, to): &(u32, u32)| Edge {
        from,
        to,
        reason: Reason::NONE,
    };
    for [either, or] in pairs.values() {
        constraints.push(either.iter().map(edge), or.iter().map(edge));
    }
    let estimate = closure.estimate();
    println!(
        "{n} transactions, {n_keys} keys, {read_percent} % reads: {} known edges, {before} -> {} constraints, {} edges, prepared in {:.2?}",
        known.len(),
        constraints.len(),
        constraints.n_edges(),
        started.elapsed()
    );
    let question = Question {
        n_nodes: n,
        starts: &closure.starts,
        targets: &closure.targets,
        order: &closure.order,
        constraints: &constraints,
        estimate: &estimate,
        has_choices: false,
    };
    let budget =
        Budget::unlimited().with_timeout(Instant::now(), Duration::from_secs(number(5, 120)));
    let options = BackendOptions {
        propagator: PropagatorOptions {
            decide,
            ..PropagatorOptions::default()
        },
        ..BackendOptions::default()
    };
    let mut backend = backend(BACKENDS[0], &options).expect("the default exists");
    let started = Instant::now();
    match backend.decide(question, &budget, &mut Silent) {
        Ok((decision, stats)) => {
            let word = match decision {
                Decision::Choices(_) => "met".to_owned(),
                Decision::Core(core) => format!("core of {}", core.len()),
                Decision::Unknown(reason) => format!("unknown: {reason}"),
            };
            println!("{word} in {:.2?}; {stats:?}", started.elapsed());
        }
        Err(error) => println!("{error}"),
    }
}
