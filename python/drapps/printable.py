r"""Makes outside text, such as file names, safe to print: a terminal obeys control characters.

>>> printable("a\x1b[2J\nb")
'a\\x1b[2J\\nb'
"""

import re

# C0 and C1 controls, line separators, controls of the writing direction, and bytes that are not UTF-8 (surrogates).
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text, but=""):
    """Return the text with control characters escaped, as by repr.  but: characters to keep."""
    return UNSAFE.sub(lambda found: found[0] if found[0] in but else _escape(found[0]), str(text))


def _escape(char):
    return char.encode("unicode_escape").decode()
