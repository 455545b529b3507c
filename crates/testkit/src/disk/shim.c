/* Stands between a program under test and its disk. Loaded with LD_PRELOAD, for tests only.
 *
 *   RAINCHECK_DISK_ROOT       only files below this folder are looked at
 *   RAINCHECK_DISK_RECORDING  every change of them is appended to this file, with what the program
 *                             says on its standard output in between; nothing is synced for real
 *   RAINCHECK_DISK_BAD_SYNC   the number of the sync that fails, from 1
 *   RAINCHECK_DISK_FULL       while this file exists, nothing below the root can be written
 *   RAINCHECK_DISK_NO_LOCKS   if set, no file below the root can be locked, as in some network folders
 *   RAINCHECK_DISK_CLOCK      a file with the seconds by which the wall clock is wrong
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { CREATE = 1, WRITE, RESIZE, SYNC, UNLINK, RENAME, MKDIR, SYNC_FOLDER, SAY, BAD_SYNC, BAD_SYNC_FOLDER };
enum { N_FILES = 1024 };

struct head {
    uint32_t kind, length;
    uint64_t inode, place;
};

struct file {
    int is_ours, is_folder;
    uint64_t inode;
    char path[PATH_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *root, *full, *shifted;
static int recording = -1, has_no_locks;
static long bad_sync, n_syncs;
static struct file files[N_FILES];

__attribute__((constructor)) static void begin(void) {
    const char *bad = getenv("RAINCHECK_DISK_BAD_SYNC"), *to = getenv("RAINCHECK_DISK_RECORDING");
    root = getenv("RAINCHECK_DISK_ROOT");
    full = getenv("RAINCHECK_DISK_FULL");
    shifted = getenv("RAINCHECK_DISK_CLOCK");
    has_no_locks = getenv("RAINCHECK_DISK_NO_LOCKS") != NULL;
    bad_sync = bad ? atol(bad) : 0;
    if (to)
        recording = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_ours(const char *path) {
    size_t length = root ? strlen(root) : 0, whole = strlen(path);
    if (!length || strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != 0))
        return 0;
    /* The index of the log lies in shared memory and is made anew. */
    return whole < 4 || strcmp(path + whole - 4, "-shm") != 0;
}

static void note(uint32_t kind, uint64_t inode, uint64_t place, const void *data, size_t length) {
    struct head head = {kind, (uint32_t)length, inode, place};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)data, length}};
    if (recording >= 0 && syscall(SYS_writev, recording, parts, 2) != (long)(sizeof head + length))
        abort();
}

static void note_path(uint32_t kind, uint64_t inode, const char *path) {
    note(kind, inode, 0, path, strlen(path));
}

static int is_full(void) {
    return full && syscall(SYS_faccessat, AT_FDCWD, full, F_OK) == 0;
}

static struct file *file_of(int fd) {
    return fd >= 0 && fd < N_FILES && files[fd].is_ours ? &files[fd] : NULL;
}

static int refuse(void) {
    errno = ENOSPC;
    return -1;
}

static int open_at(int folder, const char *path, int flags, mode_t mode) {
    struct stat data;
    int ours = is_ours(path), is_new, fd;
    if (!ours) {
        fd = (int)syscall(SYS_openat, folder, path, flags, mode);
        if (fd >= 0 && fd < N_FILES)
            files[fd].is_ours = 0;
        return fd;
    }
    pthread_mutex_lock(&lock);
    is_new = (flags & O_CREAT) && syscall(SYS_faccessat, folder, path, F_OK) != 0;
    if (is_new && is_full()) {
        pthread_mutex_unlock(&lock);
        return refuse();
    }
    fd = (int)syscall(SYS_openat, folder, path, flags, mode);
    if (fd >= 0 && fstat(fd, &data) == 0) {
        if (fd >= N_FILES)
            abort();
        files[fd].is_ours = 1;
        files[fd].is_folder = S_ISDIR(data.st_mode);
        files[fd].inode = data.st_ino;
        strncpy(files[fd].path, path, PATH_MAX - 1);
        if (is_new)
            note_path(CREATE, data.st_ino, path);
        else if ((flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY)
            note(RESIZE, data.st_ino, 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

#define MODE(flags, mode)                         \
    mode_t mode = 0;                              \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {      \
        va_list rest;                             \
        va_start(rest, flags);                    \
        mode = (mode_t)va_arg(rest, unsigned);    \
        va_end(rest);                             \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags, mode)
    return open_at(folder, path, flags | O_LARGEFILE, mode);
}

int close(int fd) {
    if (fd >= 0 && fd < N_FILES)
        files[fd].is_ours = 0;
    return (int)syscall(SYS_close, fd);
}

static ssize_t write_at(int fd, const void *data, size_t length, off_t place, int is_placed) {
    struct file *file = file_of(fd);
    ssize_t written;
    if (!file) {
        if (fd == STDOUT_FILENO && !is_placed && recording >= 0) {
            pthread_mutex_lock(&lock);
            note(SAY, 0, 0, data, length);
            pthread_mutex_unlock(&lock);
        }
        return is_placed ? syscall(SYS_pwrite64, fd, data, length, place) : syscall(SYS_write, fd, data, length);
    }
    pthread_mutex_lock(&lock);
    if (is_full()) {
        pthread_mutex_unlock(&lock);
        return refuse();
    }
    if (!is_placed)
        place = lseek(fd, 0, (fcntl(fd, F_GETFL) & O_APPEND) ? SEEK_END : SEEK_CUR);
    written = is_placed ? syscall(SYS_pwrite64, fd, data, length, place) : syscall(SYS_write, fd, data, length);
    if (written > 0)
        note(WRITE, file->inode, (uint64_t)place, data, (size_t)written);
    pthread_mutex_unlock(&lock);
    return written;
}

ssize_t write(int fd, const void *data, size_t length) { return write_at(fd, data, length, 0, 0); }

ssize_t pwrite(int fd, const void *data, size_t length, off_t place) { return write_at(fd, data, length, place, 1); }

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t place) { return write_at(fd, data, length, place, 1); }

/* No part of the product writes like this below the root; a recording would have a hole. */
ssize_t writev(int fd, const struct iovec *parts, int n) {
    if (file_of(fd))
        abort();
    return syscall(SYS_writev, fd, parts, n);
}

static int resize(int fd, off_t size) {
    struct file *file = file_of(fd);
    struct stat data;
    int result;
    if (!file)
        return (int)syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&lock);
    if (is_full() && fstat(fd, &data) == 0 && data.st_size < size) {
        pthread_mutex_unlock(&lock);
        return refuse();
    }
    result = (int)syscall(SYS_ftruncate, fd, size);
    if (result == 0)
        note(RESIZE, file->inode, (uint64_t)size, NULL, 0);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int fd, off_t size) { return resize(fd, size); }

int ftruncate64(int fd, off64_t size) { return resize(fd, size); }

static int sync_by(int fd, long call) {
    struct file *file = file_of(fd);
    int fails;
    if (!file)
        return (int)syscall(call, fd);
    pthread_mutex_lock(&lock);
    fails = ++n_syncs == bad_sync;
    if (file->is_folder)
        note_path(fails ? BAD_SYNC_FOLDER : SYNC_FOLDER, file->inode, file->path);
    else
        note(fails ? BAD_SYNC : SYNC, file->inode, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    if (fails) {
        errno = EIO;
        return -1;
    }
    return recording >= 0 ? 0 : (int)syscall(call, fd);
}

int fsync(int fd) { return sync_by(fd, SYS_fsync); }

int fdatasync(int fd) { return sync_by(fd, SYS_fdatasync); }

int flock(int fd, int operation) {
    if (has_no_locks && file_of(fd)) {
        errno = ENOLCK;
        return -1;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

int unlink(const char *path) {
    int result;
    pthread_mutex_lock(&lock);
    result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (result == 0 && is_ours(path))
        note_path(UNLINK, 0, path);
    pthread_mutex_unlock(&lock);
    return result;
}

int rename(const char *from, const char *to) {
    char both[2 * PATH_MAX];
    size_t length = strlen(from) + 1;
    int result;
    pthread_mutex_lock(&lock);
    result = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (result == 0 && is_ours(to) && length + strlen(to) < sizeof both) {
        memcpy(both, from, length);
        strcpy(both + length, to);
        note(RENAME, 0, 0, both, length + strlen(to));
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int mkdir(const char *path, mode_t mode) {
    int result;
    pthread_mutex_lock(&lock);
    if (is_ours(path) && is_full()) {
        pthread_mutex_unlock(&lock);
        return refuse();
    }
    result = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (result == 0 && is_ours(path))
        note_path(MKDIR, 0, path);
    pthread_mutex_unlock(&lock);
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = (int)syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && shifted && clock == CLOCK_REALTIME) {
        char text[32] = {0};
        int fd = (int)syscall(SYS_openat, AT_FDCWD, shifted, O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            if (syscall(SYS_read, fd, text, sizeof text - 1) > 0)
                now->tv_sec += atol(text);
            syscall(SYS_close, fd);
        }
    }
    return result;
}
