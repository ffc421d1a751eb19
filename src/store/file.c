#include "store/file.h"

#include <stdlib.h>
#include <string.h>

void mt_hdf5_setup(void)
{
  /* Temporary names and the folder's lock (folder.h) do what HDF5's locks do, which fail on file
   * systems that have none. */
  setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* Keeps the innermost message: it names the cause. */
static herr_t note_cause(unsigned depth, const H5E_error2_t *error, void *cause)
{
  (void)depth;
  if (error->desc != NULL && error->desc[0] != '\0') strncpy(cause, error->desc, 255);
  return 0;
}

mt_status mt_hdf5_fail(const mt_file *file, const char *what, const char *name)
{
  char cause[256] = "no cause given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_cause, cause);
  char inner[256] = "";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, note_cause, inner);
  H5Eclear2(H5E_DEFAULT);
  bool locks = strstr(inner, "lock file") != NULL;
  return mt_fail(MT_ERR_IO, "%s: cannot %s %s: %s (%s)%s",
                 file->part != NULL ? file->part : file->path, what, name, inner, cause,
                 locks ? ": set HDF5_USE_FILE_LOCKING=FALSE" : "");
}

hid_t mt_hdf5_text_type(void)
{
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

hid_t mt_hdf5_memory_type(mt_type type)
{
  switch (type) {
  case MT_INT32:
    return H5T_NATIVE_INT32;
  case MT_INT64:
    return H5T_NATIVE_INT64;
  case MT_FLOAT32:
    return H5T_NATIVE_FLOAT;
  default:
    return H5T_NATIVE_DOUBLE;
  }
}

size_t mt_type_size(mt_type type)
{
  switch (type) {
  case MT_INT32:
  case MT_FLOAT32:
    return 4;
  case MT_TEXT:
    return sizeof(char *);
  default:
    return 8;
  }
}

void mt_file_destroy(mt_file *file)
{
  if (file == NULL) return;
  if (file->id >= 0) H5Fclose(file->id);
  free(file->path);
  free(file->part);
  free(file);
}
