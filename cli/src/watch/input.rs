//! Sources of lines: growing files, stdin, or socket clients. Pieces end at a line end.

use std::fs::File;
use std::io::{self, Read};
use std::net::TcpListener;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use anyhow::{Context, Result, bail, ensure};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// Bytes read at a time, and the longest line.
const PIECE: usize = 1 << 20;
const LONGEST: usize = 16 << 20;
/// A line changes once, so two equal readings in this many are enough.
const MOST_READINGS: usize = 100;
/// Pieces of clients that wait to be judged; then clients block.
pub const WAITING: usize = 16;
const STDIN: &str = "stdin";

/// Whole lines of one source.
pub struct Piece {
    /// Which source.
    pub source: usize,
    /// Their position in it.
    pub offset: u64,
    pub bytes: Vec<u8>,
    /// Whether the source ended.
    pub is_last: bool,
}

/// A file, and how much of it was read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogFile {
    pub path: PathBuf,
    pub offset: u64,
}

enum Kind {
    Files {
        files: Vec<LogFile>,
        handles: Vec<File>,
        directory: Option<PathBuf>,
        next: usize,
        is_finished: bool,
    },
    Clients {
        pieces: Receiver<io::Result<Piece>>,
        socket: Option<PathBuf>,
        /// The address that clients connect to, if there is one.
        address: Option<String>,
        /// The name of a source.
        called: &'static str,
    },
}

/// All sources.
pub struct LogInput(Kind);

impl LogInput {
    /// A growing file, or a directory of such files; `known` are those of a snapshot.
    pub fn files(path: &Path, known: Vec<LogFile>, is_finished: bool) -> Result<Self> {
        let is_directory = path.is_dir();
        let mut input = Kind::Files {
            files: Vec::new(),
            handles: Vec::new(),
            directory: is_directory.then(|| path.to_owned()),
            next: 0,
            is_finished,
        };
        if let Kind::Files { files, handles, .. } = &mut input {
            for file in known {
                handles.push(open(&file.path)?);
                files.push(file);
            }
            if files.is_empty() && !is_directory {
                handles.push(open(path)?);
                files.push(LogFile {
                    path: path.to_owned(),
                    offset: 0,
                });
            }
        }
        let mut input = LogInput(input);
        input.look_again()?;
        Ok(input)
    }

    /// Stdin.
    pub fn stdin() -> Self {
        let (sender, pieces) = sync_channel(WAITING);
        std::thread::spawn(move || forward(0, io::stdin().lock(), &sender, true));
        LogInput(Kind::Clients {
            pieces,
            socket: None,
            address: None,
            called: STDIN,
        })
    }

    /// Whole lines of journals, sent by a thread of this process.
    pub fn journals(pieces: Receiver<io::Result<Piece>>) -> Self {
        LogInput(Kind::Clients {
            pieces,
            socket: None,
            address: None,
            called: "journal",
        })
    }

    /// Clients of a socket on this machine.
    pub fn listen(address: &str) -> Result<Self> {
        let (sender, pieces) = sync_channel(WAITING);
        if let Some(path) = address.strip_prefix("unix:") {
            let socket = PathBuf::from(path);
            remove_stale(&socket);
            let listener = UnixListener::bind(&socket)
                .with_context(|| format!("cannot listen at {}", socket.display()))?;
            let accept = move || listener.accept().map(|it| it.0);
            std::thread::spawn(move || take_clients(accept, &sender));
            return Ok(LogInput(Kind::Clients {
                pieces,
                socket: Some(socket),
                address: Some(address.to_owned()),
                called: "client",
            }));
        }
        let listener = TcpListener::bind(loopback(address)?)
            .with_context(|| format!("cannot listen at {address}"))?;
        let address = listener.local_addr().context("no address")?.to_string();
        let accept = move || listener.accept().map(|it| it.0);
        std::thread::spawn(move || take_clients(accept, &sender));
        Ok(LogInput(Kind::Clients {
            pieces,
            socket: None,
            address: Some(address),
            called: "client",
        }))
    }

    /// Finds new files in the directory.
    fn look_again(&mut self) -> Result<()> {
        let Kind::Files {
            files,
            handles,
            directory: Some(directory),
            ..
        } = &mut self.0
        else {
            return Ok(());
        };
        let entries = std::fs::read_dir(&*directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            let is_log = path.extension().is_some_and(|it| it == "jsonl") && path.is_file();
            if is_log && !files.iter().any(|it| it.path == path) {
                handles.push(open(&path)?);
                files.push(LogFile { path, offset: 0 });
            }
        }
        Ok(())
    }

    /// The next lines, if there are any; an error of the input, or that nothing will follow.
    pub fn poll(&mut self) -> Result<Polled> {
        match &mut self.0 {
            Kind::Clients { pieces, .. } => match pieces.try_recv() {
                Ok(piece) => Ok(Polled::Piece(piece?)),
                Err(TryRecvError::Empty) => Ok(Polled::Nothing),
                Err(TryRecvError::Disconnected) => Ok(Polled::Ended),
            },
            Kind::Files {
                files,
                handles,
                next,
                is_finished,
                ..
            } => {
                for _ in 0..files.len() {
                    let at = *next % files.len();
                    *next += 1;
                    let file = &mut files[at];
                    let bytes = read_lines(&handles[at], file, *is_finished)?;
                    if !bytes.is_empty() {
                        let offset = file.offset;
                        file.offset += bytes.len() as u64;
                        return Ok(Polled::Piece(Piece {
                            source: at,
                            offset,
                            bytes,
                            is_last: false,
                        }));
                    }
                }
                let is_finished = *is_finished;
                self.look_again()?;
                Ok(if is_finished {
                    Polled::Ended
                } else {
                    Polled::Nothing
                })
            }
        }
    }

    /// The file is read again from this position.
    pub fn put_back(&mut self, source: usize, offset: u64) {
        if let Kind::Files { files, .. } = &mut self.0 {
            files[source].offset = offset;
        }
    }

    /// The current content of a file; `None` if it is not a file.
    pub fn read_again(&self, source: usize, offset: u64, length: usize) -> Result<Option<Vec<u8>>> {
        let Kind::Files { handles, files, .. } = &self.0 else {
            return Ok(None);
        };
        let bytes = settled(&handles[source], vec![0; length], offset);
        let shown = || format!("cannot read {} again", files[source].path.display());
        bytes.map(Some).with_context(shown)
    }

    /// The name of a source, for messages.
    pub fn name(&self, source: usize) -> String {
        match &self.0 {
            Kind::Files { files, .. } => files[source].path.display().to_string(),
            Kind::Clients { called: STDIN, .. } => STDIN.to_owned(),
            Kind::Clients { called, .. } => format!("{called} {}", source + 1),
        }
    }

    /// Where clients connect.
    pub fn address(&self) -> Option<&str> {
        match &self.0 {
            Kind::Clients { address, .. } => address.as_deref(),
            Kind::Files { .. } => None,
        }
    }

    /// Whether a known file was not read yet.
    pub fn has_unread(&self) -> bool {
        match &self.0 {
            Kind::Files { files, next, .. } => *next < files.len(),
            Kind::Clients { .. } => false,
        }
    }

    /// The files, and how far they were read.
    pub fn log_files(&self) -> &[LogFile] {
        match &self.0 {
            Kind::Files { files, .. } => files,
            Kind::Clients { .. } => &[],
        }
    }

    /// Whether the lines can be read again.
    pub fn is_on_disk(&self) -> bool {
        matches!(self.0, Kind::Files { .. })
    }
}

impl Drop for LogInput {
    fn drop(&mut self) {
        if let Kind::Clients {
            socket: Some(path), ..
        } = &self.0
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The result of polling.
pub enum Polled {
    Piece(Piece),
    Nothing,
    Ended,
}

/// An address on this machine.
pub fn loopback(address: &str) -> Result<std::net::SocketAddr> {
    let parsed: std::net::SocketAddr = address
        .parse()
        .with_context(|| format!("{address}: expected 127.0.0.1:PORT or unix:PATH"))?;
    ensure!(
        parsed.ip().is_loopback(),
        "{address}: only addresses of this machine, such as 127.0.0.1:PORT"
    );
    Ok(parsed)
}

/// Removes a socket left by a killed watch: it has no listener.
fn remove_stale(socket: &Path) {
    let refused = UnixStream::connect(socket).err();
    if refused.is_some_and(|it| it.kind() == io::ErrorKind::ConnectionRefused) {
        let _ = std::fs::remove_file(socket);
    }
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("cannot open {}", path.display()))
}

/// Whole lines from the last position; text after the last line end counts if the file is finished.
fn read_lines(handle: &File, file: &LogFile, is_finished: bool) -> Result<Vec<u8>> {
    let shown = || format!("cannot read {}", file.path.display());
    let mut size = PIECE;
    loop {
        let mut bytes = vec![0; size];
        let mut length = 0;
        while length < size {
            match handle.read_at(&mut bytes[length..], file.offset + length as u64) {
                Ok(0) => break,
                Ok(n_bytes) => length += n_bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(shown),
            }
        }
        bytes.truncate(length);
        let is_end = length < size;
        if let Some(end) = memchr::memrchr(b'\n', &bytes) {
            bytes.truncate(end + 1);
            return settled(handle, bytes, file.offset).with_context(shown);
        }
        if is_end {
            if !is_finished {
                bytes.clear();
            }
            return Ok(bytes);
        }
        if size >= LONGEST {
            bail!(
                "{}: a line of more than {} MiB",
                file.path.display(),
                LONGEST >> 20
            );
        }
        size = LONGEST;
    }
}

/// Reads bytes again until two readings agree: a client may be filling in an outcome in a line that is being read.
fn settled(handle: &File, mut bytes: Vec<u8>, offset: u64) -> io::Result<Vec<u8>> {
    let mut again = vec![0; bytes.len()];
    for _ in 0..MOST_READINGS {
        handle.read_exact_at(&mut again, offset)?;
        if again == bytes {
            break;
        }
        std::mem::swap(&mut bytes, &mut again);
    }
    Ok(bytes)
}

fn take_clients<C: Read + Send + 'static>(
    accept: impl Fn() -> io::Result<C>,
    sender: &SyncSender<io::Result<Piece>>,
) {
    for source in 0.. {
        let Ok(client) = accept() else {
            return;
        };
        let sender = sender.clone();
        std::thread::spawn(move || forward(source, client, &sender, false));
    }
}

/// Passes on a client's whole lines; an end without a close is reported. The last line needs no line end if it cannot
/// have been cut, or is complete anyway.
fn forward(
    source: usize,
    mut client: impl Read,
    sender: &SyncSender<io::Result<Piece>>,
    is_uncut: bool,
) {
    let mut waiting: Vec<u8> = Vec::new();
    let mut offset = 0;
    let mut buffer = vec![0; PIECE];
    loop {
        let n_bytes = match client.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => 0,
            Ok(n_bytes) => n_bytes,
        };
        waiting.extend_from_slice(&buffer[..n_bytes]);
        let is_last = n_bytes == 0;
        let is_whole = || is_uncut || serde_json::from_slice::<IgnoredAny>(&waiting).is_ok();
        if is_last && !waiting.is_empty() && is_whole() {
            waiting.push(b'\n');
        }
        let end = memchr::memrchr(b'\n', &waiting).map_or(0, |it| it + 1);
        if waiting.len() - end > LONGEST {
            let words = format!("client {}: a line of more than 16 MiB", source + 1);
            let _ = sender.send(Err(io::Error::other(words)));
            return;
        }
        if end == 0 && !is_last {
            continue;
        }
        let bytes: Vec<u8> = waiting.drain(..end).collect();
        let length = bytes.len() as u64;
        let piece = Piece {
            source,
            offset,
            bytes,
            is_last,
        };
        offset += length;
        if sender.send(Ok(piece)).is_err() || is_last {
            return;
        }
    }
}
