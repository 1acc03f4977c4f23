"""python -m tools.joining build: builds the program into the cache and prints where it is."""

import sys

from tools.gobuild import BuildError
from tools.joining import build

if __name__ == "__main__":
    try:
        print(build())
    except BuildError as error:
        sys.exit(f"joining: {error}")
