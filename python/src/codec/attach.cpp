#include "codec/attach.h"

#include <utility>

#include "weft/chare/chares.h"

namespace weft::python {

runtime::Attachment attach(Ref keeper, const memory::Buffer& memory) {
  auto release = [](void* owner, const memory::Buffer&) { Py_DECREF(static_cast<PyObject*>(owner)); };
  return runtime::Attachment(memory, release, keeper.release());
}

runtime::Attachment attachment_of(runtime::Runtime& runtime, Encoder::Attached& buffer) {
  if (buffer.how == Attach::kCopy)
    return chare::copy_out_of_band(runtime, buffer.memory.data, buffer.memory.size_bytes);
  runtime::Attachment attachment = attach(std::move(buffer.keeper), buffer.memory);
  if (buffer.how == Attach::kOwn) attachment.give_away();
  return attachment;
}

void attach_all(Encoder& encoder, runtime::Message& message) {
  for (Encoder::Attached& buffer : encoder.attached())
    message.attach(attachment_of(message.runtime(), buffer));
}

}  // namespace weft::python
