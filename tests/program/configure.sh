# configure: what is missing is named, with the package, the module and Spack's name.
. tests/program/lib.sh
[ -x configure ] || skip "no configure: made by autoconf"
source=$PWD
cd "$tmp"
expect_status 1 env PKG_CONFIG_LIBDIR=/nowhere CPATH= LIBRARY_PATH= "$source/configure" LDFLAGS=-L/nowhere CPPFLAGS=-DNOTHING
expect_output 'missing:' 'parallel HDF5: Debian: libhdf5-openmpi-dev; module: hdf5 .parallel.; Spack: hdf5\+mpi' \
  'libxml2: Debian: libxml2-dev; module: libxml2; Spack: libxml2' 'make deps'
expect_status 1 env MPICC=no "$source/configure"
expect_output 'no MPI compiler' 'libopenmpi-dev' 'Spack: openmpi'
expect_status 1 "$source/configure" --with-cuda=/nowhere
expect_output 'with-cuda=/nowhere: no nvcc'
expect_status 1 "$source/configure" --with-cuda-arch=hopper
expect_output 'with-cuda-arch=hopper: not compute capabilities'
expect_status 0 env LOADEDMODULES=gcc/13:metatopics/0.1:openmpi "$source/configure" --with-cuda=no
expect_output 'CUDA +not looked for' 'parallel HDF5 +[0-9]' '^Now: make'
grep -q '^CUDA_FOUND = no' config.mk || fail "config.mk has no CUDA_FOUND = no"
grep -Eq '^MODULES = gcc/13 openmpi *$' config.mk || fail "config.mk: $(grep MODULES config.mk)"
