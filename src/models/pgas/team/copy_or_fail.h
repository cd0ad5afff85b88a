// Copies between memory of any kind within a collective.
#pragma once

#include <exception>

#include "weft/memory/buffer.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/runtime.h"
#include "weft/runtime/task.h"

#include "memory/memory.h"

namespace weft::pgas {

// A failure becomes that of `data`, which has team() and fail().
template <class Data>
runtime::Task<> copy_or_fail(Data& data, memory::Buffer into, memory::Buffer from) {
  try {
    runtime::Runtime& runtime = data.team().runtime;
    auto* const state = runtime::OperationState::create(runtime);
    state->started(runtime.memory().copy(into, from, state->completion()), into.size_bytes);
    runtime::Operation copy(state);
    co_await copy;
  } catch (...) {
    data.fail(std::current_exception());
  }
}

}  // namespace weft::pgas
