#include "job/trace/ticks.h"

#include <fstream>
#include <string>

namespace weft::job {

namespace {

// Linux offers the counter as a clock only if it runs at one rate, and alike on all cores.
bool is_counter_offered() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/available_clocksource");
  std::string name;
  while (file >> name) {
    if (name == "tsc") return true;
  }
  return false;
}

}  // namespace

TickClock::Instant TickClock::now() const {
  // The readings that nothing has interrupted are the closest ones.
  constexpr int kReadings = 16;
  Instant best;
  std::uint64_t shortest = ~std::uint64_t{0};
  for (int i = 0; i < kReadings; ++i) {
    const std::uint64_t before = read();
    const std::int64_t time_ns = steady_ns();
    const std::uint64_t between = read() - before;
    if (between >= shortest) continue;
    shortest = between;
    best = {before + between / 2, time_ns};
  }
  return best;
}

TickClock::TickClock() : is_counter_steady_(is_counter_offered()), start_(now()) {}

std::int64_t TickClock::time_ns(std::uint64_t ticks_since_start) const {
  const std::uint64_t num_ticks = stop_.ticks - start_.ticks;
  if (num_ticks == 0) return start_.time_ns;
  const double ns_per_tick =
      static_cast<double>(stop_.time_ns - start_.time_ns) / static_cast<double>(num_ticks);
  return start_.time_ns + static_cast<std::int64_t>(static_cast<double>(ticks_since_start - 1) * ns_per_tick);
}

}  // namespace weft::job
