#include "backend/backend.h"
#include "base/log.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MT_LIBDIR
#define MT_LIBDIR "/usr/local/lib/metatopics"
#endif
#define SHARED_OBJECT "metatopics-cuda.so"

/* Why this rank has no GPU to use. */
typedef enum mt_weight { NOTHING_THERE, NO_DEVICE, UNUSABLE } mt_weight;
typedef struct mt_reason {
  mt_weight weight; /* UNUSABLE: a GPU is there, and idle for want of something */
  char text[1000];
} mt_reason;

static const mt_cuda_library *library; /* once it is loaded */

/* ---- the shared object -------------------------------------------------------------- */

/* Beside the program, above a test's folder, in the build's, and where make install puts it. */
static bool find_shared_object(char *path, size_t size)
{
  static const char *const near[] = {"", "../", "build/", "../lib/metatopics/"};
  char program[PATH_MAX];
  const char *named = getenv("METATOPICS_CUDA");
  if (named != NULL && named[0] != '\0') {
    snprintf(path, size, "%s", named);
    return true;
  }
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = '\0';
  char *name = strrchr(program, '/');
  for (size_t i = 0; name != NULL && i < sizeof near / sizeof *near; i++) {
    snprintf(path, size, "%.*s/%s" SHARED_OBJECT, (int)(name - program), program,
             near[i]);
    if (access(path, R_OK) == 0) return true;
  }
  snprintf(path, size, "%s/" SHARED_OBJECT, MT_LIBDIR);
  return access(path, R_OK) == 0;
}

static bool explain(mt_reason *why, mt_weight weight, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static bool explain(mt_reason *why, mt_weight weight, const char *format, ...)
{
  va_list arguments;
  why->weight = weight;
  va_start(arguments, format);
  vsnprintf(why->text, sizeof why->text, format, arguments);
  va_end(arguments);
  return false;
}

static bool load_from(const char *path, mt_reason *why)
{
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL)
    return explain(
        why, UNUSABLE,
        "%s cannot be loaded: %s (are the modules, or LD_LIBRARY_PATH, those "
        "that it was built with?)",
        path, dlerror());
  const mt_cuda_library *found = dlsym(handle, "mt_cuda");
  if (found != NULL && found->interface == MT_CUDA_INTERFACE &&
      found->table == (int)sizeof(mt_backend) &&
      strcmp(found->version, MT_VERSION) == 0) {
    library = found;
    return true;
  }
  if (found == NULL)
    explain(why, UNUSABLE, "%s is no CUDA backend of metatopics", path);
  else
    explain(why, UNUSABLE,
            "%s is of metatopics %s (interface %d.%d), this program is %s (interface "
            "%d.%d): take both from the same build",
            path, found->version, found->interface, found->table, MT_VERSION,
            MT_CUDA_INTERFACE, (int)sizeof(mt_backend));
  dlclose(handle);
  return false;
}

static bool driver_is_there(void)
{
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver != NULL) dlclose(driver);
  return driver != NULL;
}

/* Loads it where a driver is, or where it was named: it is large. */
static bool load_library(mt_reason *why)
{
  static const char how[] =
      "make builds it where configure finds nvcc and NCCL (./configure --with-cuda=yes "
      "says what is missing); METATOPICS_CUDA may name one";
  char path[2 * PATH_MAX];
  if (library != NULL) return true;
  bool found = find_shared_object(path, sizeof path);
  bool driver = getenv("METATOPICS_CUDA") != NULL || driver_is_there();
  if (found && driver) return load_from(path, why);
  if (found) return explain(why, NO_DEVICE, "no NVIDIA driver here (libcuda.so.1)");
  if (driver)
    return explain(why, UNUSABLE,
                   "an NVIDIA driver is here, but no CUDA backend (" SHARED_OBJECT
                   " beside the program or in %s): %s",
                   MT_LIBDIR, how);
  return explain(why, NOTHING_THERE,
                 "neither an NVIDIA driver (libcuda.so.1) nor the CUDA backend "
                 "(" SHARED_OBJECT ") is here: %s",
                 how);
}

void mt_backend_ask_versions(bool load, mt_backend_versions *versions_out)
{
  mt_reason why;
  char path[2 * PATH_MAX];
  mt_backend_versions versions = {.cuda = "not built", .nccl = "not built"};
  bool found = find_shared_object(path, sizeof path);
  if (load && found && library == NULL && !load_from(path, &why)) {
    snprintf(versions.cuda, sizeof versions.cuda, "not usable: %.60s", why.text);
    snprintf(versions.nccl, sizeof versions.nccl, "not usable");
  } else if (library != NULL) {
    library->versions(&versions);
  } else if (found) {
    versions = (mt_backend_versions){.cuda = "not loaded", .nccl = "not loaded"};
  }
  *versions_out = versions;
}

/* ---- finding and opening ---------------------------------------------------------------- */

/* The weightiest reason, of the lowest rank that gives it, on all. */
static mt_status share_reason(const mt_comm *world, mt_reason *why)
{
  int64_t last = world->size - 1,
          best = (int64_t)why->weight * world->size + last - world->rank;
  mt_status status = mt_max_i64(world, 1, &best);
  if (status != MT_OK) return status;
  return mt_bcast(world, (int)(last - best % world->size), sizeof *why, why);
}

static mt_status say_none(const mt_comm *world, mt_backend_choice choice,
                          mt_reason *why)
{
  mt_status status = share_reason(world, why);
  if (status != MT_OK || choice == MT_BACKEND_CPU) return status;
  mt_log_replicated(true);
  if (choice == MT_BACKEND_CUDA)
    status =
        mt_fail(MT_ERR_INPUT, "--backend cuda: no rank has a GPU that can be used: %s",
                why->text);
  else if (why->weight == UNUSABLE)
    mt_warn("the CPU backend is used: %s", why->text);
  else if (why->weight == NO_DEVICE)
    mt_info("the CPU backend is used: %s", why->text);
  mt_log_replicated(false);
  return status;
}

mt_status mt_backend_find(const mt_comm *world, mt_backend_choice choice,
                          mt_devices *devices_out)
{
  mt_reason why = {.weight = NOTHING_THERE};
  mt_devices devices = {.n = 0};
  if (choice != MT_BACKEND_CPU && load_library(&why)) {
    why.weight = NO_DEVICE;
    library->devices(&devices, why.text, sizeof why.text);
  }
  *devices_out = devices;
  int64_t seen = devices.n;
  mt_status status = mt_max_i64(world, 1, &seen);
  if (status == MT_OK && seen == 0) return say_none(world, choice, &why);
  if (devices.n == 0 && why.weight == UNUSABLE)
    mt_warn("works as a CPU rank: %s", why.text);
  return status;
}

mt_status mt_backend_open(const mt_comm *world, const mt_layout *layout,
                          mt_backend **backend_out)
{
  mt_status status = MT_OK;
  mt_backend *be = NULL;
  status = layout->device >= 0 ? library->open(&be) : mt_backend_cpu(&be);
  MT_TRY(mt_agree(world, status));
  be->name = layout->n_devices > 0 ? "cuda" : "cpu";
  if (layout->team.size > 0) status = be->start(be, &layout->team, layout->device);
  MT_TRY(mt_agree(world, status));
  *backend_out = be;
  be = NULL;
done:
  if (be != NULL) be->close(be);
  return status;
}
