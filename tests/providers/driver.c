/* A driver of Vulkan in front of another one, which tests name: it counts how often somebody waits
   for the device, and loses the device after so many submissions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Function)(void);
typedef Function (*Lookup)(void *, const char *);
typedef int32_t (*Submit)(void *, uint32_t, const void *, uint64_t);
typedef int32_t (*Wait)(void *, uint32_t, const uint64_t *, uint32_t, uint64_t);

static const int32_t DEVICE_LOST = -4;

static Submit submit;
static Wait wait_for_fences;
static Lookup device_lookup;
static atomic_long submissions, waits;

long ortbench_waits(void) { return atomic_load(&waits); }

static void *other(const char *name) {
    static void *library;
    if (!library) library = dlopen(getenv("ORTBENCH_OTHER_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    return dlsym(library, name);
}

static int32_t submit_or_lose(void *queue, uint32_t count, const void *infos, uint64_t fence) {
    const char *last = getenv("ORTBENCH_LOST_AFTER");
    long number = atomic_fetch_add(&submissions, 1);
    return last && number >= atol(last) ? DEVICE_LOST : submit(queue, count, infos, fence);
}

static int32_t count_wait(void *device, uint32_t count, const uint64_t *fences, uint32_t all,
                          uint64_t nanoseconds) {
    if (nanoseconds) atomic_fetch_add(&waits, 1);
    return wait_for_fences(device, count, fences, all, nanoseconds);
}

static Function ours(const char *name, Function theirs) {
    if (!theirs) return theirs;
    if (!strcmp(name, "vkQueueSubmit")) {
        submit = (Submit)theirs;
        return (Function)submit_or_lose;
    }
    if (!strcmp(name, "vkWaitForFences")) {
        wait_for_fences = (Wait)theirs;
        return (Function)count_wait;
    }
    return theirs;
}

static Function of_device(void *device, const char *name) {
    return ours(name, device_lookup(device, name));
}

Function vk_icdGetInstanceProcAddr(void *instance, const char *name) {
    Function theirs = ((Lookup)other("vk_icdGetInstanceProcAddr"))(instance, name);
    if (theirs && !strcmp(name, "vkGetDeviceProcAddr")) {
        device_lookup = (Lookup)theirs;
        return (Function)of_device;
    }
    return ours(name, theirs);
}

int32_t vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version) {
    return ((int32_t(*)(uint32_t *))other("vk_icdNegotiateLoaderICDInterfaceVersion"))(version);
}

Function vk_icdGetPhysicalDeviceProcAddr(void *instance, const char *name) {
    void *lookup = other("vk_icdGetPhysicalDeviceProcAddr");
    return lookup ? ((Lookup)lookup)(instance, name) : 0;
}
