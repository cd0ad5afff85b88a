// A token goes round a ring of chares; then each chare sends its square to the next one over a channel.
//
//   weft run -n 2 build/release/examples/ring
#include <array>
#include <cstdio>

#include "weft/weft.h"

constexpr int kSize = 8;

struct Ring : weft::Chare<Ring> {
  void token(int hops_left, weft::Future<int> arrived) {
    if (hops_left == 0) return arrived.set(index());
    proxy()[(index() + 1) % kSize].send<&Ring::token>(hops_left - 1, arrived);
  }

  weft::Task<double> pass_square() {
    weft::Channel next(*this, proxy()[(index() + 1) % kSize]);
    weft::Channel previous(*this, proxy()[(index() + kSize - 1) % kSize]);
    std::array<double, 1> mine{1.0 * index() * index()}, received{};
    weft::Operation sent = next.send(std::span(mine));
    co_await previous.recv(std::span(received));
    co_await sent;
    co_return co_await allreduce(received[0], weft::Reducer::kSum);
  }
};

weft::Task<> start(weft::Runtime& runtime) {
  auto ring = weft::Array<Ring>::create(runtime, kSize);
  weft::Future<int> arrived(runtime);
  ring[0].send<&Ring::token>(3 * kSize, arrived);
  std::printf("the token ended at chare %d\n", co_await arrived);
  std::vector<double> sums = co_await ring.call<&Ring::pass_square>();
  std::printf("every chare knows the sum of squares: %g\n", sums[0]);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
