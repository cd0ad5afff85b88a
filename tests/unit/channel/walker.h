// An element that moves and exchanges numbered messages with others, for the tests of channels of elements that move. The
// size, the memory and the bytes of a message follow from its channel and number.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/channel/channels.h"
#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"

namespace weft::channel {

struct Walker : Chare<Walker> {
  struct Line {
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
    std::uint32_t num_sizes = 8;
  };
  using Name = std::pair<int, int>;  // peer and id

  Walker() = default;
  explicit Walker(Moved) {}
  void pup(Pup& p) { p | lines | kept | num_sizes | over | resumed; }
  void resume_from_sync() override {
    ++resumed;
    contribute(1, Reducer::kSum, target_of(over));
  }

  // Up to that many sizes: messages of host memory that are copied, and never wait for their receives.
  static constexpr std::uint32_t kNumSmallSizes = 3;
  static std::size_t size_of(std::uint32_t number, std::uint32_t num_sizes) {
    static constexpr std::array<std::size_t, 8> kSizes{8, 100, 4096, 4097, 20'000, 65'536, 70'000, 300'000};
    return kSizes[(number * 5 + number / 8) % num_sizes];
  }
  memory::Place place_of(std::uint32_t number, bool is_sender) const {
    if (num_sizes <= kNumSmallSizes) return {};
    const bool is_device = (is_sender ? number / 3 : number / 5) % 2 == 1;
    return is_device ? memory::Place{memory::Kind::kEmulated, 0} : memory::Place{};
  }
  static std::uint8_t first_byte(int from, int to, int id, std::uint32_t number) {
    return static_cast<std::uint8_t>(from * 41 + to * 17 + id * 7 + static_cast<int>(number % 1000) * 3);
  }
  std::shared_ptr<testing::TestMemory> message(int from, int to, int id, std::uint32_t number,
                                               bool is_sender) {
    return std::make_shared<testing::TestMemory>(runtime().memory(), place_of(number, is_sender),
                                                 size_of(number, num_sizes),
                                                 first_byte(from, to, id, number));
  }
  int here() const { return static_cast<int>(linear_index()); }
  Channel to(int peer, int id) { return Channel(*this, proxy()[peer], static_cast<std::uint32_t>(id)); }

  // Sends of which some end only when they are received.
  void send(int peer, int id, int count) {
    Channel channel = to(peer, id);
    for (int i = 0; i < count; ++i) {
      const auto sent = message(here(), peer, id, lines[{peer, id}].sent++, true);
      channel.send(sent->buffer()).then([sent](const Status& status, std::size_t) {
        EXPECT_TRUE(status.ok()) << status.to_string();
      });
    }
  }
  // Returns what was wrong.
  Task<std::string> receive(int peer, int id, int count) {
    Channel channel = to(peer, id);
    std::vector<std::shared_ptr<testing::TestMemory>> expected;
    std::vector<std::shared_ptr<testing::TestMemory>> got;
    std::vector<Operation> operations;
    for (int i = 0; i < count; ++i) {
      const std::uint32_t number = lines[{peer, id}].received++;
      expected.push_back(message(peer, here(), id, number, false));
      got.push_back(std::make_shared<testing::TestMemory>(runtime().memory(), place_of(number, false),
                                                          size_of(number, num_sizes)));
      operations.push_back(channel.recv(got.back()->buffer()));
    }
    std::string wrong;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      co_await operations[i];
      if (got[i]->now() != expected[i]->filled()) {
        wrong += "message " + std::to_string(i) + " of " + std::to_string(peer) + " at " +
                 std::to_string(here()) + " is another; ";
      }
    }
    co_return wrong;
  }
  // A receive that is under way when the method has returned.
  void begin_receive(int peer, int id) {
    const std::uint32_t number = lines[{peer, id}].received++;
    const auto got = std::make_shared<testing::TestMemory>(runtime().memory(), place_of(number, false),
                                                           size_of(number, num_sizes));
    const auto expected = message(peer, here(), id, number, false);
    to(peer, id).recv(got->buffer()).then([got, expected](const Status& status, std::size_t) {
      EXPECT_TRUE(status.ok()) << status.to_string();
      EXPECT_EQ(got->now(), expected->filled());
    });
  }
  // To an element of another class.
  template <class T>
  void answer(chare::ElementProxy<T> peer, int id, int value) {
    Channel(*this, peer, static_cast<std::uint32_t>(id)).send(std::span(&value, 1)).detach();
  }
  void use_sizes(int count) { num_sizes = static_cast<std::uint32_t>(count); }
  void open(int peer, int id) { to(peer, id); }
  void keep(int peer, int id) { kept = to(peer, id); }
  // By the handle that travels with the state.
  std::string kept_name() { return kept.description(); }
  void go(int to_pe) { migrate(to_pe); }
  // Returns whether it may move.
  bool try_to_go(int to_pe) {
    if (num_suspended() != 0) return false;
    migrate(to_pe);
    return true;
  }
  int where_now() { return pe(); }
  int moves() { return static_cast<int>(num_moves()); }
  void sync(Future<int> target) {
    over = target;
    at_sync();
  }

  std::map<Name, Line> lines;
  Channel kept;
  std::uint32_t num_sizes = 8;
  Future<int> over;
  int resumed = 0;
};

// Until the element is on that PE.
inline Task<> arrive(Runtime& runtime, Array<Walker> walkers, int index, int pe) {
  for (;;) {
    const int at = co_await walkers[index].call<&Walker::where_now>();
    if (at == pe) co_return;
    co_await yield_now(runtime);
  }
}

}  // namespace weft::channel
