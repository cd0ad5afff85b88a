#include "runtime/message/receive_buffer_pool.h"

#include <algorithm>
#include <bit>

#include "weft/base/completion.h"

#include "base/format.h"
#include "memory/memory.h"

namespace weft::runtime {

namespace {

constexpr std::size_t kSmallestBytes = 512;
// Device memory is scarce: a block that would exceed this limit is freed at once instead of being kept.
constexpr std::size_t kMaxKeptBytes = std::size_t{256} << 20;

// Rounds up by at most a quarter or kSmallestBytes, so that similar sizes share blocks.
std::size_t rounded(std::size_t size_bytes) {
  std::size_t step = std::max(std::bit_floor(size_bytes) / 4, kSmallestBytes);
  return (size_bytes + step - 1) / step * step;
}

int device_key(memory::Place place) { return static_cast<int>(place.kind) << 16 | place.device; }

base::Status no_memory(std::size_t size_bytes, memory::Place place, std::string_view why) {
  return {base::StatusCode::kOutOfMemory,
          base::format("there is no {} memory for a buffer of {} bytes{}{}", memory::place_name(place),
                       size_bytes, why.empty() ? "" : ": ", why)};
}

}  // namespace

// A block of device memory. It is also the Completion of the wait for the stream that its last user named.
struct ReceiveBufferPool::Block final : base::Completion {
  Block(ReceiveBufferPool& pool_in, const memory::Buffer& buffer_in)
      : base::Completion(&Block::stream_done), pool(pool_in), buffer(buffer_in) {}
  static void stream_done(base::Completion* completion, base::Status status, std::size_t) {
    auto* block = static_cast<Block*>(completion);
    if (status.ok()) {
      block->pool.keep(block);
    } else {
      block->pool.destroy(block);  // which waits for the device
    }
  }
  ReceiveBufferPool& pool;
  memory::Buffer buffer;
};

memory::Place ReceiveBufferPool::place_for(memory::Kind kind) const {
  const memory::KindBackend* const backend = scheduler_.memory().backend(kind);
  return backend == nullptr || backend->num_devices() == 0 ? memory::Place() : scheduler_.own_place(kind);
}

base::Result<Attachment> ReceiveBufferPool::allocate(std::size_t size_bytes, memory::Place place) {
  if (!place.is_host() && size_bytes > 0) return allocate_on_device(size_bytes, place);
  try {
    void* block = scheduler_.pool().allocate(size_bytes);
    return Attachment(memory::Buffer{block, size_bytes, {}, nullptr}, &release_host, &scheduler_);
  } catch (const std::bad_alloc&) {
    return no_memory(size_bytes, {}, "");
  }
}

void ReceiveBufferPool::release_host(void* scheduler, const memory::Buffer& buffer) {
  static_cast<Scheduler*>(scheduler)->pool().deallocate(buffer.data, buffer.size_bytes);
}

base::Result<Attachment> ReceiveBufferPool::allocate_on_device(std::size_t size_bytes, memory::Place place) {
  const auto attach = [&](Block* block) {
    memory::Buffer buffer{block->buffer.data, size_bytes, place, nullptr};
    return Attachment(buffer, &release_device, block);
  };
  // No device has as much memory: a larger size comes from a corrupt message.
  constexpr std::size_t kMaxBytes = std::size_t{1} << 46;
  if (size_bytes > kMaxBytes) return no_memory(size_bytes, place, "no device has so much");
  std::size_t block_bytes = rounded(size_bytes);
  std::vector<Block*>& kept = kept_[{device_key(place), block_bytes}];
  if (!kept.empty()) {
    Block* block = kept.back();
    kept.pop_back();
    kept_bytes_ -= block_bytes;
    return attach(block);
  }
  auto buffer = scheduler_.memory().allocate(block_bytes, place);
  if (!buffer.ok() && trim()) buffer = scheduler_.memory().allocate(block_bytes, place);
  if (!buffer.ok()) return no_memory(size_bytes, place, buffer.status().message());
  return attach(new Block(*this, *buffer));
}

void ReceiveBufferPool::release_device(void* owner, const memory::Buffer& buffer) {
  auto* block = static_cast<Block*>(owner);
  if (buffer.stream == nullptr) return block->pool.keep(block);
  base::Status status = block->pool.scheduler_.memory().when_stream_done(buffer.place, buffer.stream, block);
  if (!status.is_pending()) Block::stream_done(block, std::move(status), 0);
}

void ReceiveBufferPool::keep(Block* block) {
  std::size_t size_bytes = block->buffer.size_bytes;
  if (kept_bytes_ + size_bytes > kMaxKeptBytes) return destroy(block);
  kept_[{device_key(block->buffer.place), size_bytes}].push_back(block);
  kept_bytes_ += size_bytes;
}

void ReceiveBufferPool::destroy(Block* block) {
  // The result is ignored: deallocate fails only if the device has failed, which later operations report.
  static_cast<void>(scheduler_.memory().deallocate(block->buffer));
  delete block;
}

bool ReceiveBufferPool::trim() {
  bool any = kept_bytes_ > 0;
  for (auto& [key, blocks] : kept_) {
    for (Block* block : blocks) destroy(block);
  }
  kept_.clear();
  kept_bytes_ = 0;
  return any;
}

}  // namespace weft::runtime
