/* HDF5 files that describe themselves and are whole or not there.
 * A file is written as PATH.part, closed, synced, then renamed to PATH. Each dataset has
 * description, units and dimension names as attributes; the file has a fingerprint of what
 * made it. Datasets are spread over ranks by rows (their first dimension). */
#ifndef MT_STORE_STORE_H
#define MT_STORE_STORE_H
#include "base/hash.h"
#include "base/rows.h"
#include "comm/comm.h"

typedef enum mt_type { MT_INT32, MT_INT64, MT_FLOAT32, MT_FLOAT64, MT_TEXT } mt_type;
size_t
mt_type_size(mt_type type); /* bytes of one element; MT_TEXT: of a char pointer */

/* What a dataset is; constants of the program, e.g.
 *   {"/distances", MT_FLOAT32, "distance to each neighbour", "1", {"topic", "neighbour"}} */
typedef struct mt_dataset {
  const char *name; /* absolute path; groups are made as needed */
  mt_type type;
  const char *description, *units; /* not empty; "1" for a pure number */
  const char *dimensions[2];       /* names; the second NULL for a vector */
} mt_dataset;

typedef struct mt_file mt_file;

/**
 * Begins PATH.part over all ranks of comm (a leftover one is replaced); folders of the
 * path must exist. The fingerprint and format version become attributes of the root.
 */
mt_status mt_store_create(const mt_comm *comm, const char *path,
                          const mt_fingerprint *made_by, mt_file **file_out);

/**
 * Writes a dataset of all ranks' rows, in rank order.
 * count    this rank's rows; 0 is fine, all of 0 gives an empty dataset
 * width    columns of a dataset with two dimensions, >= 0, the same on all ranks; 0 for a
 *          vector
 * data     (count, width) of the dataset's type; MT_TEXT: char *const *, UTF-8, any length
 * Texts come before numbers: every MT_TEXT dataset of a file is written first (else
 * MT_ERR_ARG), since parallel HDF5 cannot write strings of variable length.
 */
mt_status mt_store_write(const mt_comm *comm, mt_file *file, const mt_dataset *dataset,
                         int64_t count, int64_t width, const void *data);

/* A scalar attribute of the root, the same value on all ranks. */
mt_status mt_store_set_text(const mt_comm *comm, mt_file *file, const char *name,
                            const char *value);
mt_status mt_store_set_i64(const mt_comm *comm, mt_file *file, const char *name,
                           int64_t value);
mt_status mt_store_set_f64(const mt_comm *comm, mt_file *file, const char *name,
                           double value);

/* Close, checksum (store/checksum.h), sync, rename: from here on PATH is whole. Frees the file, on error too (then
 * PATH.part is removed). */
mt_status mt_store_commit(const mt_comm *comm, mt_file **file);

/* Closes and removes PATH.part; NULL is fine. For the way out after an error that all
 * ranks have agreed on. */
void mt_store_abandon(const mt_comm *comm, mt_file **file);

/* ---- reading: each rank for itself, not collective ---- */

mt_status mt_store_open(const char *path, mt_file **file_out);
void mt_store_close(mt_file *file); /* NULL is fine */

/* The file NAME in a folder, e.g. of a run. */
mt_status mt_store_open_in(const char *folder, const char *name, mt_file **file_out);

/* The fingerprint of a whole file at path; an empty one if there is none or it cannot be
 * read (which is not an error: the stage is made again). */
mt_fingerprint mt_store_fingerprint(const char *path);

/* Adds the fingerprint of the file NAME in a folder, whatever it is, to a hash. */
mt_status mt_store_hash(const char *folder, const char *name, mt_hash *hash);

/* rows and width (0 for a vector) of a dataset. */
mt_status mt_store_shape(mt_file *file, const char *name, int64_t *rows_out,
                         int64_t *width_out);

/* Is a dataset rows x width? MT_ERR_IO, naming it and both shapes, if not. What is read into
 * memory of a known size must be asked first. */
mt_status mt_store_expect(mt_file *file, const char *name, int64_t rows, int64_t width);

/**
 * Rows [first, first + count) of a dataset, converted to `type`.
 * out      (count, width); for MT_TEXT an array of count x width char *, each owned by
 *          the caller: mt_store_free_texts
 * Errors   MT_ERR_IO, naming file and dataset; out is then not to be used
 */
mt_status mt_store_read(mt_file *file, const char *name, mt_type type, int64_t first,
                        int64_t count, void *out);
void mt_store_free_texts(int64_t count, char **texts); /* the texts, not the array */

mt_status mt_store_get_text(mt_file *file, const char *name,
                            char **value_out); /* owned */
mt_status mt_store_get_i64(mt_file *file, const char *name, int64_t *value_out);
mt_status mt_store_get_f64(mt_file *file, const char *name, double *value_out);

/* A dataset as rows to read in blocks (file stays open and belongs to the caller). */
typedef struct mt_store_rows {
  mt_file *file;
  const char *name;
} mt_store_rows;
mt_status mt_rows_stored(const mt_store_rows *source,
                         mt_rows *rows_out); /* source: borrowed */

#endif
