"""Builds the compiled distribution for the tests, since a checkout has only its source."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[2] / "native"
MODULES = "tunesmith_native", "tunesmith_trees"


@cache
def built(folder: Path, name: str = "tunesmith_native") -> ModuleType | str:
    """Its module `name`, built in `folder`; a sentence that says what is missing if it cannot be built."""
    include, compiler = sysconfig.get_path("include"), (sysconfig.get_config_var("CC") or "cc").split()
    if not Path(include, "Python.h").is_file():
        return f"Python's headers are missing ({include})"
    library = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    options = ["-O2", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-shared", "-fPIC"]
    try:
        command = [*compiler, *options, f"-I{include}", str(FOLDER / f"{name}.c"), "-o", str(library)]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        return f"there is no C compiler ({compiler[0]})"
    except subprocess.CalledProcessError as error:
        raise AssertionError(error.stderr) from error
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[module.__name__] = None  # type: ignore[assignment]  # making it has put it there, as if it were installed
    return module
