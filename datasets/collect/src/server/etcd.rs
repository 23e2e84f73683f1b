//! A private etcd, or a cluster of them, on loopback, which takes clients and other nodes by their certificate only.

use super::certificate::Certificate;
use super::process::{Process, free_port, make_for, user};
use super::{Private, ServerError, Wanted};

pub(super) fn start(private: &mut Private, wanted: &Wanted<'_>) -> Result<(), ServerError> {
    let program = wanted.program(&["etcd"], " (Debian's package: etcd-server)")?;
    let user = user("etcd");
    let certificate = Certificate::make(private, user)?;
    let peers = (0..wanted.nodes)
        .map(|_| free_port())
        .collect::<Result<Vec<u16>, _>>()?;
    let cluster: Vec<String> = peers
        .iter()
        .enumerate()
        .map(|(node, port)| format!("node{node}=https://127.0.0.1:{port}"))
        .collect();
    for (node, peer) in peers.iter().enumerate() {
        let root = private.home.path.join(node.to_string());
        make_for(&root, user)?;
        let port = free_port()?;
        let url = format!("https://127.0.0.1:{port}");
        let mut args = vec![
            format!("--name=node{node}"),
            format!("--data-dir={}", root.join("data").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls=https://127.0.0.1:{peer}"),
            format!("--initial-advertise-peer-urls=https://127.0.0.1:{peer}"),
            format!("--initial-cluster={}", cluster.join(",")),
            "--initial-cluster-state=new".to_owned(),
            "--logger=zap".to_owned(),
            "--log-level=error".to_owned(),
        ];
        for whose in ["", "peer-"] {
            args.extend([
                format!("--{whose}cert-file={}", certificate.certificate),
                format!("--{whose}key-file={}", certificate.key),
                format!("--{whose}trusted-ca-file={}", certificate.certificate),
                format!("--{whose}client-cert-auth"),
            ]);
        }
        let log = private.home.path.join(format!("{node}.log"));
        let process = Process::new(program.clone(), args, user, log, port);
        private.add(process, url + &certificate.query())?;
    }
    // None answers before most are there.
    (0..wanted.nodes).try_for_each(|node| private.wait(node))
}
