"""`python -m isotherm` is the `isotherm` command."""

import sys

from isotherm._command import main

sys.exit(main())
