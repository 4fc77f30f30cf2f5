"""The `isotherm` command, as a console script."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line with the words of this process.

    Returns
    -------
    int
        The exit code: 0 all went well, 1 a check failed, 2 wrong usage or input, 130 interrupted.
    """
    # The command has its own way to end at Ctrl-C, and nothing to do with a closed pipe but to end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from isotherm._native import command

    return command(["isotherm", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
