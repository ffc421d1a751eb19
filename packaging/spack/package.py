# SPDX-License-Identifier: BSD-3-Clause
"""metatopics for Spack 1.0 and later; how to use it: doc/packaging.md."""

from pathlib import Path

from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Metatopics(AutotoolsPackage, CudaPackage):
    """Finds the subjects that persist in a dated text collection: topic models (LDA) of each
    period and seed, compared by nearest neighbours, UMAP and HDBSCAN, and drawn as a map."""

    # the clone that this recipe lies in
    git = f"file://{Path(__file__).resolve().parents[2]}"

    license("BSD-3-Clause")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("autoconf", type="build")
    depends_on("gmake", type="build")
    depends_on("pkgconf", type="build")
    depends_on("mpi")
    depends_on("hdf5+mpi")
    depends_on("openblas")
    depends_on("libxml2")
    depends_on("jansson")
    depends_on("libcsv")
    depends_on("utf8proc")
    depends_on("libarchive")
    depends_on("xxhash")
    depends_on("random123")
    depends_on("gnuplot", type="run")
    depends_on("cmocka", type="test")

    with when("+cuda"):
        depends_on("cuda@12:")
        depends_on("nccl")
        conflicts("cuda_arch=none", msg="name the GPUs, as in +cuda cuda_arch=80,90")

    requires("^[virtuals=mpi] openmpi", msg="metatopics is tested with Open MPI alone")

    def autoreconf(self, spec, prefix):
        Executable("autoconf")()

    def configure_args(self):
        spec = self.spec
        args = [f"MPICC={spec['mpi'].mpicc}", f"MPICXX={spec['mpi'].mpicxx}"]
        if not spec.satisfies("+cuda"):
            return args + ["--with-cuda=no"]
        return args + [
            f"--with-cuda={spec['cuda'].prefix}",
            f"--with-cuda-arch={' '.join(spec.variants['cuda_arch'].value)}",
            f"NCCL_HOME={spec['nccl'].prefix}",
        ]

    # Spack writes module files of its own
    install_targets = ["install", "MODULES="]

    def check(self):
        """The planted topics come back; make check in the sources takes minutes."""
        make("build/metatopics", "build/newswire", "build/tests/check_planted")
        Executable("tests/run")("build", "planted")

    def test_version(self):
        """the installed program starts, and knows its libraries"""
        said = Executable(self.prefix.bin.metatopics)("--version", output=str.split)
        assert "metatopics" in said and "hdf5" in said

    def test_deck(self):
        """the installed program knows its parameters"""
        said = Executable(self.prefix.bin.metatopics)("help", "--deck", output=str.split)
        assert "n_neighbors" in said
