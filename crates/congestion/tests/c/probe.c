/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * Puts a BPF object of congestion/ through the running kernel's verifier; on request registers it and carries data.
 *
 *	probe OBJECT [PARAM=VALUE ...]			load, print what the verifier went through
 *	probe OBJECT --carry NAME BYTES [PARAM=VALUE ...]	and send so many bytes over loopback under algorithm NAME
 *
 * The programs, and the registration as well (a BPF link), belong to this process: when it ends, however it ends, the
 * kernel removes them. Data flows in a network namespace of its own. Exit 0: done; 1: it failed, with the reason.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAP_FLAG_LINK (1u << 13) /* BPF_F_LINK: registered by a link, not by an update (Linux 6.4) */
#define ATTACH_STRUCT_OPS 44	 /* BPF_STRUCT_OPS */
#define CONGESTION_OPTION 13	 /* TCP_CONGESTION */

static void die(const char *what, int error)
{
	fprintf(stderr, "probe: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

/* Warnings and the verifier's log, as they come. */
static int print(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_DEBUG ? 0 : vfprintf(stderr, format, args);
}

/* Sets the constant cc_param_<name> of an object that is not yet loaded. */
static void set_param(struct bpf_object *object, const char *assignment)
{
	const struct btf *btf = bpf_object__btf(object);
	int section = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *type = section > 0 ? btf__type_by_id(btf, section) : NULL;
	const char *equals = strchr(assignment, '=');
	struct bpf_map *map;
	char name[64];

	if (!type || !equals)
		die(assignment, EINVAL);
	snprintf(name, sizeof(name), "cc_param_%.*s", (int)(equals - assignment), assignment);
	for (int i = 0; i < btf_vlen(type); i++) {
		const struct btf_var_secinfo *var = btf_var_secinfos(type) + i;

		if (strcmp(btf__name_by_offset(btf, btf__type_by_id(btf, var->type)->name_off), name))
			continue;
		bpf_object__for_each_map(map, object) {
			size_t size;
			char *data;

			if (!strstr(bpf_map__name(map), ".rodata"))
				continue;
			data = (char *)bpf_map__initial_value(map, &size);
			*(long long *)(data + var->offset) = strtoll(equals + 1, NULL, 10);
			return;
		}
	}
	die(assignment, ENOENT);
}

static void loopback_of_our_own(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd;

	if (unshare(CLONE_NEWNET))
		die("unshare(CLONE_NEWNET)", errno);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		die("set lo up", errno);
	close(fd);
}

/* Receives everything; returns the number of bytes. A thread, not a process: none may outlive the registration. */
static void *receive(void *listener)
{
	static char buffer[1 << 16];
	int fd = accept((int)(long)listener, NULL, NULL);
	long long sum = 0;
	ssize_t n;

	if (fd < 0)
		die("accept", errno);
	while ((n = read(fd, buffer, sizeof(buffer))) > 0)
		sum += n;
	if (n < 0)
		die("read", errno);
	return (void *)(long)sum;
}

static void carry(const char *algorithm, long long bytes)
{
	static char buffer[1 << 16];
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	struct tcp_info info;
	socklen_t info_length = sizeof(info);
	char in_force[16] = "";
	socklen_t name_length = sizeof(in_force);
	unsigned first_window;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pthread_t receiver;
	void *received;

	if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &length))
		die("listen", errno);
	errno = pthread_create(&receiver, NULL, receive, (void *)(long)listener);
	if (errno)
		die("pthread_create", errno);
	if (setsockopt(sender, IPPROTO_TCP, CONGESTION_OPTION, algorithm, strlen(algorithm)))
		die("setsockopt(TCP_CONGESTION)", errno);
	if (connect(sender, (struct sockaddr *)&address, length))
		die("connect", errno);
	if (getsockopt(sender, IPPROTO_TCP, TCP_INFO, &info, &info_length))
		die("getsockopt(TCP_INFO)", errno);
	first_window = info.tcpi_snd_cwnd;
	for (long long left = bytes; left > 0;) {
		ssize_t n = write(sender, buffer, left < (long long)sizeof(buffer) ? (size_t)left : sizeof(buffer));

		if (n < 0)
			die("write", errno);
		left -= n;
	}
	if (getsockopt(sender, IPPROTO_TCP, CONGESTION_OPTION, in_force, &name_length))
		die("getsockopt(TCP_CONGESTION)", errno);
	info_length = sizeof(info);
	if (getsockopt(sender, IPPROTO_TCP, TCP_INFO, &info, &info_length))
		die("getsockopt(TCP_INFO)", errno);
	close(sender);
	if (pthread_join(receiver, &received) || (long)received != bytes)
		die("the receiver did not get every byte", EIO);
	printf("carried %lld bytes under %s, first window %u, last window %u\n", bytes, in_force, first_window,
	       info.tcpi_snd_cwnd);
}

int main(int argc, char **argv)
{
	const char *algorithm = NULL;
	struct bpf_program *program;
	struct bpf_object *object;
	struct bpf_map *map;
	unsigned programs = 0, instructions = 0;
	long long bytes = 0;
	int error, ops = -1, arg = 2;

	if (argc < 2)
		die("usage: probe OBJECT [--carry NAME BYTES] [PARAM=VALUE ...]", EINVAL);
	if (argc > 4 && !strcmp(argv[2], "--carry")) {
		algorithm = argv[3];
		bytes = atoll(argv[4]);
		arg = 5;
	}
	libbpf_set_print(print);
	object = bpf_object__open(argv[1]);
	if (!object)
		die("open", errno);
	for (; arg < argc; arg++)
		set_param(object, argv[arg]);
	bpf_object__for_each_map(map, object)
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS)
			bpf_map__set_map_flags(map, algorithm ? MAP_FLAG_LINK : 0);
	error = bpf_object__load(object);
	if (error)
		die("load", error);
	bpf_object__for_each_program(program, object) {
		struct bpf_prog_info info = { 0 };
		unsigned length = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &length))
			die("ask about a program", errno);
		programs++;
		instructions += info.verified_insns;
	}
	printf("verified %u programs, %u instructions\n", programs, instructions);
	if (!algorithm)
		return 0;

	loopback_of_our_own();
	bpf_object__for_each_map(map, object) {
		if (bpf_map__type(map) != BPF_MAP_TYPE_STRUCT_OPS)
			continue;
		/* libbpf fills the map; with MAP_FLAG_LINK that registers nothing yet. */
		if (!bpf_map__attach_struct_ops(map))
			die("fill the map of operations", errno);
		ops = bpf_map__fd(map);
	}
	if (bpf_link_create(ops, 0, ATTACH_STRUCT_OPS, NULL) < 0)
		die("register the algorithm", errno);
	carry(algorithm, bytes);
	return 0;
}
