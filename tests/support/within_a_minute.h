// Waits for what another thread or the system brings. No number of turns ends the wait: any number may pass before that gets its core.
#pragma once

#include <chrono>

namespace weft::testing {

// Takes turns until `condition` holds. False if it does not within a minute.
bool within_a_minute(const auto& condition, const auto& turn) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  do {
    for (int i = 0; i < 1000; ++i) {
      if (condition()) return true;
      turn();
    }
  } while (std::chrono::steady_clock::now() < end);
  return condition();
}

}  // namespace weft::testing
