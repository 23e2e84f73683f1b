//! Private servers: processes of installed packages, on loopback, in a temporary directory, never as root, and removed
//! afterwards. They are for their owner only: a random password, and files that others cannot read.
//!
//! A server dies with the collector (`setpriv --pdeathsig`), and directories that a killed collector left behind are removed
//! by the next one. Packages are never installed from here.

mod certificate;
mod clock;
mod disk;
mod etcd;
mod mariadb;
mod postgres;
mod process;
mod proxy;
mod redis;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::fault::ServerFault;

use clock::Clocks;
use disk::SmallDisk;
pub(crate) use process::Home;
use process::Process;
pub use process::is_running;
pub use proxy::Proxy;

/// Why there is no private server.
#[derive(Debug, Error)]
pub enum ServerError {
    /// Nothing to start.
    #[error("no private server of {0} is known; say where one is with --url")]
    Unknown(String),
    /// The package is not installed.
    #[error("{program} was not found{hint}")]
    NotInstalled {
        /// The program.
        program: String,
        /// Which package has it.
        hint: String,
    },
    /// It did not start.
    #[error("{program} did not start: {why}")]
    DidNotStart {
        /// The program.
        program: String,
        /// Its last output.
        why: String,
    },
    /// The fault is not possible.
    #[error("{0}")]
    CannotSuffer(String),
    /// A file system or system error.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
}

/// Time limit for starting a server.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a start is tried before the last error is returned.
const ATTEMPTS: usize = 3;

/// A private server, or a cluster of them. Dropping it ends its processes and removes its files.
pub struct Private {
    home: Home,
    clocks: Option<Clocks>,
    disks: Vec<SmallDisk>,
    nodes: Vec<Mutex<Process>>,
    /// One address a node.
    pub urls: Vec<String>,
}

/// The properties of a server.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// The database, as typed.
    pub database: &'a str,
    /// Nodes of the cluster.
    pub nodes: usize,
    /// Clients that will connect.
    pub sessions: usize,
    /// The server's program, in place of the installed one; what else it needs is looked for beside it.
    pub binary: Option<&'a Path>,
    /// Whether the first node is a primary and the others its replicas, of a database that has both that and a cluster.
    pub has_roles: bool,
    /// The faults that it must support.
    pub faults: &'a [ServerFault],
}

impl<'a> Wanted<'a> {
    /// One node of the installed program.
    pub fn one(database: &'a str) -> Self {
        Wanted {
            database,
            nodes: 1,
            sessions: 8,
            binary: None,
            has_roles: false,
            faults: &[],
        }
    }
}

impl Wanted<'_> {
    /// The program of a name beside the one that was given; nothing where none was given.
    fn beside(&self, name: &str) -> Option<Result<PathBuf, ServerError>> {
        let path = self.binary?.parent()?.join(name);
        Some(if path.is_file() {
            Ok(path)
        } else {
            let (program, hint) = (
                path.display().to_string(),
                " (it belongs beside --binary)".to_owned(),
            );
            Err(ServerError::NotInstalled { program, hint })
        })
    }

    /// The server's program: the one that was given, or the first of these names.
    fn program(&self, names: &[&str], hint: &str) -> Result<PathBuf, ServerError> {
        match self.binary {
            Some(binary) if binary.is_file() => Ok(binary.to_owned()),
            Some(binary) => Err(ServerError::NotInstalled {
                program: binary.display().to_string(),
                hint: " (--binary)".to_owned(),
            }),
            None => process::find_program(names, hint),
        }
    }
}

impl Private {
    /// Starts one, and waits until it answers. A port that was free may be taken by another process before the server has
    /// it, and a node of a cluster needs several, so a server that ends at once is started again on other ports.
    pub fn start(wanted: &Wanted<'_>) -> Result<Self, ServerError> {
        process::remove_stale();
        for _ in 1..ATTEMPTS {
            match Self::start_once(wanted) {
                Err(ServerError::DidNotStart { .. }) => {}
                started => return started,
            }
        }
        Self::start_once(wanted)
    }

    fn start_once(wanted: &Wanted<'_>) -> Result<Self, ServerError> {
        let has_standby = wanted.nodes > 1
            && match wanted.database {
                "postgres" => true,
                "mariadb" => wanted.has_roles,
                _ => false,
            };
        if wanted.faults.contains(&ServerFault::Failover) && !has_standby {
            return Err(ServerError::CannotSuffer(
                "--fault failover promotes a standby: collect postgres --start --nodes 2, or collect mariadb --start --nodes 2 --reads primary"
                    .into(),
            ));
        }
        let mut private = Private {
            home: Home::make(wanted.database)?,
            clocks: None,
            disks: Vec::new(),
            nodes: Vec::new(),
            urls: Vec::new(),
        };
        // From here on, an error drops what was started.
        if wanted.faults.contains(&ServerFault::Clock) {
            private.clocks = Some(Clocks::new(wanted.database)?);
        }
        if wanted.faults.contains(&ServerFault::DiskFull) {
            for node in 0..wanted.nodes {
                let root = private.home.path.join(node.to_string());
                private.disks.push(SmallDisk::mount(&root)?);
            }
        }
        match wanted.database {
            "postgres" => postgres::start(&mut private, wanted)?,
            "mariadb" => mariadb::start(&mut private, wanted)?,
            "etcd" => etcd::start(&mut private, wanted)?,
            "redis" => redis::start(&mut private, wanted)?,
            other => return Err(ServerError::Unknown(other.to_owned())),
        }
        Ok(private)
    }

    /// Where its files are.
    pub fn directory(&self) -> &Path {
        &self.home.path
    }

    /// How many nodes it has.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The process ids of a node, its children included.
    pub fn pids(&self, node: usize) -> Vec<i32> {
        self.node(node).family()
    }

    /// Ends a node at once, as a crash would.
    pub fn kill(&self, node: usize) {
        self.node(node).kill();
    }

    /// Ends one process of a node that serves a client, if there is one.
    pub fn kill_backend(&self, node: usize, drawn: usize) -> bool {
        self.node(node).kill_child(drawn)
    }

    /// Starts a node again that was killed.
    pub fn restart(&self, node: usize) -> Result<(), ServerError> {
        let mut node = self.node(node);
        node.spawn()?;
        node.wait_until_open(PATIENCE)
    }

    /// Stops a node's processes without ending them.
    pub fn pause(&self, node: usize) {
        self.node(node).pause();
    }

    /// Lets them go on.
    pub fn resume(&self, node: usize) {
        self.node(node).resume();
    }

    /// Ends a node for good.
    pub fn take_out(&self, node: usize) {
        let mut node = self.node(node);
        node.is_out = true;
        node.kill();
    }

    /// Whether a node was ended for good.
    pub fn is_out(&self, node: usize) -> bool {
        self.node(node).is_out
    }

    /// Whether a node's process runs.
    pub fn is_running(&self, node: usize) -> bool {
        self.node(node)
            .family()
            .first()
            .is_some_and(|&pid| is_running(pid))
    }

    /// Makes a standby a primary, and waits until it is.
    pub fn promote(&self, node: usize) -> Result<(), ServerError> {
        self.node(node).promote()
    }

    /// The port of a node.
    pub fn port(&self, node: usize) -> u16 {
        self.node(node).port
    }

    /// Sets how far the clock of a node is off, in seconds.
    pub fn set_clock(&self, node: usize, seconds: i32) {
        if let Some(clocks) = &self.clocks {
            clocks.set(&self.node(node).log, seconds);
        }
    }

    /// Fills a node's disk.
    pub fn fill(&self, node: usize) {
        if let Some(disk) = self.disks.get(node) {
            disk.fill();
        }
    }

    /// Frees that space.
    pub fn free(&self, node: usize) {
        if let Some(disk) = self.disks.get(node) {
            disk.free();
        }
    }

    fn node(&self, node: usize) -> std::sync::MutexGuard<'_, Process> {
        self.nodes[node]
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn add(&mut self, mut process: Process, url: String) -> Result<(), ServerError> {
        if let Some(clocks) = &self.clocks {
            clocks.set(&process.log, 0);
            process.env = clocks.environment(&process.log);
        }
        process.spawn()?;
        // Kept before it is waited for, so that it ends whatever happens.
        self.nodes.push(Mutex::new(process));
        self.urls.push(url);
        Ok(())
    }

    fn wait(&self, node: usize) -> Result<(), ServerError> {
        self.node(node).wait_until_open(PATIENCE)
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        for node in &self.nodes {
            node.lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .kill();
        }
        self.disks.clear();
        // The last writes of a dying process may still come in between.
        let since = Instant::now();
        while std::fs::remove_dir_all(&self.home.path).is_err()
            && self.home.path.exists()
            && since.elapsed() < Duration::from_secs(5)
        {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
