// Contexts: the numbers that keep the messages of communicators, and of their uses, apart.
#pragma once

#include <cstdint>

namespace weft::mpi {

// A context is the number of its communicator, and behind it that many bits for its use.
inline constexpr int kContextUseBits = 3;

// The numbers of predefined communicators. A process gives others a number above 2^32, see PointToPoint::new_context_base().
// kEndContext: all ranks at the end of MPI. No program has it.
enum PredefinedContext : std::uint64_t { kWorldContext = 1, kSelfContext = 2, kEndContext = 3 };

// Each communicator has these contexts, so that its messages do not meet those of its collectives.
enum class ContextUse : std::uint64_t {
  kMessages = 0,
  kCollectives = 1,
  kGroupCreation = 2,  // with the program's tags: MPI_Comm_create_group, MPI_Intercomm_create
  kLeaders = 3,        // of collectives in which members on one PE work together, see leaders_context_id()
  kPartitioned = 4,    // with the program's tags: the ends of partitioned messages find each other
};
inline std::uint64_t context_of(std::uint64_t base, ContextUse use) {
  return base << kContextUseBits | static_cast<std::uint64_t>(use);
}
inline std::uint64_t base_of_context(std::uint64_t context) { return context >> kContextUseBits; }
inline ContextUse use_of_context(std::uint64_t context) {
  return static_cast<ContextUse>(context & ((std::uint64_t{1} << kContextUseBits) - 1));
}

}  // namespace weft::mpi
