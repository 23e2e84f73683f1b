//! A database whose client is not in Rust: a small program in the client's language, written into a directory of ours
//! and run there, with a socket whose connections are connections of the database. Its protocol is at the top of
//! `bridges/Bridge.java`.
//!
//! Only its user can reach the socket. The program ends when its standard input does, so it never outlives this process.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::sql::{Answer, Refusal, SqlLink};
use crate::adapter::Failure;
use crate::server::Home;

/// A database without an answer for this long counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// A language with its program.
pub(super) struct Language {
    /// What the file is called.
    pub(super) file: &'static str,
    /// The program.
    pub(super) source: &'static str,
    /// What has it, for an error.
    pub(super) hint: &'static str,
}

/// Java 17 or newer, which compiles a single file when it runs it.
pub(super) const JAVA: Language = Language {
    file: "Bridge.java",
    source: include_str!("../../bridges/Bridge.java"),
    hint: "a JDK of version 17 or newer (Debian's package: default-jdk-headless)",
};

/// Python 3.
pub(super) const PYTHON: Language = Language {
    file: "bridge.py",
    source: include_str!("../../bridges/bridge.py"),
    hint: "Python 3 (Debian's package: python3)",
};

/// The running program.
pub(super) struct Bridge {
    child: Child,
    home: Home,
}

impl Bridge {
    /// Starts it and waits until it has opened the database. The socket's place stands between `before` and `after`.
    pub(super) fn start(
        language: &Language,
        program: &str,
        before: &[String],
        after: &[String],
    ) -> Result<Self, Failure> {
        let own = |error: &dyn std::fmt::Display| Failure::Fatal(error.to_string());
        let home = Home::make("bridge").map_err(|error| own(&error))?;
        // No server of another user passes through it.
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&home.path, closed).map_err(|error| own(&error))?;
        let source = home.path.join(language.file);
        std::fs::write(&source, language.source).map_err(|error| own(&error))?;
        let mut command = Command::new(program);
        let place = socket(&home.path);
        command.args(before).arg(source).arg(place).args(after);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let spawned = pipes.stderr(Stdio::piped()).spawn();
        let child = spawned.map_err(|error| {
            let _ = std::fs::remove_dir_all(&home.path);
            let hint = language.hint;
            Failure::Fatal(format!("cannot run {program} ({error}): it needs {hint}"))
        })?;
        let mut bridge = Bridge { child, home };
        bridge.wait(language, program)?;
        Ok(bridge)
    }

    fn wait(&mut self, language: &Language, program: &str) -> Result<(), Failure> {
        let mut line = String::new();
        if let Some(out) = self.child.stdout.take() {
            let _ = BufReader::new(out).read_line(&mut line);
        }
        let mut errors = self.child.stderr.take();
        if line.trim() == "ready" {
            // The database's output is read continuously, so that it never blocks.
            std::thread::spawn(move || {
                errors.map(|mut it| std::io::copy(&mut it, &mut std::io::sink()))
            });
            return Ok(());
        }
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(errors) = &mut errors {
            let _ = errors.read_to_string(&mut said);
        }
        Err(Failure::Fatal(format!(
            "{program} {} did not start: {} (it needs {})",
            language.file,
            telling_line(&said),
            language.hint
        )))
    }

    /// A connection.
    pub(super) fn connect(&self) -> Result<Box<dyn SqlLink>, Failure> {
        let lost = |error: std::io::Error| Failure::Lost(error.to_string());
        let stream = UnixStream::connect(socket(&self.home.path)).map_err(lost)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(lost)?;
        let answers = BufReader::new(stream.try_clone().map_err(lost)?);
        Ok(Box::new(Connection { stream, answers }))
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.home.path);
    }
}

fn socket(home: &Path) -> PathBuf {
    home.join("socket")
}

/// The line of a trace that names the error.
fn telling_line(said: &str) -> &str {
    let mut lines = said.lines().map(str::trim).filter(|it| !it.is_empty());
    let named = |line: &&str| line.contains("Error") || line.contains("Exception");
    let last = lines.clone().rfind(named);
    last.or_else(|| lines.next_back())
        .unwrap_or("it said nothing")
}

struct Connection {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

impl SqlLink for Connection {
    fn ask(&mut self, request: &str) -> Result<Result<Answer, Refusal>, Failure> {
        let lost = |error: std::io::Error| Failure::Lost(format!("the bridge: {error}"));
        let line = format!("{request}\n");
        self.stream.write_all(line.as_bytes()).map_err(lost)?;
        let head = self.line()?;
        let (kind, rest) = head.split_once(' ').unwrap_or((&head, ""));
        match (kind, rest.parse::<u64>()) {
            ("count", Ok(n)) => Ok(Ok(Answer::Count(n))),
            ("rows", Ok(n)) => {
                let row = |_| Ok(self.line()?.split('\t').map(str::to_owned).collect());
                let rows: Result<_, Failure> = (0..n).map(row).collect();
                Ok(Ok(Answer::Rows(rows?)))
            }
            ("error", _) => Ok(Err(Refusal(rest.to_owned()))),
            _ => Err(Failure::Fatal(format!("the bridge answered {head:?}"))),
        }
    }
}

impl Connection {
    fn line(&mut self) -> Result<String, Failure> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(1..) => Ok(line.trim_end_matches('\n').to_owned()),
            Ok(_) => Err(Failure::Lost("the bridge closed the connection".to_owned())),
            Err(error) => Err(Failure::Lost(format!("the bridge: {error}"))),
        }
    }
}
