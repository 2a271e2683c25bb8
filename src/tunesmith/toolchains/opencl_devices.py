"""OpenCL platforms, and contexts of devices by selector. Compiler and device of one process share them."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pyopencl as cl

from .forked import OPENCL

OWN_VENDORS = Path(sys.prefix, "etc", "tunesmith", "OpenCL", "vendors")
"""Where `scripts/ensure_opencl` puts the ICD file of a driver that it installed without root."""


def platforms() -> list[Any]:
    """Every platform; [] if no driver is installed. Raises UserError in a forked child whose parent has used OpenCL.

    The loader in PyOpenCL's wheel reads /etc/OpenCL/vendors, or the folder that OCL_ICD_VENDORS names.
    """
    OPENCL.use()
    if OWN_VENDORS.is_dir() and any(OWN_VENDORS.iterdir()):
        os.environ.setdefault("OCL_ICD_VENDORS", str(OWN_VENDORS))
    try:
        return list(cl.get_platforms())
    except cl.LogicError:
        return []


def context(selector: str) -> Any:
    """This process's context for the device that `OpenCL:platform:device` names. LookupError if there is none, and
    UserError in a forked child whose parent has used OpenCL."""
    OPENCL.use()
    return _context(selector)


@cache
def _context(selector: str) -> Any:
    _, platform, device = selector.split(":")
    return cl.Context([platforms()[int(platform)].get_devices()[int(device)]])
