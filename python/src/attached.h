// Arrays and pickle buffers that travel in place, as attachments of a message, and the memory in which they
// land.
#pragma once

#include <memory>

#include "weft/runtime/attachment.h"

#include "engine.h"
#include "support.h"

namespace weft::python {

// From here on a buffer of an entry method's arguments is sent in place: below it one copy into the message
// is cheaper than a message of its own.
inline constexpr std::size_t kInPlaceBytes = std::size_t{64} << 10;

class PyFutureState;

// Sets a future once the last buffer that shares it is free again.
class BuffersFree {
 public:
  explicit BuffersFree(PyFutureState* state);
  ~BuffersFree();
  BuffersFree(const BuffersFree&) = delete;
  BuffersFree& operator=(const BuffersFree&) = delete;

 private:
  PyFutureState* state_;
};

// `keeper` owns the memory; it is dropped, and so is a share of `done`, when the buffer is free again.
runtime::Attachment attach(Ref keeper, const void* data, std::size_t size_bytes,
                           std::shared_ptr<BuffersFree> done);

// A capsule that owns landed memory, for an array's base.
Ref make_memory_owner(Engine& engine, runtime::Attachment attachment);

}  // namespace weft::python
