# One flow of ns-2 2.35 (Debian ns2) that loses the packets it is told to; prints when it sent which segment.
#
#   ns drops.tcl AGENT SEGMENTS WINDOW DROP...
#
# AGENT: FullTcp, FullTcp/Sack, Reno, Newreno, Sack1 or Linux (with Linux's reno). SEGMENTS: data to send, segments of
# 1000 B. WINDOW: the receiver's, segments, and the first ssthresh. DROP: number of a data packet, from 1, copies
# counted. Path: 10 Mbit/s, round trip 100 ms, no queue limit, an ACK for each segment, initial window 2, least RTO 1 s.
# Output: "ms number" for each data packet sent, number from 1; a packet with less than a segment is left out.

lassign $argv agent segments window
set drops [lrange $argv 3 end]
set full [string match FullTcp* $agent]

set ns [new Simulator]
remove-all-packet-headers
add-packet-header IP TCP Flags
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ $window
Agent/TCP set windowInit_ 2
Agent/TCP set minrto_ 1.0
Agent/TCP set syn_ false
Agent/TCP set delay_growth_ false
Agent/TCP/FullTcp set segsize_ 1000
Agent/TCP/FullTcp set syn_ true
Agent/TCP/FullTcp set nodelay_ true

foreach name {left middle right} { set $name [$ns node] }
$ns duplex-link $left $middle 10Mb 50ms DropTail
$ns duplex-link $middle $right 10Gb 0ms DropTail
foreach {a b} [list $left $middle $middle $left $middle $right $right $middle] { $ns queue-limit $a $b 100000 }

set tcp [new Agent/TCP/$agent]
if {$full} {
    set sink [new Agent/TCP/$agent]
    $sink listen
} elseif {$agent eq "Sack1" || $agent eq "Linux"} {
    set sink [new Agent/TCPSink/Sack1]
} else {
    set sink [new Agent/TCPSink]
}
$ns attach-agent $left $tcp
$ns attach-agent $right $sink
$ns connect $tcp $sink
$tcp set fid_ 1
$sink set fid_ 2
if {$agent eq "Linux"} { $ns at 0 "$tcp select_ca reno" }

# Packets before the first with data: a SYN and the ACK of the peer's.
set before [expr {$full ? 2 : 0}]
set errors [new ErrorModel/List]
set list {}
foreach drop $drops { lappend list [expr {$drop - 1 + $before}] }
$errors droplist $list
$errors drop-target [new Agent/Null]
$ns link-lossmodel $errors $middle $right

set trace [open $env(TRACE) w]
$ns trace-queue $left $middle $trace

if {$full} {
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at 0 "$ftp send [expr {$segments * 1000}]"
} else {
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at 0 "$ftp produce $segments"
}
$ns at 60 { close $trace; exit 0 }
$ns run
