//! Faults of a private server, or of its connections, while a workload runs.
//!
//! The schedule follows from a seed; each fault is written into the history as an event. Processes are only touched where
//! this program started them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kingsnake_history::rng::Rng;

use crate::collection::Events;
use crate::server::{Private, Proxy};

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerFault {
    /// A server is killed and started again.
    Kill,
    /// One process of a server is killed.
    Backend,
    /// A server is stopped temporarily (SIGSTOP, SIGCONT).
    Pause,
    /// All connections are cut.
    Cut,
    /// All traffic is delayed temporarily.
    Delay,
    /// What servers send is no longer received; then connections are cut.
    HalfClose,
    /// The primary is killed for good and a standby promoted in its place.
    Failover,
    /// A server's clock jumps forwards or backwards temporarily.
    Clock,
    /// The file system of a server is temporarily full.
    DiskFull,
}

impl ServerFault {
    /// All of them.
    pub const ALL: [ServerFault; 9] = [
        Self::Kill,
        Self::Backend,
        Self::Pause,
        Self::Cut,
        Self::Delay,
        Self::HalfClose,
        Self::Failover,
        Self::Clock,
        Self::DiskFull,
    ];

    /// The name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            ServerFault::Kill => "kill",
            ServerFault::Backend => "backend",
            ServerFault::Pause => "pause",
            ServerFault::Cut => "cut",
            ServerFault::Delay => "delay",
            ServerFault::HalfClose => "half-close",
            ServerFault::Failover => "failover",
            ServerFault::Clock => "clock",
            ServerFault::DiskFull => "disk-full",
        }
    }

    /// Whether it is done to processes, which must be ours.
    pub fn needs_process(self) -> bool {
        !matches!(
            self,
            ServerFault::Cut | ServerFault::Delay | ServerFault::HalfClose
        )
    }

    /// Whether it needs a proxy between clients and servers.
    pub fn needs_proxy(self) -> bool {
        !self.needs_process() || self == ServerFault::Failover
    }
}

/// Which faults, how often, on what.
pub struct Schedule<'a> {
    /// One is drawn each time.
    pub faults: Vec<ServerFault>,
    /// The time between two.
    pub every: Duration,
    /// The seed.
    pub seed: u64,
    /// The servers that may be touched.
    pub server: Option<&'a Private>,
    /// What stands before each node.
    pub proxies: &'a [Proxy],
}

const PIECE: Duration = Duration::from_millis(10);

/// Sleeps until the time is over or the clients are done; returns which.
fn sleep(time: Duration, done: &AtomicBool) -> bool {
    let since = Instant::now();
    while since.elapsed() < time {
        if done.load(Ordering::Relaxed) {
            return true;
        }
        std::thread::sleep(PIECE.min(time));
    }
    done.load(Ordering::Relaxed)
}

/// By how many seconds a clock is off.
const CLOCKS: [i32; 6] = [1, -1, 60, -60, 3_600, -3_600];

impl Schedule<'_> {
    /// Starts a node again that has ended.
    fn revive(server: &Private, node: usize, events: &Events) {
        if server.is_running(node) {
            return;
        }
        match server.restart(node) {
            Ok(()) => events.tell(&format!("node {node} is back")),
            Err(error) => events.tell(&format!("node {node} is not back: {error}")),
        }
    }

    /// Kills the primary, promotes the next standby and sends the primary's clients to it. Without a standby left nothing happens.
    fn fail_over(&self, server: &Private, events: &Events) {
        let left: Vec<usize> = (0..server.n_nodes())
            .filter(|&it| !server.is_out(it))
            .collect();
        let [primary, standby, ..] = left[..] else {
            return;
        };
        events.tell(&format!("failover: kill node {primary}"));
        server.take_out(primary);
        if let Err(error) = server.promote(standby) {
            events.tell(&format!("node {standby} was not promoted: {error}"));
            return;
        }
        events.tell(&format!("node {standby} is the primary"));
        // Clients of every node before it find the new primary there.
        for proxy in self.proxies.iter().take(standby) {
            proxy.send_to(server.port(standby));
        }
    }

    /// Injects one fault after another until the clients are done. A server is left running.
    pub fn run(&self, events: &Events, done: &AtomicBool) {
        let mut rng = Rng::new(self.seed ^ 0x5fa1_u64);
        while !sleep(self.every, done) {
            let Some(&fault) = rng.pick(&self.faults) else {
                return;
            };
            let drawn = rng.number() as usize;
            self.act(fault, drawn, events, done);
        }
    }

    fn act(&self, fault: ServerFault, drawn: usize, events: &Events, done: &AtomicBool) {
        let hold = (self.every / 2).min(Duration::from_secs(2));
        if let (true, Some(server)) = (fault.needs_process(), self.server) {
            if fault == ServerFault::Failover {
                self.fail_over(server, events);
                return;
            }
            let node = drawn % server.n_nodes();
            if server.is_out(node) {
                return;
            }
            events.tell(&format!("{} node {node}", fault.name()));
            match fault {
                ServerFault::Kill => {
                    server.kill(node);
                    Self::revive(server, node, events);
                }
                ServerFault::Backend => {
                    server.kill_backend(node, drawn / 7);
                }
                ServerFault::Clock => {
                    let by = CLOCKS[drawn / 7 % CLOCKS.len()];
                    events.tell(&format!("the clock of node {node} is off by {by} s"));
                    server.set_clock(node, by);
                    sleep(hold, done);
                    server.set_clock(node, 0);
                    events.tell(&format!("the clock of node {node} is right again"));
                }
                ServerFault::DiskFull => {
                    server.fill(node);
                    sleep(hold, done);
                    server.free(node);
                    events.tell(&format!("node {node} has room again"));
                    Self::revive(server, node, events);
                }
                _ => {
                    server.pause(node);
                    sleep(hold, done);
                    server.resume(node);
                    events.tell(&format!("resume node {node}"));
                }
            }
            return;
        }
        let Some(proxy) = self.proxies.get(drawn % self.proxies.len().max(1)) else {
            return;
        };
        events.tell(fault.name());
        match fault {
            ServerFault::Cut => proxy.cut(),
            ServerFault::HalfClose => proxy.half_close(hold.min(Duration::from_millis(300))),
            _ => {
                proxy.delay(Duration::from_millis(20));
                sleep(hold, done);
                proxy.delay(Duration::ZERO);
                events.tell("no delay");
            }
        }
    }
}
