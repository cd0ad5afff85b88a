#include "models/mpi/objects/object.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#include "models/mpi/objects/attributes.h"
#include "models/mpi/virtual_ranks/rank_memory.h"
#include "models/mpi/virtual_ranks/running_code.h"
#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

namespace {

// Before each object: allocators write into the first bytes of a block that is freed, and the kind of a freed object must stay.
constexpr std::size_t kBytesBefore = 32;

// Both out of line and noexcept: requests of a rank that has a process for itself come and go in few instructions.
[[gnu::cold, gnu::noinline]] void add_to(VirtualRank& maker, Object& object) noexcept {
  maker.count_object(object.kind(), 1);
  if (!RankObjects::can_move(object.kind()) || maker.objects() == nullptr || !RunningCode::is_pe_thread())
    return;
  try {
    maker.objects()->add(object);
  } catch (const std::bad_alloc&) {
    return;  // an object that is counted and not known is an obstacle to moves
  }
}
[[gnu::cold, gnu::noinline]] void remove_from(VirtualRank& maker, Object& object) noexcept {
  maker.count_object(object.kind(), -1);
  if (RankObjects::can_move(object.kind()) && maker.objects() != nullptr) maker.objects()->remove(object);
}

}  // namespace

void* Object::operator new(std::size_t size_bytes) {
  const std::size_t block_bytes = kBytesBefore + size_bytes;
  const bool is_in_rank = VirtualRank::current() != nullptr && RunningCode::is_pe_thread();
  void* const block = is_in_rank ? allocate_in_rank(block_bytes) : std::malloc(block_bytes);
  if (block == nullptr) throw std::bad_alloc();
  return static_cast<std::byte*>(block) + kBytesBefore;
}

void Object::operator delete(void* place) noexcept {
  if (place != nullptr) std::free(static_cast<std::byte*>(place) - kBytesBefore);
}

Object::Object(ObjectKind kind) : kind_(kind), maker_(VirtualRank::current()) {
  if (maker_ != nullptr) [[unlikely]]
    add_to(*maker_, *this);
}

// A handle that the program uses after it has freed the object is found out while its memory is not in use again. Volatile: a plain
// store into an object that ends would be left out.
Object::~Object() {
  if (maker_ != nullptr) [[unlikely]]
    remove_from(*maker_, *this);
  *const_cast<volatile ObjectKind*>(&kind_) = ObjectKind::kFreed;
}

Attributes& Object::attributes() {
  if (attributes_ == nullptr) attributes_ = std::make_unique<Attributes>();
  return *attributes_;
}

void Object::drop_attributes() { attributes_ = nullptr; }

}  // namespace weft::mpi
