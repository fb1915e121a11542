"""Types of tk.torch."""
from typing import Any

from . import Kernel

def op(name: str, kernel: Kernel) -> Any: ...
