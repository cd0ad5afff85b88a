#include "models/mpi/losses/troubles.h"

#include "weft/mpi/mpi-ext.h"
#include "weft/mpi/mpi.h"

#include "models/mpi/objects/contexts.h"

namespace weft::mpi {

bool Troubles::lose(int rank) {
  if (is_lost(rank)) return false;
  const auto at = static_cast<std::size_t>(rank);
  if (at >= is_lost_.size()) is_lost_.resize(at + 1);
  is_lost_[at] = true;
  lost_.push_back(rank);
  any_ = true;
  return true;
}

const Troubles::Record* Troubles::find(std::uint64_t base) const {
  const auto found = records_.find(base);
  return found == records_.end() ? nullptr : &found->second;
}

int Troubles::fate_of_collectives(std::uint64_t base) const {
  const Record* const found = find(base);
  if (found == nullptr) return MPI_SUCCESS;
  if (found->is_revoked) return MPIX_ERR_REVOKED;
  return found->lost.empty() ? MPI_SUCCESS : MPIX_ERR_PROC_FAILED;
}

namespace {

bool is_of_collectives(std::uint64_t context) {
  const ContextUse use = use_of_context(context);
  return use == ContextUse::kCollectives || use == ContextUse::kLeaders;
}

}  // namespace

int Troubles::fate_of_send(std::uint64_t context, int rank) const {
  if (is_revoked(base_of_context(context))) return MPIX_ERR_REVOKED;
  if (is_lost(rank)) return MPIX_ERR_PROC_FAILED;
  return is_of_collectives(context) ? fate_of_collectives(base_of_context(context)) : MPI_SUCCESS;
}

int Troubles::fate_of_receive(std::uint64_t context, int source, int from) const {
  if (from != kUnknown && is_lost(from) && !is_revoked(base_of_context(context))) return MPIX_ERR_PROC_FAILED;
  const Record* const found = find(base_of_context(context));
  if (found == nullptr) return MPI_SUCCESS;
  if (found->is_revoked) return MPIX_ERR_REVOKED;
  if (is_of_collectives(context)) return fate_of_collectives(base_of_context(context));
  if (source == kUnknown) return found->has_unacknowledged() ? MPIX_ERR_PROC_FAILED_PENDING : MPI_SUCCESS;
  const bool has_source = found->peers != nullptr && static_cast<std::size_t>(source) < found->peers->size();
  return has_source && is_lost((*found->peers)[static_cast<std::size_t>(source)]) ? MPIX_ERR_PROC_FAILED
                                                                                  : MPI_SUCCESS;
}

bool Troubles::drops(std::uint64_t context) const {
  if (is_of_collectives(context)) return fate_of_collectives(base_of_context(context)) != MPI_SUCCESS;
  return is_revoked(base_of_context(context));
}

}  // namespace weft::mpi
