#!/bin/bash
# A private Slurm on loopback: munged, slurmctld and NODES slurmds, as any user. up.sh DIR NODES CPUS, ports from $BASE on;
# pids go to DIR/pids. Everything stays in the foreground of background jobs, so that nothing is left to an init that does
# not reap. A node that dies is noticed after five seconds, and its tasks run again five seconds later.
set -eu
D=$(realpath -m "$1"); N=$2; C=$3; H=$(hostname -s)
PATH=$PATH:/usr/sbin
mkdir -p "$D"/{pids,state,log,spool,munge}; chmod 755 "$D" "$D/munge"
dd if=/dev/urandom of="$D/munge/key" bs=1 count=1024 status=none; chmod 400 "$D/munge/key"
{
cat <<CONF
ClusterName=kingsnake
SlurmctldHost=$H(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$BASE
SlurmdPort=$((BASE + 1))
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$D/munge/socket,cred_expire=5
StateSaveLocation=$D/state
SlurmdSpoolDir=$D/spool/%n
SlurmctldPidFile=$D/slurmctld.pid
SlurmdPidFile=$D/slurmd-%n.pid
SlurmctldLogFile=$D/log/slurmctld.log
SlurmdLogFile=$D/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=10000
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
ReturnToService=2
SlurmdTimeout=5
SlurmctldTimeout=5
MessageTimeout=5
KillWait=2
InactiveLimit=0
MinJobAge=300
JobRequeue=1
UnkillableStepTimeout=10
SlurmdParameters=config_overrides
CONF
for i in $(seq "$N"); do
    echo "NodeName=n$i NodeHostname=$H NodeAddr=127.0.0.1 Port=$((BASE + 1 + i)) CPUs=$C RealMemory=4000 State=UNKNOWN"
done
echo "PartitionName=main Nodes=n[1-$N] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO"
} >"$D/slurm.conf"
export SLURM_CONF=$D/slurm.conf
start() {
    name=$1
    shift
    "$@" >>"$D/log/out" 2>&1 </dev/null &
    echo $! >"$D/pids/$name"
}
start munged munged -F --force --num-threads=2 --key-file="$D/munge/key" --socket="$D/munge/socket" \
    --pid-file="$D/munge/pid" --log-file="$D/log/munged.log" --seed-file="$D/munge/seed"
for _ in $(seq 100); do [ -S "$D/munge/socket" ] && break; sleep 0.05; done
start slurmctld slurmctld -D
for i in $(seq "$N"); do
    mkdir -p "$D/spool/n$i"
    start "slurmd-n$i" slurmd -D -N "n$i"
done
for _ in $(seq 300); do
    [ "$(sinfo -h -N -t idle 2>/dev/null | wc -l)" = "$N" ] && exit 0
    sleep 0.1
done
echo "the nodes did not come up; the logs end with:" >&2
tail -n 5 "$D"/log/* >&2
exit 1
