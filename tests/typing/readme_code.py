"""Print the Python of the README as one program, for type checkers."""

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"

print("\n".join(re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)))
