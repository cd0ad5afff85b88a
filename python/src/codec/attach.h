// Buffers that travel beside a message, kept by Python objects.
#pragma once

#include "weft/memory/buffer.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/message.h"
#include "weft/runtime/operation.h"

#include "codec/encoder.h"
#include "support/support.h"

namespace weft::python {

// `keeper` owns the memory; it is dropped when the buffer is free again.
runtime::Attachment attach(Ref keeper, const memory::Buffer& memory);

// Attaches the buffers in encoder.attached() to the message. Returns the state of their sending, of which the
// caller owns a handle's share; null if there are none.
runtime::OperationState* attach_all(Encoder& encoder, runtime::Message& message);

}  // namespace weft::python
