//! `kingsnake devices`: the devices of this machine that can compute reachability, and their self-tests.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use kingsnake_gpu::{About, DeviceChoice, adapters, calibrate, self_test};
use kingsnake_solver::budget::Budget;

use crate::args::DevicesArgs;
use crate::calibration::{CalibrationFile, keep};
use crate::voice::{count, lasting, printable, say, sized};

/// Lists the devices. A device that fails its self-test is listed, not an error: `check` would answer without it.
pub fn run(args: &DevicesArgs) -> Result<u8> {
    if args.calibrate {
        return measure(args);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut words = format!("cpu: {}\n", count(threads, "thread"));
    let adapters = adapters();
    if !cfg!(feature = "gpu") {
        words.push_str("gpu: none; this kingsnake was built without GPU support\n");
    } else if adapters.is_empty() {
        words.push_str("gpu: none was found (on Linux a Vulkan driver is needed)\n");
    }
    for about in &adapters {
        describe(&mut words, about);
    }
    say(&words).context("cannot write to stdout")?;
    Ok(0)
}

/// Measures adapters, and keeps what was found.
fn measure(args: &DevicesArgs) -> Result<u8> {
    let choices: Vec<DeviceChoice> = if let Some(choice) = &args.device {
        vec![choice.clone()]
    } else {
        let all = adapters().into_iter().filter(|it| it.unfit.is_none());
        all.map(|it| DeviceChoice::Named(it.index.to_string()))
            .collect()
    };
    if choices.is_empty() {
        bail!("no adapter was found that could be calibrated; `kingsnake devices` says more");
    }
    let mut found = Vec::new();
    for choice in &choices {
        found.push(calibrate(choice, &Budget::unlimited())?);
    }
    let file = CalibrationFile::of(&found);
    say(&format!("{}{}", file.table(), file.closures()))?;
    let path = keep(&found)?;
    say(&format!(
        "\nkept in {}; --device auto counts with it\n",
        path.display()
    ))?;
    Ok(0)
}

fn describe(words: &mut String, about: &About) {
    let _ = writeln!(
        words,
        "gpu:{} {}\n  {}, {}, driver {}",
        about.index,
        printable(&about.name),
        about.backend,
        about.kind,
        printable(&about.driver)
    );
    let subgroups = match about.subgroups {
        Some((least, most)) if least == most => format!("subgroups of {least}"),
        Some((least, most)) => format!("subgroups of {least} to {most}"),
        None => "no subgroups".to_owned(),
    };
    let _ = writeln!(
        words,
        "  buffers of {}, {} of them bound at once, {} threads and {} per workgroup, {subgroups}, {}",
        sized(about.max_buffer),
        sized(about.max_binding),
        about.max_threads,
        sized(about.max_shared.into()),
        if about.timestamps {
            "timestamps"
        } else {
            "no timestamps"
        }
    );
    let tested = match self_test(about) {
        Ok(test) if test.is_finished => format!(
            "passed: {} right in {}",
            count(test.n_answers, "answer"),
            lasting(test.time)
        ),
        Ok(test) => format!(
            "timed out after {}; device not verified ({} right so far)",
            lasting(test.time),
            count(test.n_answers, "answer")
        ),
        Err(why) => format!("failed: {}", printable(&why.to_string())),
    };
    let _ = writeln!(words, "  self-test {tested}");
}
