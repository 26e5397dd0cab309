/* Loaded before libc: ends the process, as SIGKILL would, before the n-th call that changes a file below a folder.

A write is half done then, as in a loss of power; `arm` says when and where, `calls` how many there were. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char below[PATH_MAX];
static long left = -1, seen = 0;

void arm(long n, const char *folder) {
    seen = 0;
    left = n;
    strncpy(below, folder, PATH_MAX - 1);
}
long calls(void) { return seen; }

static int inside(const char *path) { return below[0] && strncmp(path, below, strlen(below)) == 0; }

static int of_fd(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return inside(path);
}

static int of_path(int folder, const char *path) {
    char whole[PATH_MAX];
    if (path[0] == '/') return inside(path);
    if (folder != AT_FDCWD) return of_fd(folder);
    return getcwd(whole, PATH_MAX) && inside(whole);
}

static int due(int ours) {
    if (!ours) return 0;
    seen++;
    return left >= 0 && seen > left;
}
static void end(void) { kill(getpid(), SIGKILL); pause(); }

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *b, size_t n) {
    if (due(of_fd(fd))) { REAL(write)(fd, b, n / 2); end(); }
    return REAL(write)(fd, b, n);
}
ssize_t pwrite(int fd, const void *b, size_t n, off_t at) {
    if (due(of_fd(fd))) { REAL(pwrite)(fd, b, n / 2, at); end(); }
    return REAL(pwrite)(fd, b, n, at);
}
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t at) {
    if (due(of_fd(fd))) { REAL(pwrite64)(fd, b, n / 2, at); end(); }
    return REAL(pwrite64)(fd, b, n, at);
}
#define BEFORE(kind, name, types, names, ours) \
    kind name types { if (due(ours)) end(); return REAL(name) names; }
BEFORE(int, fsync, (int fd), (fd), of_fd(fd))
BEFORE(int, fdatasync, (int fd), (fd), of_fd(fd))
BEFORE(int, ftruncate, (int fd, off_t n), (fd, n), of_fd(fd))
BEFORE(int, ftruncate64, (int fd, off64_t n), (fd, n), of_fd(fd))
BEFORE(int, rename, (const char *a, const char *b), (a, b), of_path(AT_FDCWD, a) || of_path(AT_FDCWD, b))
BEFORE(int, renameat, (int f, const char *a, int g, const char *b), (f, a, g, b), of_path(f, a) || of_path(g, b))
BEFORE(int, link, (const char *a, const char *b), (a, b), of_path(AT_FDCWD, b))
BEFORE(int, linkat, (int f, const char *a, int g, const char *b, int how), (f, a, g, b, how), of_path(g, b))
BEFORE(int, unlink, (const char *a), (a), of_path(AT_FDCWD, a))
BEFORE(int, unlinkat, (int f, const char *a, int how), (f, a, how), of_path(f, a))
BEFORE(int, mkdir, (const char *a, mode_t m), (a, m), of_path(AT_FDCWD, a))
BEFORE(int, rmdir, (const char *a), (a), of_path(AT_FDCWD, a))
