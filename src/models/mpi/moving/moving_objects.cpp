#include "models/mpi/moving/moving_objects.h"

#include <cstddef>
#include <cstdlib>
#include <new>
#include <ranges>
#include <string>
#include <vector>

#include "weft/base/pup.h"

#include "base/format.h"
#include "models/mpi/moving/describing.h"
#include "models/mpi/moving/restoring.h"
#include "models/mpi/process.h"
#include "models/mpi/virtual_ranks/rank_memory.h"

namespace weft::mpi {

namespace {

// All that have handles of their own. The predefined communicators are of the process.
std::vector<Object*> objects_to_move(const VirtualRank& rank) {
  std::vector<Object*> objects = rank.objects()->in_order();
  const Rank& state = rank.state();
  std::erase_if(objects, [&](const Object* object) { return object == state.world || object == state.self; });
  return objects;
}

// Ends communicators first, because they refer to error handlers. The reference that each object gets here keeps it until its turn.
void end_objects(Rank& rank, const std::vector<Object*>& objects) {
  for (Object* const object : objects) object->acquire();
  for (ErrorScope* const scope : {rank.world, rank.self, rank.no_file.get()}) {
    scope->set_error_handler(rank.errors_are_fatal);
    scope->drop_attributes();
  }
  rank.fortran = {};
  rank.types.for_each_changed([](Datatype& type) { type.drop_attributes(); });
  rank.types.forget_requested();
  std::vector<Object*> referred;
  for (Object* const object : std::views::reverse(objects)) {
    if (object->kind() == ObjectKind::kCommunicator) {
      object->end_in_place();
    } else {
      referred.push_back(object);
    }
  }
  // The last one that was made comes first: a datatype refers to earlier ones.
  for (Object* const object : referred) object->end_in_place();
}

// Those too that another thread has made, which lie in memory of the process.
std::size_t num_movable(const VirtualRank& rank) {
  std::size_t count = 0;
  for (std::size_t number = 0; number < kNumObjectKinds; ++number) {
    const auto kind = static_cast<ObjectKind>(number);
    if (RankObjects::can_move(kind)) count += static_cast<std::size_t>(rank.num_objects(kind));
  }
  return count;
}

base::Status immovable(std::string why) { return {base::StatusCode::kUnsupported, std::move(why)}; }

base::Status obstacle_of_communicator(const Communicator& communicator) {
  const std::string name = communicator.name().empty() ? "a communicator" : communicator.name();
  if (communicator.buffer_space.is_attached())
    return immovable(base::format("{} has a buffer of MPI_Comm_attach_buffer; detach it before", name));
  if (communicator.stream != nullptr)
    return immovable(
        base::format("{} names a stream of a device (weft_stream); set the hint to 0 before", name));
  return {};
}

}  // namespace

base::Status obstacle_of_objects(const VirtualRank& rank) {
  if (rank.state().tools.num_users > 0)
    return immovable("a tool uses the interface MPI_T; call MPI_T_finalize before");
  const std::vector<Object*> objects = rank.objects()->in_order();
  if (objects.size() != num_movable(rank))
    return immovable(
        "a thread other than its own has made objects of MPI, or memory was full; free them before");
  for (Object* const object : objects) {
    if (object->kind() != ObjectKind::kCommunicator) continue;
    if (base::Status status = obstacle_of_communicator(static_cast<Communicator&>(*object)); !status.ok())
      return status;
  }
  return {};
}

PackedObjects pack_objects(const VirtualRank& rank) {
  const std::vector<Object*> objects = objects_to_move(rank);
  RankDescription all = describe(rank.state(), objects);
  PackedObjects packed{.size_bytes = base::packed_size(all)};
  packed.bytes = allocate_in_rank(packed.size_bytes);
  if (packed.bytes == nullptr) throw std::bad_alloc();
  base::Pup p = base::Pup::packer(packed.bytes, packed.size_bytes);
  p | all;
  end_objects(rank.state(), objects);
  return packed;
}

void unpack_objects(const VirtualRank& rank, const PackedObjects& packed) {
  const auto all =
      base::unpack<RankDescription>({static_cast<const std::byte*>(packed.bytes), packed.size_bytes});
  std::free(packed.bytes);
  restore(rank.state(), all);
}

}  // namespace weft::mpi
