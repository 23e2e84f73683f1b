//! The program: its words, its language, and one run of it within the budget.
//!
//! Invariant: when a run is over, the program and what it started in its process group are gone.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kingsnake_context::budget::{Budget, StopReason};

use super::{ExecHalt, language};
use crate::export::ENCODINGS;

/// Shortest and longest interval between two looks at a program.
const EVERY: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(10)];
/// Interval between two measurements of its size.
const SIZED: Duration = Duration::from_millis(100);
/// Maximum length of an answer. The largest questions have some millions of variables.
const LONGEST: u64 = 128 << 20;
/// Where the question's path goes in a command, and that of the file which the program writes its answer to.
const ASKED: &str = "{}";
const ANSWER: &str = "{answer}";

/// The language of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExecLanguage {
    /// `MonoSAT`'s.
    Gnf,
    /// DIMACS, by the plain encoding of this name.
    Cnf(&'static str),
    Smtlib2,
}

impl ExecLanguage {
    /// The name of the file, whose ending tells some programs the language.
    pub fn file(self) -> &'static str {
        match self {
            ExecLanguage::Gnf => "question.gnf",
            ExecLanguage::Cnf(_) => "question.cnf",
            ExecLanguage::Smtlib2 => "question.smt2",
        }
    }
}

/// The plain encoding that is usually the fastest (docs/encodings.md).
const USUAL: ExecLanguage = ExecLanguage::Cnf("elimination");

/// How programs with these names are called, unless the command states it.
const KNOWN: &[(&str, ExecLanguage, &[&str])] = &[
    ("monosat", ExecLanguage::Gnf, &["-witness", ASKED]),
    ("minisat", USUAL, &[ASKED, ANSWER]),
    ("glucose", USUAL, &["-model", ASKED]),
    ("z3", ExecLanguage::Smtlib2, &["-smt2", ASKED]),
    ("cvc", ExecLanguage::Smtlib2, &[ASKED]),
    ("yices-smt2", ExecLanguage::Smtlib2, &[ASKED]),
    ("mathsat", ExecLanguage::Smtlib2, &[ASKED]),
    ("opensmt", ExecLanguage::Smtlib2, &[ASKED]),
];

/// A command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SolverCommand {
    pub language: ExecLanguage,
    words: Vec<String>,
}

/// A program that has ended.
pub(super) struct EndedProgram {
    status: ExitStatus,
    pub answer: String,
    complaint: String,
    /// The largest resident size seen, in bytes.
    pub peak: Option<u64>,
}

impl SolverCommand {
    /// Reads a command as a shell would, without its variables.
    pub fn parse(typed: &str, named: Option<&str>) -> Result<SolverCommand, String> {
        let mut words = shlex::split(typed).ok_or("its quotes do not match")?;
        let Some(program) = words.first() else {
            return Err("it names no program; write exec:COMMAND".to_owned());
        };
        let program = Path::new(program).file_name().and_then(OsStr::to_str);
        let known = KNOWN
            .iter()
            .find(|(name, ..)| program.is_some_and(|program| program.starts_with(name)));
        let named = match named {
            None => None,
            Some(name) => Some(language(name).ok_or_else(|| {
                let encodings = ENCODINGS.join(", ");
                format!("there is no language {name:?}; there are gnf, smtlib2, and for DIMACS {encodings}")
            })?),
        };
        let usual = known.map_or(USUAL, |&(_, language, _)| language);
        if !words.iter().any(|word| word.contains(ASKED)) {
            let ending = match known {
                // A program may read several languages, and is then called differently.
                Some(&(_, language, ending))
                    if named.is_none_or(|it| it.file() == language.file()) =>
                {
                    ending
                }
                _ => &[ASKED],
            };
            words.extend(ending.iter().map(|&word| word.to_owned()));
        }
        Ok(SolverCommand {
            language: named.unwrap_or(usual),
            words,
        })
    }

    pub fn program(&self) -> &str {
        &self.words[0]
    }

    /// Runs it on a file. `room` is a directory of its own.
    pub fn run(
        &self,
        asked: &Path,
        room: &Path,
        budget: &Budget,
    ) -> Result<EndedProgram, ExecHalt> {
        let answer = room.join("answer");
        let paths = [(ASKED, asked), (ANSWER, answer.as_path())];
        let mut words = self.words.iter().map(|word| {
            paths.iter().fold(word.clone(), |word, (place, path)| {
                word.replace(place, &path.to_string_lossy())
            })
        });
        let program = words.next().unwrap_or_default();
        let failed = |what: &str| {
            let program = self.program().to_owned();
            let what = what.to_owned();
            move |error| ExecHalt::Failed(format!("{what} {program}: {error}"))
        };
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| room.join(name));
        let mut command = std::process::Command::new(program);
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(File::create(&stdout).map_err(failed("cannot keep the output of"))?)
            .stderr(File::create(&stderr).map_err(failed("cannot keep the output of"))?);
        isolate(&mut command);
        let child = command.spawn().map_err(failed("cannot start"))?;
        let mut running = Running { child };
        let (status, peak) = running.wait(&stdout, &stderr, budget)?;
        let answer = if self.words.iter().any(|word| word.contains(ANSWER)) && answer.exists() {
            answer
        } else {
            stdout
        };
        Ok(EndedProgram {
            status,
            answer: read(&answer, LONGEST).map_err(failed("cannot read the answer of"))?,
            complaint: read(&stderr, 4096).map_err(failed("cannot read the answer of"))?,
            peak,
        })
    }

    /// The error, with how the program ended and its last output.
    pub fn complain(&self, what: &str, ended: &EndedProgram) -> String {
        let lines = [&ended.complaint, &ended.answer];
        let mut last = lines
            .iter()
            .filter_map(|it| it.lines().rfind(|line| !line.trim().is_empty()));
        let last = last.next().map_or(String::new(), |line| {
            let line: String = line
                .chars()
                .filter(|it| !it.is_control())
                .take(200)
                .collect();
            format!("; its last line is {line:?}")
        });
        format!(
            "{what} ({} ended with {}{last})",
            self.program(),
            ended.status
        )
    }
}

/// The content of a file, at most this many bytes.
fn read(path: &Path, most: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A running program. Dropping it ends the program, and its whole process group.
struct Running {
    child: Child,
}

impl Running {
    /// Waits for its end, within the budget.
    fn wait(
        &mut self,
        stdout: &Path,
        stderr: &Path,
        budget: &Budget,
    ) -> Result<(ExitStatus, Option<u64>), ExecHalt> {
        let (mut pause, mut peak, mut sized) = (EVERY[0], None, Instant::now());
        loop {
            // A short run ends between two looks; its size is asked for at the first.
            if peak.is_none() || sized.elapsed() >= SIZED {
                sized = Instant::now();
                peak = peak.max(peak_of(self.child.id()));
                if let (Some(resident), Some(limit)) = (peak, budget.memory())
                    && resident > limit
                {
                    return Err(StopReason::Resident { resident, limit }.into());
                }
                expect_short([stdout, stderr])?;
            }
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    expect_short([stdout, stderr])?;
                    return Ok((status, peak));
                }
                Ok(None) => {}
                Err(error) => return Err(format!("cannot wait for it: {error}").into()),
            }
            budget.check()?;
            std::thread::sleep(pause);
            pause = (2 * pause).min(EVERY[1]);
        }
    }
}

/// Whether these files can only contain noise.
fn expect_short(files: [&Path; 2]) -> Result<(), ExecHalt> {
    let is_long = |path: &&Path| path.metadata().is_ok_and(|it| it.len() > LONGEST);
    if files.iter().any(is_long) {
        let most = LONGEST >> 20;
        return Err(format!("its output is longer than {most} MB").into());
    }
    Ok(())
}

impl Drop for Running {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Ok(Some(group)) = i32::try_from(self.child.id()).map(rustix::process::Pid::from_raw)
        {
            // The group may be gone already.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Puts the program into a process group of its own: a Ctrl-C on the terminal is for this process, which ends the program itself.
fn isolate(command: &mut std::process::Command) {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(target_os = "linux")]
    // SAFETY: between fork and exec only one system call is made, which allocates nothing and takes no lock.
    #[allow(unsafe_code)]
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(command, || {
            // It ends with this process, however that ends.
            let signal = rustix::process::Signal::KILL;
            Ok(rustix::process::set_parent_process_death_signal(Some(
                signal,
            ))?)
        });
    }
}

/// The peak resident size of a process, in bytes, if the system reports it.
fn peak_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(typed: &str, named: Option<&str>) -> (ExecLanguage, String) {
        let command = SolverCommand::parse(typed, named).expect("a command");
        (command.language, command.words.join(" "))
    }

    #[test]
    fn a_program_is_called_as_its_name_demands() {
        let elimination = ExecLanguage::Cnf("elimination");
        for (typed, named, language, words) in [
            (
                "/opt/monosat",
                None,
                ExecLanguage::Gnf,
                "/opt/monosat -witness {}",
            ),
            (
                "minisat -no-pre",
                None,
                elimination,
                "minisat -no-pre {} {answer}",
            ),
            ("z3 -T:5", None, ExecLanguage::Smtlib2, "z3 -T:5 -smt2 {}"),
            ("z3", Some("closure"), ExecLanguage::Cnf("closure"), "z3 {}"),
            ("kissat -q", None, elimination, "kissat -q {}"),
            (
                "minisat",
                Some("closure"),
                ExecLanguage::Cnf("closure"),
                "minisat {} {answer}",
            ),
            (
                "sh -c 'z3 {} 2>&1'",
                Some("smtlib2"),
                ExecLanguage::Smtlib2,
                "sh -c z3 {} 2>&1",
            ),
        ] {
            assert_eq!(
                parsed(typed, named),
                (language, words.to_owned()),
                "{typed}"
            );
        }
    }

    #[test]
    fn what_is_no_command_is_refused() {
        let why = |typed, named| SolverCommand::parse(typed, named).expect_err("no command");
        assert!(why("", None).contains("no program"));
        assert!(why("sh 'x", None).contains("quotes"));
        assert!(why("z3", Some("latin")).contains("smtlib2"));
    }
}
