/* h5set FILE DATASET INDEX VALUE: overwrites one number of a dataset and gives the file a checksum
 * to that, as a program that counts wrongly might. Exit status 0 done, 2 not. */
#include "store/checksum.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>

static int set(hid_t dataset, hsize_t index, double value)
{
  hid_t space = H5Dget_space(dataset), cell = H5Screate(H5S_SCALAR);
  int dimensions = H5Sget_simple_extent_ndims(space), done = -1;
  hsize_t sizes[2] = {0, 1}, at[2];
  if (dimensions == 1 || dimensions == 2) {
    H5Sget_simple_extent_dims(space, sizes, NULL);
    at[0] = index / sizes[1];
    at[1] = index % sizes[1];
    if (H5Sselect_elements(space, H5S_SELECT_SET, 1, at) >= 0)
      done = H5Dwrite(dataset, H5T_NATIVE_DOUBLE, cell, space, H5P_DEFAULT, &value);
  }
  H5Sclose(cell);
  H5Sclose(space);
  return done;
}

int main(int argc, char **argv)
{
  if (argc != 5) {
    fprintf(stderr, "usage: h5set FILE DATASET INDEX VALUE\n");
    return 2;
  }
  hid_t file = H5Fopen(argv[1], H5F_ACC_RDWR, H5P_DEFAULT);
  hid_t dataset = file >= 0 ? H5Dopen2(file, argv[2], H5P_DEFAULT) : -1;
  int done = dataset >= 0
                 ? set(dataset, strtoull(argv[3], NULL, 10), strtod(argv[4], NULL))
                 : -1;
  if (dataset >= 0) H5Dclose(dataset);
  if (file >= 0 && H5Fclose(file) < 0) done = -1;
  mt_comm world; /* HDF5 has cut the old checksum off */
  if (done >= 0 && mt_comm_start(&argc, &argv, &world) == MT_OK) {
    if (mt_checksum_append(&world, argv[1]) != MT_OK) done = -1;
    mt_comm_stop(&world);
  }
  return done >= 0 ? 0 : 2;
}
