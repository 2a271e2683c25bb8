"""Commands of the command line, run in this process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from tunesmith.cli.app import app
from tunesmith.records import UserError


def invoke(*arguments: object) -> Result:
    """Run a command in this process; a UserError comes out as it is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, UserError):
        raise result.exception
    return result


def invoke_json(*arguments: object, code: int = 0) -> dict[str, Any]:
    result = invoke(*arguments, "--json")
    assert result.exit_code == code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document
