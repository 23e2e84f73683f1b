//! Tells whatever is linked here where Z3 is, so that it runs from anywhere, and puts the program at a fixed place. The packages that
//! link share this file.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=../encodings/build.rs");
    println!("cargo::rerun-if-env-changed=Z3_LIBRARY_PATH_OVERRIDE");
    // A program at a fixed place has no addresses to adjust when it starts: a millisecond of every command.
    let is_program = env::var("CARGO_PKG_NAME").is_ok_and(|name| name == "kingsnake-cli");
    if is_program && env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    let Ok(directory) = env::var("Z3_LIBRARY_PATH_OVERRIDE") else {
        return;
    };
    let library = library(Path::new(&directory));
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", library.display());
    let is_here = env::var("CARGO_PKG_NAME").is_ok_and(|name| name == "kingsnake-encodings");
    let is_wanted = env::var_os("CARGO_FEATURE_Z3").is_some();
    println!("cargo::rerun-if-changed={directory}");
    if is_here && is_wanted && !library.join("libz3.so").exists() {
        println!(
            "cargo::warning=there is no libz3.so in {directory}: run `make setup`, or name the directory of one of at least \
             version 4.13.3 in Z3_LIBRARY_PATH_OVERRIDE, or build with --no-default-features"
        );
    }
}

/// Where the library itself is: scripts/z3 puts an empty one for the linker into a directory `link` beside it.
fn library(directory: &Path) -> PathBuf {
    let beside = directory.with_file_name("lib");
    if directory.ends_with("link") && beside.join("libz3.so").exists() {
        return beside;
    }
    directory.to_path_buf()
}
