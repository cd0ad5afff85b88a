// The page in which a PE says what it does, for readers in other processes of its user: `weft top` and `weft run --metrics`.
//
// It is a shared file without a name ("/memfd:weft-status"): a reader finds it among the descriptors of the user's processes in /proc, so
// it needs no folder, and goes with its process. Readers only read, and treat what they find as claims. python/weft/_top/pages.py reads
// it and knows the same layout, in which each change raises kStatusVersion.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weft::job {

inline constexpr std::array<char, 8> kStatusMagic = {'w', 'e', 'f', 't', '-', 'p', 'e', '\0'};
inline constexpr std::uint32_t kStatusVersion = 1;
inline constexpr std::size_t kMostStatusRows = 64;
// A longer queue is counted up to here.
inline constexpr std::size_t kMostQueued = 4096;

struct StatusPage {
  // What was moved so far in one way, as `weft run --stats` counts it. Texts end with a zero.
  struct Row {
    std::array<char, 20> type;
    std::array<char, 16> path;
    std::array<char, 12> kind;
    std::uint64_t messages;
    std::uint64_t bytes;
  };

  // --- Constant
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t size_bytes;
  std::int32_t pid;  // in the PID namespace of the PE
  std::int32_t pe;
  std::int32_t num_pes;
  std::int32_t launcher_pid;  // 0: unknown
  std::array<char, 128> job;  // equal for the PEs of a job on this host, and for no others
  std::int64_t began_ns;

  // --- Valid if `sequence` is even, and the same before and after it is read. Times are of CLOCK_MONOTONIC.
  std::atomic<std::uint64_t> sequence;
  std::int64_t now_ns;  // of the three times that follow
  std::int64_t idle_ns;
  std::int64_t idle_since_ns;  // 0: not idle; otherwise idle_ns is the time until then
  std::int64_t communication_ns;
  std::int64_t published_ns;  // of the values that follow
  std::uint64_t sent;         // calls and messages, as quiescence counts them
  std::uint64_t handled;
  std::uint64_t queued;  // at most kMostQueued
  std::uint64_t pool_bytes;
  std::uint64_t num_steps;  // of load balancing
  std::uint64_t step_load_ns;
  std::uint64_t num_rows;
  std::array<Row, kMostStatusRows> rows;
};
static_assert(std::is_standard_layout_v<StatusPage>, "Python reads it by offsets");
static_assert(sizeof(StatusPage::Row) == 64 && offsetof(StatusPage, sequence) == 168 &&
              offsetof(StatusPage, rows) == 272 && sizeof(StatusPage) == 4368);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace weft::job
