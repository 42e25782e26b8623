"""torch without the kernels of its `meta` device, which take a third of its import: a program imports this before torch.

Those kernels are for tensors without data, which no program here makes. Whatever asks for them later, like torch's compiler,
gets them: torch imports them as any module. Until then torch makes no generator of random numbers.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

_KERNELS = "torch._meta_registrations"

if "torch" not in sys.modules:
    sys.modules[_KERNELS] = ModuleType(_KERNELS)
    torch = import_module("torch")
    sys.modules.pop(_KERNELS, None)
    vars(torch).pop(_KERNELS.partition(".")[2], None)
