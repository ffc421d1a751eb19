"""spack_recipe.py RECIPE: reads a recipe for Spack with stand-ins in Spack's place; prints what
it depends on and, with and without CUDA, the words for configure, and runs its other methods
with a stand-in for make."""
import contextlib
import importlib.util
import sys
import types


class Spec:
    """a spec with or without +cuda: only what recipes ask"""

    def __init__(self, cuda):
        self.variants = {"cuda_arch": types.SimpleNamespace(value=("80", "90"))}
        self.satisfies = lambda asked: asked == ("+cuda" if cuda else "~cuda")

    def __getitem__(self, name):
        return types.SimpleNamespace(prefix=f"/{name}", mpicc="/mpi/mpicc", mpicxx="/mpi/mpicxx")


class Executable:
    def __init__(self, path):
        self.path = path

    def __call__(self, *words, output=None):
        print("run", self.path, *words)
        return "metatopics hdf5 n_neighbors" if output else None


class Package:
    spec = Spec(False)
    prefix = types.SimpleNamespace(bin=types.SimpleNamespace(metatopics="/prefix/bin/metatopics"))


def directive(name):
    return lambda *words, **options: print(name, *words, *(f"{k}={v}" for k, v in options.items()))


@contextlib.contextmanager
def when(condition):
    print("when", condition)
    yield


def module(name, **words):
    made = types.ModuleType(name)
    made.__dict__.update(words, __path__=[])
    sys.modules[name] = made


module(
    "spack.package",
    when=when,
    make=lambda *words: print("make", *words),
    Executable=Executable,
    **{n: directive(n) for n in "license version depends_on conflicts requires variant".split()},
)
for part in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
    module(part)
module("spack_repo.builtin.build_systems.autotools", AutotoolsPackage=type("A", (Package,), {}))
module("spack_repo.builtin.build_systems.cuda", CudaPackage=type("C", (), {}))

sys.dont_write_bytecode = True
found = importlib.util.spec_from_file_location("recipe", sys.argv[1])
recipe = importlib.util.module_from_spec(found)
found.loader.exec_module(recipe)
package = recipe.Metatopics()
print("git", package.git)
for cuda in (False, True):
    package.spec = Spec(cuda)
    print("configure", *package.configure_args(), sep="\n")
package.autoreconf(package.spec, "/prefix")
package.check()
package.test_version()
package.test_deck()
