# make install, staged and not, and make uninstall.
# SECONDS 900
. tests/program/lib.sh
install_args=(BUILD="$BUILD" prefix=/opt/mt DESTDIR="$tmp/stage")
make -s install "${install_args[@]}" >/dev/null
cd "$tmp/stage"
expect_file opt/mt/bin/metatopics opt/mt/share/man/man1/metatopics.1 \
  opt/mt/share/doc/metatopics/{README.md,LICENSE} opt/mt/share/metatopics/inputs/{demo,reuters,every-parameter}.xml
expect_file opt/mt/share/metatopics/slurm/{full.sh,hetjob.sh,twostep.sh,interactive.sh,lib.sh,local-cluster}
[ ! -e opt/mt/share/metatopics/slurm/submit ] || fail "submit was installed: it needs the sources"
[ "$(ls "$tmp/stage")" = opt ] || fail "installed outside of prefix: $(ls "$tmp/stage")"
opt/mt/bin/metatopics --version >"$tmp/version" || fail "the installed program does not start"
grep -q '^metatopics ' "$tmp/version" || fail "--version says: $(cat "$tmp/version")"
cd "$OLDPWD"
if [ -e "$BUILD/metatopics-cuda.so" ]; then
  expect_file "$tmp/stage/opt/mt/lib/metatopics/metatopics-cuda.so"
  grep -q '^cuda  .*built,' "$tmp/version" || fail "the installed program has not found its CUDA backend: $(cat "$tmp/version")"
fi
make -s uninstall "${install_args[@]}" >/dev/null
left=$(cd "$tmp/stage" && find . -type f)
[ -z "$left" ] || fail "uninstall left $left"
