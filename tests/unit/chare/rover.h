// An array element that moves and logs what it has heard.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

namespace weft::chare {

// How many live on all PEs of the test's job.
inline int num_rovers = 0;

struct Rover : Chare<Rover> {
  explicit Rover(int cargo_size) : cargo(static_cast<std::size_t>(cargo_size)) {
    ++num_rovers;
    for (std::size_t i = 0; i < cargo.size(); ++i) cargo[i] = mark(i);
  }
  explicit Rover(Moved) { ++num_rovers; }
  ~Rover() override { --num_rovers; }
  void pup(Pup& p) { p | cargo | heard | shouts | arrivals; }
  void migrated() override { ++arrivals; }

  std::uint64_t mark(std::size_t i) const { return linear_index() * 1000003 + i; }
  bool cargo_is_whole() const {
    for (std::size_t i = 0; i < cargo.size(); ++i) {
      if (cargo[i] != mark(i)) return false;
    }
    return true;
  }

  void go(int to_pe) { migrate(to_pe); }
  int where_now() { return pe(); }
  int moves() { return static_cast<int>(num_moves()); }
  int arrived() { return arrivals; }
  void hear(int source, int number) { ++heard[{source, number}]; }
  void hear_all(int source, int number) { ++shouts[{source, number}]; }
  void give(int value, Future<int> sum) { contribute(value, Reducer::kSum, target_of(sum)); }
  void give_to_all(int value) { contribute(value, Reducer::kSum, proxy().target<&Rover::result>()); }
  void result(int value) { ++shouts[{-1, value}]; }
  std::string log() {
    std::string text = cargo_is_whole() ? "" : "damaged cargo;";
    for (const auto& [id, count] : heard) {
      if (count != 1) text += "heard " + std::to_string(count) + " times;";
    }
    for (const auto& [id, count] : shouts) {
      if (count != 1)
        text += "shout " + std::to_string(id.first) + "." + std::to_string(id.second) + " " +
                std::to_string(count) + " times;";
    }
    return text + std::to_string(heard.size()) + "," + std::to_string(shouts.size());
  }
  std::vector<int> heard_from(int source) {
    std::vector<int> numbers;
    for (const auto& [id, count] : heard) {
      if (id.first == source) numbers.push_back(id.second);
    }
    return numbers;
  }
  // Ends when `gate` is set.
  Task<int> wait(Future<int> gate, Future<> begun) {
    begun.set();
    co_return co_await gate;
  }
  Task<int> take_part(int value) { co_return co_await allreduce(value, Reducer::kSum); }

  std::vector<std::uint64_t> cargo;
  std::map<std::pair<int, int>, int> heard;
  std::map<std::pair<int, int>, int> shouts;
  int arrivals = 0;
};

}  // namespace weft::chare
