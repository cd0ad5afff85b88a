// Attachments whose memory a Python object owns.
#pragma once

#include "weft/memory/buffer.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/message.h"
#include "weft/runtime/runtime.h"

#include "codec/encoder.h"
#include "support/support.h"

namespace weft::python {

// `keeper` owns the memory. Its reference is dropped when the attachment is released.
runtime::Attachment attach(Ref keeper, const memory::Buffer& memory);

// One buffer of encoder.attached(). A copy is made late, see Attachment::copy_later().
runtime::Attachment attachment_of(runtime::Runtime& runtime, Encoder::Attached& buffer);

// Attaches each buffer of encoder.attached() to the message: a copy, or the buffer itself, see Attach. Copies are made
// late, so `encoder`, which keeps their sources, must outlive the call that sends the message.
void attach_all(Encoder& encoder, runtime::Message& message);

}  // namespace weft::python
