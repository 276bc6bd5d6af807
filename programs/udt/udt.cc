// A sender and a receiver on libudt, for measuring: memory to memory, one connection, a line of numbers per interval.
//
//   udt receive ADDRESS PORT SECONDS INTERVAL_MS WINDOW_BYTES MTU
//   udt send    ADDRESS PORT SECONDS INTERVAL_MS WINDOW_BYTES MTU
//
// The receiver writes "ms bytes": time since the connection, and bytes that recv has returned. The sender writes
// "ms period_us congestion_window flow_window in_flight rtt_ms capacity_mbps sent retransmitted lost acks": windows and
// counts in packets, counts since the start. Both end after SECONDS, the receiver also when the sender has closed.
// Errors are one line, exit code 1.

#include <arpa/inet.h>
#include <udt.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// Bytes of one call of send or recv: about fifty packets, so that calls are no limit.
constexpr int BLOCK = 1 << 16;

[[noreturn]] void fail(const char *what)
{
	std::fprintf(stderr, "udt: %s: %s\n", what, UDT::getlasterror().getErrorMessage());
	std::exit(1);
}

struct Options {
	sockaddr_in address;
	double seconds;
	long interval_ms;
	int window_bytes;
	int mtu;
};

double ms_since(Clock::time_point start)
{
	return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void set(UDTSOCKET socket, UDT::SOCKOPT option, int value, const char *name)
{
	if (UDT::setsockopt(socket, 0, option, &value, sizeof value) == UDT::ERROR)
		fail(name);
}

UDTSOCKET open_socket(const Options &options)
{
	UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
	if (socket == UDT::INVALID_SOCK)
		fail("socket");
	set(socket, UDT_MSS, options.mtu, "UDT_MSS");
	// The flow window counts packets. It comes first: a receive buffer is at most as large.
	const int packets = options.window_bytes / (options.mtu - 28);
	set(socket, UDT_FC, packets > 32 ? packets : 32, "UDT_FC");
	set(socket, UDT_RCVBUF, options.window_bytes, "UDT_RCVBUF");
	// The sender's holds all that may be in flight, and as much again.
	const long buffer = 2L * options.window_bytes;
	set(socket, UDT_SNDBUF, buffer < (1 << 30) ? static_cast<int>(buffer) : 1 << 30, "UDT_SNDBUF");
	set(socket, UDP_SNDBUF, 1 << 22, "UDP_SNDBUF");
	set(socket, UDP_RCVBUF, 1 << 24, "UDP_RCVBUF");
	return socket;
}

int receive(const Options &options)
{
	UDTSOCKET listener = open_socket(options);
	if (UDT::bind(listener, reinterpret_cast<const sockaddr *>(&options.address), sizeof options.address) ==
	    UDT::ERROR)
		fail("bind");
	if (UDT::listen(listener, 1) == UDT::ERROR)
		fail("listen");
	std::printf("listening\n");
	std::fflush(stdout);
	sockaddr_in peer;
	int length = sizeof peer;
	UDTSOCKET connection = UDT::accept(listener, reinterpret_cast<sockaddr *>(&peer), &length);
	if (connection == UDT::INVALID_SOCK)
		fail("accept");
	// So that a silent sender does not stop the report.
	set(connection, UDT_RCVTIMEO, static_cast<int>(options.interval_ms), "UDT_RCVTIMEO");
	std::vector<char> block(BLOCK);
	long long bytes = 0;
	const auto start = Clock::now();
	double due = 0;
	while (ms_since(start) < options.seconds * 1000) {
		const int taken = UDT::recv(connection, block.data(), BLOCK, 0);
		if (taken == UDT::ERROR && UDT::getlasterror().getErrorCode() != CUDTException::ETIMEOUT &&
		    UDT::getlasterror().getErrorCode() != CUDTException::EASYNCRCV)
			break;
		bytes += taken > 0 ? taken : 0;
		const double now = ms_since(start);
		if (now >= due) {
			std::printf("%.3f %lld\n", now, bytes);
			std::fflush(stdout);
			due += options.interval_ms * (1 + static_cast<long>((now - due) / options.interval_ms));
		}
	}
	std::printf("%.3f %lld\n", ms_since(start), bytes);
	UDT::close(connection);
	UDT::close(listener);
	return 0;
}

int send(const Options &options)
{
	UDTSOCKET socket = open_socket(options);
	// Without a linger, closing does not wait for data that no one measures.
	linger none = {0, 0};
	UDT::setsockopt(socket, 0, UDT_LINGER, &none, sizeof none);
	if (UDT::connect(socket, reinterpret_cast<const sockaddr *>(&options.address), sizeof options.address) ==
	    UDT::ERROR)
		fail("connect");
	set(socket, UDT_SNDTIMEO, static_cast<int>(options.interval_ms), "UDT_SNDTIMEO");
	const std::vector<char> block(BLOCK);
	const auto start = Clock::now();
	double due = 0;
	while (ms_since(start) < options.seconds * 1000) {
		if (UDT::send(socket, block.data(), BLOCK, 0) == UDT::ERROR) {
			const int code = UDT::getlasterror().getErrorCode();
			// The receiver may end first.
			if (code == CUDTException::ECONNLOST && ms_since(start) > 1000)
				break;
			if (code != CUDTException::ETIMEOUT)
				fail("send");
		}
		const double now = ms_since(start);
		if (now < due)
			continue;
		UDT::TRACEINFO seen;
		if (UDT::perfmon(socket, &seen, false) == UDT::ERROR)
			fail("perfmon");
		std::printf("%.3f %.3f %d %d %d %.3f %.3f %lld %d %d %d\n", now, seen.usPktSndPeriod,
			    seen.pktCongestionWindow, seen.pktFlowWindow, seen.pktFlightSize, seen.msRTT,
			    seen.mbpsBandwidth, static_cast<long long>(seen.pktSentTotal), seen.pktRetransTotal,
			    seen.pktSndLossTotal, seen.pktRecvACKTotal);
		std::fflush(stdout);
		due += options.interval_ms * (1 + static_cast<long>((now - due) / options.interval_ms));
	}
	UDT::close(socket);
	return 0;
}

} // namespace

int main(int count, char **words)
{
	Options options = {};
	options.address.sin_family = AF_INET;
	const std::string role = count == 8 ? words[1] : "";
	if ((role != "send" && role != "receive") || inet_pton(AF_INET, words[2], &options.address.sin_addr) != 1) {
		std::fprintf(stderr,
			     "usage: udt send|receive ADDRESS PORT SECONDS INTERVAL_MS WINDOW_BYTES MTU\n");
		return 2;
	}
	options.address.sin_port = htons(static_cast<unsigned short>(std::atoi(words[3])));
	options.seconds = std::atof(words[4]);
	options.interval_ms = std::atol(words[5]);
	options.window_bytes = std::atoi(words[6]);
	options.mtu = std::atoi(words[7]);
	if (options.seconds <= 0 || options.interval_ms <= 0 || options.window_bytes <= 0 || options.mtu <= 76) {
		std::fprintf(stderr, "udt: SECONDS, INTERVAL_MS and WINDOW_BYTES above 0, MTU above 76\n");
		return 2;
	}
	UDT::startup();
	const int status = role == "send" ? send(options) : receive(options);
	UDT::cleanup();
	return status;
}
