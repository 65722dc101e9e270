"""The C API as pages: each public header becomes one, made of its declarations and the comments above and beside them.

A comment directly above declarations is theirs, up to the next empty line.  `/* --- title --- */` begins a section.
A list macro, `#define DR_X_MAP(X)` with rows X(...), becomes a table with the columns that its comment names.
"""

import re
import textwrap

import rst

COMMENT = re.compile(r"/\*(.*?)\*/", re.S)
SECTION = re.compile(r"^-+ *(.*?) *-+$", re.S)
SKIPPED = re.compile(r"^#(include|ifndef|ifdef|if|elif|else|endif|undef)\b|^extern \"C\" \{$|^\}$")
FUNCTION = re.compile(r"\b(\w+) ?\(")
TAG = re.compile(r"@(param|return|note)\b(?:(?<=param)\s+(\w+))?")
NAME = re.compile(r"\b(?:dr_\w+|DR_\w+)\b(?!\.h)")


def comment_lines(text):
    """The lines of a comment without its frame."""
    body = re.sub(r"^\s*\* ?", "", text.strip("*").strip(" "), flags=re.M)
    lines = [line.rstrip() for line in body.strip("\n").split("\n")]
    return [lines[0].strip(), *lines[1:]]


class Header:
    """A header, read once: items in their order.  kind: section, map, define, declarations."""

    def __init__(self, path):
        self.name = path.name
        text = path.read_text(encoding="utf-8")
        self.items, self.names, self.title, self.intro = [], {}, "", []
        self._scan(text)

    def _scan(self, text):
        first = COMMENT.match(text.lstrip())
        self._read_intro(comment_lines(first.group(1)))
        self._above, self._group = None, None  # the comment just above; the declarations that belong together
        at, text = 0, text.lstrip()[first.end() :]
        while at < len(text):
            if text[at].isspace():
                if text[at : at + 2] == "\n\n":
                    self._above = self._group = None
                at += 1
            elif comment := COMMENT.match(text, at):
                self._read_comment(comment_lines(comment.group(1)))
                at = comment.end()
            elif text[at] == "#":
                at = self._read_directive(text, at)
            elif SKIPPED.match(line := text[at:].split("\n", 1)[0].strip()):
                at += len(line)
            else:
                at = self._read_declaration(text, at)

    def _read_intro(self, lines):
        """The comment at the top: "name.h: summary", then the rest."""
        end = lines.index("") if "" in lines else len(lines)
        name, _, summary = " ".join(lines[:end]).partition(": ")
        self.title, self.intro = name.strip(), [summary[:1].upper() + summary[1:], "", *lines[end + 1 :]]

    def _read_comment(self, lines):
        if section := SECTION.match(" ".join(lines)):
            self.items.append(("section", section.group(1)))
        else:
            self._above, self._group = lines, None

    def _read_directive(self, text, at):
        end = re.compile(r"(?<!\\)(\n|$)").search(text, at).start()
        if not SKIPPED.match(text[at:end]):
            self._define(text[at:end], self._above)
            self._above = None
        return end

    def _read_declaration(self, text, at):
        end = self._declaration_end(text, at)
        beside = re.match(r"[ \t]*/\*(.*?)\*/", text[end:], re.S)
        if self._group is None:
            self._group = []
            self.items.append(("declarations", self._above or [], self._group))
        self._group.append((text[at:end], comment_lines(beside.group(1)) if beside else []))
        self._note(text[at:end])
        return end + (beside.end() if beside else 0)

    @staticmethod
    def _declaration_end(text, at):
        depth = 0
        while at < len(text):
            if comment := COMMENT.match(text, at):
                at = comment.end()
                continue
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
            if text[at - 1] == ";" and depth == 0:
                return at
        return at

    def _define(self, text, comment):
        name = re.match(r"#define (\w+)", text).group(1)
        if name.endswith("_H") or name == "DR_API" or "ENUM" in name:
            return
        if re.match(r"#define \w+\(X\)", text):
            self.items.append(("map", name, comment or [], text))
        else:
            self.items.append(("define", name, comment or [], text))
            self.names[name] = "c:macro"

    def _note(self, declaration):
        plain = COMMENT.sub("", declaration)
        if made := re.match(r"typedef (struct|enum|union) (\w+) \{", plain):
            self.names[made.group(2)] = f"c:{made.group(1)}"
            if made.group(1) == "enum" and "#define" not in plain:
                for name in re.findall(r"\b(DR_\w+)", plain):
                    self.names[name] = "c:enumerator"
        elif opaque := re.match(r"typedef struct (\w+) \w+;", plain):
            self.names[opaque.group(1)] = "c:struct"
        elif plain.startswith("typedef"):
            if found := FUNCTION.search(plain) or re.search(r"(\w+);$", plain):
                self.names[found.group(1)] = "c:type"
        elif plain.startswith("enum {"):
            for name in re.findall(r"\b(DR_\w+) =", plain):
                self.names[name] = "c:macro"
        elif plain.startswith("DR_API") and (found := FUNCTION.search(plain)):
            self.names[found.group(1)] = "c:func"


class Writer:
    """A header as reStructuredText; names of all headers are links."""

    def __init__(self, header, names, pages):
        self.header, self.names, self.pages = header, names, pages

    def page(self):
        title = f"drapps/{self.header.title}"
        out = [title, "=" * len(title), "", *self.text(self.header.intro), ""]
        for item in self.header.items:
            out += getattr(self, "_" + item[0])(*item[1:])
        return "\n".join(out) + "\n"

    def prose(self, text):
        """A line of text, with links to declarations and headers."""
        parts = re.split(r"(``[^`]+``)", rst.escape(text))
        for i in range(0, len(parts), 2):
            part = NAME.sub(lambda found: self._link(found.group(0)), parts[i])
            part = re.sub(r"(?<![\w/`])(?:drapps/)?(\w+)\.h\b", self._header_link, part)
            parts[i] = re.sub(r"\bdocs/(\w+)\.md\b", r":doc:`/\1`", part)
        return "".join(parts)

    def _link(self, name):
        role = self.names.get(name)
        return f":{role}:`{name}`" if role else name

    def _header_link(self, found):
        return f":doc:`/reference/c/{found.group(1)}`" if found.group(1) in self.pages else found.group(0)

    def text(self, lines):
        """A comment: paragraphs, lists and code, then what stands behind @param, @return and @note."""
        end = next((i for i, line in enumerate(lines) if TAG.match(line)), len(lines))
        return self._paragraphs(lines[:end]) + self._tags(lines[end:])

    def _tags(self, lines):
        """Fields of Sphinx's C domain; notes follow them."""
        fields, notes = [], []
        for part in re.split(r"\n(?=@)", "\n".join(lines)):
            if not (tag := TAG.match(part)):
                continue
            body = self.prose(" ".join(part[tag.end() :].split()))
            name = {"param": f":param {tag.group(2)}:", "return": ":returns:", "note": ".. note::"}[tag.group(1)]
            wrapped = textwrap.wrap(f"{name} {body}", 110, subsequent_indent="   ", break_long_words=False,
                                    break_on_hyphens=False)  # fmt: skip
            if tag.group(1) == "note":
                notes += [*wrapped, ""]
            else:
                fields += wrapped
        return [*fields, "", *notes] if fields or notes else []

    def _paragraphs(self, lines):
        out = []
        for is_code, block in rst.paragraphs(lines):
            if is_code:
                out += [".. code-block:: c" if ";" in " ".join(block) else "::", ""]
                out += [*rst.indent(rst.dedent(block), 3), ""]
                continue
            for lead, text in rst.bullets(block):
                out += textwrap.wrap(self.prose(text), 110, initial_indent=lead, subsequent_indent="  " if lead else "",
                                     break_long_words=False, break_on_hyphens=False)  # fmt: skip
                out += [] if lead.startswith(":") else [""]
            out.append("")
        return out

    def _section(self, title):
        title = title[:1].upper() + title[1:]
        return [title, "-" * len(title), ""]

    def _define(self, name, comment, text):
        shown = re.match(r"#define (\w+(?:\([^)]*\))?)", text).group(1)
        value = text[len("#define ") + len(shown) :].replace("\\\n", " ").split("/*")[0].strip()
        beside = COMMENT.search(text)
        said = [*comment, "", *(comment_lines(beside.group(1)) if beside else [])]
        out = [f".. c:macro:: {shown}", ""]
        if value and len(value) < 60:
            out += [f"   ``{value}``", ""]
        return out + rst.indent(self.text(said), 3)

    def _map(self, name, comment, text):
        """A list macro as a table."""
        head = " ".join(comment)
        columns = re.match(r"X\(([^)]*)\)[.:]? *", head)
        heading = [column.strip() for column in columns.group(1).split(",")] if columns else []
        rows = [re.findall(r'"(?:[^"\\]|\\.)*"|[^",\s][^",]*', row) for row in self._rows(text)]
        width = max(map(len, rows))
        heading = (heading + [""] * width)[:width]
        out = [f".. c:macro:: {name}(X)", ""]
        out += rst.indent(self.text([head[columns.end() :] if columns else head]), 3)
        out += ["   .. list-table::", "      :header-rows: 1", ""]
        for row in [heading, *([self._cell(cell) for cell in row] for row in rows)]:
            out += [f"      {'  -' if i else '* -'} {cell}".rstrip() for i, cell in enumerate(row)]
        return [*out, ""]

    @staticmethod
    def _rows(text):
        """What stands in the brackets of each X(...)."""
        for start in re.finditer(r"\bX\((?!X)", text.split("\n", 1)[1]):
            body, depth, quoted = "", 1, False
            for c in text.split("\n", 1)[1][start.end() :]:
                quoted ^= c == '"'
                depth += 0 if quoted else {"(": 1, ")": -1}.get(c, 0)
                if depth == 0:
                    break
                body += c
            yield re.sub(r"\s*\\\n\s*", " ", body)

    def _cell(self, cell):
        cell = cell.strip()
        return rst.escape(cell.strip('"')) if cell.startswith('"') or " " in cell else cell and f"``{cell}``"

    def _declarations(self, comment, group):
        plain = [COMMENT.sub("", text) for text, _ in group]
        if all(text.startswith("struct ") for text in plain):
            return []
        out, signatures, comment_left, beside_all = [], [], comment, []
        for (text, beside), bare in zip(group, plain):
            if bare.startswith("struct "):
                continue
            if bare.startswith(("DR_API", "static inline")):
                shown = re.sub(r"^DR_API\s+", "", " ".join(bare.split())).rstrip(";")
                signatures.append(shown)
                if beside:
                    name = FUNCTION.search(shown).group(1)
                    beside_all += ["", f"- `{name}`: {' '.join(beside)}"] if len(group) > 1 else ["", *beside]
                continue
            out += self._type(text, bare, comment_left, beside)
            comment_left = []
        if signatures:
            out.append(f".. c:function:: {signatures[0]}")
            out += [" " * 16 + signature for signature in signatures[1:]]
            out += ["", *rst.indent(self.text([*comment_left, *beside_all]), 3)]
        return [*out, ""]

    def _type(self, text, bare, comment, beside):
        doc = [*comment, "", *beside]
        if made := re.match(r"typedef (struct|union) (\w+) \{", bare):
            body = text[text.index("{") + 1 : text.rindex("}")]
            return [f".. c:{made.group(1)}:: {made.group(2)}", "", *rst.indent(self.text(doc), 3), *self._members(body)]
        if made := re.match(r"typedef enum (\w+) \{", bare):
            body = text[text.index("{") + 1 : text.rindex("}")]
            return [f".. c:enum:: {made.group(1)}", "", *rst.indent(self.text(doc), 3), *self._enumerators(body)]
        if opaque := re.match(r"typedef struct (\w+) \w+;", bare):
            return [
                f".. c:struct:: {opaque.group(1)}",
                "",
                *rst.indent(self.text([*doc] if any(doc) else ["An opaque handle."]), 3),
            ]
        if bare.startswith("enum {"):
            out = []
            for name, value, said in re.findall(r"\b(DR_\w+) = ([^,}/]+?)\s*[,}]\s*(/\*.*?\*/)?", text, re.S):
                said = comment_lines(COMMENT.match(said).group(1)) if said else []
                out += [f".. c:macro:: {name}", "", f"   ``{value.strip()}``", ""]
                out += rst.indent(self.text([*doc, "", *said]), 3)
            return out
        declaration = " ".join(bare.removeprefix("typedef ").split()).rstrip(";")
        return [f".. c:type:: {declaration}", "", *rst.indent(self.text(doc), 3)]

    def _members(self, body):
        """The members of a struct, each with the comment above it or beside it."""
        out, at, above = [], 0, []
        while at < len(body):
            if body[at].isspace():
                if body[at : at + 2] == "\n\n":
                    above = []
                at += 1
                continue
            if comment := COMMENT.match(body, at):
                above, at = comment_lines(comment.group(1)), comment.end()
                if section := SECTION.match(" ".join(above)):
                    out += [f"   .. rubric:: {section.group(1)[:1].upper()}{section.group(1)[1:]}", ""]
                    above = []
                continue
            end = Header._declaration_end(body, at)
            declaration = " ".join(COMMENT.sub("", body[at:end]).split()).rstrip(";")
            inside = COMMENT.search(body[at:end])
            beside = re.match(r"[ \t]*\n?[ \t]*/\*(.*?)\*/", body[end:], re.S) if not inside else None
            if beside and "\n" in body[end : end + beside.start(1)]:
                beside = None  # the comment of the next line belongs to the next member
            said = comment_lines(inside.group(1)) if inside else comment_lines(beside.group(1)) if beside else []
            at = end + (beside.end() if beside else 0)
            out += self._member(declaration, [*above, "", *said])
            above = []
        return out

    def _member(self, declaration, doc):
        if "{" in declaration:
            return ["   .. code-block:: c", "", f"      {declaration};", "", *rst.indent(self.text(doc), 3)]
        declared = [declaration]
        if "," in declaration and "(" not in declaration:
            first, *others = declaration.split(",")
            base = re.match(r"(.*?)\s*\**\w+(\[.*\])?$", first).group(1)
            declared = [first, *(f"{base} {other.strip()}" for other in others)]
        out = [f"   .. c:member:: {declared[0]}", *(" " * 17 + other for other in declared[1:]), ""]
        return [*out, *rst.indent(self.text(doc), 6)]

    def _enumerators(self, body):
        if "#define" in body:
            return ["   One value for each row of the table above.", ""]
        out = []
        for name, value, said in re.findall(
            r"\b(\w+)(?:\s*=\s*([^,/}]+?))?\s*(?:,|$|(?=/))\s*(/\*.*?\*/)?", body.strip(), re.S
        ):
            out += [f"   .. c:enumerator:: {name}{' = ' + value.strip() if value else ''}", ""]
            out += rst.indent(self.text(comment_lines(COMMENT.match(said).group(1)) if said else []), 6)
        return out


def write_pages(include, folder):
    """Makes a page for each header in `include`, and their index; returns the names of all declarations."""
    headers = [Header(path) for path in sorted(include.glob("*.h"))]
    names = {name: role for header in headers for name, role in header.names.items()}
    pages = {header.name.removesuffix(".h") for header in headers}
    folder.mkdir(parents=True, exist_ok=True)
    for header in headers:
        page = Writer(header, names, pages).page()
        (folder / header.name).with_suffix(".rst").write_text(page, encoding="utf-8")
    _write_index(headers, folder, Writer(headers[0], names, pages))
    declared = {name for path in include.glob("*.h") for name in _functions(path)}
    missing = sorted(
        name for name in declared if not any(f"{name}(" in (folder / f"{page}.rst").read_text() for page in pages)
    )
    if missing:
        raise SystemExit(f"docs: no page has {', '.join(missing)}")
    return names


def _functions(path):
    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
    return [FUNCTION.search(found).group(1) for found in re.findall(r"^DR_API[^;#]*;", text, re.M)]


def _write_index(headers, folder, writer):
    lines = ["C API", "=====", "",
             "``libdrapps`` is a C11 library. ``make install PREFIX=/usr/local`` installs it with its headers and a",
             "pkg-config file; ``#include <drapps/drapps.h>`` includes all headers. Every call that can fail returns a",
             ":c:enum:`dr_status` and fills a :c:struct:`dr_error` that the caller owns. These pages are made from the",
             "headers.",
             "", ".. list-table::", "   :header-rows: 1", "", "   * - header", "     - what it is for"]  # fmt: skip
    for header in headers:
        stem = header.name.removesuffix(".h")
        lines += [f"   * - :doc:`{header.name} <{stem}>`", f"     - {writer.prose(header.intro[0])}"]
    lines += ["", ".. toctree::", "   :hidden:", ""]
    lines += [f"   {header.name.removesuffix('.h')}" for header in headers]
    (folder / "index.rst").write_text("\n".join(lines) + "\n", encoding="utf-8")
