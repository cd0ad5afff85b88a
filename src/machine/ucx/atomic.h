// Operands and results of atomics under way: UCX reads and writes them until the operation completes.
//
// Threads: the PE's thread. Records are pooled.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "weft/base/completion.h"

#include "machine/machine.h"

namespace weft::machine::ucx {

class AtomicPool;

struct PendingAtomic : base::Completion {
  base::Completion* user = nullptr;
  std::uint64_t* result = nullptr;
  // As UCX wants them: `reply` holds the new value of a compare-and-swap and receives the old value.
  std::uint64_t operand = 0;
  std::uint64_t reply = 0;
  AtomicPool* pool = nullptr;
};

class AtomicPool {
 public:
  AtomicPool() = default;
  AtomicPool(const AtomicPool&) = delete;
  AtomicPool& operator=(const AtomicPool&) = delete;

  PendingAtomic* acquire(base::Completion* user, std::uint64_t* result);
  // Ends one whose operation is over, without calling the user's completion.
  void release(PendingAtomic* pending, bool succeeded);

 private:
  static void on_complete(base::Completion* self, base::Status status, std::size_t size_bytes);

  std::vector<std::unique_ptr<PendingAtomic>> all_;
  std::vector<PendingAtomic*> free_;
};

ucp_atomic_op_t ucx_operation(AtomicOperation operation);

}  // namespace weft::machine::ucx
