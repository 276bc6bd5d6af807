# The bench's dumbbell in ns-2 (Debian ns2 2.35): Agent/TCP/Linux senders, SACK sinks that delay ACKs, drop-tail queues.
#
#   ns ns2_dumbbell.tcl key value ...
#
# Keys: flows, ca (reno, cubic), rate_bps, rtt_s, loss (probability per data packet at the bottleneck), queue_packets,
# stagger_s (between starts), seconds, window_packets, seed, mark_s (interval of progress lines, simulated),
# ack_delay_s, delayed_ack (0: an ACK per segment). Every mark prints one JSON line: simulated time, CPU time of this
# process, packets acknowledged cumulatively by all flows, data packets sent, retransmitted, the first flow's window,
# packets dropped at the bottleneck.

array set option {
    flows 1  ca cubic  rate_bps 1e9  rtt_s 0.1  loss 0  queue_packets 1000  stagger_s 0.1  seconds 10
    window_packets 1000000  seed 1  mark_s 1  ack_delay_s 0.04  delayed_ack 1
}
array set option $argv

# CPU seconds of this process: user and system, in ticks of 1/100 s (proc(5), fields 14 and 15).
proc cpu_s {} {
    set file [open /proc/self/stat]
    set fields [split [lindex [split [read $file] ")"] 1]]
    close $file
    expr {([lindex $fields 12] + [lindex $fields 13]) / 100.0}
}

ns-random $option(seed)
set ns [new Simulator]
# Only the headers in use: ns-2 otherwise carries every protocol's header in each packet.
remove-all-packet-headers
add-packet-header IP TCP Flags

# 1448 bytes of payload and 52 of headers: a 1500-byte packet of TCP with timestamps.
Agent/TCP set packetSize_ 1448
Agent/TCP set tcpip_base_hdr_size_ 52
Agent/TCP set window_ $option(window_packets)
Agent/TCP set maxcwnd_ 0
Agent/TCP set windowInit_ 10
Agent/TCP set timestamps_ true
Agent/TCPSink set ts_echo_rfc1323_ true
Agent/TCPSink set interval_ ${option(ack_delay_s)}s

set left [$ns node]
set right [$ns node]
set access_bps [expr {4.0 * $option(rate_bps)}]
# One way: a tenth of the delay on each access link, the rest on the bottleneck.
set access_s [expr {$option(rtt_s) / 2 * 0.1}]
set bottleneck_s [expr {$option(rtt_s) / 2 * 0.8}]
$ns duplex-link $left $right $option(rate_bps) ${bottleneck_s}s DropTail
$ns queue-limit $left $right $option(queue_packets)
$ns queue-limit $right $left 10000000
if {$option(loss) > 0} {
    set generator [new RNG]
    $generator seed $option(seed)
    for {set skip 0} {$skip < $option(seed)} {incr skip} { $generator next-substream }
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $generator
    set errors [new ErrorModel]
    $errors set rate_ $option(loss)
    $errors unit pkt
    $errors ranvar $uniform
    $errors drop-target [new Agent/Null]
    $ns link-lossmodel $errors $left $right
}
set bottleneck [$ns monitor-queue $left $right [open /dev/null w]]

for {set flow 0} {$flow < $option(flows)} {incr flow} {
    set source [$ns node]
    set destination [$ns node]
    foreach {a b} [list $source $left $right $destination] {
        $ns duplex-link $a $b $access_bps ${access_s}s DropTail
        $ns queue-limit $a $b 10000000
        $ns queue-limit $b $a 10000000
    }
    set tcp($flow) [new Agent/TCP/Linux]
    set sink [new Agent/TCPSink/Sack1[expr {$option(delayed_ack) ? "/DelAck" : ""}]]
    $ns attach-agent $source $tcp($flow)
    $ns attach-agent $destination $sink
    $ns connect $tcp($flow) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($flow)
    $ns at 0 "$tcp($flow) select_ca $option(ca)"
    $ns at [expr {$flow * $option(stagger_s)}] "$ftp start"
}

proc mark {} {
    global ns option tcp bottleneck
    set acked 0
    set sent 0
    set repeated 0
    for {set flow 0} {$flow < $option(flows)} {incr flow} {
        set acked [expr {$acked + [$tcp($flow) set ack_] + 1}]
        set sent [expr {$sent + [$tcp($flow) set ndatapack_]}]
        set repeated [expr {$repeated + [$tcp($flow) set nrexmitpack_]}]
    }
    puts [format {{"simulated_s": %.3f, "cpu_s": %.2f, "delivered_packets": %.0f, "sent_packets": %.0f, "retransmitted_segments": %.0f, "cwnd_packets": %.0f, "dropped_packets": %.0f}} \
        [$ns now] [cpu_s] $acked $sent $repeated [$tcp(0) set cwnd_] [$bottleneck set pdrops_]]
    flush stdout
    set next [expr {[$ns now] + $option(mark_s)}]
    if {$next <= $option(seconds) + 1e-3} { $ns at $next mark } else { exit 0 }
}
$ns at 0.000001 mark
$ns run
