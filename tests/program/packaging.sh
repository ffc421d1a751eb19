# The packages name what the program is built with: packaging/debian and packaging/spack against
# tools/deps, configure and the version.
. tests/program/lib.sh
version=$("$metatopics" --version | sed -n 's/^metatopics *//p')
head -n 1 packaging/debian/changelog | grep -qF "metatopics ($version-" ||
  fail "packaging/debian/changelog is not of $version"
[ -x packaging/debian/rules ] || fail "packaging/debian/rules cannot be run"
[ packaging/spack/spack_repo/metatopics/packages/metatopics/package.py -ef packaging/spack/package.py ] ||
  fail "Spack's repository has another recipe than packaging/spack/package.py"

recipe=tests/program/spack_recipe.py
if command -v python3 >/dev/null; then
  python3 $recipe packaging/spack/package.py >"$tmp/recipe"
  grep -Eo -- '^--[a-z-]+|^[A-Z_]+=' "$tmp/recipe" | sort -u >"$tmp/words"
  expect_file "$tmp/words"
  ./configure --help >"$tmp/help"
  while read -r word; do
    grep -qE -- "^ +${word%=}([= ]|$)" "$tmp/help" || grep -q "\$${word%=}" configure.ac ||
      fail "the recipe gives configure $word, which it does not know"
  done <"$tmp/words"
else
  echo "no python3: the recipe for Spack is not read"
fi
# what building, running and the tests need, but for what is always there
tools/deps --table | tail -n +3 | while IFS='|' read -r _ name use debian _ spack _; do
  case $use in " make format "* | " make fuzz "* | " make check-"* | " make bench"* | " make deb "* | *"module file"*) continue ;; esac
  for package in $debian; do
    case $package in gcc | libc6-dev | g++ | make | autoconf | NVIDIA* | cuda-toolkit | libnccl-dev) continue ;; esac
    grep -qw -- "$package" packaging/debian/control || fail "packaging/debian/control has no $package ($name)"
  done
  case ${spack// /} in gcc) spack=c ;; openmpi) spack=mpi ;; *) spack=${spack// /} ;; esac
  grep -q "depends_on(\"${spack}[\"@]" packaging/spack/package.py || fail "the recipe for Spack has no $spack ($name)"
done
