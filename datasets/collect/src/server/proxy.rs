//! A proxy between clients and a server, within this process: passes bytes on, and cuts, delays or half-closes on demand.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Default)]
struct ProxyState {
    /// Client and server ends of what is open.
    pairs: Mutex<Vec<(TcpStream, TcpStream)>>,
    delay: AtomicU64,
    /// Where new connections go.
    target: Mutex<Option<SocketAddr>>,
    closed: AtomicBool,
}

/// Listens on loopback until it is dropped.
pub struct Proxy {
    shared: Arc<ProxyState>,
    address: SocketAddr,
}

impl Proxy {
    /// A proxy in front of a server.
    pub fn start(target: impl ToSocketAddrs) -> io::Result<Self> {
        let mut targets = target.to_socket_addrs()?;
        let target = targets
            .next()
            .ok_or_else(|| io::Error::other("no such host"))?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::<ProxyState>::default();
        shared.send_to(target);
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &accepting));
        Ok(Proxy { shared, address })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Cuts what is open, and sends new connections to a port of this machine.
    pub fn send_to(&self, port: u16) {
        self.shared
            .send_to(SocketAddr::from(([127, 0, 0, 1], port)));
        self.cut();
    }

    /// Closes every connection that is open.
    pub fn cut(&self) {
        for (client, server) in self.shared.pairs().drain(..) {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
    }

    /// Stops what servers send, while what clients send still arrives; then closes everything.
    pub fn half_close(&self, hold: Duration) {
        for (client, server) in self.shared.pairs().iter() {
            let _ = server.shutdown(Shutdown::Read);
            let _ = client.shutdown(Shutdown::Write);
        }
        std::thread::sleep(hold);
        self.cut();
    }

    /// Delays every piece that passes; nothing with zero.
    pub fn delay(&self, by: Duration) {
        self.shared
            .delay
            .store(by.as_micros() as u64, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Relaxed);
        self.cut();
        // Wakes the listener, which then sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

impl ProxyState {
    fn pairs(&self) -> MutexGuard<'_, Vec<(TcpStream, TcpStream)>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_to(&self, target: SocketAddr) {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = Some(target);
    }

    fn target(&self) -> Option<SocketAddr> {
        *self.target.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<ProxyState>) {
    for client in listener.incoming() {
        if shared.closed.load(Ordering::Relaxed) {
            return;
        }
        if let (Ok(client), Some(target)) = (client, shared.target()) {
            // A client whose server does not answer sees its connection closed.
            let _ = serve(client, target, shared);
        }
    }
}

fn serve(client: TcpStream, target: SocketAddr, shared: &Arc<ProxyState>) -> io::Result<()> {
    let server = TcpStream::connect_timeout(&target, Duration::from_secs(2))?;
    for end in [&client, &server] {
        end.set_nodelay(true)?;
    }
    let ends = (client.try_clone()?, server.try_clone()?);
    shared
        .pairs()
        .push((client.try_clone()?, server.try_clone()?));
    for (from, to) in [ends, (server, client)] {
        let shared = Arc::clone(shared);
        std::thread::spawn(move || pass(from, to, &shared));
    }
    Ok(())
}

fn pass(mut from: TcpStream, mut to: TcpStream, shared: &ProxyState) {
    let mut buffer = [0; 1 << 14];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        let delay = shared.delay.load(Ordering::Relaxed);
        if delay > 0 {
            std::thread::sleep(Duration::from_micros(delay));
        }
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().take(2).flatten() {
                std::thread::spawn(move || {
                    let mut read = stream.try_clone().unwrap();
                    let mut write = stream;
                    let _ = io::copy(&mut read, &mut write);
                });
            }
        });
        address
    }

    #[test]
    fn a_proxy_passes_bytes_on_until_it_cuts() {
        let proxy = Proxy::start(echo()).unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        let mut back = [0; 5];
        client.write_all(b"hello").unwrap();
        client.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"hello");
        proxy.cut();
        assert!(matches!(client.read(&mut back), Ok(0) | Err(_)));
    }

    #[test]
    fn a_half_closed_connection_ends_for_its_client() {
        let proxy = Proxy::start(echo()).unwrap();
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        client.write_all(b"x").unwrap();
        client.read_exact(&mut [0]).unwrap();
        proxy.half_close(Duration::from_millis(1));
        assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
    }
}
