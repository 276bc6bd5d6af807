/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * One TCP connection between two network namespaces, and its sender's window over time. Linked statically: the machine
 * that it runs in has no libraries.
 *
 *   traffic SENDER RECEIVER ADDRESS PORT CONTROL SECONDS SKIPPED_S
 *
 * Prints one line of JSON without braces: goodput behind the first SKIPPED_S seconds, windows every 0.1 s in segments.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_S 0.1
#define MOST_SAMPLES 4096

static char part[1 << 18];

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "traffic: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void enter(const char *namespace)
{
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/run/netns/%s", namespace);
	file = open(path, O_RDONLY);
	if (file < 0 || setns(file, CLONE_NEWNET))
		fail(path);
	close(file);
}

/* Receives; writes the goodput in Mbit/s to `told`. */
static void take(int listener, int told, double seconds, double skipped_s)
{
	int peer = accept(listener, 0, 0);
	double began = now_s(), from = 0, mbps;
	unsigned long counted = 0;
	ssize_t got;

	while (now_s() < began + seconds && (got = read(peer, part, sizeof(part))) > 0) {
		if (from)
			counted += (unsigned long)got;
		else if (now_s() >= began + skipped_s)
			from = now_s();
	}
	mbps = from ? 8e-6 * (double)counted / (now_s() - from) : 0;
	if (write(told, &mbps, sizeof(mbps)) < 0)
		_exit(1);
	_exit(0);
}

int main(int words, char **word)
{
	static unsigned windows[MOST_SAMPLES];
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct linger at_once = { 1, 0 };
	struct tcp_info info = { 0 };
	socklen_t size;
	unsigned samples = 0, reductions = 0, threshold = ~0u;
	int on = 1, listener, own, told[2];
	double seconds, skipped_s, began, mbps = 0;

	if (words != 8)
		return 2;
	seconds = atof(word[6]);
	skipped_s = atof(word[7]);
	inet_pton(AF_INET, word[3], &address.sin_addr);
	address.sin_port = htons((unsigned short)atoi(word[4]));
	enter(word[2]);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1) || pipe(told))
		fail("listen");
	if (!fork())
		take(listener, told[1], seconds, skipped_s);
	enter(word[1]);
	own = socket(AF_INET, SOCK_STREAM, 0);
	if (setsockopt(own, IPPROTO_TCP, TCP_CONGESTION, word[5], (socklen_t)strlen(word[5])))
		fail(word[5]);
	if (connect(own, (struct sockaddr *)&address, sizeof(address)))
		fail("connect");
	fcntl(own, F_SETFL, O_NONBLOCK);
	began = now_s();
	while (now_s() < began + seconds) {
		if (now_s() >= began + SAMPLE_S * samples && samples < MOST_SAMPLES) {
			size = sizeof(info);
			getsockopt(own, IPPROTO_TCP, TCP_INFO, &info, &size);
			reductions += info.tcpi_snd_ssthresh < threshold && samples;
			threshold = info.tcpi_snd_ssthresh;
			windows[samples++] = info.tcpi_snd_cwnd;
		}
		while (write(own, part, 1 << 16) > 0)
			continue;
		usleep(20000);
	}
	setsockopt(own, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(own);
	if (read(told[0], &mbps, sizeof(mbps)) != sizeof(mbps))
		fail("the receiver");
	wait(0);
	printf("\"mbps\": %.4f, \"retransmitted\": %u, \"falls\": %u, \"windows\": [", mbps, info.tcpi_total_retrans,
	       reductions);
	for (unsigned i = 0; i < samples; i++)
		printf(i ? ",%u" : "%u", windows[i]);
	puts("]");
	return 0;
}
