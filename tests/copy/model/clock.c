/* CLOCK_REALTIME of a process and its children, moved by an offset in seconds that a shared file holds (LD_PRELOAD).
 * libfaketime(1) would do, but its clock_nanosleep(2) refuses the absolute times of Python's sleep. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void map_offset(void)
{
	const char *path = getenv("ELEPHAN_MODEL_CLOCK");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *page;

	if (file < 0)
		return;
	page = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
	if (page != MAP_FAILED)
		offset = page;
	close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long result = syscall(SYS_clock_gettime, clock, now);

	if (result == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += *offset;
	return (int)result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;
	int result = clock_gettime(CLOCK_REALTIME, &precise);

	(void)zone;
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return result;
}

time_t time(time_t *into)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (into)
		*into = now.tv_sec;
	return now.tv_sec;
}
