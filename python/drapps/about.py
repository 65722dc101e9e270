"""What this build and this machine are."""

import json

from drapps import _core


def info():
    """Version, CPU level, codecs, ops and limits of this machine, as a dict.

    >>> import drapps
    >>> drapps.info()["version"] == drapps.__version__
    True
    """
    return json.loads(_core.info())
