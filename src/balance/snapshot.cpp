#include "weft/balance/snapshot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/format.h"

namespace weft::balance {
namespace {

using base::Status;
using base::StatusCode;

template <class... Values>
Status invalid(fmt::format_string<Values...> text, Values&&... values) {
  return {StatusCode::kInvalidArgument, base::format(text, std::forward<Values>(values)...)};
}

// NaN is in no range.
bool is_load(double value) { return value >= 0 && value <= kMaxLoadS; }

// Adds, unless the sum needs more than 64 bits.
bool add(std::uint64_t& sum, std::uint64_t value) {
  if (value > std::numeric_limits<std::uint64_t>::max() - sum) return false;
  sum += value;
  return true;
}

Status check_pes(const Snapshot& snapshot) {
  if (snapshot.num_pes < 1 || snapshot.num_pes > kMaxPes) {
    return invalid("a load snapshot has {} PEs; expected 1 to {}", snapshot.num_pes, kMaxPes);
  }
  const auto num_pes = static_cast<std::size_t>(snapshot.num_pes);
  if (snapshot.background_load_s.size() != num_pes) {
    return invalid("a load snapshot has {} background loads for {} PEs; expected one for each PE",
                   snapshot.background_load_s.size(), num_pes);
  }
  if (!snapshot.pe_speed.empty() && snapshot.pe_speed.size() != num_pes) {
    return invalid("a load snapshot has {} speeds for {} PEs; expected one for each PE, or none",
                   snapshot.pe_speed.size(), num_pes);
  }
  for (int pe = 0; pe < snapshot.num_pes; ++pe) {
    if (Status status = check_pe(snapshot, pe); !status.ok()) return status;
  }
  return {};
}

// A second object of the same name would be moved twice.
Status check_names(const std::vector<ObjectLoad>& objects) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> names;
  names.reserve(objects.size());
  for (const ObjectLoad& object : objects) names.emplace_back(object.collection, object.index);
  // Collectors list objects in order, more often than not.
  if (!std::is_sorted(names.begin(), names.end())) std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return invalid("object {} of collection {} is in the load snapshot twice; expected each object once",
                 twice->second, twice->first);
}

Status check_objects(const Snapshot& snapshot) {
  if (snapshot.objects.size() > kMaxObjects) {
    return invalid("a load snapshot has {} objects; expected at most {}", snapshot.objects.size(),
                   kMaxObjects);
  }
  std::uint64_t size_sum = 0;
  for (const ObjectLoad& object : snapshot.objects) {
    if (Status status = check_object(snapshot, object); !status.ok()) return status;
    if (!add(size_sum, object.size_bytes)) {
      return invalid("the sizes up to object {} of collection {} add up to more than 2^64 bytes",
                     object.index, object.collection);
    }
  }
  return check_names(snapshot.objects);
}

Status check_edges(const Snapshot& snapshot) {
  std::uint64_t messages_sum = 0;
  std::uint64_t bytes_sum = 0;
  for (std::size_t i = 0; i < snapshot.edges.size(); ++i) {
    const CommunicationEdge& edge = snapshot.edges[i];
    if (Status status = check_edge(snapshot, edge); !status.ok()) return status;
    if (!add(messages_sum, edge.messages) || !add(bytes_sum, edge.bytes)) {
      return invalid("the communication edges up to number {} add up to more than 2^64 bytes or messages", i);
    }
  }
  if (bytes_sum > kMaxEdgeBytes) {
    return invalid("the communication edges add up to {} bytes; expected at most 2^62", bytes_sum);
  }
  return {};
}

}  // namespace

Status check_pe(const Snapshot& snapshot, int pe) {
  const double background_s = snapshot.background_load_s[static_cast<std::size_t>(pe)];
  if (!is_load(background_s)) {
    return invalid("the background load of PE {} is {} s; expected 0 to {} s", pe, background_s, kMaxLoadS);
  }
  const double speed = snapshot.speed(pe);
  if (!(speed >= kMinSpeed && speed <= kMaxSpeed)) {
    return invalid("the speed of PE {} is {}; expected {} to {}", pe, speed, kMinSpeed, kMaxSpeed);
  }
  return {};
}

Status check_object(const Snapshot& snapshot, const ObjectLoad& object) {
  if (object.pe < 0 || object.pe >= snapshot.num_pes) {
    return invalid("object {} of collection {} is on PE {}; expected 0 to {}", object.index,
                   object.collection, object.pe, snapshot.num_pes - 1);
  }
  if (!is_load(object.load_s)) {
    return invalid("the load of object {} of collection {} is {} s; expected 0 to {} s", object.index,
                   object.collection, object.load_s, kMaxLoadS);
  }
  return {};
}

Status check_edge(const Snapshot& snapshot, const CommunicationEdge& edge) {
  if (std::max(edge.from, edge.to) < snapshot.objects.size()) return {};
  return invalid("a communication edge goes from object {} to object {}; the snapshot has {} objects",
                 edge.from, edge.to, snapshot.objects.size());
}

Status check(const Snapshot& snapshot) {
  if (Status status = check_pes(snapshot); !status.ok()) return status;
  if (Status status = check_objects(snapshot); !status.ok()) return status;
  return check_edges(snapshot);
}

Status check(const Snapshot& snapshot, const Placement& placement) {
  if (placement.size() != snapshot.objects.size()) {
    return invalid("a placement names {} PEs for {} objects; expected one for each object", placement.size(),
                   snapshot.objects.size());
  }
  for (std::size_t i = 0; i < placement.size(); ++i) {
    const ObjectLoad& object = snapshot.objects[i];
    if (placement[i] < 0 || placement[i] >= snapshot.num_pes) {
      return invalid("a placement puts object {} of collection {} on PE {}; expected 0 to {}", object.index,
                     object.collection, placement[i], snapshot.num_pes - 1);
    }
    if (!object.can_move && placement[i] != object.pe) {
      return invalid("a placement moves object {} of collection {} from PE {} to PE {}, and it cannot move",
                     object.index, object.collection, object.pe, placement[i]);
    }
  }
  return {};
}

Placement present_placement(const Snapshot& snapshot) {
  Placement placement;
  placement.reserve(snapshot.objects.size());
  for (const ObjectLoad& object : snapshot.objects) placement.push_back(object.pe);
  return placement;
}

}  // namespace weft::balance
