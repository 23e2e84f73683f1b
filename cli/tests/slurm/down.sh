#!/bin/bash
# Ends exactly the daemons whose pids up.sh left in DIR/pids: slurmds, then slurmctld, then munged. A zombie counts as ended.
D=$(realpath "$1")
gone() { s=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c1); [ -z "$s" ] || [ "$s" = Z ]; }
for p in "$D"/pids/slurmd-* "$D/pids/slurmctld" "$D/pids/munged"; do
    [ -f "$p" ] || continue
    pid=$(cat "$p")
    kill "$pid" 2>/dev/null
    for _ in $(seq 100); do gone "$pid" && break; sleep 0.05; done
    gone "$pid" || kill -9 "$pid"
    rm -f "$p"
done
true
