/* h5same A B: do two HDF5 files hold the same datasets, bit for bit? Attributes (seconds,
 * ranks, times) do not count, but for the fingerprint. Says the first difference; exit
 * status 0 the same, 1 not, 2 a file cannot be read. */
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hid_t other;      /* the second file */
static int64_t compared; /* datasets */

static hssize_t cells_of(hid_t dataset)
{
  hid_t space = H5Dget_space(dataset);
  hssize_t cells = H5Sget_simple_extent_npoints(space);
  H5Sclose(space);
  return cells;
}

static int texts_differ(hssize_t n, char *const *a, char *const *b)
{
  for (hssize_t i = 0; i < n; i++)
    if (strcmp(a[i] != NULL ? a[i] : "", b[i] != NULL ? b[i] : "") != 0) return 1;
  return 0;
}

/* HDF5 made a copy of each. */
static void forget_texts(hid_t dataset, hid_t type, void *texts)
{
  if (H5Tis_variable_str(type) <= 0) return;
  hid_t space = H5Dget_space(dataset);
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, texts);
  H5Sclose(space);
}

static int differs(const char *name, hid_t a, hid_t b)
{
  hid_t type = H5Dget_type(a), type_b = H5Dget_type(b);
  hssize_t cells = cells_of(a);
  size_t size = H5Tget_size(type);
  int differ = H5Tequal(type, type_b) <= 0 || cells != cells_of(b);
  if (differ) {
    printf("%s: another type or size\n", name);
  } else {
    void *one = calloc((size_t)cells + 1, size), *two = calloc((size_t)cells + 1, size);
    if (one == NULL || two == NULL ||
        H5Dread(a, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, one) < 0 ||
        H5Dread(b, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, two) < 0)
      exit(2);
    differ = H5Tis_variable_str(type) > 0 ? texts_differ(cells, one, two)
                                          : memcmp(one, two, (size_t)cells * size) != 0;
    if (differ) printf("%s: other values\n", name);
    forget_texts(a, type, one);
    forget_texts(b, type, two);
    free(one);
    free(two);
  }
  H5Tclose(type);
  H5Tclose(type_b);
  return differ;
}

static herr_t compare(hid_t file, const char *name, const H5O_info_t *info,
                      void *unused)
{
  (void)unused;
  if (info->type != H5O_TYPE_DATASET) return 0;
  hid_t a = H5Dopen2(file, name, H5P_DEFAULT), b = H5Dopen2(other, name, H5P_DEFAULT);
  int differ = a < 0 || b < 0;
  if (differ)
    printf("%s: not in the second file\n", name);
  else
    differ = differs(name, a, b);
  if (a >= 0) H5Dclose(a);
  if (b >= 0) H5Dclose(b);
  compared++;
  return differ;
}

static herr_t count(hid_t file, const char *name, const H5O_info_t *info, void *n)
{
  (void)file, (void)name;
  if (info->type == H5O_TYPE_DATASET) ++*(int64_t *)n;
  return 0;
}

static int fingerprints_differ(hid_t a, hid_t b)
{
  char one[64] = "", two[64] = "";
  hid_t files[2] = {a, b};
  char *texts[2] = {one, two};
  for (int i = 0; i < 2; i++) {
    hid_t attribute = H5Aopen(files[i], "fingerprint", H5P_DEFAULT);
    if (attribute < 0) continue;
    hid_t type = H5Aget_type(attribute);
    if (H5Tget_size(type) < sizeof one) H5Aread(attribute, type, texts[i]);
    H5Tclose(type);
    H5Aclose(attribute);
  }
  if (strcmp(one, two) == 0) return 0;
  printf("fingerprint: %s and %s\n", one, two);
  return 1;
}

int main(int argc, char **argv)
{
  if (argc != 3) {
    fprintf(stderr, "usage: h5same A B\n");
    return 2;
  }
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
  other = H5Fopen(argv[2], H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0 || other < 0) {
    fprintf(stderr, "h5same: cannot read %s\n", file < 0 ? argv[1] : argv[2]);
    return 2;
  }
  int64_t there = 0;
  herr_t answer =
      H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, compare, NULL, H5O_INFO_BASIC);
  int differ = answer != 0 || fingerprints_differ(file, other);
  H5Ovisit2(other, H5_INDEX_NAME, H5_ITER_INC, count, &there, H5O_INFO_BASIC);
  if (!differ && there != compared) {
    printf("the second file has %lld datasets, the first %lld\n", (long long)there,
           (long long)compared);
    differ = 1;
  }
  H5Fclose(file);
  H5Fclose(other);
  return differ;
}
