#include "weft/chare/argument.h"

#include "weft/base/error.h"
#include "weft/chare/chares.h"
#include "weft/runtime/message.h"
#include "weft/runtime/runtime.h"

#include "base/format.h"

namespace weft::chare {

runtime::Attachment copy_beside(runtime::Runtime& runtime, const void* data, std::size_t size_bytes) {
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

[[noreturn]] void corrupt(const std::string& what) {
  throw base::Error(base::StatusCode::kCorrupt,
                    base::format("an argument arrived damaged: {}; do all PEs run the same program?", what));
}

}  // namespace

VectorPool& vector_pool(runtime::Runtime& runtime) { return runtime.model<Chares>().vectors(); }

void pack_given(Pup& p, std::uint64_t count, runtime::Attachment block) {
  auto& message = *static_cast<runtime::Message*>(p.carrier());
  p | (count | kBesideFlag) | static_cast<std::uint32_t>(message.attachments().size());
  message.attach(std::move(block));
}

void pack_copy(Pup& p, std::uint64_t count, const void* data, std::size_t size_bytes) {
  auto& message = *static_cast<runtime::Message*>(p.carrier());
  pack_given(p, count, copy_beside(message.runtime(), data, size_bytes));
}

bool is_beside(const Pup& p) {
  std::uint64_t count = 0;
  if (p.remaining_bytes() < sizeof count) return false;
  std::memcpy(&count, p.cursor(), sizeof count);
  return (count & kBesideFlag) != 0;
}

BesideBlock read_block(Pup& p, std::span<runtime::Landing> landings, std::size_t element_bytes) {
  BesideBlock block;
  std::uint32_t which = 0;
  p | block.count | which;
  block.count &= ~kBesideFlag;
  if (which >= landings.size() || landings[which].into) {
    corrupt(base::format("no buffer numbered {} comes with it", which));
  }
  block.landing = &landings[which];
  std::size_t size_bytes = 0;
  if (__builtin_mul_overflow(block.count, element_bytes, &size_bytes) ||
      size_bytes != block.landing->size_bytes) {
    corrupt(base::format("a buffer of {} bytes comes for {} elements of {}", block.landing->size_bytes,
                         block.count, element_bytes));
  }
  return block;
}

}  // namespace weft::chare::argument_detail
