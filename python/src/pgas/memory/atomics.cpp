#include "pgas/memory/atomics.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/pgas/pgas.h"

#include "base/format.h"
#include "buffers/arrays/dtype.h"
#include "pgas/memory/global_operations.h"
#include "pgas/memory/global_pointer.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// One operation: where, and with which values.
struct AtomicCall {
  Engine& engine;
  const GlobalPointerObject* pointer;
  PyObject* operand;  // null: none
  PyObject* compare;  // null: none
  const char* use;

  template <class T>
  rma::GlobalPtr<T> target() const {
    return rma::GlobalPtr<T>(pointer->address);
  }
  template <class T>
  T value(PyObject* object) const {
    T value;
    std::byte bytes[sizeof value];
    store_for(pointer, object, bytes, use);
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  template <class T>
  Ref result(rma::Value<T> value) const {
    return operation_of(engine, std::move(value), pointer->code, pointer->dtype);
  }
};

struct Load {
  template <class T>
  static Ref run(const AtomicCall& call) {
    return call.result(call.engine.pgas().atomic_load(call.target<T>()));
  }
};
struct Store {
  template <class T>
  static Ref run(const AtomicCall& call) {
    const T value = call.value<T>(call.operand);
    return operation_of(call.engine, call.engine.pgas().atomic_store(call.target<T>(), value), Ref(),
                        Ref::borrow(Py_None));
  }
};
struct Add {
  template <class T>
  static Ref run(const AtomicCall& call) {
    return call.result(call.engine.pgas().fetch_add(call.target<T>(), call.value<T>(call.operand)));
  }
};
struct Exchange {
  template <class T>
  static Ref run(const AtomicCall& call) {
    return call.result(call.engine.pgas().exchange(call.target<T>(), call.value<T>(call.operand)));
  }
};
struct CompareExchange {
  template <class T>
  static Ref run(const AtomicCall& call) {
    const T expected = call.value<T>(call.compare);
    const T desired = call.value<T>(call.operand);
    return call.result(call.engine.pgas().compare_exchange(call.target<T>(), expected, desired));
  }
};
struct And {
  template <class T>
  static Ref run(const AtomicCall& call) {
    return call.result(call.engine.pgas().fetch_and(call.target<T>(), call.value<T>(call.operand)));
  }
};
struct Or {
  template <class T>
  static Ref run(const AtomicCall& call) {
    return call.result(call.engine.pgas().fetch_or(call.target<T>(), call.value<T>(call.operand)));
  }
};
struct Xor {
  template <class T>
  static Ref run(const AtomicCall& call) {
    return call.result(call.engine.pgas().fetch_xor(call.target<T>(), call.value<T>(call.operand)));
  }
};

[[noreturn]] void refuse_type(const AtomicCall& call, const char* types) {
  throw base::Error(base::StatusCode::kInvalidArgument,
                    base::format("{} got {}; it works on {} in native byte order", call.use,
                                 pointer_text(call.pointer), types));
}

template <class Function>
Ref on_integers(const AtomicCall& call, const char* types) {
  switch (call.pointer->code) {
    case ElementCode::kInt32:
      return Function::template run<std::int32_t>(call);
    case ElementCode::kInt64:
      return Function::template run<std::int64_t>(call);
    case ElementCode::kUint32:
      return Function::template run<std::uint32_t>(call);
    case ElementCode::kUint64:
      return Function::template run<std::uint64_t>(call);
    default:
      refuse_type(call, types);
  }
}

template <class Function>
Ref on_numbers(const AtomicCall& call) {
  switch (call.pointer->code) {
    case ElementCode::kFloat:
      return Function::template run<float>(call);
    case ElementCode::kDouble:
      return Function::template run<double>(call);
    default:
      return on_integers<Function>(call, "integers and floats of 32 and 64 bits");
  }
}

template <class Function>
Ref on_bits(const AtomicCall& call) {
  return on_integers<Function>(call, "integers of 32 and 64 bits");
}

AtomicCall atomic_call(PyObject* pointer, PyObject* operand, PyObject* compare, const char* use) {
  return {Engine::current(), global_pointer_from(pointer, use), operand, compare, use};
}

PyObject* atomic_load(PyObject*, PyObject* pointer) {
  return guarded([&] {
    return on_numbers<Load>(atomic_call(pointer, nullptr, nullptr, "weft.pgas.atomic_load")).release();
  });
}

// The Python function of an atomic operation that takes a pointer and a value.
template <Ref (*Run)(const AtomicCall&)>
PyObject* with_value(const char* use, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    const Arguments arguments(use, {"to", "value"}, 2, values, count, names);
    return Run(atomic_call(arguments[0], arguments[1], nullptr, use)).release();
  });
}

PyObject* atomic_store(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return with_value<&on_numbers<Store>>("weft.pgas.atomic_store", values, count, names);
}
PyObject* fetch_add(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return with_value<&on_numbers<Add>>("weft.pgas.fetch_add", values, count, names);
}
PyObject* exchange(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return with_value<&on_numbers<Exchange>>("weft.pgas.exchange", values, count, names);
}
PyObject* fetch_and(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return with_value<&on_bits<And>>("weft.pgas.fetch_and", values, count, names);
}
PyObject* fetch_or(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return with_value<&on_bits<Or>>("weft.pgas.fetch_or", values, count, names);
}
PyObject* fetch_xor(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return with_value<&on_bits<Xor>>("weft.pgas.fetch_xor", values, count, names);
}

PyObject* compare_exchange(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    constexpr const char* kUse = "weft.pgas.compare_exchange";
    const Arguments arguments(kUse, {"to", "expected", "desired"}, 3, values, count, names);
    return on_numbers<CompareExchange>(atomic_call(arguments[0], arguments[2], arguments[1], kUse)).release();
  });
}

PyMethodDef functions[] = {
    {"atomic_load", &atomic_load, METH_O, R"(atomic_load(source, /)
--

Reads an element as one atomic operation.

Atomic operations work on integers and floats of 32 and 64 bits at aligned places. They are atomic among each other, for all
PEs, and not with put(), get(), copies and kernels. On host segments of this host they are instructions of the CPU, and over
when the call returns; on other memory the PE that owns it takes part.

Args:
    source: a GlobalPointer.

Returns:
    a weft.Operation of the value.

Raises:
    weft.Error: another type. The call or the await raises it if the pointer leads to no element or is not aligned.)"},
    {"atomic_store", as_method(&atomic_store), METH_FASTCALL | METH_KEYWORDS, R"(atomic_store(to, value)
--

Writes an element as one atomic operation; see atomic_load(). Returns a weft.Operation of None.)"},
    {"fetch_add", as_method(&fetch_add), METH_FASTCALL | METH_KEYWORDS, R"(fetch_add(to, value)
--

Adds to an element; integers wrap. See atomic_load().

Args:
    to: a GlobalPointer to integers or floats of 32 or 64 bits.
    value: a number that the type can hold.

Returns:
    a weft.Operation of the value before.

Raises:
    weft.Error: as atomic_load().)"},
    {"exchange", as_method(&exchange), METH_FASTCALL | METH_KEYWORDS, R"(exchange(to, value)
--

Writes an element; a weft.Operation of the value before. See fetch_add().)"},
    {"compare_exchange", as_method(&compare_exchange), METH_FASTCALL | METH_KEYWORDS,
     R"(compare_exchange(to, expected, desired)
--

Writes `desired` if the element is `expected`, compared bit by bit. See atomic_load().

Returns:
    a weft.Operation of the value before, which is `expected` if `desired` was written.

Raises:
    weft.Error: as atomic_load().)"},
    {"fetch_and", as_method(&fetch_and), METH_FASTCALL | METH_KEYWORDS, R"(fetch_and(to, value)
--

Combines an integer with `value` bit by bit; a weft.Operation of the value before. See fetch_add().)"},
    {"fetch_or", as_method(&fetch_or), METH_FASTCALL | METH_KEYWORDS, R"(fetch_or(to, value)
--

As fetch_and(), with "or".)"},
    {"fetch_xor", as_method(&fetch_xor), METH_FASTCALL | METH_KEYWORDS, R"(fetch_xor(to, value)
--

As fetch_and(), with "exclusive or".)"},
    {},
};

}  // namespace

void init_atomics(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
