#include "codec/attach.h"

#include <utility>

#include "weft/chare/chares.h"

namespace weft::python {

runtime::Attachment attach(Ref keeper, const memory::Buffer& memory) {
  auto release = [](void* owner, const memory::Buffer&) { Py_DECREF(static_cast<PyObject*>(owner)); };
  return runtime::Attachment(memory, release, keeper.release());
}

void attach_all(Encoder& encoder, runtime::Message& message) {
  for (Encoder::Attached& buffer : encoder.attached()) {
    if (buffer.how == Attach::kCopy) {
      message.attach(
          chare::copy_out_of_band(message.runtime(), buffer.memory.data, buffer.memory.size_bytes));
      continue;
    }
    runtime::Attachment attachment = attach(std::move(buffer.keeper), buffer.memory);
    if (buffer.how == Attach::kOwn) attachment.give_away();
    message.attach(std::move(attachment));
  }
}

}  // namespace weft::python
