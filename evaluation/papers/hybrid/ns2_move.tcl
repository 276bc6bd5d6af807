# A cell of the paper in ns-2 (Debian ns2 2.35), whose simulator and TCP the paper used:
#
#   ns ns2_move.tcl key value ...
#
# Keys: the rates of figure 2, bit/s; rtt_s; light, the lightpath's part of a one-way delay; queue_packets of r3,
# first_packets of the sender's own link and deep_packets of the others; packet, bytes with headers; window_packets;
# initial_ssthresh; ca; sink (Sack1, or Sack1/DelAck); move_s, when r1 changes its way (negative: as soon as 0.1 s
# carries 0.95 of limit_bps); stay 1: never; seconds after the move; trace, a file, or "|command", that takes ns-2's
# trace of the ACKs that come to the sender. Prints a JSON line per 0.1 s: time since the move and since the start,
# payload bit/s acknowledged, packets dropped at r3 and at the sender's link so far, ACKs sent so far, segments
# acknowledged, window, packets in r3's queue, segments sent again so far.

array set option {
    beta 2.488e9  phi1 2.488e9  phi2 2.488e9  xi 1e9  limit_bps 1e9  rtt_s 0.01  light 0.2  queue_packets 500  first_packets 10000000
    deep_packets 10000000  packet 1500  window_packets 1000000  initial_ssthresh 833  ca cubic  sink Sack1  move_s -1  seconds 10  stay 0
    trace ""
}
array set option $argv

set ns [new Simulator]
remove-all-packet-headers
add-packet-header IP TCP Flags
Agent/TCP set packetSize_ [expr {$option(packet) - 40}]
Agent/TCP set tcpip_base_hdr_size_ 40
Agent/TCP set window_ $option(window_packets)
Agent/TCP set maxcwnd_ 0
Agent/TCP set windowInit_ 10

foreach name {sender r1 r2 r3 receiver} { set $name [$ns node] }
proc both {a b rate delay} {
    global ns option
    $ns duplex-link $a $b $rate ${delay}s DropTail
    $ns queue-limit $a $b $option(deep_packets)
    $ns queue-limit $b $a $option(deep_packets)
}
both $sender $r1 $option(beta) 0
both $r1 $r2 $option(phi1) [expr {$option(rtt_s) / 4}]
both $r2 $r3 $option(phi1) [expr {$option(rtt_s) / 4}]
both $r1 $r3 $option(phi2) [expr {$option(rtt_s) / 2 * $option(light)}]
both $r3 $receiver $option(xi) 0
$ns queue-limit $r3 $receiver $option(queue_packets)
$ns queue-limit $sender $r1 $option(first_packets)
# By hops the lightpath would be the way from the start.
$ns cost $r1 $r3 100
$ns cost $r3 $r1 100
set last [$ns monitor-queue $r3 $receiver [open /dev/null w]]
set first [$ns monitor-queue $sender $r1 [open /dev/null w]]
set acks [$ns monitor-queue $receiver $r3 [open /dev/null w]]
if {$option(trace) ne ""} { $ns trace-queue $r1 $sender [open $option(trace) w] }

set tcp [new Agent/TCP/Linux]
set sink [new Agent/TCPSink/$option(sink)]
$ns attach-agent $sender $tcp
$ns attach-agent $receiver $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
# End of slow start: cubic sets it itself, when it is chosen.
if {$option(ca) eq "cubic"} { $ns at 0 "$tcp set_ca_default_param cubic initial_ssthresh $option(initial_ssthresh)" }
$ns at 0 "$tcp select_ca $option(ca)"
$ns at 0 "$ftp start"

set moved_s -1
set acked 0
proc move {} {
    global ns option r1 r3 receiver moved_s
    set moved_s [$ns now]
    if {!$option(stay)} { $r1 add-route [$receiver id] [[$ns link $r1 $r3] head] }
    $ns at [expr {$moved_s + $option(seconds)}] "exit 0"
}
proc look {} {
    global ns option tcp last first acks acked moved_s
    set now [$ns now]
    set ack [$tcp set ack_]
    set rate [expr {($ack - $acked) * ($option(packet) - 40) * 8 / 0.1}]
    set acked $ack
    set since [expr {$moved_s < 0 ? $now - 1e6 : $now - $moved_s}]
    puts [format {{"time_s": %.1f, "now_s": %.1f, "rate_bps": %.0f, "dropped": %d, "dropped_first": %d, "acks": %d, "acked": %d, "cwnd": %.0f, "queue": %d, "again": %d}} \
        $since $now $rate [$last set pdrops_] [$first set pdrops_] [$acks set pdepartures_] $ack [$tcp set cwnd_] [$last set pkts_] [$tcp set nrexmitpack_]]
    if {$moved_s < 0 && ($option(move_s) >= 0 ? $now >= $option(move_s) : $rate >= 0.95 * $option(limit_bps))} { move }
    $ns at [expr {$now + 0.1}] look
}
$ns at 0.1 look
$ns run
