#include "await/memory_operation.h"

#include "weft/base/error.h"
#include "weft/runtime/operation.h"

#include "await/operation.h"
#include "memory/memory.h"

namespace weft::python {

namespace {

// `start` gets the completion and returns what the memory layer said; what fails at once is thrown.
template <class Start>
Ref operation_of(Engine& engine, std::size_t size_bytes, Ref keepers, Ref result, Start start) {
  engine.expect_open();
  auto* state = runtime::OperationState::create(engine.runtime());
  base::Status status = start(state->completion());
  bool failed = status.failed();
  if (failed) state->observe();
  state->started(status, size_bytes);
  if (failed) {
    state->drop_handle();
    base::throw_status(status);
  }
  return make_operation_object(engine, state, std::move(keepers), std::move(result));
}

}  // namespace

Ref start_copy(Engine& engine, const memory::Buffer& destination, const memory::ConstBuffer& source,
               Ref keepers, Ref result) {
  return operation_of(engine, destination.size_bytes, std::move(keepers), std::move(result),
                      [&](base::Completion* completion) {
                        return engine.runtime().memory().copy(destination, source, completion);
                      });
}

Ref start_stream_wait(Engine& engine, memory::Place place, memory::StreamHandle stream, Ref keepers) {
  return operation_of(engine, 0, std::move(keepers), Ref::borrow(Py_None), [&](base::Completion* completion) {
    return engine.runtime().memory().when_stream_done(place, stream, completion);
  });
}

}  // namespace weft::python
