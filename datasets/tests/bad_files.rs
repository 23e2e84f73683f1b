//! Files and directories that hold no history are answered at once, and by name.

mod refusal;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use kingsnake_datasets::{Format, InputProblem, ReadOptions, open};
use kingsnake_history::budget::Budget;
use kingsnake_history::rng::Rng;
use refusal::{error, read};

#[test]
fn an_empty_file_is_no_history() {
    for format in Format::ALL {
        if matches!(format, Format::Cobra | Format::CobraValues | Format::Viper) {
            // A session that did nothing.
            assert_eq!(read(format, "").warnings, ["session 0 is empty"]);
            continue;
        }
        assert_eq!(
            error(format, "").to_string(),
            "history: found an empty file, expected a history"
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("empty");
    fs::write(&path, "").unwrap();
    let error = open(&path, &ReadOptions::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("found an empty file, expected a history")
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = open(Path::new("no/such/history"), &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("no/such/history: "));
    assert!(matches!(error.problem(), InputProblem::Io(_)));
}

#[test]
fn a_directory_without_logs_says_what_it_holds() {
    let directory = tempfile::tempdir().unwrap();
    let read = || open(directory.path(), &ReadOptions::default());
    assert!(read().unwrap_err().to_string().contains("no logs"));
    fs::write(directory.path().join("notes.md"), "x").unwrap();
    fs::write(directory.path().join("todo.md"), "x").unwrap();
    assert!(
        read()
            .unwrap_err()
            .to_string()
            .ends_with("it holds notes.md, todo.md")
    );
    fs::write(directory.path().join("T1.log"), "").unwrap();
    fs::write(directory.path().join("J1.log"), "").unwrap();
    assert!(
        read()
            .unwrap_err()
            .to_string()
            .contains("say which by --format")
    );
    let options = ReadOptions {
        format: Some(Format::Viper),
        ..ReadOptions::default()
    };
    assert_eq!(
        open(directory.path(), &options).unwrap().format,
        Format::Viper
    );
    fs::write(directory.path().join("T01.log"), "").unwrap();
    assert!(
        read()
            .unwrap_err()
            .to_string()
            .contains("both the log of session 1")
    );
}

/// Reads a large file again and again while it is cut off and written anew: a mapped one would end the process by SIGBUS.
#[test]
fn a_file_that_becomes_shorter_while_it_is_read_is_an_answer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("h.jsonl");
    let mut text = "{\"kingsnake\":1}\n".to_owned();
    for txn in 0..40_000 {
        let line = format!(
            "{{\"id\":\"T{txn}\",\"session\":\"a\",\"status\":\"committed\",\"ops\":[[\"w\",\"k{txn}\",1]]}}\n"
        );
        text.push_str(&line);
    }
    fs::write(&path, &text).unwrap();
    assert!(open(&path, &ReadOptions::default()).is_ok());
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let over = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(over) {
                fs::write(&path, "").unwrap();
                fs::write(&path, &text).unwrap();
            }
        });
        for _ in 0..40 {
            drop(open(&path, &ReadOptions::default()));
        }
        is_over.store(true, over);
    });
}

#[test]
fn a_decompression_bomb_meets_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let zeros = vec![b' '; 1 << 20];
    let gzip = directory.path().join("bomb.gz");
    let mut encoder = flate2::write::GzEncoder::new(
        fs::File::create(&gzip).unwrap(),
        flate2::Compression::best(),
    );
    let zstd_path = directory.path().join("bomb.zst");
    let mut zstd_encoder = zstd::Encoder::new(fs::File::create(&zstd_path).unwrap(), 3).unwrap();
    for _ in 0..64 {
        encoder.write_all(&zeros).unwrap();
        zstd_encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap();
    zstd_encoder.finish().unwrap();
    let options = ReadOptions {
        max_decompressed: 1 << 20,
        ..ReadOptions::default()
    };
    for path in [gzip, zstd_path] {
        let error = open(&path, &options).unwrap_err();
        assert!(
            matches!(error.problem(), InputProblem::TooLarge { limit: 1_048_576 }),
            "{error}"
        );
    }
    let cut = directory.path().join("cut.gz");
    fs::write(&cut, [0x1f, 0x8b, 8, 0, 0]).unwrap();
    assert!(matches!(
        open(&cut, &options).unwrap_err().problem(),
        InputProblem::Io(_)
    ));
}

#[test]
fn much_garbage_is_answered_at_once() {
    const SIZE: usize = 64 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("garbage");
    let mut rng = Rng::new(1);
    let mut bytes = Vec::with_capacity(SIZE);
    while bytes.len() < SIZE {
        bytes.extend(rng.number().to_le_bytes());
    }
    fs::write(&path, &bytes).unwrap();
    let start = Instant::now();
    assert!(matches!(
        open(&path, &ReadOptions::default()).unwrap_err().problem(),
        InputProblem::Unrecognised(_)
    ));
    for format in Format::ALL {
        let options = ReadOptions {
            format: Some(format),
            ..ReadOptions::default()
        };
        assert!(open(&path, &options).is_err(), "{format}");
    }
    let taken = start.elapsed();
    assert!(taken < Duration::from_secs(2), "{taken:?}");
}

#[test]
fn a_byte_order_mark_is_skipped_and_text_of_16_bits_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("h");
    let mark = "\u{feff}";
    for text in [
        "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",1,1]]}\n",
        "w(1,1,1,1)\n",
        "w 1 1\n",
        "1\n1 1 A 1 1\n",
        "{:type :ok, :process 1, :f :txn, :value [[:w 1 1]]}\n",
        "{\"type\":\"ok\",\"process\":1,\"f\":\"txn\",\"value\":[[\"w\",1,1]]}\n",
    ] {
        fs::write(&path, text).unwrap();
        let plain = open(&path, &ReadOptions::default()).unwrap();
        fs::write(&path, format!("{mark}{text}")).unwrap();
        let marked = open(&path, &ReadOptions::default()).unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(marked.format, plain.format);
        assert_eq!(marked.history.n_txns(), 1);
        let options = ReadOptions {
            format: Some(plain.format),
            ..ReadOptions::default()
        };
        assert_eq!(open(&path, &options).unwrap().history.n_txns(), 1);
        let wide: Vec<u8> = format!("{mark}{text}")
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        fs::write(&path, wide).unwrap();
        let error = open(&path, &options).unwrap_err().to_string();
        assert!(error.contains("UTF-16"), "{error}");
    }
}

#[test]
fn every_reader_stops_when_the_budget_ends() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("h");
    let late = Budget::unlimited().with_timeout(Instant::now(), Duration::ZERO);
    let asked = Budget::unlimited();
    asked.exhaust(1);
    let line = "{\"id\":N,\"session\":1,\"ops\":[[\"w\",1,N]]}\n";
    let ours = |n: usize| line.replace('N', &n.to_string());
    for (format, head, line) in [
        (
            Format::Kingsnake,
            "{\"kingsnake\":1}\n",
            &ours as &dyn Fn(usize) -> String,
        ),
        (Format::Text, "", &|n| format!("w(1,{n},1,{n})\n")),
        (Format::Awdit, "", &|n| format!("w 1 {n}\n---\n")),
        (Format::ListAppendText, "9000\n", &|n| {
            format!("1 {n} A 1 {n}\n")
        }),
        (Format::JepsenEdn, "", &|n| {
            format!("{{:type :ok, :process 1, :f :txn, :value [[:w 1 {n}]]}}\n")
        }),
        (Format::Viper, "", &|n| {
            format!("{{\"value\":[[\"w\",\"1\",{n}]]}}\n")
        }),
    ] {
        let body: String = (0..9_000).map(line).collect();
        // Large enough to be mapped, so that it is the reader that asks, and not what brings the bytes in.
        fs::write(&path, format!("{head}{body}")).unwrap();
        for budget in [&late, &asked] {
            let options = ReadOptions {
                format: Some(format),
                budget: budget.clone(),
                ..ReadOptions::default()
            };
            let error = open(&path, &options).unwrap_err();
            assert!(error.stopped().is_some(), "{format}: {error}");
        }
    }
}
