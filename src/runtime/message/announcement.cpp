#include "runtime/message/announcement.h"

#include <cstring>

#include "base/format.h"
#include "runtime/message/attached.h"
#include "runtime/message/payload_tag.h"

namespace weft::runtime {

namespace {

void expect(Message& message, const Announcement& announced) {
  Scheduler& scheduler = message.scheduler();
  Attached& attached = message.attached();
  attached.state = Attached::State::kAwaited;
  attached.buffers.emplace_back(
      memory::Buffer{nullptr, announced.size_bytes, scheduler.own_place(announced.kind), nullptr});
}

}  // namespace

base::Status check(const Announcement& announced, int num_pes) {
  if (announced.source_pe < static_cast<std::uint32_t>(num_pes) && announced.counter <= kPayloadCounterMask &&
      static_cast<int>(announced.kind) < memory::kNumKinds && announced.size_bytes <= kMaxBufferBytes) {
    return {};
  }
  return {base::StatusCode::kCorrupt,
          base::format("a message announces {} bytes of memory kind {}, numbered {} on PE {}; do all PEs run "
                       "the same program?",
                       announced.size_bytes, static_cast<int>(announced.kind), announced.counter,
                       announced.source_pe)};
}

base::Status expect_tagged(Message& message, std::span<const std::byte> header) {
  const std::size_t count = header.size() / sizeof(Announcement);
  if (header.size() % sizeof(Announcement) != 0 || count > Message::kMaxAttachments) {
    return {base::StatusCode::kCorrupt,
            base::format("a message header of {} bytes does not announce a whole number of buffers, at most "
                         "{}; do all PEs run the same program?",
                         header.size(), Message::kMaxAttachments)};
  }
  Attached& attached = message.attached();
  attached.buffers.reserve(count);
  attached.tags.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    Announcement announced;
    std::memcpy(&announced, header.data() + i * sizeof announced, sizeof announced);
    base::Status status = check(announced, message.scheduler().num_pes());
    if (status.failed()) return status;
    expect(message, announced);
    attached.tags.push_back(payload_tag(announced.source_pe, announced.counter));
    attached.send_waits.push_back(announced.send_waits != 0);
  }
  return {};
}

base::Status expect_payload(Message& message, const Announcement& announced, std::size_t payload_bytes) {
  if (announced.size_bytes != payload_bytes) {
    return {base::StatusCode::kCorrupt,
            base::format("a message announces {} bytes and carries {}; do all PEs run the same program?",
                         announced.size_bytes, payload_bytes)};
  }
  base::Status status = check(announced, message.scheduler().num_pes());
  if (status.ok()) expect(message, announced);
  return status;
}

}  // namespace weft::runtime
