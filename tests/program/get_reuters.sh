# tools/get-reuters: a copy that is here, one that is not the collection, one that is not there.
. tests/program/lib.sh
expect_status 1 env REUTERS_TARBALL="$tmp/none.tar.gz" tools/get-reuters "$tmp/r"
expect_output 'cannot read'
echo other >"$tmp/other.tar.gz"
expect_status 1 env REUTERS_TARBALL="$tmp/other.tar.gz" tools/get-reuters "$tmp/r"
expect_output 'is not the collection'
[ ! -e "$tmp/r" ] || fail "left a folder behind"
[ -n "${REUTERS_TARBALL:-}" ] || exit 0
tools/get-reuters "$tmp/r"
[ "$(ls "$tmp"/r/*.sgm | wc -l)" = 22 ] || fail "not 22 files"
tools/get-reuters "$tmp/r" | grep -q 'there already' || fail "unpacked it again"
