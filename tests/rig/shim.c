/* A disk that fails on demand and remembers what reached it. Loaded with LD_PRELOAD into a real
 * bursar (glibc only: a static binary cannot be preloaded), it stands between the process and libc
 * for every file call below one directory; everything else passes untouched.
 *
 * RIG_DIR      the directory that is watched, absolute, without a slash at the end
 * RIG_CONTROL  a file of WORDS 64-bit words, shared with the test: what to fail, and what was seen
 * RIG_LOG      optional: a file that gets every change, in one order, for simulated power cuts
 *
 * One lock is held over each call and its log record, so the log's order is the order of effects,
 * and a sync covers exactly what stands before it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The words of the control file. tests/it/rig.rs has the same list. */
enum word {
    W_MASK,     /* set of kinds (1 << kind) that count and may fail */
    W_FROM,     /* the first call that fails, counted from 1; 0: none */
    W_TIMES,    /* how many calls fail from there on */
    W_ERRNO,    /* with what */
    W_SHORT,    /* 1: a failing write first writes half of its bytes, the next one fails */
    W_JOURNAL,  /* 1: only calls below journal/ count */
    W_READONLY, /* 1: every change fails with EROFS */
    W_BUDGET,   /* most bytes that all files may have; 0: no bound */
    W_SEEN,     /* calls that counted */
    W_FAILED,   /* calls that failed for us */
    W_EVENTS,   /* records in the log */
    W_KINDS,    /* calls of each kind below the directory, from here on */
    W_HANG = 31, /* 1: a sync does not come back until this is 0 again */
    WORDS = 32
};

enum kind { K_WRITE, K_FDATASYNC, K_FSYNC, K_FTRUNCATE, K_RENAME, K_CREATE, K_FALLOCATE, K_UNLINK };

/* The records of the log. */
enum record { R_CREATE = 1, R_MKDIR, R_WRITE, R_TRUNCATE, R_RENAME, R_UNLINK, R_SYNC };

struct header {
    uint64_t record, inode, offset, length, path_bytes, other_bytes;
};

#define FDS 4096

/* Descriptors of files and directories that are watched. */
static struct { char *path; dev_t device; ino_t inode; } fds[FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char dir[PATH_MAX];
static size_t dir_bytes;
static volatile uint64_t *words;
static int log_fd = -1;
/* The error that the rest of a short write gets, for this descriptor. */
static __thread int owed_fd = -1, owed_errno;


__attribute__((constructor)) static void begin(void)
{
    const char *watched = getenv("RIG_DIR"), *control = getenv("RIG_CONTROL"), *log = getenv("RIG_LOG");
    if (!watched || !control || strlen(watched) >= sizeof dir)
        return;
    int fd = syscall(SYS_openat, AT_FDCWD, control, O_RDWR | O_CLOEXEC);
    void *map = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || map == MAP_FAILED) {
        fprintf(stderr, "rig: no control file %s\n", control);
        _exit(99);
    }
    syscall(SYS_close, fd);
    if (log)
        log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CLOEXEC);
    strcpy(dir, watched);
    dir_bytes = strlen(dir);
    words = map;
}

/* === what is watched === */

static int watched(const char *path)
{
    return words && path && strncmp(path, dir, dir_bytes) == 0 &&
           (path[dir_bytes] == '/' || path[dir_bytes] == 0);
}

/* The path of a watched descriptor. It is forgotten when the number has come to mean another file. */
static const char *path_of(int fd)
{
    struct stat now;
    if (!words || fd < 0 || fd >= FDS || !fds[fd].path)
        return NULL;
    if (fstat(fd, &now) || now.st_dev != fds[fd].device || now.st_ino != fds[fd].inode) {
        free(fds[fd].path);
        fds[fd].path = NULL;
    }
    return fds[fd].path;
}

static void remember(int fd, const char *path)
{
    struct stat now;
    if (fd >= FDS) {
        fprintf(stderr, "rig: more than %d descriptors\n", FDS);
        _exit(99);
    }
    if (fstat(fd, &now))
        return;
    free(fds[fd].path);
    fds[fd].path = strdup(path);
    fds[fd].device = now.st_dev;
    fds[fd].inode = now.st_ino;
}

/* The absolute path of a name in a directory, in `room`; NULL when it is not watched. */
static const char *resolve(int at, const char *name, char room[PATH_MAX])
{
    if (!words || !name)
        return NULL;
    if (name[0] == '/')
        return watched(name) ? name : NULL;
    const char *base = at == AT_FDCWD ? NULL : path_of(at);
    if (!base)
        return NULL;
    snprintf(room, PATH_MAX, "%s/%s", base, name);
    return room;
}

/* === faults === */

static int is_in_journal(const char *path)
{
    return strncmp(path + dir_bytes, "/journal", 8) == 0 &&
           (path[dir_bytes + 8] == '/' || path[dir_bytes + 8] == 0);
}

/* Counts a call. Answers the error it has to fail with, or 0. */
static int fault(enum kind kind, const char *path)
{
    words[W_KINDS + kind]++;
    if (words[W_READONLY] && kind != K_FSYNC && kind != K_FDATASYNC)
        return EROFS;
    if (!(words[W_MASK] >> kind & 1) || (words[W_JOURNAL] && !is_in_journal(path)))
        return 0;
    uint64_t seen = ++words[W_SEEN], from = words[W_FROM];
    if (!from || seen < from || seen - from >= words[W_TIMES])
        return 0;
    words[W_FAILED]++;
    return (int)words[W_ERRNO];
}

/* The sizes of all files below a directory. Only names count: what was unlinked has made room. */
static uint64_t used(const char *path)
{
    char below[PATH_MAX];
    uint64_t sum = 0;
    DIR *open = opendir(path);
    if (!open)
        return 0;
    for (struct dirent *entry; (entry = readdir(open));) {
        struct stat found;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (lstat(below, &found))
            continue;
        sum += S_ISDIR(found.st_mode) ? used(below) : S_ISREG(found.st_mode) ? (uint64_t)found.st_size : 0;
    }
    closedir(open);
    return sum;
}

/* How many of the bytes that are to end at `end` in the file find room. */
static uint64_t room_for(int fd, uint64_t length, uint64_t end)
{
    struct stat now;
    uint64_t budget = words[W_BUDGET];
    if (!budget || fstat(fd, &now) || end <= (uint64_t)now.st_size)
        return length;
    uint64_t grows = end - now.st_size, taken = used(dir);
    uint64_t room = taken < budget ? budget - taken : 0;
    if (grows <= room)
        return length;
    words[W_FAILED]++;
    uint64_t lacks = grows - room;
    return lacks < length ? length - lacks : 0;
}

/* === the log === */

static void note(enum record record, uint64_t inode, uint64_t offset, uint64_t length, const void *bytes,
                 const char *path, const char *other)
{
    if (log_fd < 0)
        return;
    struct header head = {record, inode, offset, length, path ? strlen(path) : 0, other ? strlen(other) : 0};
    struct iovec parts[4] = {
        {&head, sizeof head},
        {(void *)path, head.path_bytes},
        {(void *)other, head.other_bytes},
        {(void *)bytes, bytes ? length : 0},
    };
    if (syscall(SYS_writev, log_fd, parts, 4) < 0) {
        fprintf(stderr, "rig: the log cannot be written\n");
        _exit(99);
    }
    words[W_EVENTS]++;
}

static int failing(int error)
{
    errno = error;
    return -1;
}

/* === files === */

static int open_watched(int at, const char *name, int flags, mode_t mode)
{
    char room[PATH_MAX];
    pthread_mutex_lock(&lock);
    const char *path = resolve(at, name, room);
    if (!path) {
        pthread_mutex_unlock(&lock);
        return syscall(SYS_openat, at, name, flags, mode);
    }
    struct stat before;
    int is_new = (flags & O_CREAT) && lstat(path, &before) != 0;
    int error = 0;
    if (is_new)
        error = fault(K_CREATE, path);
    else if (words[W_READONLY] && (flags & O_ACCMODE) != O_RDONLY)
        error = EROFS;
    int fd = error ? failing(error) : syscall(SYS_openat, at, name, flags, mode);
    int kept = errno;
    if (fd >= 0) {
        remember(fd, path);
        if (is_new)
            note(R_CREATE, fds[fd].inode, 0, 0, NULL, path, NULL);
        else if (flags & O_TRUNC)
            note(R_TRUNCATE, fds[fd].inode, 0, 0, NULL, NULL, NULL);
    }
    pthread_mutex_unlock(&lock);
    errno = kept;
    return fd;
}

#define MODE_OF(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    }

int open(const char *path, int flags, ...) { MODE_OF(flags) return open_watched(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE_OF(flags) return open_watched(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE_OF(flags) return open_watched(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE_OF(flags) return open_watched(at, path, flags, mode); }

int close(int fd)
{
    if (words && fd >= 0 && fd < FDS) {
        pthread_mutex_lock(&lock);
        free(fds[fd].path);
        fds[fd].path = NULL;
        pthread_mutex_unlock(&lock);
    }
    return syscall(SYS_close, fd);
}

/* `at` is the offset; -1: where the file stands, or its end when it is open for appending. */
static ssize_t write_watched(int fd, const void *bytes, size_t length, off_t at)
{
    if (!words || fd < 0 || fd >= FDS || !fds[fd].path)
        return at < 0 ? syscall(SYS_write, fd, bytes, length) : syscall(SYS_pwrite64, fd, bytes, length, at);
    pthread_mutex_lock(&lock);
    const char *path = path_of(fd);
    int error = 0;
    uint64_t passed = length;
    off_t offset = at;
    if (path) {
        struct stat now;
        if (at < 0)
            offset = (syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND) && !fstat(fd, &now) ? now.st_size : lseek(fd, 0, SEEK_CUR);
        if (owed_fd == fd) {
            error = owed_errno;
            owed_fd = -1;
        } else if ((error = fault(K_WRITE, path)) && words[W_SHORT] && length > 1) {
            owed_fd = fd;
            owed_errno = error;
            error = 0;
            passed = length / 2;
        } else if (!error) {
            passed = room_for(fd, length, (uint64_t)offset + length);
            if (passed == 0 && length > 0)
                error = ENOSPC;
        }
    }
    ssize_t written = error ? failing(error)
                      : at < 0 ? syscall(SYS_write, fd, bytes, passed)
                               : syscall(SYS_pwrite64, fd, bytes, passed, at);
    int kept = errno;
    if (path && written > 0)
        note(R_WRITE, fds[fd].inode, offset, written, bytes, NULL, NULL);
    pthread_mutex_unlock(&lock);
    errno = kept;
    return written;
}

ssize_t write(int fd, const void *bytes, size_t length) { return write_watched(fd, bytes, length, -1); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return write_watched(fd, bytes, length, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) { return write_watched(fd, bytes, length, at); }

/* Only the first part is written to a watched file: a short write is legal, and the caller goes on. */
ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (!words || fd < 0 || fd >= FDS || !fds[fd].path)
        return syscall(SYS_writev, fd, parts, count);
    for (int part = 0; part < count; part++)
        if (parts[part].iov_len > 0)
            return write_watched(fd, parts[part].iov_base, parts[part].iov_len, -1);
    return 0;
}

/* Ways around write(): refused for watched files, so that the caller falls back to it. */
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags)
{
    if (words && to >= 0 && to < FDS && fds[to].path)
        return failing(ENOSYS);
    return syscall(SYS_copy_file_range, from, from_at, to, to_at, length, flags);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t length)
{
    if (words && to >= 0 && to < FDS && fds[to].path)
        return failing(ENOSYS);
    return syscall(SYS_sendfile, to, from, at, length);
}

/* The calls on a descriptor that share their shape: count, fail or do, note. */
#define ON_FD(kind, fd, doing, noting) \
    pthread_mutex_lock(&lock); \
    const char *path = path_of(fd); \
    int error = path ? fault(kind, path) : 0; \
    int done = error ? failing(error) : (int)(doing); \
    int kept = errno; \
    if (path && done == 0) { noting; } \
    pthread_mutex_unlock(&lock); \
    errno = kept; \
    return done

int fsync(int fd)
{
    ON_FD(K_FSYNC, fd, syscall(SYS_fsync, fd), note(R_SYNC, fds[fd].inode, 0, 0, NULL, NULL, NULL));
}

/* A disk that neither succeeds nor fails. The lock is not held meanwhile: only this thread waits. */
static void hang(int fd)
{
    while (words && fd >= 0 && fd < FDS && fds[fd].path && words[W_HANG])
        usleep(1000);
}

int fdatasync(int fd)
{
    hang(fd);
    ON_FD(K_FDATASYNC, fd, syscall(SYS_fdatasync, fd), note(R_SYNC, fds[fd].inode, 0, 0, NULL, NULL, NULL));
}

static int truncate_watched(int fd, off_t length)
{
    ON_FD(K_FTRUNCATE, fd, syscall(SYS_ftruncate, fd, length),
          note(R_TRUNCATE, fds[fd].inode, length, 0, NULL, NULL, NULL));
}

int ftruncate(int fd, off_t length) { return truncate_watched(fd, length); }
int ftruncate64(int fd, off64_t length) { return truncate_watched(fd, length); }

static int allocate(int fd, int mode, off_t at, off_t length)
{
    if (words && fd >= 0 && fd < FDS && fds[fd].path) {
        pthread_mutex_lock(&lock);
        uint64_t room = room_for(fd, length, at + length);
        pthread_mutex_unlock(&lock);
        if (room < (uint64_t)length)
            return failing(ENOSPC);
    }
    ON_FD(K_FALLOCATE, fd, syscall(SYS_fallocate, fd, mode, at, length), (void)0);
}

int fallocate(int fd, int mode, off_t at, off_t length) { return allocate(fd, mode, at, length); }
int fallocate64(int fd, int mode, off64_t at, off64_t length) { return allocate(fd, mode, at, length); }

/* === names === */

static int rename_watched(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    char from_room[PATH_MAX], to_room[PATH_MAX];
    pthread_mutex_lock(&lock);
    const char *old = resolve(from_at, from, from_room), *new = resolve(to_at, to, to_room);
    int error = new ? fault(K_RENAME, new) : 0;
    int done = error ? failing(error) : (int)syscall(SYS_renameat2, from_at, from, to_at, to, flags);
    int kept = errno;
    if (old && new && done == 0)
        note(R_RENAME, 0, 0, 0, NULL, old, new);
    pthread_mutex_unlock(&lock);
    errno = kept;
    return done;
}

int rename(const char *from, const char *to) { return rename_watched(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return rename_watched(a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return rename_watched(a, from, b, to, flags); }

static int unlink_watched(int at, const char *name, int flags)
{
    char room[PATH_MAX];
    pthread_mutex_lock(&lock);
    const char *path = resolve(at, name, room);
    struct stat before;
    /* Nothing to remove is no change. */
    int error = path && lstat(path, &before) == 0 ? fault(K_UNLINK, path) : 0;
    int done = error ? failing(error) : (int)syscall(SYS_unlinkat, at, name, flags);
    int kept = errno;
    if (path && done == 0)
        note(R_UNLINK, 0, 0, 0, NULL, path, NULL);
    pthread_mutex_unlock(&lock);
    errno = kept;
    return done;
}

int unlink(const char *path) { return unlink_watched(AT_FDCWD, path, 0); }
int unlinkat(int at, const char *path, int flags) { return unlink_watched(at, path, flags); }
int rmdir(const char *path) { return unlink_watched(AT_FDCWD, path, AT_REMOVEDIR); }

static int mkdir_watched(int at, const char *name, mode_t mode)
{
    char room[PATH_MAX];
    pthread_mutex_lock(&lock);
    const char *path = resolve(at, name, room);
    struct stat made;
    int error = path && lstat(path, &made) != 0 ? fault(K_CREATE, path) : 0;
    int done = error ? failing(error) : (int)syscall(SYS_mkdirat, at, name, mode);
    int kept = errno;
    if (path && done == 0 && stat(path, &made) == 0)
        note(R_MKDIR, made.st_ino, 0, 0, NULL, path, NULL);
    pthread_mutex_unlock(&lock);
    errno = kept;
    return done;
}

int mkdir(const char *path, mode_t mode) { return mkdir_watched(AT_FDCWD, path, mode); }
int mkdirat(int at, const char *path, mode_t mode) { return mkdir_watched(at, path, mode); }

/* A copied descriptor means the same file. */
static int control(int fd, int command, void *argument)
{
    int answer = syscall(SYS_fcntl, fd, command, argument);
    if (answer >= 0 && (command == F_DUPFD || command == F_DUPFD_CLOEXEC) && words) {
        pthread_mutex_lock(&lock);
        const char *path = path_of(fd);
        if (path)
            remember(answer, path);
        pthread_mutex_unlock(&lock);
    }
    return answer;
}

#define ARGUMENT_OF(command) \
    va_list more; \
    va_start(more, command); \
    void *argument = va_arg(more, void *); \
    va_end(more);

int fcntl(int fd, int command, ...) { ARGUMENT_OF(command) return control(fd, command, argument); }
int fcntl64(int fd, int command, ...) { ARGUMENT_OF(command) return control(fd, command, argument); }
