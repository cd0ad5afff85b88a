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
  attached.state = Attached::BufferState::kAwaited;
  attached.buffers.emplace_back(
      memory::Buffer{nullptr, announced.size_bytes, scheduler.own_place(announced.kind), nullptr});
}

Announcement announcement_at(std::span<const std::byte> header, std::size_t which) {
  Announcement announced;
  std::memcpy(&announced, header.data() + which * sizeof announced, sizeof announced);
  return announced;
}

// 0 if announcements and names do not fill the header.
std::size_t num_announced(std::span<const std::byte> header) {
  std::size_t count = 0;
  std::size_t used_bytes = 0;
  while (used_bytes < header.size()) {
    if (header.size() - used_bytes < sizeof(Announcement) ||
        header.size() < (count + 1) * sizeof(Announcement)) {
      return 0;
    }
    used_bytes += sizeof(Announcement) + announcement_at(header, count).name_bytes;
    ++count;
  }
  return used_bytes == header.size() ? count : 0;
}

// Adds the name of buffer `which` of `count`.
base::Status expect_named(Attached& attached, std::size_t count, std::size_t which,
                          const Announcement& announced, std::span<const std::byte> name) {
  machine::SourceName source{};
  const bool fits = name.size() >= machine::kLeastSourceNameBytes && name.size() <= sizeof source;
  if (fits) std::memcpy(static_cast<void*>(&source), name.data(), name.size());
  // A PE that lacks the kind which it announces, that of a broadcast's first sender, has the bytes in host memory.
  const bool is_host = source.buffer.place.is_host();
  if (!fits || announced.send_waits == 0 || source.buffer.size_bytes != announced.size_bytes ||
      source.buffer.exported_bytes > machine::kMaxExportedBytes || source.wire_bytes() != name.size() ||
      is_host != (source.pid > 0)) {
    return {base::StatusCode::kCorrupt,
            base::format("a message names memory of {} bytes of PE {} in {} bytes, which is no such name; do "
                         "all PEs run the same program?",
                         announced.size_bytes, announced.source_pe, name.size())};
  }
  attached.source_names.resize(count);
  attached.source_names[which] = source;
  return {};
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
  const std::size_t count = num_announced(header);
  if (count == 0 || count > Message::kMaxAttachments) {
    return {base::StatusCode::kCorrupt,
            base::format("a message header of {} bytes does not announce a whole number of buffers, at most "
                         "{}; do all PEs run the same program?",
                         header.size(), Message::kMaxAttachments)};
  }
  Attached& attached = message.attached();
  attached.buffers.reserve(count);
  attached.tags.reserve(count);
  std::span<const std::byte> names = header.subspan(count * sizeof(Announcement));
  for (std::size_t i = 0; i < count; ++i) {
    const Announcement announced = announcement_at(header, i);
    base::Status status = check(announced, message.scheduler().num_pes());
    if (status.failed()) return status;
    expect(message, announced);
    attached.tags.push_back(payload_tag(announced.source_pe, announced.counter));
    attached.send_waits.push_back(announced.send_waits != 0);
    if (announced.name_bytes == 0) continue;
    status = expect_named(attached, count, i, announced, names.first(announced.name_bytes));
    if (status.failed()) return status;
    names = names.subspan(announced.name_bytes);
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
