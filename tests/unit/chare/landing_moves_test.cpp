// Moves that are asked for while large arguments of other calls land in the chare: the chare moves when they have landed.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "weft/weft.h"

#include "tests/support/busy_stream.h"
#include "tests/support/device_memory.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/calls/payload_values.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using testing::TestMemory;

constexpr memory::Place kDock{memory::Kind::kEmulated, 0};
constexpr std::size_t kNumLarge = 10'000;  // doubles: they travel out of band

struct Dock : Chare<Dock> {
  Dock() = default;
  explicit Dock(Moved) {}
  void pup(Pup& p) { p | num_landed; }

  // Lands on a stream of the test's.
  void land(Payload<double> data) { num_landed += data.size() == 1 ? 1 : 0; }
  void post_land(ReceiveBuffer<double>& data) {
    ++num_posted;
    data.into(as<double>(room->buffer()), stream);
  }
  void vector(std::vector<double> data) { num_landed += data.size() == kNumLarge ? 1 : 0; }
  void view(std::span<const double> data) { num_landed += data.size() == kNumLarge ? 1 : 0; }
  void payload(Payload<double> data) { num_landed += data.size() == kNumLarge ? 1 : 0; }

  void go(int to_pe) { migrate(to_pe); }
  int where_now() { return pe(); }
  int landed() { return num_landed; }

  using PostEntryMethods = weft::PostEntryMethods<weft::Post<&Dock::land, &Dock::post_land>>;

  int num_landed = 0;
  int num_posted = 0;
  std::unique_ptr<TestMemory> room;
  memory::StreamHandle stream = nullptr;
};

TEST(LandingMoves, AMoveWaitsForACallThatLands) {
  testing::InProcessJob job(2);
  TestMemory memory = doubles_in(job.memory(0), {}, {1});
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto docks = Array<Dock>::create(runtime, Shape(1).on_pe(0));
    co_await docks.created();
    Dock* const dock = docks.local(0);
    dock->room = std::make_unique<TestMemory>(runtime.memory(), kDock, sizeof(double));
    bool may_land = false;
    dock->stream = testing::stream_with(testing::emulated(runtime.memory()), 0, testing::until(may_land));
    Future<> landed = docks[0].call<&Dock::land>(nocopy(as<double>(memory.buffer())));
    while (dock->num_posted == 0) co_await yield_now(runtime);
    EXPECT_EQ(dock->num_suspended(), 1U);
    EXPECT_EQ(co_await error_of(docks[0].call<&Dock::go>(1)), "");
    for (int i = 0; i < 10; ++i) co_await yield_now(runtime);
    EXPECT_EQ(co_await docks[0].call<&Dock::where_now>(), 0);
    may_land = true;
    co_await landed;
    while (co_await docks[0].call<&Dock::where_now>() != 1) co_await yield_now(runtime);
    EXPECT_EQ(co_await docks[0].call<&Dock::landed>(), 1);
  }),
            "");
}

TEST(LandingMoves, NoCallIsLostAmongMoves) {
  for (const char* machine : {"loopback", "ucx"}) {
    testing::InProcessJob job(3, machine);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      constexpr int kRounds = 60;
      auto docks = Array<Dock>::create(runtime, {1});
      const std::vector<double> values(kNumLarge);
      for (int i = 0; i < kRounds; ++i) {
        docks[0].send<&Dock::vector>(values);
        docks[0].send<&Dock::go>(i % 3);
        docks[0].send<&Dock::view>(values);
        docks[0].send<&Dock::go>((i + 1) % 3);
        docks[0].send<&Dock::payload>(nocopy(values)).detach();
        docks[0].send<&Dock::go>((i + 2) % 3);
        // A call for which a peer has no room would wait on the only thread, and the peer would not get a turn.
        if (i % 5 == 4) co_await runtime.quiescence();
      }
      EXPECT_EQ(co_await docks[0].call<&Dock::landed>(), 3 * kRounds);
    }),
              "")
        << machine;
  }
}

}  // namespace
}  // namespace weft::chare
