// Operations on global memory return a weft.Operation to Python. One that is over at once has no state, and an await of it
// returns without a turn of the scheduler.
//
// Threads: the PE's thread.
#pragma once

#include <cstring>
#include <utility>

#include "weft/rma/done.h"

#include "await/operation.h"
#include "engine/engine.h"
#include "pgas/memory/element_value.h"
#include "support/support.h"

namespace weft::python {

// `keeper` owns the memory of the operation and stays until it is over. Awaiting gives `result`.
inline Ref operation_of(Engine& engine, rma::Done done, Ref keeper, Ref result) {
  runtime::OperationState* const state = std::move(done).release();
  if (state != nullptr) return make_operation_object(engine, state, std::move(keeper), std::move(result));
  return result.get() == Py_None ? finished_operation() : make_finished_operation(std::move(result));
}

// The result of a Value whose T has the bytes of an element.
inline Ref element_of_state(runtime::OperationState* state, const Ref& dtype) {
  return load_element(state->extra(), element_code(dtype), dtype);
}

template <class T>
Ref operation_of(Engine& engine, rma::Value<T> value, ElementCode code, const Ref& dtype) {
  if (!value.is_done()) {
    return make_operation_object(engine, std::move(value).release(), Ref(), dtype, &element_of_state);
  }
  const T result = value.get();
  std::byte bytes[sizeof(T)];
  std::memcpy(bytes, &result, sizeof result);
  return make_finished_operation(load_element(bytes, code, dtype));
}

}  // namespace weft::python
