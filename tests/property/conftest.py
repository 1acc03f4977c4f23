"""Property tests are laws about values, never about time: a busy machine must not fail them."""

from hypothesis import settings

# New examples in every run, where `CI=true` too; one that fails prints how to see it again.
settings.register_profile("growth", deadline=None, print_blob=True, derandomize=False)
settings.load_profile("growth")
