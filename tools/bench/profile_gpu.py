"""Sums up ncu's raw CSV by kernel: calls, milliseconds, and each counter, weighted by time."""

import csv
import re
import sys

SHORT = {
    "sm__throughput": "SM",
    "dram__throughput": "DRAM",
    "lts__throughput": "L2",
    "l1tex__throughput": "L1",
    "sm__warps_active": "warps",
    "sm__pipe_fp64_cycles_active": "fp64",
    "sm__inst_executed_pipe_tensor": "tensor.inst",
    "sm__pipe_tensor_cycles_active": "tensor",
    "sm__pipe_tensor_op_hmma_cycles_active": "hmma",
    "sm__pipe_tensor_op_gmma_cycles_active": "gmma",
}


def short_name(kernel):
    kernel = re.sub(r"\(anonymous namespace\)::|<unnamed>::|^void ", "", kernel)
    each = re.search(r"mt_run_each<.*?(\w+)\(", kernel)
    return ("each in " + each.group(1) if each else re.split(r"[<(]", kernel)[0])[-44:]


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
    counters = [c for c in rows[0] if c.split(".")[0] in SHORT]
    kernels = {}
    for row in rows:
        sums = kernels.setdefault(short_name(row["Kernel Name"]), [0, 0.0, [0.0] * len(counters)])
        nanoseconds = number(row["gpu__time_duration.sum"])
        sums[0] += 1
        sums[1] += nanoseconds
        for i, counter in enumerate(counters):
            sums[2][i] += nanoseconds * number(row[counter])
    whole = sum(sums[1] for sums in kernels.values())
    heads = "".join("%12s" % SHORT[c.split(".")[0]] for c in counters)
    print("%-44s %6s %9s %6s%s" % ("kernel", "calls", "ms", "share", heads))
    for name, (calls, spent, sums) in sorted(kernels.items(), key=lambda k: -k[1][1])[:14]:
        shares = "".join("%11.1f%%" % (s / spent) for s in sums) if spent else ""
        print("%-44s %6d %9.3f %5.1f%%%s" % (name, calls, spent * 1e-6, 100 * spent / whole, shares))
    print("%-44s %6d %9.3f" % ("all", len(rows), whole * 1e-6))


main(sys.argv[1])
