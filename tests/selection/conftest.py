"""Matrix products stay on the thread that asks for them, as in `select`."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    with threadpool_limits(1, user_api="blas"):
        yield
