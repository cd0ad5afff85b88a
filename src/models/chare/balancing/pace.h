// Pace: how much of the loads that the program has set a PE works off in a second.
//
// A PE may be slower than others: its processor is shared with another virtual machine, has a lower frequency or smaller caches. Measured
// loads show that by themselves, because an element takes longer there. Loads that the program sets do not, so the PEs' speeds are found by
// comparing the loads with the times that they have taken. Threads: any; these are plain values.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>
#include <vector>

namespace weft::chare {

// Of the elements of one PE since their last reports. Travels as its bytes.
struct Pace {
  double load = 0;
  double time_s = 0;
  double spread = 0;  // the sum of time^2 / load

  // Of a load that tells anything; less would make `spread` infinite.
  static constexpr double kLeastLoad = 1e-12;

  // An element with that load has taken so long.
  void add(double one_load, double one_time_s) {
    if (!(one_load >= kLeastLoad)) return;
    load += one_load;
    time_s += one_time_s;
    spread += one_time_s * one_time_s / one_load;
  }
  void add(const Pace& other) {
    load += other.load;
    time_s += other.time_s;
    spread += other.spread;
  }
  // An element whose load is its time, or that of a device: nothing is told of this PE.
  void add_measured() { spread += 1e50; }
  // Whether a peer may have sent it.
  bool is_valid() const {
    constexpr double kMost = 1e60;
    return (load == 0 || load >= kLeastLoad) && load <= kMost && time_s >= 0 && time_s <= kMost &&
           spread >= 0 && spread <= kMost;
  }
  // Whether the loads stand for times: the relative standard deviation of time / load among elements, weighted by their loads, is at most
  // a quarter, and the times are long enough to be compared.
  bool tells() const {
    constexpr double kLeastTimeS = 1e-3;
    constexpr double kMostVariance = 0.25 * 0.25;
    return load > 0 && time_s >= kLeastTimeS && spread * load / (time_s * time_s) - 1 <= kMostVariance;
  }
};
static_assert(std::is_trivially_copyable_v<Pace> && sizeof(Pace) == 24);

// The speed of a PE beside that of all PEs together; 1 if either is not known. Loads may stand for something else than time, so it is at least
// a half, and at most 2.
inline double speed_of(const Pace& pe, const Pace& all) {
  constexpr double kMostSpeed = 2;
  if (!pe.tells() || !(all.load > 0 && all.time_s > 0)) return 1;
  return std::clamp(pe.load / pe.time_s * (all.time_s / all.load), 1 / kMostSpeed, kMostSpeed);
}

// What is known of all PEs together.
inline Pace total(std::span<const Pace> pes) {
  Pace all;
  for (const Pace& pe : pes)
    if (pe.tells()) all.add(pe);
  return all;
}

// Of each PE; empty: all have speed 1.
inline std::vector<double> speeds_of(std::span<const Pace> pes) {
  const Pace all = total(pes);
  if (!(all.load > 0)) return {};
  std::vector<double> speeds;
  for (const Pace& pe : pes) speeds.push_back(speed_of(pe, all));
  return speeds;
}

}  // namespace weft::chare
