// Buffers that travel beside a message, kept by Python objects.
#pragma once

#include "weft/memory/buffer.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/message.h"

#include "codec/encoder.h"
#include "support/support.h"

namespace weft::python {

// `keeper` owns the memory; it is dropped when the buffer is free again.
runtime::Attachment attach(Ref keeper, const memory::Buffer& memory);

// Attaches the buffers in encoder.attached() to the message, or copies of them, as each one says.
void attach_all(Encoder& encoder, runtime::Message& message);

}  // namespace weft::python
