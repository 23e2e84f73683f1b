//! A private etcd, or a cluster of them, on loopback.

use super::process::{Process, free_port, make_for, user};
use super::{Private, ServerError, Wanted};

pub(super) fn start(private: &mut Private, wanted: &Wanted<'_>) -> Result<(), ServerError> {
    let program = wanted.program(&["etcd"], " (Debian's package: etcd-server)")?;
    let user = user("etcd");
    let peers = (0..wanted.nodes)
        .map(|_| free_port())
        .collect::<Result<Vec<u16>, _>>()?;
    let cluster: Vec<String> = peers
        .iter()
        .enumerate()
        .map(|(node, port)| format!("node{node}=http://127.0.0.1:{port}"))
        .collect();
    for (node, peer) in peers.iter().enumerate() {
        let root = private.home.path.join(node.to_string());
        make_for(&root, user)?;
        let port = free_port()?;
        let url = format!("http://127.0.0.1:{port}");
        let args = vec![
            format!("--name=node{node}"),
            format!("--data-dir={}", root.join("data").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-cluster={}", cluster.join(",")),
            "--initial-cluster-state=new".to_owned(),
            "--logger=zap".to_owned(),
            "--log-level=error".to_owned(),
        ];
        let log = private.home.path.join(format!("{node}.log"));
        private.add(Process::new(program.clone(), args, user, log, port), url)?;
    }
    // None answers before most are there.
    (0..wanted.nodes).try_for_each(|node| private.wait(node))
}
