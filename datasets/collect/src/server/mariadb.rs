//! A private `MariaDB`, a primary with replicas, or a Galera cluster: `mariadb-install-db` into a temporary directory, then `mariadbd`.

use std::path::Path;

use super::certificate::Certificate;
use super::process::{
    Process, Promotion, find_program, free_port, make_for, password, put_for, run, user,
};
use super::{Private, ServerError, Wanted};
use crate::fault::ServerFault;

const PROVIDER: &str = "/usr/lib/galera/libgalera_smm.so";

pub(super) fn start(private: &mut Private, wanted: &Wanted<'_>) -> Result<(), ServerError> {
    let hint = " (Debian's package: mariadb-server)";
    let user = user("mysql");
    let install = match wanted.beside("mariadb-install-db") {
        Some(Ok(path)) => path,
        _ => find_program(&["mariadb-install-db", "mysql_install_db"], hint)?,
    };
    let program = wanted.program(&["mariadbd", "mysqld"], hint)?;
    let is_cluster = wanted.nodes > 1 && !wanted.has_roles;
    if is_cluster && !Path::new(PROVIDER).is_file() {
        return Err(ServerError::NotInstalled {
            program: PROVIDER.to_owned(),
            hint: " (Debian's package: galera-4)".to_owned(),
        });
    }
    let password = password()?;
    // Each node makes the account for itself; a replica must not meet it again in its primary's log.
    let statements = format!(
        "SET sql_log_bin = 0;\n\
         DROP USER IF EXISTS ''@'localhost';\n\
         CREATE USER IF NOT EXISTS kingsnake@'127.0.0.1' IDENTIFIED BY '{password}';\n\
         GRANT ALL ON *.* TO kingsnake@'127.0.0.1' WITH GRANT OPTION;\n\
         CREATE DATABASE IF NOT EXISTS kingsnake;\n"
    );
    let peers = (0..wanted.nodes)
        .map(|_| free_port())
        .collect::<Result<Vec<u16>, _>>()?;
    // Who joins a cluster as a node has all that is in it.
    let certificate = is_cluster
        .then(|| Certificate::make(private, user))
        .transpose()?;
    let mut primary = 0;
    for node in 0..wanted.nodes {
        let root = private.home.path.join(node.to_string());
        make_for(&root, user)?;
        let data = root.join("data");
        let account = root.join("account.sql");
        let mut statements = statements.clone();
        if wanted.has_roles && node > 0 {
            statements += &follow(primary, &password);
        }
        put_for(&account, &statements, user)?;
        let args = [
            "--no-defaults".to_owned(),
            format!("--datadir={}", data.display()),
            // By the server's own user over its socket, which is in a directory of that user's.
            "--auth-root-authentication-method=socket".to_owned(),
            "--skip-test-db".to_owned(),
        ];
        run(&install, &args, user)?;
        let init = format!("--init-file={}", account.display());
        let port = free_port()?;
        if node == 0 {
            primary = port;
        }
        let mut args = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={}", data.display()),
            format!("--socket={}", root.join("socket").display()),
            format!("--pid-file={}", root.join("pid").display()),
            format!("--port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            init.clone(),
            format!("--server-id={}", node + 1),
            "--log-bin=binlog".to_owned(),
            "--log-slave-updates".to_owned(),
            "--binlog-format=ROW".to_owned(),
            // A crash of the server loses nothing by it; only one of the machine would.
            "--innodb-flush-log-at-trx-commit=2".to_owned(),
            "--innodb-buffer-pool-size=32M".to_owned(),
            format!("--max-connections={}", wanted.sessions * 2 + 20),
            "--skip-name-resolve".to_owned(),
        ];
        if let Some(certificate) = &certificate {
            args.extend(cluster(node, &peers, certificate)?);
        } else if node > 0 {
            args.push("--read-only".to_owned());
        }
        let log = private.home.path.join(format!("{node}.log"));
        let mut process = Process::new(program.clone(), args, user, log, port);
        if wanted.faults.contains(&ServerFault::Failover) && node > 0 {
            let settings = root.join("client.cnf");
            let account = format!(
                "[client]\nhost=127.0.0.1\nport={port}\nuser=kingsnake\npassword={password}\n"
            );
            put_for(&settings, &account, user)?;
            process.promotion = Some(promotion(&settings, &init)?);
        }
        let url = format!("mysql://kingsnake:{password}@127.0.0.1:{port}/kingsnake");
        private.add(process, url)?;
        // One node after another: the later ones take their data from the first.
        private.wait(node)?;
    }
    Ok(())
}

/// What makes a node a replica. It runs whenever the node starts; where it was in the log it knows by itself.
fn follow(primary: u16, password: &str) -> String {
    format!(
        "STOP SLAVE;\n\
         CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary}, MASTER_USER='kingsnake', \
         MASTER_PASSWORD='{password}', MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos;\n\
         START SLAVE;\n"
    )
}

/// Applies what the replica has received, and lets clients write.
const PROMOTE: &str = r#"
set -e
received=$("$0" "$1" -e 'SHOW SLAVE STATUS\G' | sed -n 's/^ *Gtid_IO_Pos: *//p')
exec "$0" "$1" -e "SELECT MASTER_GTID_WAIT('$received', 20); STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0"
"#;

/// What makes a replica a primary, which its init file would make a replica again.
fn promotion(settings: &Path, init: &str) -> Result<Promotion, ServerError> {
    let client = find_program(&["mariadb", "mysql"], " (Debian's package: mariadb-client)")?;
    let settings = format!("--defaults-file={}", settings.display());
    let words = [
        "-c",
        PROMOTE.trim(),
        &client.display().to_string(),
        &settings,
    ];
    Ok(Promotion {
        program: find_program(&["sh"], "")?,
        args: words.map(str::to_owned).into(),
        gone: vec!["--read-only".to_owned(), init.to_owned()],
    })
}

fn cluster(
    node: usize,
    peers: &[u16],
    certificate: &Certificate,
) -> Result<Vec<String>, ServerError> {
    let all: Vec<String> = peers
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    // The first node makes the cluster, the others join it.
    let address = if node == 0 {
        String::new()
    } else {
        all[..node].join(",")
    };
    let (ist, sst) = (free_port()?, free_port()?);
    Ok(vec![
        "--wsrep-on=ON".to_owned(),
        format!("--wsrep-provider={PROVIDER}"),
        format!("--wsrep-cluster-address=gcomm://{address}"),
        format!("--wsrep-node-address=127.0.0.1:{}", peers[node]),
        format!("--wsrep-node-name=node{node}"),
        "--wsrep-sst-method=rsync".to_owned(),
        format!("--wsrep-sst-receive-address=127.0.0.1:{sst}"),
        format!(
            "--wsrep-provider-options=base_port={};gmcast.listen_addr=ssl://127.0.0.1:{};ist.recv_addr=ssl://127.0.0.1:{ist};\
             gcache.size=16M;socket.ssl_cert={};socket.ssl_key={};socket.ssl_ca={}",
            peers[node],
            peers[node],
            certificate.certificate,
            certificate.key,
            certificate.certificate
        ),
        "--innodb-autoinc-lock-mode=2".to_owned(),
    ])
}
