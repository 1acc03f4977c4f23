"""python -m tools.joining build: builds the programs into the cache and prints where they are."""

import sys

from tools.gobuild import BuildError
from tools.joining import build, k3s

if __name__ == "__main__":
    try:
        print(build())
        print(k3s.build())
    except BuildError as error:
        sys.exit(f"joining: {error}")
