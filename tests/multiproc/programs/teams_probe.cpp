// Teams, calls and collectives between processes. Ends with a sentence and code 1 when something is wrong.
//
//     teams_probe                all of that
//     teams_probe blocking       barriers that block
//     teams_probe throw          a call without a caller throws on PE 1
//     teams_probe die            PE 1 dies while the others wait for it in a barrier
//     teams_probe exit           PE 1 ends the job with code 3 while the others wait in a blocking barrier
#include <unistd.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/job/pgas_run.h"
#include "weft/pgas/teams.h"
#include "weft/weft.h"

namespace {

using weft::Reducer;
using weft::pgas::DistObject;
using weft::pgas::Team;
using weft::pgas::World;

void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

std::uint64_t sum_of(std::vector<std::uint32_t> values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}
void count(DistObject<int>& counter, int by) { *counter += by; }
void fails(int value) { throw std::runtime_error("the value is " + std::to_string(value)); }

weft::Task<> calls(World& world) {
  const int next = (world.rank() + 1) % world.size();
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{1'000'000}}) {
    const std::vector<std::uint32_t> values(size, 3);
    const std::uint64_t sum = co_await world.rpc<&sum_of>(next, values);
    expect(sum == 3 * size, "a call gave another sum");
  }
  DistObject<int> counter(world, 0);
  for (int i = 0; i < 1000; ++i) world.rpc_ff<&count>(i % world.size(), counter, 1);
  co_await world.barrier();  // says that all are sent, not that all have run
  const int all = 1000 * world.size();
  for (;;) {
    const int so_far = co_await world.allreduce(*counter, Reducer::kSum);
    if (so_far == all) break;
  }
  const int theirs = co_await counter.fetch(next);
  expect(theirs > 0, "a rank got no calls");
  co_await world.barrier();
}

weft::Task<> collectives(World& world) {
  const Team parity = co_await world.split(world.rank() % 2, -world.rank());
  const int members = co_await parity.allreduce(1, Reducer::kSum);
  expect(members == parity.size(), "a team has another number of members");
  const std::vector<int> ranks = co_await parity.allgather(world.rank());
  expect(ranks == parity.members(), "ranks of a team are not in the order of their keys");
  for (const std::size_t size : {std::size_t{1}, std::size_t{5000}, std::size_t{500'000}}) {
    std::vector<double> values(size, world.rank() + 1);
    co_await world.allreduce_in_place(std::span(values), Reducer::kSum);
    expect(values == std::vector<double>(size, world.size() * (world.size() + 1) / 2),
           "another sum of buffers");
    values.assign(size, world.rank());
    co_await world.broadcast_in_place(std::span(values), world.size() - 1);
    expect(values == std::vector<double>(size, world.size() - 1), "another broadcast of a buffer");
    const std::vector<double> copied = co_await world.broadcast(values, 0);
    expect(copied == values, "another broadcast of a vector");
  }
  const weft::Place place = weft::device_of(world.runtime(), weft::Kind::kEmulated);
  weft::DeviceArray<int> device(world.runtime(), 100'000, place);
  weft::Stream stream(world.runtime(), place);
  stream.launch([span = device.span(), rank = world.rank()](const weft::DeviceView& view) {
    for (int& value : view(span)) value = rank;
  });
  co_await world.broadcast_in_place(device.span(), world.size() - 1, stream.handle());
  co_await world.allreduce_in_place(device.span(), Reducer::kSum);
  std::vector<int> sums(device.size());
  stream.copy({sums.data(), sums.size() * sizeof(int), {}, nullptr}, device.buffer());
  co_await stream.done();
  expect(sums == std::vector<int>(sums.size(), (world.size() - 1) * world.size()),
         "another sum on the device");
}

weft::Task<> blocking(World& world) {
  for (int i = 0; i < 1000; ++i) {
    if (i % 3 == world.rank() % 3) {
      world.blocking_barrier();
    } else {
      co_await world.barrier();
    }
  }
}

weft::Task<> probe(World& world, const std::string& what) {
  if (what == "all") {
    co_await calls(world);
    co_await collectives(world);
    co_await blocking(world);
  } else if (what == "blocking") {
    co_await blocking(world);
  } else if (what == "throw") {
    if (world.rank() == 0) world.rpc_ff<&fails>(1, 8);
    co_await world.runtime().quiescence();
    co_await world.runtime().make_future<>();  // never set: the job ends meanwhile
  } else if (world.rank() != 1) {
    world.blocking_barrier();
  } else if (what == "die") {
    ::_exit(7);
  } else {
    world.runtime().exit(3);
    co_await world.runtime().make_future<>();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "all";
  return weft::pgas::run(argc, argv, [what](World& world) { return probe(world, what); });
}
