"""Plain comments and docstrings as reStructuredText."""

import re

CODE = re.compile(r"`([^`\n]+)`")
SPECIAL = re.compile(r"([*|\\]|(?<=\w)_(?=\W|$))")
BULLET = re.compile(r"^(?:- |@\w+)")
FIELD = re.compile(r"^@(param)\s+(\w+)\s+|^@(return)s?\s+")


def escape(text):
    """Text in which nothing is markup, except for `code`."""
    parts = CODE.split(text)
    for i, part in enumerate(parts):
        parts[i] = f"``{part}``" if i % 2 else SPECIAL.sub(r"\\\1", part.replace("`", "\\`"))
    return "".join(parts)


def paragraphs(lines, code_indent=2):
    """[(is_code, lines)] of a text: code is indented by some columns or more, after an empty line."""
    blocks, block = [], []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            blocks.append((all(entry.startswith(" " * code_indent) for entry in block), block))
            block = []
    joined = []
    for is_code, block in blocks:
        if joined and is_code and joined[-1][0]:
            joined[-1] = (True, [*joined[-1][1], "", *block])
        else:
            joined.append((is_code, block))
    return joined


def dedent(lines):
    """The lines without their common indentation."""
    least = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[least:] for line in lines]


def bullets(block):
    """A paragraph as [(lead, text)]: what stands before an item of a list ("" for plain text), and its text.

    `@param name text` and `@return text` become fields.  They go on until the next one, however they are indented.
    """
    items, fields = [], any(line.startswith("@") for line in block)
    for line in block:
        if BULLET.match(line):
            items.append([_lead(line), FIELD.sub("", line.removeprefix("- "))])
        elif items and (fields or not items[-1][0] or line.startswith("  ")):
            items[-1][1] += " " + line.strip()
        else:
            items.append(["", line.strip()])
    return items


def _lead(line):
    field = FIELD.match(line)
    if not field:
        return "* "
    return f":param {field.group(2)}: " if field.group(1) else ":returns: "


def indent(lines, by):
    """The lines further to the right; empty ones stay empty."""
    return [" " * by + line if line else "" for line in lines]
