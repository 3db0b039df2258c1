"""A software prefetch for compiled kernels."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

# Rows in flight when rows are read in random order and every one would be a cache miss.
AHEAD = 12


@intrinsic
def _prefetch(typing_context: Any, array: Any, offset: Any) -> Any:
    """Ask the processor to load the element at flat ``offset`` of a contiguous array.

    It is a hint: it never faults, returns nothing and may be ignored by the hardware.
    """
    if not isinstance(array, types.Array) or array.layout != "C":
        return None
    signature = types.void(array, types.intp)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], function_type)
        # Read access, keep in all cache levels, data cache.
        builder.call(function, [address, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return signature, generate


prefetch: Any = _prefetch
