# make install, staged and not, and make uninstall: these files and no others.
# SECONDS 900
. tests/program/lib.sh
install_args=(BUILD="$BUILD" prefix=/opt/mt DESTDIR="$tmp/stage")
files() { (cd "$1" && find . ! -type d | LC_ALL=C sort); }
cuda=
! grep -qx 'CUDA_FOUND = yes' config.mk || cuda=lib/metatopics/metatopics-cuda.so
version=$("$metatopics" --version | sed -n 's/^metatopics *//p')
for file in bin/metatopics $cuda share/man/man1/metatopics.1 "share/modulefiles/metatopics/$version" \
  share/doc/metatopics/{README.md,LICENSE} share/metatopics/inputs/{demo,reuters,every-parameter}.xml \
  share/metatopics/slurm/{full.sh,hetjob.sh,twostep.sh,interactive.sh,lib.sh,local-cluster} \
  $(cd doc && printf 'share/doc/metatopics/%s\n' *.md *.png *.svg); do
  echo "./$file"
done | LC_ALL=C sort >"$tmp/expected"

make -s install "${install_args[@]}" >/dev/null
[ "$(ls "$tmp/stage")" = opt ] || fail "installed outside of prefix: $(ls "$tmp/stage")"
files "$tmp/stage/opt/mt" | diff "$tmp/expected" - >&2 || fail "other files than expected were installed"
! grep -rIl "$tmp" "$tmp/stage" >&2 || fail "installed files name the folder where they were staged"
"$tmp/stage/opt/mt/bin/metatopics" --version >"$tmp/version" || fail "the installed program does not start"
grep -q '^metatopics ' "$tmp/version" || fail "--version says: $(cat "$tmp/version")"
[ -z "$cuda" ] || grep -q '^cuda  .*built,' "$tmp/version" ||
  fail "the installed program has not found its CUDA backend: $(cat "$tmp/version")"

touch "$tmp/stage/opt/mt/share/modulefiles/metatopics/another"
make -s uninstall "${install_args[@]}" >/dev/null
left=$(files "$tmp/stage/opt/mt")
[ "$left" = ./share/modulefiles/metatopics/another ] || fail "uninstall left $left"
rm "$tmp/stage/opt/mt/$left"
make -s uninstall "${install_args[@]}" >/dev/null
left=$(find "$tmp/stage" -mindepth 1 -name '*metatopics*')
[ -z "$left" ] || fail "uninstall left $left"
