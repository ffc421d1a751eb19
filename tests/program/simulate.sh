# simulate: a row for each number of ranks, and what must hold of any schedule.
. tests/program/lib.sh
simulate() { "$BUILD/simulate" --spread 0 "$@"; }
rows() { awk '/GiB/ { exit } $1 + 0 > 0 && NF == 9'; }

simulate --shape heavy --seeds 3 --months 40 --ranks 1,7,300 | rows >"$tmp/heavy"
[ "$(wc -l <"$tmp/heavy")" = 3 ] || fail "not three rows: $(cat "$tmp/heavy")"
# one rank has all of the work and splits nothing; more cannot be done before an even share is,
# nor be busier than always, and splitting never loses; 300 ranks for 120 fits split the largest
awk 'NR == 1 { work = $5; if ($2 != 0 || $6 != 100 || $9 != 1) exit 1 }
  $5 < work / $1 * 0.999 || $4 > $5 || $6 > 100 || $9 < 1 { exit 1 }
  NR == 3 && ($2 < 3 || $3 < 2 || $9 < 2) { exit 1 }' "$tmp/heavy" || fail "heavy: $(cat "$tmp/heavy")"
# as many ranks as fits that are alike: one each
simulate --shape even --seeds 5 --months 20 --ranks 100 | rows >"$tmp/even"
awk '$2 != 0 || $4 != $5 || $6 != 100 { exit 1 }' "$tmp/even" || fail "even: $(cat "$tmp/even")"
[ "$(simulate --seeds 2 --gpus 4 --ranks 8 | tail -1 | wc -w)" = 11 ] || fail "no memory of GPUs"
for wrong in "--ranks 1,x" "--ranks 0" "--seeds 0" "--shape round"; do
  simulate $wrong >/dev/null 2>&1 && fail "accepted: $wrong"
done
true
