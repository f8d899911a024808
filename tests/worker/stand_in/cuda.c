/* A stand-in for CUDA's driver, for tests of what asks it for devices, events, memory and waiting.
 *
 * STAND_IN_SHIFT  a number: CUDA's device 0 is NVML's device of that number
 * STAND_IN_OFF    a name: that call fails with 999
 *
 * Whoever computes in the place of the device calls stand_in_begin when work is put on a stream, and
 * stand_in_end when it is done. An event is recorded without waiting, and gets its time when the work
 * that was put on its stream before it ends, as NVIDIA documents it.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FINE = 0, INVALID_HANDLE = 400, NOT_READY = 600, REFUSED = 999 };

volatile int64_t stand_in_used;

typedef struct { uint64_t address, size; } Block;
static Block blocks[64];

/* Pieces of work that were put on a stream, and those of them that are done. */
typedef struct { int64_t begun, ended; } Stream;

/* at_ns is 0 until the event is there; it is there when so many pieces of work of its stream are done. */
typedef struct Event {
    int64_t at_ns, behind;
    Stream *stream;
    struct Event *next;
} Event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static Stream nobodys; /* of sessions that were given no stream */
static int64_t pending;
static Event *waiting;

static int off(const char *name) {
    const char *named = getenv("STAND_IN_OFF");
    return named && !strcmp(named, name);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void forget(const Event *event) {
    for (Event **place = &waiting; *place; place = &(*place)->next)
        if (*place == event) {
            *place = event->next;
            return;
        }
}

void stand_in_begin(Stream *stream) {
    pthread_mutex_lock(&lock);
    (stream ? stream : &nobodys)->begun++;
    pending++;
    pthread_mutex_unlock(&lock);
}

void stand_in_end(Stream *stream, int64_t at_ns) {
    if (!stream) stream = &nobodys;
    pthread_mutex_lock(&lock);
    stream->ended++;
    pending--;
    for (Event **place = &waiting; *place;) {
        Event *event = *place;
        if (event->stream == stream && event->behind <= stream->ended) {
            event->at_ns = at_ns;
            *place = event->next;
        } else {
            place = &event->next;
        }
    }
    pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&lock);
}

int cuInit(unsigned flags) { (void)flags; return off("cuInit") ? REFUSED : FINE; }

int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return FINE; }

int cuDeviceGetUuid_v2(unsigned char *out, int device) {
    const char *shift = getenv("STAND_IN_SHIFT");
    memset(out, 0, 16);
    out[0] = 0xab;
    out[1] = device + (shift ? atoi(shift) : 0);
    return FINE;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
    (void)device;
    *context = blocks;
    return FINE;
}

int cuCtxSetCurrent(void *context) { return context == blocks ? FINE : REFUSED; }

int cuCtxSynchronize(void) {
    pthread_mutex_lock(&lock);
    while (pending > 0) pthread_cond_wait(&progress, &lock);
    pthread_mutex_unlock(&lock);
    return FINE;
}

int cuStreamCreate(Stream **stream, unsigned flags) {
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    return FINE;
}

int cuEventCreate(Event **event, unsigned flags) {
    (void)flags;
    *event = calloc(1, sizeof **event);
    return off("cuEventCreate") ? REFUSED : FINE;
}

int cuEventRecord(Event *event, Stream *stream) {
    if (!stream) return REFUSED;
    pthread_mutex_lock(&lock);
    forget(event);
    event->stream = stream;
    event->behind = stream->begun;
    event->at_ns = stream->ended < stream->begun ? 0 : now_ns();
    if (!event->at_ns) {
        event->next = waiting;
        waiting = event;
    }
    pthread_mutex_unlock(&lock);
    return FINE;
}

int cuEventSynchronize(Event *event) {
    pthread_mutex_lock(&lock);
    /* One that was never recorded is taken for done. */
    while (event->stream && !event->at_ns) pthread_cond_wait(&progress, &lock);
    pthread_mutex_unlock(&lock);
    return FINE;
}

int cuEventElapsedTime(float *ms, Event *first, Event *last) {
    pthread_mutex_lock(&lock);
    int status = !first->stream || !last->stream ? INVALID_HANDLE
               : !first->at_ns || !last->at_ns   ? NOT_READY
                                                 : FINE;
    if (status == FINE) *ms = (last->at_ns - first->at_ns) / 1e6f;
    pthread_mutex_unlock(&lock);
    return status;
}

int cuEventDestroy_v2(Event *event) {
    pthread_mutex_lock(&lock);
    forget(event);
    pthread_mutex_unlock(&lock);
    free(event);
    return FINE;
}

int cuMemAlloc_v2(uint64_t *address, size_t size) {
    for (int i = 0; i < 64; i++)
        if (!blocks[i].address) {
            blocks[i] = (Block){(i + 1ull) << 32, size};
            stand_in_used += size;
            *address = blocks[i].address;
            return FINE;
        }
    return REFUSED;
}

int cuMemFree_v2(uint64_t address) {
    for (int i = 0; i < 64; i++)
        if (blocks[i].address == address) {
            stand_in_used -= blocks[i].size;
            blocks[i].address = 0;
            return FINE;
        }
    return REFUSED;
}
