// Two chares with a queued channel between them, on emulated devices of one PE or of two.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weft/channel/queued_channel.h"

#include "queued/link.h"
#include "tests/unit/rma/pgas_job.h"

namespace weft::channel {

inline constexpr memory::Place kEmulated0{memory::Kind::kEmulated, 0};
inline constexpr std::size_t kSmall = 16;                                   // packets
inline constexpr std::size_t kMedium = 3 * memory::kMessagePartBytes + 24;  // parts
inline constexpr std::size_t kLarge = queued::kMostKernelBytes + 24;        // by the copy engine

// One of two chares with an outgoing buffer, landings, and a stream.
struct Partner : Chare<Partner> {
  Partner() { all.at(static_cast<std::size_t>(index())) = this; }
  ~Partner() override {
    if (all.at(static_cast<std::size_t>(index())) == this)
      all.at(static_cast<std::size_t>(index())) = nullptr;
  }
  explicit Partner(Pup& p) : Partner() { pup(p); }
  void pup(Pup&) {}

  void prepare(std::size_t size_bytes, std::size_t num_landings) {
    memory::Memory& memory = runtime().memory();
    out = memory.allocate(size_bytes, kEmulated0).value();
    for (std::size_t i = 0; i < num_landings; ++i)
      landings.push_back(memory.allocate(size_bytes, kEmulated0).value());
    stream = kind().create_stream(0).value();
    channel = QueuedChannel(*this, proxy()[1 - index()], kEmulated0, landings);
  }
  memory::EmulatedBackend& kind() { return testing::emulated(runtime().memory()); }
  std::uint64_t& first_word(const memory::Buffer& buffer) {
    return *static_cast<std::uint64_t*>(kind().device_view(buffer.data, 8).value());
  }
  std::uint64_t& last_word(const memory::Buffer& buffer) {
    return *(&first_word(buffer) + buffer.size_bytes / 8 - 1);
  }
  // One step of a program: a kernel makes the message, and another one adds up what arrives.
  void queue_step() {
    launch([this] {
      first_word(out) = 100 * (static_cast<std::uint64_t>(index()) + 1) + num_made;
      last_word(out) = first_word(out) + 7;
      ++num_made;
    });
    const memory::Buffer landing = exchanges ? channel.exchange(out, stream) : sent_and_received();
    launch([this, landing] { got.emplace_back(first_word(landing), last_word(landing)); });
  }
  memory::Buffer sent_and_received() {
    channel.send(out, stream);
    return channel.recv(stream);
  }
  void launch(std::function<void()> kernel) {
    ASSERT_TRUE(kind()
                    .launch(stream, 0,
                            [kernel = std::move(kernel)] {
                              kernel();
                              return base::Status();
                            })
                    .ok());
  }
  Task<int> connect() {
    co_await channel.connect();
    co_return 0;
  }
  Task<int> close() {
    co_await channel.close();
    co_return 0;
  }
  int go(int pe) {
    migrate(pe);
    return 0;
  }

  static inline std::array<Partner*, 2> all{};
  memory::Buffer out;
  std::vector<memory::Buffer> landings;
  memory::StreamHandle stream = nullptr;
  QueuedChannel channel;
  bool exchanges = false;  // with one call
  std::uint64_t num_made = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> got;
};

struct QueuedChannelTest : ::testing::Test {
  explicit QueuedChannelTest(int num_pes = 2) : job(num_pes) {
    partners = Array<Partner>::create(job.runtime(0), Shape(2).with_map(Map::kRoundRobin));
    EXPECT_EQ(job.run_until([] { return Partner::all[0] != nullptr && Partner::all[1] != nullptr; }), "");
  }
  ~QueuedChannelTest() override { Partner::all = {}; }

  Partner& partner(std::size_t index) { return *Partner::all.at(index); }
  // Runs on PE 0 while all take turns; returns the error, if there is one.
  std::string run(std::function<Task<>(Array<Partner>)> body) {
    std::string error;
    job.run_on(0, [&](rma::Pgas&) -> Task<> {
      try {
        co_await body(partners);
      } catch (const std::exception& thrown) {
        error = thrown.what();
      }
    });
    return error;
  }
  void prepare(std::size_t size_bytes, std::size_t num_landings) {
    for (std::size_t i = 0; i < 2; ++i) partner(i).prepare(size_bytes, num_landings);
  }
  std::string connect() {
    return run([](Array<Partner> all) -> Task<> { co_await all.call<&Partner::connect>(); });
  }
  std::string close() {
    return run([](Array<Partner> all) -> Task<> { co_await all.call<&Partner::close>(); });
  }
  std::string over() {
    return run([this](Array<Partner>) -> Task<> { co_await partner(0).channel.over(); });
  }
  void settle() {
    bool is_over[2] = {false, false};
    for (int pe = 0; pe < job.num_pes(); ++pe) {
      auto wait = [](Partner& one, bool& done) -> Task<> {
        co_await one.channel.over();
        co_await runtime::stream_done(one.runtime(), kEmulated0, one.stream);  // its kernels, too
        done = true;
      };
      for (std::size_t i = 0; i < 2; ++i) {
        if (partner(i).runtime().pe() == pe) job.runtime(pe).spawn(wait(partner(i), is_over[i]), "the test");
      }
    }
    ASSERT_EQ(job.run_until([&] { return is_over[0] && is_over[1]; }), "");
  }
  void expect_messages(std::size_t count) {
    for (std::size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(partner(i).got.size(), count);
      for (std::size_t n = 0; n < count; ++n) {
        const std::uint64_t expected = 100 * (2 - i) + n;
        EXPECT_EQ(partner(i).got[n], std::pair(expected, expected + 7))
            << "partner " << i << ", message " << n;
      }
    }
  }

  testing::PgasJob job;
  Array<Partner> partners;
};

}  // namespace weft::channel
