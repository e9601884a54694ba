/* Sets the wall clock of a program back by BEHIND seconds. Load it into redis-server with LD_PRELOAD. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
	int failed = syscall(SYS_gettimeofday, tv, zone);
	if (!failed && tv) tv->tv_sec -= BEHIND;
	return failed;
}

int clock_gettime(clockid_t clock, struct timespec *ts) {
	int failed = syscall(SYS_clock_gettime, clock, ts);
	if (!failed && clock == CLOCK_REALTIME) ts->tv_sec -= BEHIND;
	return failed;
}

time_t time(time_t *at) {
	struct timeval tv;
	gettimeofday(&tv, NULL);
	if (at) *at = tv.tv_sec;
	return tv.tv_sec;
}
