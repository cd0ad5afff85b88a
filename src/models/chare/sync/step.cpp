#include "models/chare/sync/step.h"

#include <utility>

#include "base/format.h"

namespace weft::chare {

using base::Status;

SyncStep::SyncStep(std::uint64_t collection, std::uint64_t size, int num_pes)
    : Decision(num_pes), is_reported_(size) {
  snapshot_.num_pes = num_pes;
  snapshot_.background_load_s.assign(static_cast<std::size_t>(num_pes), 0.0);
  snapshot_.objects.resize(size);
  device_loads_s_.resize(size);
  for (balance::ObjectLoad& object : snapshot_.objects) object.collection = collection;
}

Status SyncStep::add(int pe, std::span<const ReportedLoad> loads) {
  for (const ReportedLoad& load : loads) {
    if (load.index >= is_reported_.size()) {
      return invalid(base::format("it reports element {} of {}", load.index, is_reported_.size()));
    }
    if (is_reported_[load.index]) {
      return invalid(base::format("it reports element {}, which has been reported before", load.index));
    }
    if (load.can_move > 1) {
      return invalid(base::format("it reports element {} with a flag of {}", load.index, load.can_move));
    }
    // In the order of indices: the decision does not depend on the order of the reports.
    balance::ObjectLoad& object = snapshot_.objects[load.index];
    object.index = load.index;
    object.pe = pe;
    object.load_s = load.load_s;
    object.can_move = load.can_move != 0;
    device_loads_s_[load.index] = load.device_load_s;
    if (Status status = balance::check_object(snapshot_, object); !status.ok()) return status;
    if (Status status = check_device_load(load.index, load.device_load_s); !status.ok()) return status;
    is_reported_[load.index] = true;
    ++num_reported_;
  }
  return {};
}

Status SyncStep::add_messages(std::span<const ReportedLoad> loads,
                              std::span<const ReportedMessages> messages) {
  return read_messages(
      loads, messages, is_reported_.size(), sent_bytes_, [this](std::uint64_t sender, const SentTo& to) {
        snapshot_.edges.push_back({static_cast<std::uint32_t>(sender), static_cast<std::uint32_t>(to.index),
                                   to.messages, to.bytes});
      });
}

// All edges of one sender are from one report, in the order of receivers.
void SyncStep::sort_edges() {
  std::vector<std::size_t> next(is_reported_.size() + 1);
  for (const balance::CommunicationEdge& edge : snapshot_.edges) ++next[edge.from + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<balance::CommunicationEdge> sorted(snapshot_.edges.size());
  for (const balance::CommunicationEdge& edge : snapshot_.edges) sorted[next[edge.from]++] = edge;
  snapshot_.edges = std::move(sorted);
}

void SyncStep::set_background(std::span<const double> background_s) {
  if (ignores_background_) return;
  snapshot_.background_load_s.assign(background_s.begin(), background_s.end());
}

base::Result<std::vector<PlanOfPe>> SyncStep::decide(balance::Strategy& strategy) {
  if (!snapshot_.edges.empty()) sort_edges();
  choose_loads(snapshot_, device_loads_s_);
  return Decision::decide(snapshot_, strategy);
}

}  // namespace weft::chare
