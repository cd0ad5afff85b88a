// A C++ program with virtual ranks: static objects, exceptions across waits, streams.
#include <mpi.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

int failures = 0;
int rank_number = -1;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "rank %d: %s\n", rank_number, what);
  ++failures;
}

struct Registered {
  Registered() { names["constructed"] = 1; }
  ~Registered() { std::printf("rank %d: destructor\n", rank_number); }
  std::map<std::string, int> names;
};
Registered registered;

template <class T>
struct Counter {
  static inline int count = 0;
};

inline std::vector<int>& numbers() {
  static std::vector<int> all = {1, 2, 3};
  return all;
}

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void check_static_objects() {
  check(registered.names.size() == 1, "a static object has entries of another rank");
  check(numbers().size() == 3, "a function's static object has entries of another rank");
  registered.names[std::to_string(rank_number)] = rank_number;
  numbers().push_back(rank_number);
  Counter<int>::count += rank_number + 1;
  MPI_Barrier(MPI_COMM_WORLD);
  check(registered.names.size() == 2, "a static object is shared");
  check(numbers().size() == 4 && numbers().back() == rank_number, "a function's static object is shared");
  check(Counter<int>::count == rank_number + 1, "an inline static is shared");
}

// Ranks wait while they handle an exception, and throw further ones.
void check_exceptions() {
  const std::string own = "of rank " + std::to_string(rank_number);
  try {
    throw Failure(own);
  } catch (const std::exception& error) {
    MPI_Barrier(MPI_COMM_WORLD);
    check(error.what() == own, "a caught exception is another rank's");
    try {
      MPI_Barrier(MPI_COMM_WORLD);
      throw;
    } catch (const Failure& again) {
      MPI_Barrier(MPI_COMM_WORLD);
      check(again.what() == own, "a rethrown exception is another rank's");
    }
  }
  check(std::uncaught_exceptions() == 0, "an exception is left");
}

}  // namespace

int main(int argc, char** argv) {
  std::ios_base::sync_with_stdio(false);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_number);
  check_static_objects();
  check_exceptions();
  std::cout.precision(rank_number + 1);
  MPI_Barrier(MPI_COMM_WORLD);
  check(std::cout.precision() == rank_number + 1, "a stream's precision is shared");
  std::ostringstream line;
  line << "rank " << rank_number << ": " << failures << " failures\n";
  std::cout << line.str() << std::flush;
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
