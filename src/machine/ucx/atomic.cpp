#include "machine/ucx/atomic.h"

#include <utility>

namespace weft::machine::ucx {

PendingAtomic* AtomicPool::acquire(base::Completion* user, std::uint64_t* result) {
  if (free_.empty()) {
    all_.push_back(std::make_unique<PendingAtomic>());
    free_.push_back(all_.back().get());
  }
  PendingAtomic* pending = free_.back();
  free_.pop_back();
  pending->function = &AtomicPool::on_complete;
  pending->user = user;
  pending->result = result;
  pending->pool = this;
  return pending;
}

void AtomicPool::release(PendingAtomic* pending, bool succeeded) {
  if (succeeded && pending->result != nullptr) *pending->result = pending->reply;
  free_.push_back(pending);
}

void AtomicPool::on_complete(base::Completion* self, base::Status status, std::size_t) {
  auto* pending = static_cast<PendingAtomic*>(self);
  base::Completion* user = pending->user;
  pending->pool->release(pending, status.ok());
  user->function(user, std::move(status), sizeof(std::uint64_t));
}

ucp_atomic_op_t ucx_operation(AtomicOperation operation) {
  switch (operation) {
    case AtomicOperation::kAdd:
      return UCP_ATOMIC_OP_ADD;
    case AtomicOperation::kSwap:
      return UCP_ATOMIC_OP_SWAP;
    case AtomicOperation::kCompareSwap:
      return UCP_ATOMIC_OP_CSWAP;
    case AtomicOperation::kAnd:
      return UCP_ATOMIC_OP_AND;
    case AtomicOperation::kOr:
      return UCP_ATOMIC_OP_OR;
    case AtomicOperation::kXor:
      return UCP_ATOMIC_OP_XOR;
  }
  return UCP_ATOMIC_OP_ADD;
}

}  // namespace weft::machine::ucx
