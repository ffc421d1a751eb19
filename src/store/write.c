#include "base/log.h"
#include "base/memory.h"
#include "store/checksum.h"
#include "store/file.h"
#include "store/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMAT_VERSION = 1 };
static const int64_t slice_bytes = (int64_t)1 << 29; /* of a transfer; below 1 GiB */

/* ---- attributes ---------------------------------------------------------------------- */

/* Does this rank take part in changes of the file's structure now? */
static bool takes_part(const mt_comm *comm, const mt_file *file)
{
  return file->mode == MT_FILE_NUMBERS || comm->rank == 0;
}

static mt_status put_attribute(const mt_file *file, hid_t object, const char *name,
                               hid_t type, const void *value)
{
  mt_status status = MT_OK;
  hid_t space = H5Screate(H5S_SCALAR), attribute = -1;
  attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  MT_HDF5(attribute, "add attribute", name);
  MT_HDF5(H5Awrite(attribute, type, value), "write attribute", name);
done:
  if (attribute >= 0) H5Aclose(attribute);
  H5Sclose(space);
  return status;
}

/* Fixed length: parallel HDF5 can write it too. */
static mt_status put_text(const mt_file *file, hid_t object, const char *name,
                          const char *value)
{
  hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, strlen(value) + 1);
  H5Tset_cset(type, H5T_CSET_UTF8);
  mt_status status = put_attribute(file, object, name, type, value);
  H5Tclose(type);
  return status;
}

mt_status mt_store_set_text(const mt_comm *comm, mt_file *file, const char *name,
                            const char *value)
{
  mt_status status = MT_OK;
  if (takes_part(comm, file)) status = put_text(file, file->id, name, value);
  return mt_agree(comm, status);
}

mt_status mt_store_set_i64(const mt_comm *comm, mt_file *file, const char *name,
                           int64_t value)
{
  mt_status status = MT_OK;
  if (takes_part(comm, file))
    status = put_attribute(file, file->id, name, H5T_NATIVE_INT64, &value);
  return mt_agree(comm, status);
}

mt_status mt_store_set_f64(const mt_comm *comm, mt_file *file, const char *name,
                           double value)
{
  mt_status status = MT_OK;
  if (takes_part(comm, file))
    status = put_attribute(file, file->id, name, H5T_NATIVE_DOUBLE, &value);
  return mt_agree(comm, status);
}

/* ---- begin and end ------------------------------------------------------------------- */

/* HDF5 1.10 releases a file that it cannot write when that is closed, but keeps its number,
 * and crashes on it when the program ends; with MPI's files, ranks wait for one another. So
 * a full disk has to show before: what is still to be written gets its room here, up to
 * `size` bytes of the file. On rank 0. */
static mt_status reserve(const mt_file *file, hsize_t size)
{
  mt_status status = MT_OK;
  int cause = 0, descriptor = open(file->part, O_WRONLY | O_CLOEXEC);
  MT_REQUIRE(descriptor >= 0, MT_ERR_IO, "cannot open %s: %s", file->part,
             strerror(errno));
  do cause = fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) ? errno : 0;
  while (cause == EINTR); /* a signal: it is heeded later */
  /* file systems that cannot reserve: the writes will tell */
  MT_REQUIRE(cause == 0 || cause == EOPNOTSUPP || cause == ENOSYS || cause == EINVAL,
             MT_ERR_IO, "cannot write %s: %s", file->part, strerror(cause));
done:
  if (descriptor >= 0) close(descriptor);
  return status;
}

/* The dataset's room, which MPI's files have from the start, and that of what describes it. */
static mt_status reserve_dataset(const mt_file *file, hid_t object)
{
  enum { DESCRIPTIONS = 1 << 16 };
  haddr_t first = H5Dget_offset(object);
  if (first == HADDR_UNDEF) return MT_OK; /* empty, or not there yet: written at once */
  return reserve(file, first + H5Dget_storage_size(object) + DESCRIPTIONS);
}

/* All that a file of one rank has still to write. */
static mt_status reserve_rest(const mt_file *file)
{
  hsize_t size = 0;
  if (file->parallel || file->id < 0) return MT_OK;
  if (H5Fget_filesize(file->id, &size) < 0)
    return mt_hdf5_fail(file, "find the size of", file->part);
  return size > 0 ? reserve(file, size) : MT_OK;
}

/* What HDF5 still wants to write goes to memory that is then forgotten; with MPI's files,
 * which have no descriptor of their own, to the room that the file gives up. On rank 0. */
static void divert(const mt_file *file)
{
  void *handle = NULL;
  int nowhere = -1, whole = -1;
  if (file->parallel) {
    whole = open(file->part, O_WRONLY | O_CLOEXEC);
    if (fallocate(whole, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  (off_t)1 << 50) != 0)
      mt_debug("%s keeps its room", file->part);
  } else if (H5Fget_vfd_handle(file->id, H5P_DEFAULT, &handle) >= 0) {
    nowhere = memfd_create("forgotten", MFD_CLOEXEC);
    if (nowhere >= 0) dup2(nowhere, *(const int *)handle);
  }
  if (nowhere >= 0) close(nowhere);
  if (whole >= 0) close(whole);
}

static mt_status close_file(mt_file *file)
{
  herr_t closed = file->id >= 0 ? H5Fclose(file->id) : 0;
  file->id = -1;
  return closed < 0 ? mt_hdf5_fail(file, "close", file->part) : MT_OK;
}

/* Gives back what was reserved beyond the end. */
static void trim(const char *part)
{
  struct stat about;
  if (stat(part, &about) != 0 || truncate(part, about.st_size) != 0)
    mt_debug("%s keeps more room than it needs", part);
}

/* Collective. On error the file may still be open: the caller abandons it. */
static mt_status finish(const mt_comm *comm, mt_file *file)
{
  mt_status status = MT_OK;
  MT_TRY(mt_agree(comm, comm->rank == 0 ? reserve_rest(file) : MT_OK));
  MT_TRY(mt_agree(comm, close_file(file)));
  if (file->parallel && comm->rank == 0) trim(file->part);
done:
  return status;
}

static mt_status create_serial(mt_file *file, const mt_fingerprint *made_by)
{
  mt_status status = MT_OK;
  int64_t version = FORMAT_VERSION;
  remove(file->part);
  file->id = H5Fcreate(file->part, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  MT_HDF5(file->id, "create", file->part);
  MT_TRY(put_text(file, file->id, "fingerprint", made_by->hex));
  MT_TRY(put_attribute(file, file->id, "format_version", H5T_NATIVE_INT64, &version));
  MT_TRY(put_text(file, file->id, "program", "metatopics " MT_VERSION));
done:
  return status;
}

static mt_status new_file(const char *path, mt_file **file_out)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;
  MT_NEW(file, 1);
  file->id = -1;
  file->mode = MT_FILE_TEXTS;
  MT_TRY(mt_string_copy(path, &file->path));
  MT_REQUIRE(asprintf(&file->part, "%s.part", path) > 0, MT_ERR_MEMORY, "no memory");
  *file_out = file;
  file = NULL;
done:
  mt_file_destroy(file);
  return status;
}

mt_status mt_store_create(const mt_comm *comm, const char *path,
                          const mt_fingerprint *made_by, mt_file **file_out)
{
  mt_status status = MT_OK;
  mt_file *file = NULL;
  mt_hdf5_setup();
  MT_TRY(mt_agree(comm, new_file(path, &file)));
  MT_TRY(mt_agree(comm, comm->rank == 0 ? create_serial(file, made_by) : MT_OK));
  *file_out = file;
  file = NULL;
done:
  mt_store_abandon(comm, &file);
  return status;
}

/* From the serial driver on rank 0 to the parallel one on all; one rank stays serial. */
static mt_status to_numbers(const mt_comm *comm, mt_file *file)
{
  mt_status status = MT_OK;
  if (file->mode == MT_FILE_NUMBERS) return MT_OK;
  if (comm->size > 1) {
    MT_TRY(finish(comm, file));
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(access, comm->mpi, MPI_INFO_NULL);
    file->id = H5Fopen(file->part, H5F_ACC_RDWR, access);
    H5Pclose(access);
    if (file->id < 0) status = mt_hdf5_fail(file, "open over all ranks", file->part);
    status = mt_agree(comm, status);
    if (status != MT_OK) file->id = -1; /* who did open it cannot close it alone */
    file->parallel = status == MT_OK;
    MT_TRY(status);
  }
  file->mode = MT_FILE_NUMBERS;
done:
  return status;
}

/* The bytes of path, or of a folder's entries, are on the disk when this returns. */
static mt_status sync_path(const char *path)
{
  int descriptor = open(path, O_RDONLY);
  if (descriptor < 0)
    return mt_fail(MT_ERR_IO, "cannot open %s: %s", path, strerror(errno));
  int failed = fsync(descriptor) != 0 && errno != EINVAL; /* EINVAL: nothing to sync */
  int cause = errno;
  close(descriptor);
  if (failed) return mt_fail(MT_ERR_IO, "cannot sync %s: %s", path, strerror(cause));
  return MT_OK;
}

mt_status mt_rename_synced(const char *part, const char *path)
{
  mt_status status = sync_path(part);
  if (status != MT_OK) return status;
  if (rename(part, path) != 0)
    return mt_fail(MT_ERR_IO, "cannot rename %s to %s: %s", part, path,
                   strerror(errno));
  char *folder = strdup(path), *slash = folder != NULL ? strrchr(folder, '/') : NULL;
  if (slash != NULL) *slash = '\0';
  status = sync_path(slash != NULL ? (slash == folder ? "/" : folder) : ".");
  free(folder);
  return status;
}

mt_status mt_store_commit(const mt_comm *comm, mt_file **file_in)
{
  mt_file *file = *file_in;
  mt_status status = MT_OK;
  MT_TRY(finish(comm, file));
  MT_TRY(mt_checksum_append(comm, file->part));
  MT_TRY(mt_agree(comm,
                  comm->rank == 0 ? mt_rename_synced(file->part, file->path) : MT_OK));
done:
  mt_store_abandon(comm, file_in);
  return status;
}

void mt_store_abandon(const mt_comm *comm, mt_file **file_in)
{
  mt_file *file = *file_in;
  if (file == NULL) return;
  if (file->id >= 0) {
    if (comm->rank == 0) divert(file);
    if (file->parallel) mt_agree(comm, MT_OK); /* after it */
    H5Fclose(file->id);
    H5Eclear2(H5E_DEFAULT);
    file->id = -1;
  }
  if (comm->rank == 0 && file->part != NULL)
    remove(file->part); /* renamed: not there */
  mt_file_destroy(file);
  *file_in = NULL;
}

/* ---- datasets ------------------------------------------------------------------------ */

static mt_status describe(const mt_file *file, hid_t object, const mt_dataset *dataset)
{
  mt_status status = MT_OK;
  static const char *const names[] = {"dimension_0", "dimension_1"};
  MT_TRY(put_text(file, object, "description", dataset->description));
  MT_TRY(put_text(file, object, "units", dataset->units));
  for (int i = 0; i < 2; i++)
    if (dataset->dimensions[i] != NULL)
      MT_TRY(put_text(file, object, names[i], dataset->dimensions[i]));
done:
  return status;
}

/* A width of 0 may be that of a matrix without columns. */
static int dimensions_of(const mt_dataset *dataset)
{
  return dataset->dimensions[1] != NULL ? 2 : 1;
}

/* Elements of a row. */
static int64_t elements_of(const mt_dataset *dataset, int64_t width)
{
  return dimensions_of(dataset) == 2 ? width : 1;
}

/* Makes the dataset and its groups; the caller closes it. */
static mt_status make_dataset(const mt_file *file, const mt_dataset *dataset,
                              int64_t rows, int64_t width, hid_t *object_out)
{
  mt_status status = MT_OK;
  hsize_t sizes[2] = {(hsize_t)rows, (hsize_t)width};
  hid_t object = -1, space = H5Screate_simple(dimensions_of(dataset), sizes, NULL);
  hid_t link = H5Pcreate(H5P_LINK_CREATE), creation = H5Pcreate(H5P_DATASET_CREATE);
  hid_t text = mt_hdf5_text_type();
  H5Pset_create_intermediate_group(link, 1);
  if (dataset->type != MT_TEXT) H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
  object =
      H5Dcreate2(file->id, dataset->name,
                 dataset->type == MT_TEXT ? text : mt_hdf5_memory_type(dataset->type),
                 space, link, creation, H5P_DEFAULT);
  MT_HDF5(object, "create dataset", dataset->name);
  MT_TRY(describe(file, object, dataset));
  *object_out = object;
  object = -1;
done:
  if (object >= 0) H5Dclose(object);
  H5Tclose(text);
  H5Pclose(creation);
  H5Pclose(link);
  H5Sclose(space);
  return status;
}

/* Rows [first, first + count) of the file's dataset, count 0: nothing, still collective. */
static mt_status write_rows(const mt_file *file, const mt_dataset *dataset,
                            hid_t object, hid_t type, hid_t transfer, int64_t first,
                            int64_t count, int64_t width, const void *data)
{
  mt_status status = MT_OK;
  hsize_t start[2] = {(hsize_t)first, 0}, counts[2] = {(hsize_t)count, (hsize_t)width};
  hid_t space = H5Dget_space(object);
  hid_t memory = H5Screate_simple(width > 0 ? 2 : 1, counts, NULL);
  if (count > 0) {
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, counts, NULL);
  } else {
    H5Sselect_none(space);
    H5Sselect_none(memory);
  }
  MT_HDF5(H5Dwrite(object, type, memory, space, transfer, data), "write dataset",
          dataset->name);
done:
  H5Sclose(memory);
  H5Sclose(space);
  return status;
}

static mt_status write_numbers(const mt_comm *comm, mt_file *file,
                               const mt_dataset *dataset, int64_t count, int64_t width,
                               const void *data)
{
  mt_status status = MT_OK;
  int64_t first,
      total = count,
      row = (int64_t)mt_type_size(dataset->type) * elements_of(dataset, width);
  int64_t each = row > 0 && slice_bytes / row > 0 ? slice_bytes / row : 1,
          slices = row > 0 ? (count + each - 1) / each : 0;
  hid_t object = -1, transfer = H5Pcreate(H5P_DATASET_XFER);
  const char nothing[8] = "";
  MT_TRY(to_numbers(comm, file));
  MT_TRY(mt_exscan_i64(comm, count, &first));
  MT_TRY(mt_sum_i64(comm, 1, &total));
  MT_TRY(mt_max_i64(comm, 1, &slices));
  MT_TRY(mt_agree(comm, make_dataset(file, dataset, total, width, &object)));
  MT_TRY(mt_agree(comm, comm->rank == 0 ? reserve_dataset(file, object) : MT_OK));
  if (comm->size > 1) H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  for (int64_t s = 0; s < slices; s++) {
    int64_t from = s * each < count ? s * each : count;
    int64_t many = count - from < each ? count - from : each;
    const void *at = many > 0 ? (const char *)data + from * row : nothing;
    mt_status now =
        write_rows(file, dataset, object, mt_hdf5_memory_type(dataset->type), transfer,
                   first + from, many, width, at);
    if (status == MT_OK) status = now; /* the others go on */
  }
  MT_TRY(mt_agree(comm, status));
done:
  if (object >= 0) H5Dclose(object);
  H5Pclose(transfer);
  return status;
}

/* ---- texts: rank 0 writes, rank by rank ----------------------------------------------- */

/* Texts one after the other, each with its final '\0'. */
static mt_status pack_texts(int64_t n, char *const *texts, size_t *bytes_out,
                            char **packed_out)
{
  mt_status status = MT_OK;
  char *packed = NULL;
  size_t bytes = 0;
  for (int64_t i = 0; i < n; i++)
    bytes += (texts[i] != NULL ? strlen(texts[i]) : 0) + 1;
  MT_NEW(packed, (int64_t)bytes);
  char *at = packed;
  for (int64_t i = 0; i < n; i++) at = stpcpy(at, texts[i] != NULL ? texts[i] : "") + 1;
  *bytes_out = bytes;
  *packed_out = packed;
done:
  return status;
}

static mt_status write_packed(const mt_file *file, hid_t object,
                              const mt_dataset *dataset, int64_t first, int64_t rows,
                              int64_t width, const char *packed)
{
  mt_status status = MT_OK;
  int64_t n = rows * elements_of(dataset, width);
  const char **texts = NULL;
  hid_t type = mt_hdf5_text_type();
  MT_NEW(texts, n);
  for (int64_t i = 0; i < n; i++) {
    texts[i] = packed;
    packed += strlen(packed) + 1;
  }
  if (n > 0)
    MT_TRY(write_rows(file, dataset, object, type, H5P_DEFAULT, first, rows, width,
                      texts));
done:
  H5Tclose(type);
  free(texts);
  return status;
}

/* What a rank has to send: rows, and bytes when packed. */
typedef struct text_block {
  int64_t rows;
  size_t bytes;
} text_block;

static mt_status write_texts(const mt_comm *comm, mt_file *file,
                             const mt_dataset *dataset, int64_t count, int64_t width,
                             char *const *texts)
{
  mt_status status = MT_OK;
  char *packed = NULL, *received = NULL;
  text_block mine = {count, 0}, *blocks = NULL;
  int64_t total = 0, first = 0;
  hid_t object = -1;
  MT_TRY(mt_agree(
      comm, mt_memory_new(comm->size, sizeof *blocks, "texts", (void **)&blocks)));
  MT_TRY(mt_agree(comm, pack_texts(count * elements_of(dataset, width), texts,
                                   &mine.bytes, &packed)));
  MT_TRY(mt_allgather(comm, sizeof mine, &mine, blocks));
  for (int r = 0; r < comm->size; r++) total += blocks[r].rows;
  MT_TRY(mt_agree(comm, comm->rank == 0
                            ? make_dataset(file, dataset, total, width, &object)
                            : MT_OK));
  for (int r = 0; r < comm->size; r++) {
    mt_status local = MT_OK;
    char *block = packed;
    if (blocks[r].rows == 0) continue;
    if (comm->rank == 0 && r > 0) {
      local = mt_memory_new((int64_t)blocks[r].bytes, 1, "texts", (void **)&received);
      block = received;
    }
    MT_TRY(mt_agree(comm, local));
    MT_TRY(mt_transfer(comm, r, 0, blocks[r].bytes, block));
    if (comm->rank == 0)
      local = write_packed(file, object, dataset, first, blocks[r].rows, width, block);
    MT_TRY(mt_agree(comm, local));
    first += blocks[r].rows;
    free(received);
    received = NULL;
  }
done:
  if (object >= 0) H5Dclose(object);
  free(received);
  free(packed);
  free(blocks);
  return status;
}

mt_status mt_store_write(const mt_comm *comm, mt_file *file, const mt_dataset *dataset,
                         int64_t count, int64_t width, const void *data)
{
  if (dataset->type != MT_TEXT)
    return write_numbers(comm, file, dataset, count, width, data);
  if (file->mode != MT_FILE_TEXTS)
    return mt_fail(MT_ERR_ARG, "%s: texts come before numbers", dataset->name);
  return write_texts(comm, file, dataset, count, width, data);
}
