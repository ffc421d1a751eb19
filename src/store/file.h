/* Inside src/store only: what an open file is, and how HDF5's errors become ours. */
#ifndef MT_STORE_FILE_H
#define MT_STORE_FILE_H
#include "store/store.h"
#include <hdf5.h>

/* Where a file being written stands. Texts need the serial driver, numbers of several
 * ranks the parallel one, and a file cannot have both at once. */
typedef enum mt_file_mode { MT_FILE_READ, MT_FILE_TEXTS, MT_FILE_NUMBERS } mt_file_mode;

struct mt_file {
  hid_t id;   /* < 0: not open on this rank (mode TEXTS, rank > 0) */
  char *path; /* the final name */
  char *part; /* the temporary one; NULL when reading */
  mt_file_mode mode;
  bool parallel; /* open over all ranks, through MPI */
};

/* Logs what failed with HDF5's own words; MT_ERR_IO. */
mt_status mt_hdf5_fail(const mt_file *file, const char *what, const char *name);

/* Turns HDF5's printing off; once, before the first call. */
void mt_hdf5_setup(void);

hid_t mt_hdf5_text_type(void);           /* variable length, UTF-8; the caller closes */
hid_t mt_hdf5_memory_type(mt_type type); /* not MT_TEXT; not to be closed */
void mt_file_destroy(mt_file *file);     /* closes; NULL is fine */

#define MT_HDF5(call, what, name)              \
  do {                                         \
    if ((call) < 0) {                          \
      status = mt_hdf5_fail(file, what, name); \
      goto done;                               \
    }                                          \
  } while (0)

#endif
