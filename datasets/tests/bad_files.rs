//! Files and directories that hold no history are answered at once, and by name.

mod refusal;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use kingsnake_datasets::{Format, Problem, ReadOptions, open};
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
    assert!(matches!(error.problem(), Problem::Io(_)));
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
            matches!(error.problem(), Problem::TooLarge { limit: 1_048_576 }),
            "{error}"
        );
    }
    let cut = directory.path().join("cut.gz");
    fs::write(&cut, [0x1f, 0x8b, 8, 0, 0]).unwrap();
    assert!(matches!(
        open(&cut, &options).unwrap_err().problem(),
        Problem::Io(_)
    ));
}

#[test]
fn much_garbage_is_answered_at_once() {
    const SIZE: usize = 64 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("garbage");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(SIZE);
    while bytes.len() < SIZE {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    fs::write(&path, &bytes).unwrap();
    let start = Instant::now();
    assert!(matches!(
        open(&path, &ReadOptions::default()).unwrap_err().problem(),
        Problem::Unrecognised(_)
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
