#include "models/chare/periodic/round.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/format.h"

namespace weft::chare {

using base::Status;

Round::Round(std::uint64_t collection, std::uint64_t size, int num_pes)
    : Decision(num_pes),
      collection_(collection),
      size_(size),
      is_reported_(static_cast<std::size_t>(num_pes)) {
  snapshot_.num_pes = num_pes;
  snapshot_.background_load_s.assign(static_cast<std::size_t>(num_pes), 0.0);
}

Status Round::add(int pe, double background_s, std::uint64_t has_set_loads,
                  std::span<const PeriodicLoad> loads, std::span<const ReportedMessages> messages) {
  const auto which = static_cast<std::size_t>(pe);
  if (is_reported_[which]) return invalid("it has reported before in this round");
  if (!(background_s >= 0 && background_s <= balance::kMaxLoadS)) {
    return invalid(base::format("a background load of {} s", background_s));
  }
  if (has_set_loads > 1) return invalid(base::format("loads with a flag of {}", has_set_loads));
  for (const PeriodicLoad& load : loads) {
    if (load.index >= size_) return invalid(base::format("it reports element {} of {}", load.index, size_));
    if (load.can_move > 1) {
      return invalid(base::format("it reports element {} with a flag of {}", load.index, load.can_move));
    }
    Reported one;
    one.object.collection = collection_;
    one.object.index = load.index;
    one.object.pe = pe;
    one.object.load_s = load.load_s;
    one.object.can_move = load.can_move != 0;
    one.num_moves = load.num_moves;
    one.device_load_s = load.device_load_s;
    if (Status status = balance::check_object(snapshot_, one.object); !status.ok()) return status;
    if (Status status = check_device_load(load.index, load.device_load_s); !status.ok()) return status;
    reported_.push_back(one);
  }
  Status read = read_messages(loads, messages, size_, sent_bytes_,
                              [this](std::uint64_t from, const SentTo& to) { sent_.push_back({from, to}); });
  if (!read.ok()) return read;
  is_reported_[which] = true;
  ++num_reports_;
  ignores_background_ = ignores_background_ || has_set_loads == 1;
  snapshot_.background_load_s[which] = background_s;
  return {};
}

void Round::make_edges() {
  const auto position = [this](std::uint64_t index) -> std::optional<std::uint32_t> {
    const auto found = std::ranges::lower_bound(snapshot_.objects, index, {}, &balance::ObjectLoad::index);
    if (found == snapshot_.objects.end() || found->index != index) return std::nullopt;
    return static_cast<std::uint32_t>(found - snapshot_.objects.begin());
  };
  const auto ends = [](const Sent& one) { return std::pair(one.from, one.to.index); };
  std::ranges::sort(sent_, {}, ends);
  for (std::size_t i = 0; i < sent_.size(); ++i) {
    const auto from = position(sent_[i].from);
    const auto to = position(sent_[i].to.index);
    if (!from || !to) continue;
    if (i > 0 && ends(sent_[i]) == ends(sent_[i - 1])) {  // two PEs have reported the sender
      snapshot_.edges.back().messages += sent_[i].to.messages;
      snapshot_.edges.back().bytes += sent_[i].to.bytes;
    } else {
      snapshot_.edges.push_back({*from, *to, sent_[i].to.messages, sent_[i].to.bytes});
    }
  }
  sent_.clear();
}

base::Result<std::vector<PlanOfPe>> Round::decide(balance::Strategy& strategy) {
  if (ignores_background_) std::ranges::fill(snapshot_.background_load_s, 0.0);
  // In the order of indices: the decision does not depend on the order of the reports.
  std::ranges::sort(reported_, {}, [](const Reported& one) {
    return std::tuple(one.object.index, one.num_moves, one.object.pe);
  });
  std::vector<double> device_loads_s;
  for (const Reported& one : reported_) {
    if (snapshot_.objects.empty() || snapshot_.objects.back().index != one.object.index) {
      snapshot_.objects.push_back(one.object);
      device_loads_s.push_back(one.device_load_s);
      continue;
    }
    balance::ObjectLoad& known = snapshot_.objects.back();
    const double sum_s = std::min(known.load_s + one.object.load_s, balance::kMaxLoadS);
    known = one.object;
    known.load_s = sum_s;
    device_loads_s.back() = std::min(device_loads_s.back() + one.device_load_s, balance::kMaxLoadS);
  }
  reported_.clear();
  choose_loads(snapshot_, device_loads_s);
  make_edges();
  // No element is there, or all are under way: a strategy of the program need not know that case.
  if (snapshot_.objects.empty()) return std::vector<PlanOfPe>(is_reported_.size());
  return Decision::decide(snapshot_, strategy);
}

}  // namespace weft::chare
