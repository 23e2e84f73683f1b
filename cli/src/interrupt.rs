//! Signals. Ctrl-C: the first asks the check to stop and answer `unknown`, the second ends the process at once. SIGBUS, which the
//! system sends when a mapped file has become shorter or its disk fails: the process says so and ends with an error.

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

/// What is said when a page of a mapped file cannot be read.
#[cfg(unix)]
const CUT: &[u8] =
    b"kingsnake: a file became shorter while it was read, or its disk failed; nothing of it was checked\n";
/// The same where the answer was there already.
#[cfg(unix)]
const CUT_LATE: &[u8] =
    b"kingsnake: a file became shorter while the answer was told, or its disk failed; the exit status stands\n";

/// Ends the process with an error when a mapped file is cut off.
///
/// The handler replaces that of the standard library, which would restore the default action first: a second thread that reads the
/// file at that moment would end the process by the signal.
#[cfg(unix)]
#[allow(unsafe_code)] // A handler of signals must be sound; see there.
pub fn catch_cut_files() {
    extern "C" fn end(_: libc::c_int) {
        let (words, status) = match limits::certified() {
            Some(status) => (CUT_LATE, status),
            None => (CUT, 2),
        };
        let _ = rustix::io::write(rustix::stdio::stderr(), words);
        signal_hook::low_level::exit(status.into())
    }
    // Sound: an action of zeros has no flags and no mask; the handler reads an atomic and makes two system calls, all of which are
    // allowed in one. Where it cannot be set, the process ends by the signal.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = end as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}
