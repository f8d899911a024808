/* A stand-in for CUDA's driver, for tests of what asks it for devices, events, memory and waiting.
 *
 * STAND_IN_SHIFT  a number: CUDA's device 0 is NVML's device of that number
 * STAND_IN_OFF    a name: that call fails with 999
 *
 * What runs on the device is counted in stand_in_pending by whoever computes in its place.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FINE = 0, REFUSED = 999 };

volatile int64_t stand_in_pending;
volatile int64_t stand_in_used;

typedef struct { uint64_t address, size; } Block;
static Block blocks[64];

static int off(const char *name) {
    const char *named = getenv("STAND_IN_OFF");
    return named && !strcmp(named, name);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void wait_for_all(void) {
    while (stand_in_pending > 0) usleep(20);
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

int cuCtxSynchronize(void) { wait_for_all(); return FINE; }

int cuStreamCreate(void **stream, unsigned flags) { (void)flags; *stream = malloc(1); return FINE; }

int cuEventCreate(int64_t **event, unsigned flags) {
    (void)flags;
    *event = calloc(1, sizeof **event);
    return off("cuEventCreate") ? REFUSED : FINE;
}

int cuEventRecord(int64_t *event, void *stream) {
    if (!stream) return REFUSED;
    /* It is there when all that was started before is done. */
    wait_for_all();
    *event = now_ns();
    return FINE;
}

int cuEventSynchronize(int64_t *event) { return *event ? FINE : REFUSED; }

int cuEventElapsedTime(float *ms, int64_t *first, int64_t *last) {
    *ms = (*last - *first) / 1e6f;
    return FINE;
}

int cuEventDestroy_v2(int64_t *event) { free(event); return FINE; }

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
