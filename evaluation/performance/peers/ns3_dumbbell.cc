// The bench's dumbbell in ns-3 (Debian libns3-dev): bulk senders, SACK, delayed ACKs, drop-tail queues in packets.
//
//   ns3_dumbbell --flows=1 --ca=cubic --rateBps=1e9 --rttS=0.1 --loss=0 --queuePackets=8333 --seconds=10 ...
//
// Every mark prints one JSON line: simulated time, CPU time of this process, data packets that reached the receivers'
// applications, the first flow's window, packets dropped at the bottleneck.

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

using namespace ns3;

namespace {

// An IP packet of 1500 bytes with TCP timestamps carries this much.
constexpr std::uint32_t SEGMENT_BYTES = 1448;
// No queue but the bottleneck's is to drop anything.
constexpr std::uint32_t DEEP_QUEUE_PACKETS = 10'000'000;

struct Progress
{
    std::uint64_t bytes{0};
    std::uint64_t dropped{0};
    std::uint32_t cwndBytes{0};
};

Progress g_progress;

void
OnReceived(Ptr<const Packet> packet, const Address&)
{
    g_progress.bytes += packet->GetSize();
}

void
OnDropped(Ptr<const QueueDiscItem>)
{
    g_progress.dropped++;
}

void
OnWindow(std::uint32_t, std::uint32_t now)
{
    g_progress.cwndBytes = now;
}

// The socket exists only once the application has started.
void
WatchWindow(std::uint32_t node)
{
    Config::ConnectWithoutContext("/NodeList/" + std::to_string(node) + "/$ns3::TcpL4Protocol/SocketList/0/CongestionWindow",
                                  MakeCallback(&OnWindow));
}

double
CpuSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void
Mark(double intervalS)
{
    std::printf("{\"simulated_s\": %.3f, \"cpu_s\": %.2f, \"delivered_packets\": %llu, \"cwnd_packets\": %u, "
                "\"dropped_packets\": %llu}\n",
                Simulator::Now().GetSeconds(),
                CpuSeconds(),
                static_cast<unsigned long long>(g_progress.bytes / SEGMENT_BYTES),
                g_progress.cwndBytes / SEGMENT_BYTES,
                static_cast<unsigned long long>(g_progress.dropped));
    std::fflush(stdout);
    Simulator::Schedule(Seconds(intervalS), &Mark, intervalS);
}

} // namespace

int
main(int argc, char* argv[])
{
    std::uint32_t flows = 1;
    std::string ca = "cubic";
    double rateBps = 1e9;
    double rttS = 0.1;
    double loss = 0;
    std::uint32_t queuePackets = 8333;
    double staggerS = 0.1;
    double seconds = 10;
    double markS = 1;
    bool hystart = true;
    std::uint32_t ssthreshPackets = 0;
    std::uint32_t seed = 1;
    CommandLine command(__FILE__);
    command.AddValue("flows", "number of flows", flows);
    command.AddValue("ca", "cubic or reno", ca);
    command.AddValue("rateBps", "bottleneck rate, bit/s", rateBps);
    command.AddValue("rttS", "round-trip time without queues, s", rttS);
    command.AddValue("loss", "loss probability per data packet at the bottleneck", loss);
    command.AddValue("queuePackets", "bottleneck queue, packets", queuePackets);
    command.AddValue("staggerS", "time between the starts of flows, s", staggerS);
    command.AddValue("seconds", "simulated time, s", seconds);
    command.AddValue("markS", "interval of progress lines, simulated s", markS);
    command.AddValue("hystart", "whether cubic leaves slow start by HyStart", hystart);
    command.AddValue("ssthreshPackets", "where the first slow start ends; 0: at the first loss", ssthreshPackets);
    command.AddValue("seed", "run number of the random streams", seed);
    command.Parse(argc, argv);
    RngSeedManager::SetRun(seed);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName(ca == "reno" ? "ns3::TcpNewReno" : "ns3::TcpCubic")));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(hystart));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT_BYTES));
    if (ssthreshPackets > 0)
    {
        Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold", UintegerValue(ssthreshPackets * SEGMENT_BYTES));
    }
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1U << 30));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1U << 30));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));

    // The device itself holds one packet; the queue disc above it is the bottleneck's queue.
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<std::uint64_t>(rateBps))));
    bottleneck.SetDeviceAttribute("Mtu", UintegerValue(1500));
    bottleneck.SetChannelAttribute("Delay", TimeValue(Seconds(rttS / 2 * 0.8)));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize("1p")));
    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<std::uint64_t>(4 * rateBps))));
    access.SetDeviceAttribute("Mtu", UintegerValue(1500));
    access.SetChannelAttribute("Delay", TimeValue(Seconds(rttS / 2 * 0.1)));
    access.SetQueue("ns3::DropTailQueue",
                    "MaxSize",
                    QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, DEEP_QUEUE_PACKETS)));

    NodeContainer routers(2);
    NodeContainer senders(flows);
    NodeContainer receivers(flows);
    InternetStackHelper internet;
    internet.Install(routers);
    internet.Install(senders);
    internet.Install(receivers);

    NetDeviceContainer line = bottleneck.Install(routers);
    if (loss > 0)
    {
        Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        errors->SetRate(loss);
        line.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    }
    TrafficControlHelper dropTail;
    dropTail.SetRootQueueDisc("ns3::FifoQueueDisc",
                              "MaxSize",
                              QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queuePackets)));
    QueueDiscContainer discs = dropTail.Install(line.Get(0));
    discs.Get(0)->TraceConnectWithoutContext("Drop", MakeCallback(&OnDropped));
    TrafficControlHelper deep;
    deep.SetRootQueueDisc("ns3::FifoQueueDisc",
                          "MaxSize",
                          QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, DEEP_QUEUE_PACKETS)));
    deep.Install(line.Get(1));

    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.252");
    addresses.Assign(line);
    constexpr std::uint16_t PORT = 5000;
    for (std::uint32_t flow = 0; flow < flows; ++flow)
    {
        addresses.NewNetwork();
        NetDeviceContainer near = access.Install(senders.Get(flow), routers.Get(0));
        deep.Install(near);
        addresses.Assign(near);
        addresses.NewNetwork();
        NetDeviceContainer far = access.Install(routers.Get(1), receivers.Get(flow));
        deep.Install(far);
        Ipv4InterfaceContainer farAddresses = addresses.Assign(far);

        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
        ApplicationContainer sinkApp = sink.Install(receivers.Get(flow));
        sinkApp.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&OnReceived));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(farAddresses.GetAddress(1), PORT));
        bulk.SetAttribute("SendSize", UintegerValue(SEGMENT_BYTES));
        ApplicationContainer sourceApp = bulk.Install(senders.Get(flow));
        sourceApp.Start(Seconds(flow * staggerS));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Schedule(NanoSeconds(1), &WatchWindow, senders.Get(0)->GetId());
    Simulator::Schedule(Seconds(0), &Mark, markS);
    Simulator::Stop(Seconds(seconds) + NanoSeconds(1));
    Simulator::Run();
    Simulator::Destroy();
    return 0;
}
