//! Signals. The first Ctrl-C asks the check to stop and answer `unknown`, the second ends the process. SIGBUS, sent
//! when a mapped file is truncated or its disk fails, ends the process with an error message.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

#[cfg(unix)]
use crate::limits;

/// The flag of this process, once it listens.
static ASKED: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);

/// A flag that becomes true when the user or the system asks the check to stop; it is the same for all who listen.
/// The actions of one signal run in the order of their registration, so the first signal still finds the flag down.
pub fn listen() -> std::io::Result<Arc<AtomicBool>> {
    let mut known = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(asked) = &*known {
        return Ok(Arc::clone(asked));
    }
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?;
        flag::register(signal, Arc::clone(&asked))?;
    }
    *known = Some(Arc::clone(&asked));
    Ok(asked)
}

#[cfg(not(unix))]
pub fn catch_cut_files() {}

/// The message when a page of a mapped file cannot be read.
#[cfg(unix)]
const CUT: &[u8] =
    b"kingsnake: a file became shorter while it was read, or its disk failed; the check stopped without an answer\n";
/// The same if there was already an answer.
#[cfg(unix)]
const CUT_LATE: &[u8] =
    b"kingsnake: a file became shorter while the answer was printed, or its disk failed; the exit status is still valid\n";

/// Ends the process with an error when a mapped file is truncated.
///
/// This replaces the handler of the standard library, which restores the default action first: a second thread reading
/// the file at that moment would end the process by the signal.
#[cfg(unix)]
#[allow(unsafe_code)] // A signal handler must be async-signal-safe; see there.
pub fn catch_cut_files() {
    extern "C" fn end(_: libc::c_int) {
        let (words, status) = match limits::certified() {
            Some(status) => (CUT_LATE, status),
            None => (CUT, 2),
        };
        let _ = rustix::io::write(rustix::stdio::stderr(), words);
        signal_hook::low_level::exit(status.into())
    }
    // Sound: an action of zeros has no flags and no mask; the handler reads an atomic and makes two system calls, all
    // async-signal-safe. If it cannot be installed, the process ends by the signal.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = end as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}
