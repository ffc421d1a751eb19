/* The output folder: paths, and the lock that keeps two runs apart. */
#ifndef MT_STORE_FOLDER_H
#define MT_STORE_FOLDER_H
#include "comm/comm.h"

/* "a/b" from its parts; owned by the caller. NULL when out of memory (after logging). */
char *mt_path_join(const char *folder, const char *name);

/* Makes a folder and those above it; one that exists is fine. MT_ERR_INPUT if it cannot
 * be made, naming the path and the cause. Not collective. */
mt_status mt_folder_make(const char *path);

/* Writes text to a file whole: a temporary name, sync, rename. Not collective. */
mt_status mt_file_replace(const char *path, const void *bytes, size_t size);

/* Opens a file to read; -1, errno says why: a pipe or a device is none, nothing waits for one.
 * The caller closes. Not collective. */
int mt_file_open(const char *path);

/* Syncs a finished temporary file and gives it its final name, for good: the folder's entry
 * is synced too. Not collective. */
mt_status mt_rename_synced(const char *part, const char *path);

/* The lock on an output folder: rank 0 takes it, all learn. MT_ERR_INPUT if another run
 * holds it, naming its host, process, job and start. Released by the kernel when a run dies. */
typedef struct mt_lock mt_lock;
mt_status mt_lock_take(const mt_comm *comm, const char *folder, mt_lock **lock_out);
void mt_lock_release(mt_lock *lock); /* NULL is fine */

#endif
