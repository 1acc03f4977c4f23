"""Growth: a node autoscaler for Kubernetes. `docs/architecture.md` says how the packages fit together."""

from typing import Final

# Also in pyproject.toml; a test holds the two together. Reading the installed metadata would cost every start 20 ms.
__version__: Final = "0.1.0"
