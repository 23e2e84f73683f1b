//! A private Redis: its settings in a file that only it can read, for they hold the password.

use super::process::{Process, free_port, make_for, password, put_for, user};
use super::{Private, ServerError, Wanted};

pub(super) fn start(private: &mut Private, wanted: &Wanted<'_>) -> Result<(), ServerError> {
    let program = wanted.program(
        &["redis-server", "valkey-server"],
        " (Debian's package: redis-server)",
    )?;
    let user = user("redis");
    let root = private.home.path.join("0");
    make_for(&root, user)?;
    let (port, password) = (free_port()?, password()?);
    // What was answered is in the file before, so a crash of the server loses nothing; only one of the machine would.
    let settings = format!(
        "bind 127.0.0.1\nport {port}\ndir {}\nrequirepass {password}\n\
         appendonly yes\nappendfsync no\nsave \"\"\ndaemonize no\nmaxclients {}\n",
        root.display(),
        wanted.sessions * 2 + 20
    );
    let file = root.join("redis.conf");
    put_for(&file, &settings, user)?;
    let log = private.home.path.join("0.log");
    let process = Process::new(program, vec![file.display().to_string()], user, log, port);
    private.add(process, format!("redis://:{password}@127.0.0.1:{port}/0"))?;
    private.wait(0)
}
