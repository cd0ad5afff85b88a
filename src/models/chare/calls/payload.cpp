#include "weft/chare/payload.h"

#include "weft/base/error.h"
#include "weft/runtime/message.h"
#include "weft/runtime/runtime.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "memory/memory.h"

namespace weft::chare::payload_detail {

namespace {

// `buffer` with its place. Throws if it is host memory with a stream.
memory::Buffer located(runtime::Runtime& runtime, memory::Buffer buffer) {
  if (buffer.size_bytes > 0) buffer.place = runtime.memory().place_of(buffer.data);
  if (buffer.place.is_host() && buffer.stream != nullptr && buffer.size_bytes > 0) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} bytes of host memory at {} are given with a stream on PE {}: only device "
                     "memory has one; await weft::stream_done first",
                     buffer.size_bytes, buffer.data, runtime.pe()));
  }
  return buffer;
}

[[noreturn]] void damaged_payload(const std::string& what) {
  base::refuse_claim(base::format("a payload arrived damaged: {}", what));
}

void expect_whole_elements(std::size_t size_bytes, std::size_t element_bytes) {
  if (size_bytes % element_bytes == 0) return;
  damaged_payload(
      base::format("{} bytes are no whole number of elements of {} bytes", size_bytes, element_bytes));
}

void pack(Pup& p, runtime::Attachment& attachment) {
  auto* message = static_cast<runtime::Message*>(p.carrier());
  if (message == nullptr) {
    throw base::Error(
        base::StatusCode::kUnsupported,
        "a payload travels as an argument of a call, or as its result, not inside another value");
  }
  auto which = static_cast<std::uint32_t>(message->attachments().size());
  p | which;
  memory::Buffer buffer = located(message->runtime(), attachment.buffer());
  attachment.relocate(buffer.place);
  message->attach(std::move(attachment));
}

void unpack(Pup& p, runtime::Attachment& attachment, std::size_t element_bytes) {
  std::uint32_t which = 0;
  p | which;
  auto* message = static_cast<runtime::Message*>(p.carrier());
  if (message == nullptr || which >= message->attachments().size() || !message->attachments()[which]) {
    damaged_payload(base::format("no buffer numbered {} came with it", which));
  }
  runtime::Attachment& landed = message->attachments()[which];
  expect_whole_elements(landed.buffer().size_bytes, element_bytes);
  attachment = std::move(landed);
}

}  // namespace

void pup(Pup& p, runtime::Attachment& attachment, std::size_t element_bytes) {
  if (p.is_unpacking()) {
    unpack(p, attachment, element_bytes);
  } else if (p.is_packing()) {
    pack(p, attachment);
  } else {
    p | std::uint32_t{0};
  }
}

void choose(runtime::Runtime& runtime, runtime::ReceiveBuffer& receive_buffer, const memory::Buffer& into) {
  if (into.size_bytes < receive_buffer.size_bytes) {
    throw base::Error(
        base::StatusCode::kTruncated,
        base::format(
            "ReceiveBuffer::into got memory of {} bytes on PE {} for a payload of {} bytes; choose memory "
            "that holds all of it",
            into.size_bytes, runtime.pe(), receive_buffer.size_bytes));
  }
  receive_buffer.into = runtime::Attachment(located(runtime, into));
}

runtime::ReceiveBuffer& find(std::span<runtime::ReceiveBuffer> receive_buffers, std::uint32_t which,
                             std::size_t element_bytes) {
  if (which >= receive_buffers.size())
    damaged_payload(base::format("no buffer numbered {} comes with it", which));
  expect_whole_elements(receive_buffers[which].size_bytes, element_bytes);
  return receive_buffers[which];
}

}  // namespace weft::chare::payload_detail
