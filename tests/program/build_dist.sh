# make dist: a tarball that configures and builds in a folder beside the sources, without git.
# SECONDS 600
. tests/program/lib.sh
git rev-parse --git-dir >/dev/null 2>&1 || skip "not a clone: make dist packs what git tracks"
# git may refuse a clone that another user owns
tarball=$(make -s dist | tail -n 1)
mv "$tarball" "$tmp"
cd "$tmp"
tar -xzf "$tarball"
source=$tmp/${tarball%.tar.gz}
mkdir elsewhere
cd elsewhere
"$source/configure" --with-cuda=no CFLAGS=-O0 >"$tmp/configure.log" 2>&1 || { cat "$tmp/configure.log"; fail "configure"; }
unset MAKEFLAGS MAKELEVEL MFLAGS BUILD
make -s >"$tmp/make.log" 2>&1 || { tail -n 30 "$tmp/make.log"; fail "make"; }
./metatopics --version >/dev/null || fail "the program does not start"
[ ! -e "$source/build" ] || fail "make in another folder wrote into the sources"
