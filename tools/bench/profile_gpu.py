"""Sums up ncu's raw CSV by kernel: calls, milliseconds, and each counter, weighted by time."""

import csv
import re
import sys

# heading: counters that say so, whichever the chip has (the highest of them)
WANTED = {
    "tensor": r"sm__(inst_executed_)?pipe_tensor.*pct_of_peak_sustained_active$",
    "fp64": r"sm__(inst_executed_)?pipe_fp64.*pct_of_peak_sustained_active$",
    "SM": r"sm__throughput.*pct_of_peak_sustained_elapsed$",
    "DRAM": r"(gpu__)?dram_+throughput.*pct_of_peak_sustained_elapsed$",
    "L2": r"lts__(t_sectors|throughput).*pct_of_peak_sustained_elapsed$",
    "L1": r"l1tex__throughput.*pct_of_peak_sustained_(active|elapsed)$",
    "warps": r"sm__warps_active.*pct_of_peak_sustained_active$",
}


def short_name(kernel):
    """A kernel's name, or of mt_gpu_each's the function that it stands in."""
    each = re.search(r"mt_run_each<.*?&\(?(?:\w+::)*(\w+)", kernel)
    if each:
        return "each in " + each.group(1)
    return re.split(r"[<(]", re.sub(r"^void |\w+::", "", kernel))[0][:44]


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def main(path):
    with open(path, newline="") as file:
        lines = [line for line in file if line.startswith('"')]
    rows = list(csv.DictReader(lines))[1:]  # the first holds units
    if not rows:
        sys.exit("profile-gpu: no kernel was measured: " + open(path).read()[-500:])
    counters = {head: [c for c in rows[0] if re.match(wanted, c)] for head, wanted in WANTED.items()}
    counters = {head: names for head, names in counters.items() if names}
    kernels = {}
    for row in rows:
        calls, spent, sums = kernels.get(short_name(row["Kernel Name"]), (0, 0.0, [0.0] * len(counters)))
        nanoseconds = number(row["gpu__time_duration.sum"])
        shares = [max(number(row[c]) for c in names) for names in counters.values()]
        sums = [s + nanoseconds * share for s, share in zip(sums, shares)]
        kernels[short_name(row["Kernel Name"])] = (calls + 1, spent + nanoseconds, sums)
    whole = sum(spent for _, spent, _ in kernels.values())
    print("%-44s %6s %9s %6s%s" % ("kernel", "calls", "ms", "share", "".join("%8s" % h for h in counters)))
    for name, (calls, spent, sums) in sorted(kernels.items(), key=lambda k: -k[1][1])[:14]:
        shares = "".join("%7.1f%%" % (s / spent) for s in sums) if spent else ""
        print("%-44s %6d %9.3f %5.1f%%%s" % (name, calls, spent * 1e-6, 100 * spent / whole, shares))
    print("%-44s %6d %9.3f" % ("all", len(rows), whole * 1e-6))


main(sys.argv[1])
