"""A result of `drapps bench loaders` as a table."""

from drapps.bench import bench_table
from . import workloads


def heading(workload):
    return ["loader", *(column.title for column in workload.columns), *(["ratio"] if workload.ratio else [])]


def rows(result):
    """Return the cells as text, in the order of the cases."""
    workload = workloads.load(result["workload"])
    lines = []
    for entry in result["cases"]:
        cells = [bench_table.figure(entry["figures"][column.key], column.digits) for column in workload.columns]
        if workload.ratio:
            cells.append(f"{bench_table.times(entry['ratio'])} {entry['beside']}" if entry["ratio"] else "")
        lines.append([entry["case"], *cells])
    return lines


def caption(result):
    options = ", ".join(f"{key} {value}" for key, value in result["options"].items() if value is not None)
    machine = result["machine"]
    return (f"{result['title']} ({options}); {machine['cpu']}, {machine['cpus']} CPUs, {machine['system']}; "
            f"medians [smallest, largest] of {result['rounds']} rounds in random order; "
            f"{', '.join(f'{name} {version}' for name, version in result['versions'].items())}; {result['date']}.")


def verdict(result):
    """Return what was compared; differences are printed in bold."""
    if result["differing"]:
        return f"**OUTPUTS DIFFER**: {', '.join(result['differing'])}"
    words = [f"The outputs of {result['compared']} runs were compared and are equal."] if result["compared"] else []
    if workloads.load(result["workload"]).counted:
        words.append("In every completed run the consumer counted each sample exactly once per epoch.")
    return "  ".join(words)


def below(result):
    """Return the lines below the table."""
    failed = [f"{f['case']}, round {f['round']}: failed: {f['reason']}" for f in result["failed"]]
    return [line for line in (verdict(result), *result["notes"], *failed) if line]


def markdown(result):
    head = heading(workloads.load(result["workload"]))

    def line(cells):
        return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"

    text = [f"`{result['command']}`: {caption(result)}", "", line(head), line(["---"] * len(head))]
    text += [line(row) for row in rows(result)]
    return "\n".join([*text, "", *(f"- {words}" for words in below(result))]) + "\n"


def print_table(result):
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    title = escape(f"{result['command']}\n{caption(result)}")
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left")
    for i, title in enumerate(heading(workloads.load(result["workload"]))):
        table.add_column(title, justify="right" if i else "left")
    for row in rows(result):
        table.add_row(*(escape(cell) for cell in row))
    console = bench_table.wide_console()
    console.print(table)
    for words in below(result):
        console.print(words, markup=False)


def good(result):
    """Return whether every run of drapps completed with the right samples."""
    ours = {entry["case"] for entry in result["cases"] if entry["loader"] != "torch"}
    return not result["differing"] and not any(f["case"] in ours for f in result["failed"])
