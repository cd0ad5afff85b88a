#include "ranks/reported_calls.h"

#include <atomic>

#include "models/mpi/rank.h"

namespace weft::mpi {

namespace {

int number_of_thread() {
  static std::atomic<int> num_threads = 0;
  thread_local const int number = num_threads++;
  return number;
}

}  // namespace

void ReportedCalls::call_began(const char* function) {
  observer_.call_began({this_rank().number, number_of_thread(), function});
}

void ReportedCalls::call_ended() { observer_.call_ended({this_rank().number, number_of_thread(), {}}); }

}  // namespace weft::mpi
