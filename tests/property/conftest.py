"""Property tests are laws about values, never about time: a busy machine must not fail them."""

from hypothesis import settings

settings.register_profile("growth", deadline=None, print_blob=True)
settings.load_profile("growth")
