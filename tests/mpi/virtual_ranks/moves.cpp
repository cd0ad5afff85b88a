// A C++ program whose ranks move while they handle an exception, with objects of the C++ library on the heap and the stack; and what
// Weft says when a rank cannot move.
#include <mpi.h>
#include <weft_mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

int failures = 0;
int rank_number = -1;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "rank %d on PE %d: %s\n", rank_number, Weft_pe(), what);
  ++failures;
}

struct Base {
  virtual ~Base() = default;
  virtual std::string name() const = 0;
};
struct Derived final : Base {
  std::string name() const override { return "derived " + std::to_string(rank_number); }
};

// Every rank goes to the next PE.
void move() {
  const int code = Weft_migrate((Weft_pe() + 1) % Weft_num_pes());
  check(code == MPI_SUCCESS, "the rank did not move");
}

void check_objects() {
  std::map<std::string, std::vector<int>> entries;
  const std::unique_ptr<Base> object = std::make_unique<Derived>();
  std::ostringstream stream;
  stream << "stream of " << rank_number;
  std::exception_ptr kept;
  for (int round = 0; round < 4; ++round) {
    entries["a text that is longer than a short one " + std::to_string(round)].assign(100, rank_number);
    try {
      throw std::runtime_error("of rank " + std::to_string(rank_number));
    } catch (const std::exception& error) {
      move();
      check(error.what() == "of rank " + std::to_string(rank_number), "a caught exception is wrong");
      kept = std::current_exception();
      try {
        throw;
      } catch (const std::runtime_error&) {
        move();
      }
    }
    move();
    stream << '.';
  }
  check(entries.size() == 4 && entries.begin()->second.back() == rank_number, "a map is wrong");
  check(object->name() == "derived " + std::to_string(rank_number), "a virtual function is wrong");
  check(stream.str() == "stream of " + std::to_string(rank_number) + "....", "a stream is wrong");
  try {
    std::rethrow_exception(kept);
  } catch (const std::runtime_error& error) {
    check(std::strncmp(error.what(), "of rank ", 8) == 0, "a kept exception is wrong");
  }
}

void expect_refusal(const char* part) {
  const int code = Weft_migrate((Weft_pe() + 1) % Weft_num_pes());
  check(code != MPI_SUCCESS, part);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Rank 1 has something that cannot move; no rank moves then.
void check_refusals() {
  const int before = Weft_pe();
  MPI_Request request = MPI_REQUEST_NULL;
  int number = 0;
  if (rank_number == 1) MPI_Irecv(&number, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
  expect_refusal("a pending request");
  if (rank_number == 0) MPI_Send(&number, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  // Nothing moves, and objects of MPI are as before.
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  if (rank_number == 0) MPI_Send(&number, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
  expect_refusal("a message that was not received");
  if (rank_number == 1) MPI_Recv(&number, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int size_bytes = 0;
  MPI_Type_size(type, &size_bytes);
  check(size_bytes == 2 * static_cast<int>(sizeof(int)), "a datatype after a refusal");
  MPI_Barrier(copy);
  MPI_Type_free(&type);
  MPI_Comm_free(&copy);
  check(Weft_migrate(Weft_num_pes()) != MPI_SUCCESS, "a PE that does not exist");
  check(Weft_migrate(0) != MPI_SUCCESS, "a PE without a rank");
  check(Weft_pe() == before, "a rank has moved");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_number);
  if (argc > 1 && std::strcmp(argv[1], "fatal") == 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    int number = 0;
    if (rank_number == 1) MPI_Irecv(&number, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
    Weft_migrate((Weft_pe() + 1) % Weft_num_pes());
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check_refusals();
  check_objects();
  check_refusals();
  std::cout << "rank " << rank_number << ": " << failures << " failures\n";
  MPI_Finalize();
  return failures;
}
