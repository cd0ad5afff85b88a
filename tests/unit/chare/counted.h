// An element whose lives are counted, and what tests ask of collections that have been destroyed.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "weft/weft.h"

namespace weft::chare {

// How many elements live on all PEs of the test's job.
inline int num_counted = 0;

struct Counted : Chare<Counted> {
  Counted() { ++num_counted; }
  ~Counted() override { --num_counted; }

  int touch() { return ++touched; }
  void note() { ++touched; }
  // Ends when `gate` is set.
  Task<int> wait(Future<int> gate, Future<> begun) {
    begun.set();
    const int value = co_await gate;
    co_return value + touched;
  }
  void give(int value, Future<int> sum) { contribute(value, Reducer::kSum, target_of(sum)); }
  Task<int> take_part(int value) { co_return co_await allreduce(value, Reducer::kSum); }
  Task<> contribute_after(Future<int> gate, Future<> begun) {
    begun.set();
    co_await gate;
    co_await allreduce(1, Reducer::kSum);
  }
  Task<> destroy_all() { co_await proxy().destroy(); }
  void fail(bool closed) {
    if (closed) throw base::Error(base::StatusCode::kClosed, "what it waited for has ended");
    throw std::runtime_error("a mistake");
  }
  Task<> fail_after(bool closed, Future<> gate, Future<> begun) {
    begun.set();
    co_await gate;
    fail(closed);
  }

  int touched = 0;
};

// The text of the error by which `call` says that a collection has ended; any other error fails the test.
template <class Call>
std::string thrown_as_closed(Call call) {
  try {
    call();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.code(), base::StatusCode::kClosed) << error.what();
    return error.what();
  }
  return "";
}

}  // namespace weft::chare
