"""A bench result as a table: for the terminal (rich), as Markdown, and into a section of a Markdown file."""

COLUMNS = (
    "loader", "samples/s [min, max]", "vs torch", "drapps is, later / first", "CPU ms", "memory MB", "largest diff.",
    "settings",
)  # fmt: skip


def figure(spread, digits=0):
    """"716 [644, 742]"."""
    if spread is None:
        return "-"
    middle, low, high = (f"{spread[key]:.{digits}f}" for key in ("median", "min", "max"))
    return f"{middle} [{low}, {high}]" if spread["n"] > 1 else middle


def times(spread):
    return "-" if spread is None else f"{spread['median']:.2f} x"


def drapps_is(entry):
    """Return the speed of drapps over the loader, with / without seek points; one figure if only
    the first is compared."""
    later = times(entry["drapps_over"])
    return f"{later} / {times(entry['first_over'])}" if entry.get("first_over") else later


def largest_difference(pixels):
    return "n/a" if pixels is None else f"{pixels['largest']:g}"


def settings_text(entry):
    parts = [f"{key} {value}" for key, value in entry["settings"].items()] or ["defaults"]
    return ", ".join(parts + ([entry["differs"]] if entry["differs"] else []))


def table_rows(result):
    """Return the cells as text, fastest loader first."""
    entries = sorted(result["peers"], key=lambda e: -e["samples_per_s"]["median"])
    return [(e["title"], figure(e["samples_per_s"]), times(e["over_torch"]), drapps_is(e),
             figure(e["cpu_ms_per_sample"], 2), figure(e["pss_above_mb"]), largest_difference(e["pixels"]),
             settings_text(e)) for e in entries]


def caption(result):
    """Return a paragraph about data, machine and method."""
    data, machine = result["data"], result["machine"]
    return (f"{result['workload']} on {data['name']} ({data['files']} JPEG files, {data['megabytes']} MB); "
            f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['system']}; medians of {result['rounds']} interleaved "
            f"rounds of at least {result['samples']} samples; {result['date']}.  How many times as fast drapps is, in "
            "later epochs / in the first; CPU time per sample and peak memory of the process tree, memory above a "
            "process that imported the framework alone; largest difference to torchvision's pixels, in levels of 255.")


def missing_lines(result):
    lines = [f"{m['peer']}: not measured: {m['reason']}" for m in result["missing"]]
    return lines + [f"largest diff. n/a: {reason}" for reason in _not_compared(result)]


def _not_compared(result):
    """Return the reasons why loaders were not compared with torchvision's pixels."""
    without = [e["peer"] for e in result["peers"] if e["pixels"] is None]
    if len(without) == len(result["peers"]):
        return [result.get("not_compared") or "pixels were not compared"]
    failed = {m["peer"] for m in result["missing"] if m["reason"].startswith("pixels: ")}
    return [f"{name} cannot crop a given part of an image" for name in without if name not in failed]


def markdown(result):
    """Return caption, table, versions and missing loaders as Markdown."""
    def line(cells):
        return "| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |"

    lines = [caption(result), "", line(COLUMNS), line(["---"] * len(COLUMNS))]
    lines += [line(row) for row in table_rows(result)]
    lines += ["", "Versions: " + "; ".join(f"{e['title']}: {e['version']}" for e in result["peers"]) + "."]
    if result["missing"]:
        lines += [""] + [f"- {text}" for text in missing_lines(result)]
    return "\n".join(lines) + "\n"


def wide_console():
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console.width = 160  # a file or a pipe has no width: do not break the cells
    return console


def print_table(result):
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title=caption(result), title_justify="left")
    for i, name in enumerate(COLUMNS):
        table.add_column(name, justify="left" if i in (0, len(COLUMNS) - 1) else "right")
    for row in table_rows(result):
        table.add_row(*row)
    console = wide_console()
    console.print(table)
    for text in missing_lines(result):
        console.print(text, style="yellow", markup=False)


def write_section(path, name, text):
    """Replace the section between <!-- NAME --> and <!-- /NAME --> of a file."""
    with open(path) as f:
        page = f.read()
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"{path}: must have the lines {begin.strip()} and {end} exactly once")
    head, rest = page.split(begin)
    with open(path, "w") as f:
        f.write(head + begin + "\n" + text + "\n" + end + rest.split(end)[1])
