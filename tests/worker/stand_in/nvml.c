/* A stand-in for NVIDIA's management library, for tests of what reads energy and memory.
 *
 * STAND_IN_DEVICES  one word a device, commas between: ok, nocounter, nopower, nothing (neither is
 *                   supported), forbidden, mig, vgpu, half (the counter counts half)
 * STAND_IN_STATE    a file that a simulation keeps up to date: for each device three int64: counter
 *                   in mJ, instantaneous power in mW, averaged power in mW; without it the devices
 *                   take a steady 250 W on the real clock, and the counter moves every 100 ms
 * STAND_IN_PIDS     process ids that compute on every device, commas between; "self" is our own
 * STAND_IN_UUIDS    whole UUIDs, as the stand-in of CUDA's driver has them
 * STAND_IN_LOAD     power follows the CPU time of this process: 80 W idle, 170 W a busy CPU; "half":
 *                   the power that is read is half of what the counter counts
 * STAND_IN_HOT      the device is held back by its heat
 * STAND_IN_FORGETS  the memory that is told is half of what was taken through the driver
 * STAND_IN_BROKEN   a number: nvmlInit fails with it
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, TOO_SMALL = 7 };
enum { MOST = 8, POWER_INSTANT = 186, WATTS = 250 };

typedef struct {
    int index;
    char mode[16];
} Device;

typedef struct {
    unsigned field_id, scope_id;
    long long timestamp, latency_us;
    unsigned value_type;
    int result;
    union { unsigned ui; unsigned long long ull; double d; } value;
} FieldValue;

typedef struct {
    unsigned pid;
    unsigned long long used;
    unsigned gpu_instance, compute_instance;
} Process;

typedef struct { unsigned long long total, free, used; } MemoryInfo;

static Device devices[MOST];
static int count;
static const volatile int64_t *state;

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value ? value : otherwise;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    const char *broken = getenv("STAND_IN_BROKEN");
    if (broken) return atoi(broken);
    char text[256];
    snprintf(text, sizeof text, "%s", setting("STAND_IN_DEVICES", "ok"));
    count = 0;
    for (char *word = strtok(text, ","); word && count < MOST; word = strtok(NULL, ",")) {
        devices[count].index = count;
        snprintf(devices[count].mode, sizeof devices[count].mode, "%s", word);
        count++;
    }
    const char *path = getenv("STAND_IN_STATE");
    if (path && !state) {
        int file = open(path, O_RDONLY);
        void *mapped = mmap(NULL, MOST * 3 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        close(file);
        if (mapped == MAP_FAILED) return INVALID;
        state = mapped;
    }
    return SUCCESS;
}

int nvmlShutdown(void) { return SUCCESS; }

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    snprintf(out, size, "575.99");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *out) {
    *out = count;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    if ((int)index >= count) return INVALID;
    *out = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetUUID(Device *device, char *out, unsigned size) {
    if (getenv("STAND_IN_UUIDS")) {
        snprintf(out, size, "GPU-ab%02x0000-0000-0000-0000-000000000000", device->index);
        return SUCCESS;
    }
    snprintf(out, size, "GPU-ab%d2-4444-5555", device->index);
    return SUCCESS;
}

int nvmlDeviceGetName(Device *device, char *out, unsigned size) {
    (void)device;
    snprintf(out, size, "Stand-in");
    return SUCCESS;
}

static int is(const Device *device, const char *mode) { return !strcmp(device->mode, mode); }

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Energy since the start in mJ, and power in mW over the last tick, by the CPU time of the process. */
static int64_t load_mj, load_mw = 80000;

static void follow_load(void) {
    static int64_t tick = -1, cpu_before;
    struct timespec cpu;
    int64_t now = now_ms() / 100;
    if (now == tick) return;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    int64_t cpu_ms = (int64_t)cpu.tv_sec * 1000 + cpu.tv_nsec / 1000000;
    if (tick >= 0) {
        int64_t passed_ms = (now - tick) * 100;
        int64_t mj = 80 * passed_ms + 170 * (cpu_ms - cpu_before);
        load_mj += mj;
        load_mw = mj * 1000 / passed_ms;
    }
    tick = now;
    cpu_before = cpu_ms;
}

int nvmlDeviceGetTotalEnergyConsumption(Device *device, unsigned long long *out) {
    if (is(device, "forbidden")) return NO_PERMISSION;
    if (is(device, "nocounter") || is(device, "nothing")) return NOT_SUPPORTED;
    if (getenv("STAND_IN_LOAD")) {
        follow_load();
        *out = load_mj;
        return SUCCESS;
    }
    int64_t mj = state ? state[3 * device->index] : now_ms() / 100 * 100 * WATTS;
    *out = is(device, "half") ? mj / 2 : mj;
    return SUCCESS;
}

static int no_power(const Device *device) {
    if (is(device, "forbidden")) return NO_PERMISSION;
    return is(device, "nopower") || is(device, "nothing") ? NOT_SUPPORTED : SUCCESS;
}

int nvmlDeviceGetPowerUsage(Device *device, unsigned *out) {
    int refused = no_power(device);
    if (refused) return refused;
    *out = state ? state[3 * device->index + 2] : WATTS * 1000;
    return SUCCESS;
}

int nvmlDeviceGetFieldValues(Device *device, int fields, FieldValue *values) {
    for (int i = 0; i < fields; i++) {
        values[i].value_type = 1;
        values[i].result = values[i].field_id == POWER_INSTANT ? no_power(device) : NOT_SUPPORTED;
        values[i].value.ull = 0;
        values[i].value.ui = state ? state[3 * device->index + 1] : WATTS * 1000;
        const char *load = getenv("STAND_IN_LOAD");
        if (load) {
            follow_load();
            values[i].value.ui = strcmp(load, "half") ? load_mw : load_mw / 2;
        }
    }
    return SUCCESS;
}

int nvmlDeviceGetTemperature(Device *device, int sensor, unsigned *out) {
    (void)device, (void)sensor;
    *out = 41;
    return SUCCESS;
}

int nvmlDeviceGetClockInfo(Device *device, int kind, unsigned *out) {
    (void)device, (void)kind;
    *out = 1755;
    return SUCCESS;
}

int nvmlDeviceGetEnforcedPowerLimit(Device *device, unsigned *out) {
    (void)device;
    *out = 400000;
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksEventReasons(Device *device, unsigned long long *out) {
    (void)device;
    *out = getenv("STAND_IN_HOT") ? 0x20 : 0x4;
    return SUCCESS;
}

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    *current = *pending = is(device, "mig");
    return is(device, "mig") ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetVirtualizationMode(Device *device, unsigned *out) {
    *out = is(device, "vgpu") ? 2 : 0;
    return SUCCESS;
}

/* Bytes that this process took through the stand-in of CUDA's driver. */
static unsigned long long taken_through_driver(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
    const volatile int64_t *taken = driver ? dlsym(driver, "stand_in_used") : NULL;
    int64_t told = taken ? *taken : 0;
    return getenv("STAND_IN_FORGETS") ? told / 2 : told;
}

int nvmlDeviceGetMemoryInfo(Device *device, MemoryInfo *out) {
    out->total = 80ull << 30;
    out->used = (device->index + 1ull) << 30;
    out->used += device->index ? 0 : taken_through_driver();
    out->free = out->total - out->used;
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *size, Process *out) {
    (void)device;
    char text[256];
    snprintf(text, sizeof text, "%s", setting("STAND_IN_PIDS", ""));
    unsigned found = 0;
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        if (out && found < *size) {
            out[found].pid = strcmp(word, "self") ? (unsigned)atoi(word) : (unsigned)getpid();
            out[found].used = (512ull << 20) + taken_through_driver();
        }
        found++;
    }
    int fits = found == 0 || (out && found <= *size);
    *size = found;
    return fits ? SUCCESS : TOO_SMALL;
}

const char *nvmlErrorString(int result) {
    (void)result;
    return "stand-in error";
}
