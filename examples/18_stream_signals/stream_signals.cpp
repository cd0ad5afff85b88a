// Signals on streams: numbers go around a ring of devices, and no CPU waits for any of them.
//
//   weft run -n 2 build/release/examples/stream_signals
//
// The devices are emulated, so it runs on any machine. On GPUs the kind is kCuda, and kernels run on stream.handle().
#include <cstdint>
#include <cstdio>

#include "weft/job/pgas_run.h"
#include "weft/pgas/teams.h"
#include "weft/weft.h"

using Number = weft::GlobalPtr<std::int64_t>;
using Word = weft::GlobalPtr<std::uint32_t>;

constexpr std::uint32_t kRounds = 5;

weft::Task<> start(weft::pgas::World& world) {
  auto& pgas = world.runtime().model<weft::Pgas>();
  const weft::Place device = weft::device_of(world.runtime(), weft::Kind::kEmulated);
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();

  // Two numbers, the one to send and the one that has arrived; and two words, which lie with the PE whose stream waits for them.
  const weft::pgas::Segment numbers = pgas.make_segment<std::int64_t>(2, device);
  const weft::pgas::Segment words = pgas.make_segment<std::uint32_t>(2, device);
  const Number outbox = numbers.pointer<std::int64_t>(0);
  const Number inbox = numbers.pointer<std::int64_t>(1);
  const Word arrived = words.pointer<std::uint32_t>(0);
  const Word credit = words.pointer<std::uint32_t>(1);
  co_await pgas.put(world.rank(), outbox);

  // A stream cannot ask where memory is: this PE learns it ahead.
  const weft::pgas::DistObject<Number> inboxes(world, inbox);
  const weft::pgas::DistObject<Word> arrivals(world, arrived);
  const weft::pgas::DistObject<Word> credits(world, credit);
  const Number next_inbox = co_await inboxes.fetch(next);
  const Word next_arrived = co_await arrivals.fetch(next);
  const Word previous_credit = co_await credits.fetch(previous);
  co_await pgas.learn(next_inbox.address());
  co_await pgas.learn(next_arrived.address());
  co_await pgas.learn(previous_credit.address());

  weft::Stream stream(world.runtime(), device);
  const weft::memory::StreamHandle queue = stream.handle();
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    // To the next PE, whose stream waits for the word.
    pgas.copy_on_stream(outbox, next_inbox, 1, device, queue).detach();
    pgas.signal_on_stream(next_arrived, round, device, queue).detach();
    // From the previous PE, which may then send again.
    pgas.wait_on_stream(arrived, round, device, queue).detach();
    pgas.copy_on_stream(inbox, outbox, 1, device, queue).detach();
    pgas.signal_on_stream(previous_credit, round, device, queue).detach();
    pgas.wait_on_stream(credit, round, device, queue).detach();
  }
  co_await stream.done();  // the CPU has queued all rounds, and waits for their end alone

  std::printf("rank %d has the number of rank %lld\n", world.rank(),
              static_cast<long long>(co_await pgas.get(outbox)));
  co_await world.barrier();  // the memory stays until all ranks are here
}

int main(int argc, char** argv) { return weft::pgas::run(argc, argv, start); }
