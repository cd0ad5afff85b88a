#include "rma/atomic/device_atomics.h"

#include <utility>

#include "weft/base/error.h"

#include "memory/memory.h"
#include "rma/copy/batch.h"

namespace weft::rma {

void DeviceAtomics::start(DeviceOperation operation) {
  waiting_.push_back(std::move(operation));
  if (!std::exchange(is_running_, true)) runtime_.spawn(run(), "atomic operations on device memory");
}

runtime::Task<> DeviceAtomics::run() {
  while (!waiting_.empty()) {
    const DeviceOperation operation = std::move(waiting_.front());
    waiting_.pop_front();
    base::Status status;
    std::uint64_t before = 0;
    try {
      runtime::Task<> done = carry_out(operation, before);
      co_await std::move(done);
    } catch (const base::Error& error) {
      status = base::Status(error.code(), error.what());
    }
    operation.ended(status, before);
  }
  is_running_ = false;
}

runtime::Task<> DeviceAtomics::carry_out(const DeviceOperation& operation, std::uint64_t& before) {
  std::uint64_t word =
      0;  // g++ 12 does not align an array of bytes in a coroutine's frame, also with alignas
  const memory::Buffer on_host{&word, operation.word.size_bytes, {}, nullptr};
  Batch get(runtime_);
  get.start([&](base::Completion* completion) {
    return runtime_.memory().copy(on_host, operation.word, completion);
  });
  co_await get;
  base::check(get.status());
  const std::uint64_t read = word;
  before = apply_atomic(operation.kind, operation.type, reinterpret_cast<std::byte*>(&word),
                        operation.operand, operation.compare);
  if (operation.kind == AtomicKind::kStore) before = 0;
  // A word that does not change is not written: a put may have come meanwhile.
  const bool changes = operation.kind == AtomicKind::kStore || word != read;
  if (operation.kind == AtomicKind::kLoad || !changes) co_return;
  Batch put(runtime_);
  put.start([&](base::Completion* completion) {
    return runtime_.memory().copy(operation.word, on_host, completion);
  });
  co_await put;
  base::check(put.status());
}

}  // namespace weft::rma
