#include "codec/attach.h"

#include <utility>

#include "weft/runtime/runtime.h"

namespace weft::python {

runtime::Attachment attach(Ref keeper, const memory::Buffer& memory) {
  auto release = [](void* owner, const memory::Buffer&) { Py_DECREF(static_cast<PyObject*>(owner)); };
  return runtime::Attachment(memory, release, keeper.release());
}

runtime::OperationState* attach_all(Encoder& encoder, runtime::Message& message) {
  if (encoder.attached().empty()) return nullptr;
  for (Encoder::Attached& buffer : encoder.attached()) {
    message.attach(attach(std::move(buffer.keeper), buffer.memory));
  }
  return runtime::report_sending(message.runtime(), message);
}

}  // namespace weft::python
