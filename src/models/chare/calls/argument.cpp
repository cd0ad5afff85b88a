#include "weft/chare/argument.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/chares.h"
#include "weft/runtime/message.h"
#include "weft/runtime/runtime.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::chare {

runtime::Attachment copy_out_of_band(runtime::Runtime& runtime, const void* data, std::size_t size_bytes) {
  void* const block = runtime.pool().allocate(size_bytes);
  runtime::Attachment copy(
      memory::Buffer{block, size_bytes, {}, nullptr},
      [](void* owner, const memory::Buffer& buffer) {
        static_cast<runtime::Runtime*>(owner)->pool().deallocate(buffer.data, buffer.size_bytes);
      },
      &runtime);
  copy.give_away();
  copy.copy_later(data);
  return copy;
}

}  // namespace weft::chare

namespace weft::chare::argument_detail {

namespace {

[[noreturn]] void damaged_argument(const std::string& what) {
  base::refuse_claim(base::format("an argument arrived damaged: {}", what));
}

}  // namespace

base::VectorPool& vector_pool(runtime::Runtime& runtime) { return runtime.model<Chares>().vectors(); }

runtime::Attachment attach_vector(base::VectorPool& pool, const base::ElementType& type, std::size_t count,
                                  std::unique_ptr<base::AnyVector> values) {
  void* const data = values->data();
  auto* const given = new base::GivenVector{pool, type, std::move(values)};
  runtime::Attachment attachment(
      memory::Buffer{data, count * type.size_bytes(), {}, nullptr},
      [](void* owner, const memory::Buffer&) { base::GivenVector::release(owner); }, given);
  attachment.give_away();
  return attachment;
}

void pack_given(Pup& p, std::uint64_t count, runtime::Attachment block) {
  auto& message = *static_cast<runtime::Message*>(p.carrier());
  p | (count | kOutOfBandFlag) | static_cast<std::uint32_t>(message.attachments().size());
  message.attach(std::move(block));
}

void pack_copy(Pup& p, std::uint64_t count, const void* data, std::size_t size_bytes) {
  auto& message = *static_cast<runtime::Message*>(p.carrier());
  pack_given(p, count, copy_out_of_band(message.runtime(), data, size_bytes));
}

bool is_out_of_band(const Pup& p) {
  std::uint64_t count = 0;
  if (p.remaining_bytes() < sizeof count) return false;
  std::memcpy(&count, p.cursor(), sizeof count);
  return (count & kOutOfBandFlag) != 0;
}

void pack_padded(Pup& p, std::uint64_t count, const void* data, std::size_t size_bytes,
                 std::size_t padding_bytes) {
  static constexpr std::byte kZeros[kMostAlignment] = {};
  const auto pad = [&p](std::size_t num_bytes) { p.bytes(const_cast<std::byte*>(kZeros), num_bytes); };
  std::size_t before_bytes = 0;
  if (padding_bytes > 0) {
    const auto begin = reinterpret_cast<std::uintptr_t>(p.cursor()) + sizeof count;
    before_bytes = -begin % (padding_bytes + 1);
    count |= static_cast<std::uint64_t>(before_bytes + 1) << kPaddingShift;
  }
  p | count;
  pad(before_bytes);
  p.bytes(const_cast<void*>(data), size_bytes);
  pad(padding_bytes - before_bytes);
}

std::size_t read_padded_count(Pup& p, std::size_t element_bytes, std::size_t padding_bytes,
                              std::size_t& after_bytes) {
  std::uint64_t count = 0;
  p | count;
  const std::uint64_t padding = count >> kPaddingShift;
  count &= kMaxCount;
  if (padding > padding_bytes + 1 || (padding > 0 && padding_bytes == 0)) {
    damaged_argument(base::format("a count of {} elements comes with the padding {}", count, padding));
  }
  if (padding > 0) p.skip(padding - 1);
  after_bytes = padding == 0 ? 0 : padding_bytes - (padding - 1);
  if (count > p.remaining_bytes() / element_bytes) p.expect(p.remaining_bytes() + 1);  // throws
  return count;
}

void expect_distinct(std::span<const std::uint32_t> which,
                     std::span<const runtime::ReceiveBuffer> receive_buffers) {
  for (std::size_t i = 0; i < which.size(); ++i) {
    if (which[i] == kNoBuffer) continue;
    const bool is_taken =
        std::ranges::find(which.first(i), which[i]) != which.begin() + static_cast<std::ptrdiff_t>(i);
    if (is_taken || receive_buffers[which[i]].into)
      damaged_argument(base::format("two arguments have buffer {}", which[i]));
  }
}

runtime::Attachment take_landed(runtime::Message& message, std::uint32_t which) {
  const std::span<runtime::Attachment> landed = message.attachments();
  if (which >= landed.size() || !landed[which])
    damaged_argument(base::format("buffer {} has not landed", which));
  return std::move(landed[which]);
}

OutOfBandBlock read_block(Pup& p, std::span<runtime::ReceiveBuffer> receive_buffers,
                          std::size_t element_bytes) {
  OutOfBandBlock block;
  p | block.count | block.which;
  block.count &= ~kOutOfBandFlag;
  if (block.which >= receive_buffers.size() || receive_buffers[block.which].into) {
    damaged_argument(base::format("no buffer numbered {} comes with it", block.which));
  }
  block.receive_buffer = &receive_buffers[block.which];
  if (!block.receive_buffer->place.is_host()) {
    damaged_argument(base::format("buffer {} is of {} memory", block.which,
                                  memory::place_name(block.receive_buffer->place)));
  }
  std::size_t size_bytes = 0;
  if (__builtin_mul_overflow(block.count, element_bytes, &size_bytes) ||
      size_bytes != block.receive_buffer->size_bytes) {
    damaged_argument(base::format("a buffer of {} bytes comes for {} elements of {}",
                                  block.receive_buffer->size_bytes, block.count, element_bytes));
  }
  return block;
}

}  // namespace weft::chare::argument_detail
