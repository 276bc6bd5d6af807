#!/bin/busybox sh
# First program of the virtual machine: two lanes (sender, router, receiver), ours and Linux's controls; carries a pair
# of connections for each line of /runs and prints what came out.
/bin/busybox --install -s /bin
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev && mount -t bpf bpf /sys/fs/bpf
mkdir -p /run/netns /tmp
export LD_LIBRARY_PATH=/own PATH=/bin
# By their paths: busybox has an ip and a tc of its own, which know less.
ip() { /own/ip "$@"; }
tc() { /own/tc "$@"; }
for module in /modules/*; do insmod "$module"; done
for object in /objects/*; do /own/bpftool struct_ops register "$object" || echo "refused: $object"; done
echo "controls: $(cat /proc/sys/net/ipv4/tcp_available_congestion_control)"

# Packets as on a line: none are made larger than a segment, none are joined.
device() { # NAMESPACE DEVICE ADDRESS
    ip -n "$1" link set "$2" gso_max_segs 1 gso_max_size 1514
    ip -n "$1" address add "$3" dev "$2"
    ip -n "$1" link set "$2" up
}
for lane in 0 1; do
    for part in send mid take; do ip netns add $part$lane; ip -n $part$lane link set lo up; done
    ip link add near netns send$lane type veth peer name left netns mid$lane
    ip link add far netns take$lane type veth peer name right netns mid$lane
    device send$lane near 10.0.1.1/24
    device mid$lane left 10.0.1.2/24
    device mid$lane right 10.0.2.2/24
    device take$lane far 10.0.2.1/24
    ip -n send$lane route add default via 10.0.1.2
    ip -n take$lane route add default via 10.0.2.2
    ip netns exec mid$lane sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
    ip netns exec send$lane sh -c 'echo 1 >/proc/sys/net/ipv4/tcp_no_metrics_save
        echo "4096 4000000 8000000" >/proc/sys/net/ipv4/tcp_wmem'
    ip netns exec take$lane sh -c 'echo "4096 4000000 8000000" >/proc/sys/net/ipv4/tcp_rmem'
done

port=10000
while read -r number linux ours rate rtt loss queue seconds skipped; do
    port=$((port + 1))
    for lane in 0 1; do
        tc -n mid$lane qdisc replace dev right root netem rate "${rate}mbit" limit "$queue" loss random "$loss%"
        tc -n mid$lane qdisc replace dev left root netem delay "${rtt}ms" limit 20000
    done
    before=$(head -1 /proc/stat)
    /own/traffic send0 take0 10.0.2.1 $port "$linux" "$seconds" "$skipped" >/tmp/linux &
    /own/traffic send1 take1 10.0.2.1 $port "$ours" "$seconds" "$skipped" >/tmp/ours &
    wait
    after=$(head -1 /proc/stat)
    busy=$(printf '%s\n%s\n' "$before" "$after" | awk '{ all = 0; for (i = 2; i <= 9; i++) all += $i; idle = $5 + $6
        if (NR == 2) printf "%.3f", 1 - (idle - idle_before) / (all - all_before)
        all_before = all; idle_before = idle }')
    for side in linux ours; do
        [ -s /tmp/$side ] && echo "result: {\"number\": $number, \"side\": \"$side\", \"busy\": $busy, $(cat /tmp/$side)}"
    done
done </runs
echo "all done"
echo o >/proc/sysrq-trigger
sleep 60
