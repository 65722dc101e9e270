"""Settings of Sphinx.  The source folder is made by stage.py; `make docs` runs both."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import docstrings
import drapps

project = "drapps"
author = "the drapps authors"
project_copyright = author
version = release = drapps.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
root_doc = "index"
exclude_patterns = []
nitpicky = False  # types of the C library and of the standard library have no pages here

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
autodoc_member_order = "bysource"
autodoc_docstring_signature = False
autodoc_typehints = "none"
maximum_signature_line_length = 80
highlight_language = "none"
smartquotes_action = "D"  # dashes; quotes stay as they are
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = f"drapps {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False


def _docstring(app, what, name, obj, options, lines):
    lines[:] = docstrings.to_rst(list(lines))


def _signature(app, what, name, obj, options, arguments, result):
    if what not in ("function", "method", "class"):
        return None
    return docstrings.signature(obj)


def _skip(app, what, name, obj, skip, options):
    """Fields of a named tuple stand in its signature."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


def setup(app):
    """Hooks of autodoc."""
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _docstring)
    app.connect("autodoc-process-signature", _signature)
