//! No bytes make a reader panic or allocate more than a small multiple of them: random bytes, and valid files of
//! random histories with bytes flipped, cut off, doubled and moved.

mod random;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;

use kingsnake_datasets::{Format, read_bytes, write};
use kingsnake_solver::model::{History, Op, SessionId, TxnId};
use proptest::collection::vec;
use proptest::prelude::*;
use random::{Riches, histories};

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// Remembers the largest allocation of each thread.
struct Watch;

// The contract is the system allocator's own: every call is passed on unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Watch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn note(size: usize) {
    // At a thread's end its cell may be gone already; nothing is read then.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

#[global_allocator]
static WATCH: Watch = Watch;

/// Feeds bytes to every reader.
fn feed_all(bytes: &[u8]) {
    for format in Format::ALL {
        feed(format, bytes);
    }
}

fn feed(format: Format, bytes: &[u8]) {
    LARGEST.set(0);
    let answer = read_bytes(format, bytes, "fuzz");
    let largest = LARGEST.get();
    assert!(
        largest <= 64 * bytes.len() + 16_384,
        "{format}: {largest} bytes at once for {}",
        bytes.len()
    );
    match answer {
        Ok(parsed) => assert!(parsed.history.n_ops() <= bytes.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// How a file is spoilt.
#[derive(Clone, Debug)]
enum Blow {
    Set(prop::sample::Index, u8),
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Double(prop::sample::Index, usize),
    Drop(prop::sample::Index, usize),
    Insert(prop::sample::Index, Vec<u8>),
}

fn blows() -> impl Strategy<Value = Vec<Blow>> {
    let index = any::<prop::sample::Index>;
    let blow = prop_oneof![
        (index(), any::<u8>()).prop_map(|(at, byte)| Blow::Set(at, byte)),
        (index(), 0_u8..8).prop_map(|(at, bit)| Blow::Flip(at, bit)),
        index().prop_map(Blow::Cut),
        (index(), 1_usize..40).prop_map(|(at, length)| Blow::Double(at, length)),
        (index(), 1_usize..40).prop_map(|(at, length)| Blow::Drop(at, length)),
        (index(), vec(any::<u8>(), 1..12)).prop_map(|(at, bytes)| Blow::Insert(at, bytes)),
    ];
    vec(blow, 0..4)
}

fn strike(mut bytes: Vec<u8>, blows: &[Blow]) -> Vec<u8> {
    for blow in blows {
        if bytes.is_empty() {
            return bytes;
        }
        let n = bytes.len();
        match blow {
            Blow::Set(at, byte) => bytes[at.index(n)] = *byte,
            Blow::Flip(at, bit) => bytes[at.index(n)] ^= 1 << bit,
            Blow::Cut(at) => bytes.truncate(at.index(n)),
            Blow::Double(at, length) => {
                let at = at.index(n);
                let piece = bytes[at..(at + length).min(n)].to_vec();
                bytes.splice(at..at, piece);
            }
            Blow::Drop(at, length) => {
                let at = at.index(n);
                bytes.drain(at..(at + length).min(n));
            }
            Blow::Insert(at, piece) => {
                let at = at.index(n);
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

/// A valid file of a history in each format; of Cobra and Viper, the first session's.
fn render(history: &History, format: Format) -> Vec<u8> {
    if let Format::Kingsnake | Format::Dbcop | Format::Text | Format::Cobra = format {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("h");
        write(history, format, &path).expect("the format can express it");
        if format == Format::Cobra {
            let log = fs::read_dir(&path)
                .expect("logs")
                .next()
                .expect("a log")
                .expect("a log");
            return fs::read(log.path()).expect("a log");
        }
        return fs::read(path).expect("a file");
    }
    let mut out = String::new();
    let is_list = riches(format).lists;
    let op_parts = |op: Op| {
        let key = op
            .key()
            .map(|key| history.key_name(key))
            .unwrap_or_default();
        match op {
            Op::Read { value, .. } if is_list => ("rl", key, history.value_name(value)),
            Op::Write { value, .. } if is_list => ("append", key, history.value_name(value)),
            Op::Read { value, .. } => ("r", key, history.value_name(value)),
            Op::Write { value, .. } => ("w", key, history.value_name(value)),
            Op::Append { value, .. } => ("append", key, history.value_name(value)),
            Op::Range { .. } => unreachable!("only formats with writers get rows"),
            Op::ReadList { list, .. } => {
                let items: Vec<String> = history
                    .list(list)
                    .iter()
                    .map(|&it| history.value_name(it))
                    .collect();
                (
                    "rl",
                    key,
                    items.join(if format == Format::JepsenJson {
                        ","
                    } else {
                        " "
                    }),
                )
            }
        }
    };
    if format == Format::ListAppendText {
        writeln!(out, "{}", history.n_ops()).expect("a text");
    }
    for session in (0..history.n_sessions()).map(|it| SessionId(it as u32)) {
        for txn in history.session_txns(session).map(TxnId) {
            let mut steps = Vec::new();
            for &op in history.ops(txn) {
                let (name, key, value) = op_parts(op);
                steps.push(match format {
                    Format::Awdit => format!("{} {key} {value}\n", &name[..1]),
                    Format::ListAppendText if name == "rl" => {
                        let n = value.split_whitespace().count();
                        format!("{} {} R {key} {n} {value}\n", session.0, txn.0)
                    }
                    Format::ListAppendText => format!("{} {} A {key} {value}\n", session.0, txn.0),
                    Format::Viper => {
                        format!("[\"{}\", {key}, {value}, {}]", &name[..1], name == "w")
                    }
                    Format::JepsenJson if name == "rl" => format!("[\"r\",{key},[{value}]]"),
                    Format::JepsenJson => format!("[\"{name}\",{key},{value}]"),
                    _ if name == "rl" => format!("[:r {key} [{value}]]"),
                    _ => format!("[:{name} {key} {value}]"),
                });
            }
            match format {
                Format::Awdit => writeln!(out, "{}-----", steps.concat()),
                Format::ListAppendText => write!(out, "{}", steps.concat()),
                Format::Viper => writeln!(out, "{{\"value\": [{}]}}", steps.join(", ")),
                Format::JepsenJson => writeln!(
                    out,
                    "{{\"type\":\"ok\",\"process\":{},\"index\":{},\"value\":[{}]}}",
                    session.0,
                    txn.0,
                    steps.join(",")
                ),
                _ => writeln!(
                    out,
                    "{{:type :invoke, :process {0}, :index {1}, :value nil}} ; it begins\n#jepsen.history.Op{{:type :ok, :process {0}, :index {2}, :value [{3}]}}",
                    session.0,
                    2 * txn.0,
                    2 * txn.0 + 1,
                    steps.join(" ")
                ),
            }
            .expect("a text");
        }
        if format == Format::Awdit {
            out.push_str("=====\n");
        }
    }
    out.into_bytes()
}

/// Histories that the format can express.
fn riches(format: Format) -> Riches {
    let lists = Riches {
        lists: true,
        ..Riches::default()
    };
    match format {
        Format::Kingsnake => Riches::ALL,
        Format::Cobra | Format::CobraValues => Riches {
            last_unknown: true,
            all_times: true,
            empty: true,
            ..Riches::default()
        },
        Format::Dbcop => Riches {
            aborted: true,
            empty: true,
            ..Riches::default()
        },
        Format::Text | Format::Awdit | Format::Viper => Riches::default(),
        Format::JepsenEdn | Format::JepsenJson | Format::ListAppendText => lists,
    }
}

fn formats_and_files() -> impl Strategy<Value = (Format, Vec<u8>)> {
    prop::sample::select(Format::ALL.to_vec()).prop_flat_map(|format| {
        let rendered = if format == Format::CobraValues {
            Format::Cobra
        } else {
            format
        };
        histories(riches(format)).prop_map(move |history| (format, render(&history, rendered)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_are_survived(bytes in vec(any::<u8>(), 0..400)) {
        feed_all(&bytes);
    }

    #[test]
    fn random_words_of_the_formats_are_survived(
        words in vec(prop::sample::select(WORDS.to_vec()), 0..60)
    ) {
        feed_all(words.concat().as_bytes());
    }

    #[test]
    fn spoilt_files_are_survived((format, bytes) in formats_and_files(), blows in blows()) {
        let spoilt = strike(bytes, &blows);
        feed(format, &spoilt);
        feed_all(&spoilt);
    }
}

/// Pieces out of which garbage comes close to the text formats.
const WORDS: [&str; 48] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    ";",
    "\"",
    "\\",
    "#",
    "#_",
    "#{",
    "^",
    "\n",
    " ",
    "-----",
    "=====",
    "-",
    "0",
    "1",
    "99999999999999999999",
    "1.5",
    "nil",
    "null",
    "true",
    "r",
    "w",
    "R",
    "A",
    "S",
    "r(1,1,1,1)\n",
    "w(1,0,0,0)\n",
    ":type ",
    ":ok",
    ":value ",
    "\"value\":",
    "\"kingsnake\":1",
    "\"initial\":",
    "\"ops\":[",
    "[\"r\",1,1]",
    "\"id\":1",
    "\"session\":1",
    "{\"kingsnake\":1}\n",
    "{:type :ok :value [[:r 1 ",
    "\u{e9}",
    "\u{0}",
];

#[test]
fn rendered_files_are_read_whole() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for format in Format::ALL
        .into_iter()
        .filter(|&it| it != Format::CobraValues)
    {
        for _ in 0..50 {
            let tree = histories(riches(format))
                .new_tree(&mut runner)
                .expect("a history");
            let history = tree.current();
            let bytes = render(&history, format);
            let parsed = read_bytes(format, &bytes, "fuzz")
                .unwrap_or_else(|error| panic!("{format}: {error}"));
            if format != Format::Cobra {
                assert_eq!(parsed.history.n_txns(), history.n_txns(), "{format}");
                assert_eq!(parsed.history.n_ops(), history.n_ops(), "{format}");
            }
        }
    }
}
