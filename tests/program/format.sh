# The sources are as clang-format 14 lays them out (make format).
. tests/program/lib.sh
command -v clang-format-14 >/dev/null || skip "no clang-format-14 (Debian: clang-format-14)"
tools/format --check
