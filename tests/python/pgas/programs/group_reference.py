"""What collectives of device arrays give, by NumPy. Elements of bfloat16 are their bits, uint16."""

import numpy as np

OPERATIONS = ("broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter", "all_to_all")
TYPES = ("int32", "int64", "float16", "bfloat16", "float32", "float64")
REDUCERS = {"sum": np.add, "product": np.multiply, "min": np.minimum, "max": np.maximum}
WITH_PARTS = ("reduce_scatter", "all_to_all")


def host_type(name: str) -> np.dtype:
    return np.dtype("uint16" if name == "bfloat16" else name)


def rounded_to_bfloat16(values: np.ndarray) -> np.ndarray:
    bits = values.astype("float32").view("uint32")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("uint16")


def widened(values: np.ndarray, name: str) -> np.ndarray:
    """As the elements are combined."""
    if name == "bfloat16":
        return (values.astype("uint32") << 16).view("float32")
    return values.astype("float32") if name == "float16" else values


def narrowed(values: np.ndarray, name: str) -> np.ndarray:
    return rounded_to_bfloat16(values) if name == "bfloat16" else values.astype(host_type(name))


def input_of(seed: int, rank: int, count: int, name: str) -> np.ndarray:
    random = np.random.default_rng((seed, rank))
    if name.startswith("int"):
        return random.integers(-(2**31), 2**31, count).astype(name)
    values = random.normal(size=count) * 2.0 ** random.integers(-6, 7, count)
    return narrowed(values.astype("float32") if name != "float64" else values, name)


def combined(inputs: list, name: str, reducer: str) -> np.ndarray:
    """By rank, from left to right, rounded once."""
    total = widened(inputs[0], name)
    with np.errstate(over="ignore"):
        for one in inputs[1:]:
            total = REDUCERS[reducer](total, widened(one, name))
        return narrowed(total, name)


def expected(operation: str, inputs: list, name: str, reducer: str, root: int, rank: int):
    """The result of that rank; None if it gets nothing."""
    size = len(inputs)
    if operation == "broadcast":
        return inputs[root]
    if operation == "all_gather":
        return np.concatenate(inputs)
    if operation == "all_to_all":
        return np.concatenate([np.split(one, size)[rank] for one in inputs])
    total = combined(inputs, name, reducer)
    if operation == "reduce_scatter":
        return np.split(total, size)[rank]
    return total if operation == "all_reduce" or rank == root else None
