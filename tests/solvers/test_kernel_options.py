"""Every compiled function is cached, frees the interpreter lock, and names its own math flags."""

from dataclasses import replace

import numpy as np
from numba import _dispatcher
from numba.core.registry import CPUDispatcher

from skdp.losses import LogisticLoss, scalar
from skdp.losses.base import kernel_arguments
from skdp.solvers import _block_kernels, _dense_kernels, _sparse_kernels, _step_kernels

MODULES = [scalar, _block_kernels, _dense_kernels, _sparse_kernels, _step_kernels]
KERNELS = {
    f"{value.__module__}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, CPUDispatcher)
}


def test_options():
    for name, kernel in KERNELS.items():
        options = kernel.targetoptions
        assert options["nogil"] and kernel.stats.cache_path, name
        # Without flags of its own a function is compiled with those of its first caller: results
        # would depend on what was called first, and careful code be optimised away.
        assert options["fastmath"] <= {"reassoc", "contract", "nsz", "arcp"}, name


def test_exponential_and_logarithm_match_the_library():
    x = np.concatenate([np.linspace(0, 708, 5001), np.geomspace(1e-300, 1, 500)])
    got = np.array([scalar.exp_negative(v) for v in x])
    np.testing.assert_allclose(got, np.exp(-x), rtol=7e-16)
    assert 0.0 < scalar.exp_negative(1e300) < 1e-300
    t = np.concatenate([np.linspace(0, 1, 2001), np.geomspace(1e-300, 1, 500)])
    got = np.array([scalar.log_one_plus(v) for v in t])
    np.testing.assert_allclose(got, np.log1p(t), rtol=7e-16)


def test_kernels_are_chosen_by_all_types_of_long_tuples():
    """Types beyond 40 bytes once stood in memory that was not set, and a wrong kernel could run."""
    arrays = tuple(np.ones(3) for _ in range(9))
    found = set()
    for k in range(100):
        junk = [bytes([k]) * size for size in (32, 64, 96, 128)]
        del junk
        found.add(_dispatcher.compute_fingerprint(arrays))
    assert len(found) == 1
    other = (np.ones(3, dtype=np.int64), *arrays[1:])
    assert _dispatcher.compute_fingerprint(other) not in found


def test_the_type_of_a_loss_outlives_it():
    """Types of losses are compared by address."""
    known = kernel_arguments(LogisticLoss())[0]
    alike = replace(known)
    assert alike is not known and alike.tag.dtype is known.tag.dtype
