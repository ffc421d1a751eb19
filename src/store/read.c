#include "base/log.h"
#include "base/memory.h"
#include "store/file.h"
#include "store/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe would keep HDF5 waiting for a writer. */
static bool is_other_than_file(const char *path)
{
  struct stat info;
  return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

static mt_status open_quietly(const char *path, mt_file **file_out)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;
  mt_hdf5_setup();
  MT_NEW(file, 1);
  file->mode = MT_FILE_READ;
  file->id = is_other_than_file(path) ? H5I_INVALID_HID
                                      : H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  MT_TRY(mt_string_copy(path, &file->path));
  *file_out = file;
  file = NULL;
done:
  mt_file_destroy(file);
  return status;
}

mt_status mt_store_open(const char *path, mt_file **file_out)
{
  mt_file *file = NULL;
  mt_status status = open_quietly(path, &file);
  if (status == MT_OK && file->id < 0)
    status = is_other_than_file(path) ? mt_fail(MT_ERR_IO, "%s is no file", path)
                                      : mt_hdf5_fail(file, "open", "it");
  if (status == MT_OK) {
    *file_out = file;
    return MT_OK;
  }
  mt_file_destroy(file);
  return status;
}

mt_status mt_store_open_in(const char *folder, const char *name, mt_file **file_out)
{
  char *path = mt_path_join(folder, name);
  mt_status status = path != NULL ? mt_store_open(path, file_out) : MT_ERR_MEMORY;
  free(path);
  return status;
}

void mt_store_close(mt_file *file)
{
  mt_file_destroy(file);
}

/* An attribute of the root that is one value; the caller closes it. */
static mt_status open_attribute(mt_file *file, const char *name, hid_t *attribute_out)
{
  mt_status status = MT_OK;
  hid_t attribute = H5Aopen(file->id, name, H5P_DEFAULT), space = -1;
  MT_HDF5(attribute, "open attribute", name);
  space = H5Aget_space(attribute);
  MT_REQUIRE(H5Sget_simple_extent_npoints(space) == 1, MT_ERR_IO,
             "%s: attribute %s is not one value", file->path, name);
  *attribute_out = attribute;
  attribute = -1;
done:
  if (space >= 0) H5Sclose(space);
  if (attribute >= 0) H5Aclose(attribute);
  return status;
}

/* A text attribute of the root. */
static mt_status read_text(mt_file *file, const char *name, char **value_out)
{
  mt_status status = MT_OK;
  char *value = NULL;
  hid_t attribute = -1, type = -1;
  MT_TRY(open_attribute(file, name, &attribute));
  type = H5Aget_type(attribute);
  MT_REQUIRE(H5Tget_class(type) == H5T_STRING && !H5Tis_variable_str(type), MT_ERR_IO,
             "%s: attribute %s is no text of fixed length", file->path, name);
  MT_NEW(value, (int64_t)H5Tget_size(type) + 1);
  MT_HDF5(H5Aread(attribute, type, value), "read attribute", name);
  *value_out = value;
  value = NULL;
done:
  free(value);
  if (type >= 0) H5Tclose(type);
  if (attribute >= 0) H5Aclose(attribute);
  return status;
}

mt_fingerprint mt_store_fingerprint(const char *path)
{
  mt_fingerprint print = {""};
  mt_file *file = NULL;
  char *text = NULL;
  if (access(path, R_OK) == 0 && open_quietly(path, &file) == MT_OK && file->id >= 0 &&
      H5Aexists(file->id, "fingerprint") > 0 &&
      read_text(file, "fingerprint", &text) == MT_OK && strlen(text) < sizeof print.hex)
    strcpy(print.hex, text);
  free(text);
  H5Eclear2(H5E_DEFAULT);
  mt_store_close(file);
  return print;
}

mt_status mt_store_hash(const char *folder, const char *name, mt_hash *hash)
{
  char *path = mt_path_join(folder, name);
  if (path == NULL) return MT_ERR_MEMORY;
  mt_fingerprint print = mt_store_fingerprint(path);
  mt_hash_fingerprint(hash, &print);
  free(path);
  return MT_OK;
}

mt_status mt_store_get_text(mt_file *file, const char *name, char **value_out)
{
  return read_text(file, name, value_out);
}

static mt_status read_number(mt_file *file, const char *name, hid_t type,
                             void *value_out)
{
  mt_status status = MT_OK;
  hid_t attribute = -1;
  MT_TRY(open_attribute(file, name, &attribute));
  MT_HDF5(H5Aread(attribute, type, value_out), "read attribute", name);
done:
  if (attribute >= 0) H5Aclose(attribute);
  return status;
}

mt_status mt_store_get_i64(mt_file *file, const char *name, int64_t *value_out)
{
  return read_number(file, name, H5T_NATIVE_INT64, value_out);
}

mt_status mt_store_get_f64(mt_file *file, const char *name, double *value_out)
{
  return read_number(file, name, H5T_NATIVE_DOUBLE, value_out);
}

static mt_status open_dataset(mt_file *file, const char *name, hid_t *object_out,
                              int64_t *rows_out, int64_t *width_out)
{
  mt_status status = MT_OK;
  hsize_t sizes[2] = {0, 0};
  hid_t space = -1, object = H5Dopen2(file->id, name, H5P_DEFAULT);
  MT_HDF5(object, "open dataset", name);
  space = H5Dget_space(object);
  int dimensions = H5Sget_simple_extent_ndims(space);
  MT_REQUIRE(dimensions == 1 || dimensions == 2, MT_ERR_IO,
             "%s: dataset %s has %d dimensions, not 1 or 2", file->path, name,
             dimensions);
  H5Sget_simple_extent_dims(space, sizes, NULL);
  *rows_out = (int64_t)sizes[0];
  *width_out = dimensions == 2 ? (int64_t)sizes[1] : 0;
  *object_out = object;
  object = -1;
done:
  if (space >= 0) H5Sclose(space);
  if (object >= 0) H5Dclose(object);
  return status;
}

mt_status mt_store_shape(mt_file *file, const char *name, int64_t *rows_out,
                         int64_t *width_out)
{
  hid_t object = -1;
  mt_status status = open_dataset(file, name, &object, rows_out, width_out);
  if (object >= 0) H5Dclose(object);
  return status;
}

mt_status mt_store_expect(mt_file *file, const char *name, int64_t rows, int64_t width)
{
  int64_t n = 0, w = 0;
  mt_status status = mt_store_shape(file, name, &n, &w);
  if (status != MT_OK || (n == rows && w == width)) return status;
  return mt_fail(
      MT_ERR_IO,
      "%s: dataset %s has %lld rows of width %lld, not %lld of %lld: the file "
      "is damaged or of another run",
      file->path, name, (long long)n, (long long)w, (long long)rows, (long long)width);
}

/* HDF5 gives NULL for an empty text. */
static mt_status fill_empty(int64_t n, char **texts)
{
  mt_status status = MT_OK;
  for (int64_t i = 0; i < n; i++)
    if (texts[i] == NULL) MT_TRY(mt_string_copy("", &texts[i]));
done:
  return status;
}

mt_status mt_store_read(mt_file *file, const char *name, mt_type type, int64_t first,
                        int64_t count, void *out)
{
  mt_status status = MT_OK;
  int64_t rows, width;
  hid_t object = -1, space = -1, memory = -1, text = mt_hdf5_text_type();
  MT_TRY(open_dataset(file, name, &object, &rows, &width));
  MT_REQUIRE(first >= 0 && count >= 0 && count <= rows - first, MT_ERR_IO,
             "%s: dataset %s has %lld rows, asked for %lld from row %lld", file->path,
             name, (long long)rows, (long long)count, (long long)first);
  space = H5Dget_space(object);
  if (count == 0 || H5Sget_simple_extent_npoints(space) == 0) goto done;
  hsize_t start[2] = {(hsize_t)first, 0}, counts[2] = {(hsize_t)count, (hsize_t)width};
  memory = H5Screate_simple(width > 0 ? 2 : 1, counts, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, counts, NULL);
  MT_HDF5(H5Dread(object, type == MT_TEXT ? text : mt_hdf5_memory_type(type), memory,
                  space, H5P_DEFAULT, out),
          "read dataset", name);
  if (type == MT_TEXT) MT_TRY(fill_empty(count * (width > 0 ? width : 1), out));
done:
  if (memory >= 0) H5Sclose(memory);
  if (space >= 0) H5Sclose(space);
  if (object >= 0) H5Dclose(object);
  H5Tclose(text);
  return status;
}

void mt_store_free_texts(int64_t count, char **texts)
{
  for (int64_t i = 0; texts != NULL && i < count; i++) {
    free(texts[i]);
    texts[i] = NULL;
  }
}

static mt_status read_stored(const mt_rows *rows, int64_t first, int64_t count,
                             float *out)
{
  const mt_store_rows *source = rows->source;
  return mt_store_read(source->file, source->name, MT_FLOAT32, first, count, out);
}

mt_status mt_rows_stored(const mt_store_rows *source, mt_rows *rows_out)
{
  int64_t n = 0, d = 0;
  mt_status status = mt_store_shape(source->file, source->name, &n, &d);
  if (status == MT_OK)
    *rows_out = (mt_rows){.n = n, .d = d, .source = source, .read = read_stored};
  return status;
}
