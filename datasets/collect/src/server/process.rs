//! One process of a private server: started as a user that is not root, killed, paused, started again.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::ServerError;

/// A user and a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    uid: u32,
    gid: u32,
}

/// Who runs the server: the package's own user where this is root, else whoever runs this.
pub(super) fn user(name: &str) -> Option<User> {
    if !geteuid().is_root() {
        return None;
    }
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let find = |name: &str| {
        let fields = passwd
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>());
        let mut found = fields.filter(|fields| fields.first() == Some(&name));
        let fields = found.next()?;
        let number = |at: usize| fields.get(at)?.parse::<u32>().ok();
        Some(User {
            uid: number(2)?,
            gid: number(3)?,
        })
    };
    find(name).or_else(|| find("nobody"))
}

/// A server's process, and how to start it.
pub(super) struct Process {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) user: Option<User>,
    pub(super) log: PathBuf,
    pub(super) port: u16,
    child: Option<Child>,
}

const PREFIX: &str = "kingsnake-server-";

/// A directory of its own, named after this process.
pub(super) fn make_directory(database: &str) -> Result<PathBuf, ServerError> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{PREFIX}{}-{number}-{database}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir(&directory).map_err(|error| io_error(&directory, error))?;
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&directory, open).map_err(|error| io_error(&directory, error))?;
    Ok(directory)
}

/// Removes the directories of collectors that are no more.
pub(super) fn remove_stale() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        let pid = rest.split('-').next().and_then(|pid| pid.parse().ok());
        if pid.is_some_and(|pid| !is_running(pid)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether there is a process of this id that has not ended.
#[cfg(target_os = "linux")]
pub fn is_running(pid: i32) -> bool {
    procfs::process::Process::new(pid)
        .and_then(|process| process.stat())
        .is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Whether there is a process of this id.
#[cfg(not(target_os = "linux"))]
pub fn is_running(pid: i32) -> bool {
    Pid::from_raw(pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

pub(super) fn io_error(path: &Path, error: io::Error) -> ServerError {
    ServerError::Io(path.display().to_string(), error)
}

/// Below where Linux takes the ports of outgoing connections from: one of those could take a port between its choice here
/// and the server's start.
const PORTS: std::ops::Range<u32> = 15_000..32_000;

/// A port that nobody listens to, and that was not returned before.
pub(super) fn free_port() -> Result<u16, ServerError> {
    static NEXT: OnceLock<AtomicU32> = OnceLock::new();
    // Collectors that run at the same time begin at different places.
    let next = NEXT.get_or_init(|| AtomicU32::new(std::process::id().wrapping_mul(2_654_435_761)));
    let n_ports = PORTS.end - PORTS.start;
    let mut refused = io::Error::other("no port is free");
    for _ in 0..n_ports {
        let port = (PORTS.start + next.fetch_add(7, Ordering::Relaxed) % n_ports) as u16;
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(error) => refused = error,
        }
    }
    Err(ServerError::Io("127.0.0.1".to_owned(), refused))
}

/// A directory that belongs to the server's user.
pub(super) fn make_for(directory: &Path, user: Option<User>) -> Result<(), ServerError> {
    fs::create_dir_all(directory).map_err(|error| io_error(directory, error))?;
    if let Some(user) = user {
        chown(directory, Some(user.uid), Some(user.gid))
            .map_err(|error| io_error(directory, error))?;
    }
    let own = fs::Permissions::from_mode(0o700);
    fs::set_permissions(directory, own).map_err(|error| io_error(directory, error))
}

/// The first of these programs that is there.
pub(super) fn find_program(names: &[&str], hint: &str) -> Result<PathBuf, ServerError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = std::env::split_paths(&path)
        .chain(["/usr/sbin".into()])
        .collect();
    let candidates = names
        .iter()
        .flat_map(|name| places.iter().map(move |place| place.join(name)));
    let found = candidates.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| ServerError::NotInstalled {
        program: names[0].to_owned(),
        hint: hint.to_owned(),
    })
}

/// A program that is killed when the thread ends that started it, where there is `setpriv`.
fn command(program: &Path, user: Option<User>) -> Command {
    let mut command = if let Ok(setpriv) = find_program(&["setpriv"], "") {
        let mut command = Command::new(setpriv);
        if let Some(user) = user {
            let (uid, gid) = (user.uid.to_string(), user.gid.to_string());
            command.args(["--reuid", &uid, "--regid", &gid, "--clear-groups"]);
        }
        command.args(["--pdeathsig", "KILL", "--"]).arg(program);
        command
    } else {
        let mut command = Command::new(program);
        if let Some(user) = user {
            command.uid(user.uid).gid(user.gid);
        }
        command
    };
    command
        .current_dir("/")
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

/// Starts a process from a thread that never ends: the signal of `--pdeathsig` is sent when the thread ends that started it,
/// and a fault's thread may end long before the server should.
fn spawn_for_good(command: Command) -> io::Result<Child> {
    type Job = (Command, mpsc::Sender<io::Result<Child>>);
    static STARTER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (jobs, taken) = mpsc::channel::<Job>();
        std::thread::spawn(move || {
            for (mut command, answer) in taken {
                let _ = answer.send(command.spawn());
            }
        });
        jobs
    });
    let (answer, answered) = mpsc::channel();
    let gone = |()| io::Error::other("the thread that starts processes is gone");
    starter.send((command, answer)).map_err(|_| gone(()))?;
    answered.recv().map_err(|_| gone(()))?
}

/// Runs a program to its end, as the server's user.
pub(super) fn run(program: &Path, args: &[String], user: Option<User>) -> Result<(), ServerError> {
    // The thread that starts it waits for its end, so it dies with this process only.
    let output = command(program, user)
        .args(args)
        .output()
        .map_err(|error| io_error(program, error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    Err(ServerError::DidNotStart {
        program: program.display().to_string(),
        why: last_lines(&said),
    })
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

impl Process {
    pub(super) fn new(
        program: PathBuf,
        args: Vec<String>,
        user: Option<User>,
        log: PathBuf,
        port: u16,
    ) -> Self {
        Process {
            program,
            args,
            user,
            log,
            port,
            child: None,
        }
    }

    pub(super) fn spawn(&mut self) -> Result<(), ServerError> {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log);
        let log = log.map_err(|error| io_error(&self.log, error))?;
        let both = log
            .try_clone()
            .map_err(|error| io_error(&self.log, error))?;
        let mut command = command(&self.program, self.user);
        command.args(&self.args).stdout(log).stderr(both);
        let child = spawn_for_good(command).map_err(|error| io_error(&self.program, error))?;
        self.child = Some(child);
        Ok(())
    }

    /// Waits until the port is open.
    pub(super) fn wait_until_open(&mut self, patience: Duration) -> Result<(), ServerError> {
        let since = Instant::now();
        let failed = |process: &Self, why: &str| ServerError::DidNotStart {
            program: process.program.display().to_string(),
            why: format!(
                "{why}\n{}",
                last_lines(&fs::read_to_string(&process.log).unwrap_or_default())
            ),
        };
        loop {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return Ok(());
            }
            let ended = self
                .child
                .as_mut()
                .and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended {
                return Err(failed(self, &format!("it ended with {status}")));
            }
            if since.elapsed() > patience {
                return Err(failed(
                    self,
                    &format!("not within {} s", patience.as_secs()),
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The process and all below it.
    pub(super) fn family(&self) -> Vec<i32> {
        let Some(child) = &self.child else {
            return Vec::new();
        };
        let parents = parents();
        let mut family = vec![child.id() as i32];
        let mut at = 0;
        while at < family.len() {
            let parent = family[at];
            family.extend(
                parents
                    .iter()
                    .filter(|(_, of)| *of == parent)
                    .map(|(pid, _)| *pid),
            );
            at += 1;
        }
        family
    }

    /// Ends the process and all below it, and waits until they are gone.
    pub(super) fn kill(&mut self) {
        let family = self.family();
        signal(&family, Signal::KILL);
        if let Some(mut child) = self.child.take() {
            let _ = child.wait();
        }
        let since = Instant::now();
        while family.iter().any(|&pid| is_running(pid)) && since.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(super) fn kill_child(&mut self, drawn: usize) -> bool {
        let family = self.family();
        // Helpers of the server are killed too: each is a crash.
        let Some(&pid) = family.get(1 + drawn % family.len().saturating_sub(1).max(1)) else {
            return false;
        };
        signal(&[pid], Signal::KILL);
        true
    }

    pub(super) fn pause(&self) {
        signal(&self.family(), Signal::STOP);
    }

    pub(super) fn resume(&self) {
        signal(&self.family(), Signal::CONT);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn signal(pids: &[i32], signal: Signal) {
    for &pid in pids {
        if let Some(pid) = Pid::from_raw(pid) {
            // One that has ended already is fine.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Every process with its parent.
#[cfg(target_os = "linux")]
fn parents() -> Vec<(i32, i32)> {
    let Ok(processes) = procfs::process::all_processes() else {
        return Vec::new();
    };
    let of = |process: procfs::process::Process| Some((process.pid(), process.stat().ok()?.ppid));
    processes.flatten().filter_map(of).collect()
}

/// Only Linux tells the parents of processes here.
#[cfg(not(target_os = "linux"))]
fn parents() -> Vec<(i32, i32)> {
    Vec::new()
}
