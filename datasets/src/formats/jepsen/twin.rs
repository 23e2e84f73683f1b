//! The fast reader of Jepsen's events against the general one: on generated logs, on logs with odd but legal forms, and on logs
//! with damaged bytes, both must read the same history or both refuse it. So must a reader in many small parts and one in a
//! single part.

use std::path::Path;

use kingsnake_history::budget::Budget;
use kingsnake_history::model::HistoryBuilder;
use kingsnake_history::rng::Rng;

use super::datum::Dialect;
use super::{Reading, Way, read_by};
use crate::cursor::Input;
use crate::store::StoreRun;
use crate::workloads::{self, Parameters};
use crate::writers;

/// What a reader makes of a log: the history in our own format and the warnings, or the error with its line.
type Made = Result<(String, Vec<String>), String>;

fn read(way: Way, bytes: &[u8], is_json: bool) -> Made {
    read_in_parts(way, usize::MAX, bytes, is_json)
}

fn read_in_parts(way: Way, part_size: usize, bytes: &[u8], is_json: bool) -> Made {
    let mut builder = HistoryBuilder::new();
    let mut warnings = Vec::new();
    let input = Input {
        file: Path::new("log"),
        bytes,
        budget: &Budget::unlimited(),
        map: None,
    };
    let reading = Reading {
        input,
        dialect: if is_json { Dialect::Json } else { Dialect::Edn },
        way,
        part_size,
    };
    read_by(reading, false, &mut builder, &mut warnings).map_err(|error| error.to_string())?;
    let history = builder.finish().map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    writers::kingsnake_bytes(&history, &mut text).expect("memory can be written");
    let text = String::from_utf8(text).expect("our format is text");
    Ok((text, warnings))
}

/// Whether a reader agrees with the general one.
fn agrees(way: Way, bytes: &[u8], is_json: bool) -> bool {
    read(way, bytes, is_json) == read(Way::General, bytes, is_json)
}

fn generated(name: &str, format: crate::Format, seed: u64) -> Vec<u8> {
    let parameters = Parameters {
        n_keys: Some(12),
        ..Parameters::default()
    };
    let workload = workloads::find(name).unwrap().make(&parameters).unwrap();
    let run = StoreRun {
        n_txns: 12,
        n_clients: 3,
        keep_aborted: true,
        seed,
        ..StoreRun::default()
    };
    let times = seed.is_multiple_of(2);
    let history = run.run(&*workload).unwrap().history(false, times).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    crate::write(&history, format, &path).unwrap();
    std::fs::read(path).unwrap()
}

/// Forms that clients of Jepsen write; some only the general reader takes, some neither does.
const LINES: &[&str] = &[
    "{:type :invoke, :f :txn, :value [[:r 1 nil] [:append 2 3]], :process 0, :time 5, :index 0}",
    "{:type :ok :f :txn :value [[:r 1 [1 2]] [:append 2 3]] :process 0 :time 9 :index 1}",
    "{:index 2, :process 1, :value [[:w :x 7] [:r :y nil]], :f :txn, :type :invoke}",
    "{:index 3, :process 1, :value [[:w :x 7] [:r :y 4]], :f :txn, :type :ok}",
    "{:type :info, :f :txn, :value nil, :process 0, :time 11}",
    "{:type :fail, :f :txn, :value [[:w 1 8]], :process 2, :error [:timeout \"a\"]}",
    "{:type :invoke, :f :txn, :value [[:w 1 8]], :process 2}",
    "{:type :ok, :type :fail, :f :txn, :value [[:w 1 9]], :process 3}",
    "{:type :ok, :f :txn, :value [[:w 1 9]], :value [[:w 1 10]], :process 3}",
    "{:type :ok, :f :txn, :value [], :process 4}",
    "{:type :invoke, :f :read, :value nil, :process 5}",
    "{:type :ok, :f :read, :value [3 4], :process 5}",
    "{:type :invoke, :f :cas, :value [3 [4 5]], :process 6}",
    "{:type :ok, :f :cas, :value [3 [4 5]], :process 6}",
    "{:type :info, :f :start, :process :nemesis, :value [:isolated {}]}",
    "#jepsen.history.Op{:type :ok, :f :txn, :value [[:r 1 [1]]], :process 7}",
    "{:type :ok, :f :txn, :value ([:r 1 [1]]), :process 7} ; a comment",
    "{:type :ok, :f :txn, :value [[:r \"a b\" [1]]], :process 7}",
    "{:type :ok, :f :txn, :value [[:r 1 [1 -2 3]] [:r 2 []]], :process 8, :node \"n1\"}",
    "{:type :ok, :f :txn, :value [[:rp 1 2]], :process 8}",
    "{:type :ok, :f :txn, :value [[:rp [:mod 2 1] {1 3, 2 5}] [:insert 4 6] [:delete 2]], :process 8}",
    "{:type :ok, :f :init, :value {1 3, 2 5}, :process 8}",
    "{:type :ok, :f :txn, :value [[:w 1 99999999999999999999]], :process 8}",
    "{:type :ok, :f :txn, :value [1 [[:w 1 12]]], :process 9}",
    "{:type :ok, :f :txn, :value [[:w 1 1.5]], :process 9}",
    "{:type :ok, :f :txn, :value [[:w 1 13]], :process 9, :time 1.5}",
    "{:type :ok, :f nil, :value [[:w 1 14]], :process nil}",
    "{:type :ok, :value [[:w 1 15]], :process 10, :index -3}",
    "#jepsen.history.Op{:index 4, :type :invoke, :f :txn, :value [[:r 1 nil]], :process 11}",
    "{:type :ok, :f :txn, :value [[:r 1 [1 2 3]] [:r 1 [1 2 34]] [:r 1 [1 2]]], :process 11}",
    "{:type :ok, :f :txn, :value [[:r 1 [1, 2, 3,]] [:r 1 [1 2 3 4]] [:r 2 [1]] [:r 1 [ ]]], :process 11}",
    "{:type :ok, :f :txn, :value [[:r 1 [1 2 \"a\"]]], :process 12}",
    "{:type :info,\n :f :start, :process :nemesis, :value\n{:a {:b 1}}\n}",
    "#_ {:type :ok, :f :txn, :value [[:w 1 16]],\n{:type :ok, :f :txn, :value [[:w 1 17]], :process 1} :process 13}",
    "; {:type\n{:type :ok, :f :txn, :value [[:r 1 [1 2 3 4 5]] [:r :x [1 2]]], :process 14}",
    "{:type :fail, :f :txn, :error \"a\n{:type :ok, :f :txn, :value [[:w 1 18]], :process 1}\", :process 15}",
];

fn odd(rng: &mut Rng) -> Vec<u8> {
    let n_lines = 1 + rng.below(8);
    let lines: Vec<&str> = (0..n_lines)
        .filter_map(|_| rng.pick(LINES).copied())
        .collect();
    let text = lines.join(if rng.below(2) == 0 { "\n" } else { " " });
    match rng.below(6) {
        0 => format!("[{text}]").into_bytes(),
        1 => format!("({text}\n)").into_bytes(),
        _ => text.into_bytes(),
    }
}

/// What an invocation asked is passed over where its completion repeats it, so what is wrong there goes unnoticed: the one
/// difference that is meant.
fn is_within_invocation(bytes: &[u8], at: usize) -> bool {
    let start = bytes[..at].iter().rposition(|&it| it == b'{').unwrap_or(0);
    let end = bytes[at..].iter().position(|&it| it == b'}');
    let event = &bytes[start..end.map_or(bytes.len(), |end| at + end)];
    event.windows(6).any(|it| it == b"invoke")
}

/// Changes, removes or doubles a few bytes.
fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) {
    const BYTES: &[u8] = b"[](){}:\"' ,;#-0179nilrwokx.\n\\";
    for _ in 0..=rng.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.below(bytes.len());
        if is_within_invocation(bytes, at) {
            continue;
        }
        match rng.below(4) {
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(at, BYTES[rng.below(BYTES.len())]),
            2 => bytes.insert(at, bytes[at]),
            _ => bytes[at] = BYTES[rng.below(BYTES.len())],
        }
    }
}

fn logs(n_logs: u64, mut check: impl FnMut(&[u8], bool)) {
    let mut rng = Rng::new(15);
    let mut whole = Vec::new();
    for seed in 0..12 {
        for name in ["mini", "list-append", "blindw-rw"] {
            for (format, is_json) in [
                (crate::Format::JepsenEdn, false),
                (crate::Format::JepsenJson, true),
            ] {
                whole.push((generated(name, format, seed), is_json));
            }
        }
    }
    for (bytes, is_json) in &whole {
        check(bytes, *is_json);
    }
    for _ in 0..n_logs {
        let (mut bytes, is_json) = match rng.below(3) {
            0 => whole[rng.below(whole.len())].clone(),
            _ => (odd(&mut rng), false),
        };
        if rng.below(4) > 0 {
            damage(&mut bytes, &mut rng);
        }
        check(&bytes, is_json);
    }
}

#[test]
fn the_fast_reader_means_what_the_general_one_means() {
    let (mut n_read, mut n_refused) = (0, 0);
    logs(12_000, |bytes, is_json| {
        let fast = read(Way::Fast, bytes, is_json);
        let general = read(Way::General, bytes, is_json);
        assert_eq!(fast, general, "{}", String::from_utf8_lossy(bytes));
        match fast {
            Ok(_) => n_read += 1,
            Err(_) => n_refused += 1,
        }
    });
    assert!(
        n_read > 2_000 && n_refused > 2_000,
        "{n_read} read, {n_refused} refused"
    );
}

#[test]
fn a_fast_reader_with_a_mistake_is_found_out() {
    let mut n_found = 0;
    logs(2_000, |bytes, is_json| {
        n_found += usize::from(!agrees(Way::Hasty, bytes, is_json));
    });
    assert!(n_found > 0);
}

#[test]
fn a_log_read_in_small_parts_is_the_log_read_in_one() {
    let mut rng = Rng::new(16);
    let (mut n_read, mut n_refused) = (0, 0);
    logs(8_000, |bytes, is_json| {
        let part_size = 1 + rng.below(300);
        let parts = read_in_parts(Way::Fast, part_size, bytes, is_json);
        let whole = read(Way::General, bytes, is_json);
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(parts, whole, "in parts of {part_size} bytes:\n{text}");
        match parts {
            Ok(_) => n_read += 1,
            Err(_) => n_refused += 1,
        }
    });
    assert!(
        n_read > 1_000 && n_refused > 1_000,
        "{n_read} read, {n_refused} refused"
    );
}

#[test]
fn a_reader_that_trusts_where_parts_begin_is_found_out() {
    let mut n_found = 0;
    logs(2_000, |bytes, is_json| {
        let parts = read_in_parts(Way::Trusting, 40, bytes, is_json);
        n_found += usize::from(parts != read(Way::Fast, bytes, is_json));
    });
    assert!(n_found > 0);
}
