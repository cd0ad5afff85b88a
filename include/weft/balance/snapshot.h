// The input of a load-balancing strategy: the objects of a job, their loads, and who talks to whom.
//
// Units. ObjectLoad::load_s is the time in seconds that an object takes on a PE of speed 1. On a PE of speed s it takes
// load_s / s. A collector that measured a time on a PE of speed s therefore stores time * s. Background load is the time
// itself, as measured on its PE, because it never leaves that PE.
//
// Threads: any; these are plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/status.h"

namespace weft::balance {

struct ObjectLoad {
  // The name of the object. Strategies do not look at it; no two objects of a snapshot have the same one.
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
  // Where the object is now.
  int pe = 0;
  double load_s = 0;
  // The bytes that a move would send; 0 if they are not known.
  std::uint64_t size_bytes = 0;
  bool can_move = true;
};

// The messages that one object has sent to another one. The ends are positions in Snapshot::objects. Strategies treat both directions
// alike. Several edges between the same objects add up.
struct CommunicationEdge {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

struct Snapshot {
  int num_pes = 0;
  // One number for each PE: the load that cannot move, besides objects.
  std::vector<double> background_load_s;
  // One number for each PE, or empty: all PEs have speed 1.
  std::vector<double> pe_speed;
  std::vector<ObjectLoad> objects;
  std::vector<CommunicationEdge> edges;

  double speed(int pe) const { return pe_speed.empty() ? 1.0 : pe_speed[static_cast<std::size_t>(pe)]; }
};

// The PE of each object, in the order of Snapshot::objects.
using Placement = std::vector<int>;

// The limits of a valid snapshot. They keep every sum of loads finite and every sum of bytes within 64 bits.
inline constexpr int kMaxPes = 1 << 24;
inline constexpr std::size_t kMaxObjects = std::size_t{1} << 31;
inline constexpr double kMaxLoadS = 1e12;
// The most bytes of all edges together: strategies count a byte at both of its ends, and with a sign.
inline constexpr std::uint64_t kMaxEdgeBytes = ~std::uint64_t{0} / 4;
inline constexpr double kMinSpeed = 1e-6;
inline constexpr double kMaxSpeed = 1e6;

// Whether a snapshot may be given to a strategy. The numbers come from peers or from a file, so each one is checked.
// kInvalidArgument names the first number that is wrong and its limits.
base::Status check(const Snapshot& snapshot);

// The parts of it that concern one line of a load file. REQUIRES: the numbers of PEs, of background loads and of speeds agree.
base::Status check_pe(const Snapshot& snapshot, int pe);
base::Status check_object(const Snapshot& snapshot, const ObjectLoad& object);
base::Status check_edge(const Snapshot& snapshot, const CommunicationEdge& edge);

// Whether a placement fits a valid snapshot: one PE for each object, each PE exists, and objects that cannot move stay.
base::Status check(const Snapshot& snapshot, const Placement& placement);

Placement present_placement(const Snapshot& snapshot);

}  // namespace weft::balance
