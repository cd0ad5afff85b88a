#include "ranks/reported_calls.h"

#include <atomic>
#include <string_view>

#include "models/mpi/rank.h"

namespace weft::mpi {

namespace {

int number_of_thread() {
  static std::atomic<int> num_threads = 0;
  thread_local const int number = num_threads++;
  return number;
}

// "MPI_Send" for MPI_Send_c too, which often does what MPI_Send was called for.
std::string_view shown_name(std::string_view function) {
  constexpr std::string_view kLargeForm = "_c";
  if (function.ends_with(kLargeForm)) function.remove_suffix(kLargeForm.size());
  return function;
}

}  // namespace

void ReportedCalls::call_began(const char* function) {
  observer_.call_began({this_rank().number, number_of_thread(), shown_name(function)});
}

void ReportedCalls::call_ended() { observer_.call_ended({this_rank().number, number_of_thread(), {}}); }

}  // namespace weft::mpi
