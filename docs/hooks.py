"""What the site's builder is told about our pages."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Drop the words after a block's language (`run`, `exit=2`): they are for the tests."""
    return re.sub(r"^```(\w+)[^\S\n]+[^\n]*$", r"```\1", markdown, flags=re.MULTILINE)
