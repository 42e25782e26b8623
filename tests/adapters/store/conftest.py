"""The shared suite's assertions explain themselves like a test file's own."""

import pytest

pytest.register_assert_rewrite("conformance", "leased")
