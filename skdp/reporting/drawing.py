"""matplotlib, imported when it is needed."""

from __future__ import annotations

from typing import Any


def pyplot(caller: str) -> Any:
    """Import matplotlib, or say how to get it."""
    try:
        from matplotlib import pyplot as found
    except ImportError as missing:
        raise ImportError(
            f"{caller} needs matplotlib, which is missing: pip install 'skdp[plot]'."
        ) from missing
    return found
