// Two chares that exchange arrays over a channel. For compile_cost.py.
#include <cstdio>
#include <span>
#include <vector>

#include "weft/weft.h"

struct Half : weft::Chare<Half> {
  weft::Task<double> exchange(int steps) {
    weft::Channel other(*this, proxy()[1 - index()]);
    std::vector<double> mine(100, 1.0 * index()), theirs(100);
    for (int step = 0; step < steps; ++step) {
      weft::Operation sent = other.send(std::span<const double>(mine));
      co_await other.recv(std::span(theirs));
      co_await sent;
      mine.swap(theirs);
    }
    co_return mine[0];
  }
};

weft::Task<> start(weft::Runtime& runtime) {
  auto halves = weft::Array<Half>::create(runtime, 2);
  const std::vector<double> values = co_await halves.call<&Half::exchange>(3);
  std::printf("%g %g\n", values[0], values[1]);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
