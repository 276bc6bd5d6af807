// A sender and a receiver on libudt: one connection.
//
//   udt receive-file ADDRESS PORT WINDOW_BYTES MTU BYTES FILE
//   udt send-file    ADDRESS PORT WINDOW_BYTES MTU BYTES FILE
//
// One writes BYTES that arrive to FILE, which may be a device, and then confirms them with a byte; the other sends
// FILE, waits for that byte, and ends. Nothing else is written, so that what the receiver has written is what it has
// received.
//
// For measuring, memory to memory, a line of numbers per interval:
//
//   udt receive ADDRESS PORT SECONDS INTERVAL_MS WINDOW_BYTES MTU
//   udt send    ADDRESS PORT SECONDS INTERVAL_MS WINDOW_BYTES MTU
//
// The receiver writes "ms bytes": time since the connection, and bytes that recv has returned. The sender writes
// "ms period_us congestion_window flow_window in_flight rtt_ms capacity_mbps sent retransmitted lost acks": windows and
// counts in packets, counts since the start. Both end after SECONDS, the receiver also when the sender has closed.
// Errors are one line, exit code 1.

#include <arpa/inet.h>
#include <fcntl.h>
#include <udt.h>
#include <unistd.h>

#include <cerrno>
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

[[noreturn]] void fail_at_file(const char *file)
{
	std::fprintf(stderr, "udt: %s: %s\n", file, std::strerror(errno));
	std::exit(1);
}

struct Options {
	union {
		sockaddr any;
		sockaddr_in ipv4;
		sockaddr_in6 ipv6;
	} address;
	// libudt refuses any other than that of the family.
	int address_bytes;
	double seconds;
	long interval_ms;
	int window_bytes;
	int mtu;
	long long bytes;
	const char *file;
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
	UDTSOCKET socket = UDT::socket(options.address.any.sa_family, SOCK_STREAM, 0);
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

UDTSOCKET listen(const Options &options)
{
	UDTSOCKET listener = open_socket(options);
	if (UDT::bind(listener, &options.address.any, options.address_bytes) == UDT::ERROR)
		fail("bind");
	if (UDT::listen(listener, 1) == UDT::ERROR)
		fail("listen");
	return listener;
}

UDTSOCKET accept(UDTSOCKET listener)
{
	sockaddr_in6 peer;
	int length = sizeof peer;
	UDTSOCKET connection = UDT::accept(listener, reinterpret_cast<sockaddr *>(&peer), &length);
	if (connection == UDT::INVALID_SOCK)
		fail("accept");
	return connection;
}

void connect(UDTSOCKET socket, const Options &options)
{
	if (UDT::connect(socket, &options.address.any, options.address_bytes) == UDT::ERROR)
		fail("connect");
}

void write_all(int file, const char *data, int count, const char *name)
{
	while (count > 0) {
		const ssize_t done = write(file, data, static_cast<size_t>(count));
		if (done < 0 && errno != EINTR)
			fail_at_file(name);
		data += done > 0 ? done : 0;
		count -= done > 0 ? static_cast<int>(done) : 0;
	}
}

int receive_file(const Options &options)
{
	const int file = open(options.file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (file < 0)
		fail_at_file(options.file);
	UDTSOCKET listener = listen(options);
	UDTSOCKET connection = accept(listener);
	std::vector<char> block(BLOCK);
	for (long long left = options.bytes; left > 0;) {
		const int taken = UDT::recv(connection, block.data(), BLOCK, 0);
		if (taken == UDT::ERROR)
			fail("recv");
		write_all(file, block.data(), taken, options.file);
		left -= taken;
	}
	if (close(file) != 0)
		fail_at_file(options.file);
	const char confirmed = 1;
	if (UDT::send(connection, &confirmed, 1, 0) == UDT::ERROR)
		fail("send");
	// The sender closes when it has the byte; an end before that would lose it.
	char nothing;
	while (UDT::recv(connection, &nothing, 1, 0) != UDT::ERROR)
		;
	UDT::close(connection);
	UDT::close(listener);
	return 0;
}

int send_file(const Options &options)
{
	const int file = open(options.file, O_RDONLY);
	if (file < 0)
		fail_at_file(options.file);
	UDTSOCKET socket = open_socket(options);
	connect(socket, options);
	std::vector<char> block(BLOCK);
	for (long long left = options.bytes; left > 0;) {
		const ssize_t count = read(file, block.data(), left < BLOCK ? static_cast<size_t>(left) : BLOCK);
		if (count == 0)
			errno = ENODATA;
		if (count <= 0)
			fail_at_file(options.file);
		// It may take a part of them.
		for (int sent = 0; sent < count;) {
			const int done = UDT::send(socket, block.data() + sent, static_cast<int>(count) - sent, 0);
			if (done == UDT::ERROR)
				fail("send");
			sent += done;
		}
		left -= count;
	}
	char confirmed;
	if (UDT::recv(socket, &confirmed, 1, 0) == UDT::ERROR)
		fail("the receiver's confirmation");
	close(file);
	UDT::close(socket);
	return 0;
}

int receive(const Options &options)
{
	UDTSOCKET listener = listen(options);
	std::printf("listening\n");
	std::fflush(stdout);
	UDTSOCKET connection = accept(listener);
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
	connect(socket, options);
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

bool read_address(const char *text, const char *port, Options &options)
{
	const in_port_t number = htons(static_cast<unsigned short>(std::atoi(port)));
	if (inet_pton(AF_INET, text, &options.address.ipv4.sin_addr) == 1) {
		options.address.ipv4.sin_family = AF_INET;
		options.address.ipv4.sin_port = number;
		options.address_bytes = sizeof options.address.ipv4;
		return true;
	}
	options.address.ipv6 = {};
	options.address.ipv6.sin6_family = AF_INET6;
	options.address.ipv6.sin6_port = number;
	options.address_bytes = sizeof options.address.ipv6;
	return inet_pton(AF_INET6, text, &options.address.ipv6.sin6_addr) == 1;
}

} // namespace

int main(int count, char **words)
{
	Options options = {};
	const std::string role = count == 8 ? words[1] : "";
	const bool files = role == "send-file" || role == "receive-file";
	if ((role != "send" && role != "receive" && !files) || !read_address(words[2], words[3], options)) {
		std::fprintf(stderr,
			     "usage: udt send|receive ADDRESS PORT SECONDS INTERVAL_MS WINDOW_BYTES MTU, or "
			     "udt send-file|receive-file ADDRESS PORT WINDOW_BYTES MTU BYTES FILE\n");
		return 2;
	}
	if (files) {
		options.window_bytes = std::atoi(words[4]);
		options.mtu = std::atoi(words[5]);
		options.bytes = std::atoll(words[6]);
		options.file = words[7];
		options.seconds = options.interval_ms = 1;
	} else {
		options.seconds = std::atof(words[4]);
		options.interval_ms = std::atol(words[5]);
		options.window_bytes = std::atoi(words[6]);
		options.mtu = std::atoi(words[7]);
		options.bytes = 1;
	}
	if (options.seconds <= 0 || options.interval_ms <= 0 || options.window_bytes <= 0 || options.mtu <= 76 ||
	    options.bytes <= 0) {
		std::fprintf(stderr, "udt: SECONDS, INTERVAL_MS, WINDOW_BYTES and BYTES above 0, MTU above 76\n");
		return 2;
	}
	UDT::startup();
	const int status = role == "send"         ? send(options)
			   : role == "receive"    ? receive(options)
			   : role == "send-file" ? send_file(options)
						 : receive_file(options);
	UDT::cleanup();
	return status;
}
