//! One process of a private server: started as a user that is not root, killed, paused, started again.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::ServerError;

/// A user and a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct User {
    uid: u32,
    gid: u32,
}

/// The user who runs the server: the package's own user if this is root, otherwise the user of this process.
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
    /// Added to its environment.
    pub(super) env: Vec<(String, String)>,
    /// What makes it a primary.
    pub(super) promotion: Option<Promotion>,
    /// Whether it was ended for good.
    pub(super) is_out: bool,
    child: Option<Child>,
}

/// A program that makes a standby a primary.
pub(super) struct Promotion {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// Arguments of the server that it is no longer started with.
    pub(super) gone: Vec<String>,
}

const PREFIX: &str = "kingsnake-server-";
const OWNER: &str = "owner";

/// A directory of a private server. Its file `owner` says which process on which machine made it, and is locked as long as that
/// process lives.
pub(crate) struct Home {
    pub(crate) path: PathBuf,
    _owner: File,
}

impl Home {
    /// A directory that only this user, and the server's, can look into.
    pub(crate) fn make(database: &str) -> Result<Self, ServerError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // Of a process that had the same number a directory may be left.
        let path = loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{PREFIX}{}-{number}-{database}", std::process::id());
            let path = std::env::temp_dir().join(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io_error(&path, error)),
                Ok(()) => break path,
            }
        };
        // A server of another user passes through it to its own directory within.
        if geteuid().is_root() {
            let through = fs::Permissions::from_mode(0o711);
            fs::set_permissions(&path, through).map_err(|error| io_error(&path, error))?;
        }
        let owner = path.join(OWNER);
        let of = |error| io_error(&owner, error);
        let mut file = private_file(&owner).map_err(of)?;
        // What is not locked yet is not written yet, and so not to be removed.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        file.write_all(Owner::of_this_process().line().as_bytes())
            .map_err(of)?;
        Ok(Home { path, _owner: file })
    }
}

/// The creator of a directory.
#[derive(Debug, PartialEq, Eq)]
struct Owner {
    /// The machine, and which of its starts: nothing is known about the processes of another.
    place: String,
    /// The set of processes within which the number counts.
    namespace: String,
    pid: i32,
}

impl Owner {
    fn of_this_process() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let host = rustix::system::uname();
        let host = host.nodename().to_string_lossy().into_owned();
        let boot = text("/proc/sys/kernel/random/boot_id");
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Owner {
            place: format!("{host} {}", boot.trim()),
            namespace: namespace.display().to_string(),
            pid: std::process::id() as i32,
        }
    }

    fn line(&self) -> String {
        format!("{}\n{}\n{}\n", self.place, self.namespace, self.pid)
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::to_owned);
        Some(Owner {
            place: lines.next()?,
            namespace: lines.next()?,
            pid: lines.next()?.parse().ok()?,
        })
    }

    /// Whether it has ended, as far as this process can know. Its lock is free.
    fn is_gone(&self) -> bool {
        let here = Owner::of_this_process();
        self.place == here.place && (self.namespace != here.namespace || !is_running(self.pid))
    }
}

/// Removes the directories of collectors that are no more: of this machine and this start of it, whose lock is free.
pub(super) fn remove_stale() {
    remove_stale_in(&std::env::temp_dir());
}

fn remove_stale_in(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_ours = name.to_str().is_some_and(|it| it.starts_with(PREFIX));
        // Never through a link that another user put there.
        let is_directory = entry.file_type().is_ok_and(|it| it.is_dir());
        if is_ours && is_directory && is_stale(&entry.path()) {
            super::disk::unmount_below(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_stale(home: &Path) -> bool {
    let Ok(file) = File::open(home.join(OWNER)) else {
        return false;
    };
    let is_free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    let text = io::read_to_string(&file).unwrap_or_default();
    is_free && Owner::read(&text).is_some_and(|owner| owner.is_gone())
}

/// A file that only this user can read.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = fs::OpenOptions::new();
    options.create(true).append(true).mode(0o600).open(path)
}

/// A file that only the server's user can read.
pub(super) fn put_for(path: &Path, text: &str, user: Option<User>) -> Result<(), ServerError> {
    let of = |error| io_error(path, error);
    private_file(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(of)?;
    match user {
        Some(user) => chown(path, Some(user.uid), Some(user.gid)).map_err(of),
        None => Ok(()),
    }
}

/// A random password of letters that need no quotes.
pub(super) fn password() -> Result<String, ServerError> {
    let mut bytes = [0; 24];
    let random = Path::new("/dev/urandom");
    let mut file = File::open(random).map_err(|error| io_error(random, error))?;
    file.read_exact(&mut bytes)
        .map_err(|error| io_error(random, error))?;
    let [one, two, three] = std::array::from_fn(|at| {
        let mut part = [0; 8];
        part.copy_from_slice(&bytes[8 * at..8 * at + 8]);
        u64::from_le_bytes(part)
    });
    Ok(format!("{one:016x}{two:016x}{three:016x}"))
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

/// A port without a listener, and that was not returned before.
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
            env: Vec::new(),
            promotion: None,
            is_out: false,
            child: None,
        }
    }

    pub(super) fn spawn(&mut self) -> Result<(), ServerError> {
        let log = private_file(&self.log).map_err(|error| io_error(&self.log, error))?;
        let both = log
            .try_clone()
            .map_err(|error| io_error(&self.log, error))?;
        let mut command = if self.env.is_empty() {
            command(&self.program, self.user)
        } else {
            // Set after the user was changed, or else what the library makes would belong to another one.
            let mut command = command(&find_program(&["env"], "")?, self.user);
            let set = |(name, value): &(String, String)| format!("{name}={value}");
            command.args(self.env.iter().map(set)).arg(&self.program);
            command
        };
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

    pub(super) fn promote(&mut self) -> Result<(), ServerError> {
        let Some(promotion) = &self.promotion else {
            return Err(ServerError::CannotSuffer("not a standby".into()));
        };
        run(&promotion.program, &promotion.args, self.user)?;
        self.args.retain(|it| !promotion.gone.contains(it));
        Ok(())
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
            if !self.env.is_empty() {
                super::clock::forget(child.id());
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_goes_only_when_its_owner_here_is_gone() {
        let scratch = tempfile::tempdir().unwrap();
        let make = |name: &str, owner: Option<&str>| {
            let path = scratch.path().join(format!("{PREFIX}{name}"));
            fs::create_dir(&path).unwrap();
            if let Some(text) = owner {
                fs::write(path.join(OWNER), text).unwrap();
            }
            path
        };
        let mut ended = Command::new("true").spawn().unwrap();
        let gone = Owner {
            pid: ended.id() as i32,
            ..Owner::of_this_process()
        };
        ended.wait().unwrap();
        let elsewhere = Owner {
            place: "another-machine 0".to_owned(),
            ..Owner::read(&gone.line()).unwrap()
        };
        let other_space = Owner {
            namespace: "pid:[1]".to_owned(),
            ..Owner::read(&gone.line()).unwrap()
        };
        let stale = make("stale", Some(&gone.line()));
        let free = make("free", Some(&other_space.line()));
        let locked = make("locked", Some(&other_space.line()));
        let held = File::open(locked.join(OWNER)).unwrap();
        flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
        let kept = [
            locked,
            make("living", Some(&Owner::of_this_process().line())),
            make("elsewhere", Some(&elsewhere.line())),
            make("unnamed", None),
            make("1-0-postgres", None),
            make("empty", Some("")),
        ];
        remove_stale_in(scratch.path());
        assert!(!stale.exists() && !free.exists());
        for path in kept {
            assert!(path.exists(), "{} is gone", path.display());
        }
    }

    #[test]
    fn a_home_is_for_its_owner_only() {
        let home = Home::make("test").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&home.path) & 0o066, 0, "others may not list it");
        put_for(&home.path.join("secret"), "x", None).unwrap();
        assert_eq!(mode(&home.path.join("secret")), 0o600);
        assert!(!is_stale(&home.path));
        assert_ne!(password().unwrap(), password().unwrap());
        fs::remove_dir_all(&home.path).unwrap();
    }
}
