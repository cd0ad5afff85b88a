// MPI programs as functions, which run as virtual ranks: virtual_ranks_test.cpp runs them in one process, and
// tests/multiproc/programs/virtual_ranks_probe.cpp in several. Each is the main() of a rank: it returns 0 if all is right.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/mpi/mpi.h"

#include "ranks/host_interface.h"

namespace weft::testing {

inline int report_wrong(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "rank %d: %s:%d: not true: %s\n", weft_mpi_host_current_rank(), file, line, condition);
  return 1;
}
#define WEFT_RANK_EXPECT(condition) \
  if (!(condition)) return ::weft::testing::report_wrong(#condition, __FILE__, __LINE__)

struct World {
  World() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
  }
  int right() const { return (rank + 1) % size; }
  int left() const { return (rank + size - 1) % size; }
  int rank = -1;
  int size = 0;
};

inline std::vector<int> numbers_of(int rank, std::size_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), rank * 1000);
  return numbers;
}

inline int knows_its_number() {
  int flag = 1;
  WEFT_RANK_EXPECT(MPI_Initialized(&flag) == MPI_SUCCESS && flag == 0);
  MPI_Init(nullptr, nullptr);
  const World world;
  WEFT_RANK_EXPECT(world.rank == weft_mpi_host_current_rank());
  int* universe = nullptr;
  WEFT_RANK_EXPECT(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, static_cast<void*>(&universe),
                                     &flag) == MPI_SUCCESS);
  WEFT_RANK_EXPECT(flag == 1 && *universe == world.size);
  int self_size = 0;
  MPI_Comm_size(MPI_COMM_SELF, &self_size);
  WEFT_RANK_EXPECT(self_size == 1);
  int level = -1;
  MPI_Query_thread(&level);
  WEFT_RANK_EXPECT(level == MPI_THREAD_FUNNELED);
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  int host_size = 0;
  MPI_Comm_size(host, &host_size);
  WEFT_RANK_EXPECT(host_size == world.size);
  MPI_Comm_free(&host);
  MPI_Finalize();
  WEFT_RANK_EXPECT(MPI_Finalized(&flag) == MPI_SUCCESS && flag == 1);
  return 0;
}

// Around a ring, in all sizes at which the way of a message changes.
inline int passes_messages() {
  MPI_Init(nullptr, nullptr);
  const World world;
  for (const std::size_t count : {0U, 2U, 1024U, 1025U, 50000U, 300000U}) {
    const std::vector<int> mine = numbers_of(world.rank, count);
    std::vector<int> theirs(count, -1);
    const auto n = static_cast<int>(count);
    MPI_Request send = MPI_REQUEST_NULL;
    MPI_Isend(mine.data(), n, MPI_INT, world.right(), 7, MPI_COMM_WORLD, &send);
    MPI_Status status;
    MPI_Recv(theirs.data(), n, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    WEFT_RANK_EXPECT(status.MPI_SOURCE == world.left() && status.MPI_TAG == 7);
    WEFT_RANK_EXPECT(theirs == numbers_of(world.left(), count));
    // The receive comes first at half of the ranks.
    std::vector<int> again(count, -1);
    MPI_Request receive = MPI_REQUEST_NULL;
    if (world.rank % 2 == 0) MPI_Irecv(again.data(), n, MPI_INT, world.left(), 8, MPI_COMM_WORLD, &receive);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Issend(mine.data(), n, MPI_INT, world.right(), 8, MPI_COMM_WORLD, &send);
    if (world.rank % 2 != 0) MPI_Irecv(again.data(), n, MPI_INT, world.left(), 8, MPI_COMM_WORLD, &receive);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    WEFT_RANK_EXPECT(again == numbers_of(world.left(), count));
  }
  MPI_Finalize();
  return 0;
}

// Messages of a pair keep their order, whatever their ways are.
inline int keeps_order() {
  MPI_Init(nullptr, nullptr);
  const World world;
  constexpr int kNumMessages = 40;
  std::vector<std::vector<int>> out;
  std::vector<MPI_Request> sends(kNumMessages);
  for (int i = 0; i < kNumMessages; ++i) {
    out.push_back(numbers_of(i, i % 3 == 0 ? 20000 : i % 3 == 1 ? 3 : 900));
    MPI_Isend(out.back().data(), static_cast<int>(out.back().size()), MPI_INT, world.right(), 3,
              MPI_COMM_WORLD, &sends[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < kNumMessages; ++i) {
    std::vector<int> in(20000);
    MPI_Status status;
    MPI_Recv(in.data(), 20000, MPI_INT, world.left(), 3, MPI_COMM_WORLD, &status);
    int count = 0;
    MPI_Get_count(&status, MPI_INT, &count);
    in.resize(static_cast<std::size_t>(count));
    WEFT_RANK_EXPECT(in == out[static_cast<std::size_t>(i)]);
  }
  MPI_Waitall(kNumMessages, sends.data(), MPI_STATUSES_IGNORE);
  MPI_Finalize();
  return 0;
}

// Loops of probes and tests let the other ranks run. The larger message is cut.
inline int polls() {
  MPI_Init(nullptr, nullptr);
  const World world;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (world.rank == 0) {
    for (int i = 1; i < world.size; ++i) {
      int flag = 0;
      MPI_Status status;
      while (flag == 0) MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &status);
      std::vector<int> in(2);
      MPI_Request receive = MPI_REQUEST_NULL;
      MPI_Irecv(in.data(), 2, MPI_INT, status.MPI_SOURCE, 5, MPI_COMM_WORLD, &receive);
      int error = MPI_SUCCESS;
      for (flag = 0; flag == 0;) error = MPI_Test(&receive, &flag, &status);
      WEFT_RANK_EXPECT(error == MPI_ERR_TRUNCATE);
      WEFT_RANK_EXPECT(in == numbers_of(status.MPI_SOURCE, 2));
      const int answer = status.MPI_SOURCE;
      MPI_Send(&answer, 1, MPI_INT, status.MPI_SOURCE, 6, MPI_COMM_WORLD);
    }
  } else {
    const std::vector<int> out =
        numbers_of(world.rank, 1500 + 700 * static_cast<std::size_t>(world.rank % 3));
    MPI_Send(out.data(), static_cast<int>(out.size()), MPI_INT, 0, 5, MPI_COMM_WORLD);
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Mprobe(0, 6, MPI_COMM_WORLD, &message, &status);
    int answer = -1;
    MPI_Mrecv(&answer, 1, MPI_INT, &message, &status);
    WEFT_RANK_EXPECT(answer == world.rank);
  }
  MPI_Finalize();
  return 0;
}

// The composition of x -> a x + b, which is associative and not commutative.
inline void compose(void* in, void* inout, int* length, MPI_Datatype* /*type*/) {
  const auto* const left = static_cast<const long*>(in);
  auto* const right = static_cast<long*>(inout);
  for (int i = 0; i + 1 < *length; i += 2) {
    right[i + 1] = (left[i + 1] * right[i] + right[i + 1]) % 10007;
    right[i] = left[i] * right[i] % 10007;
  }
}

inline int combines_on(MPI_Comm comm) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (const std::size_t count : {1U, 1000U, 30000U}) {
    const auto n = static_cast<int>(count);
    std::vector<int> in(count, rank + 1);
    std::vector<int> sum(count, 0);
    MPI_Allreduce(in.data(), sum.data(), n, MPI_INT, MPI_SUM, comm);
    WEFT_RANK_EXPECT(sum == std::vector<int>(count, size * (size + 1) / 2));
    const int root = (size - 1) / 2;
    std::vector<int> most(count, -1);
    MPI_Reduce(in.data(), most.data(), n, MPI_INT, MPI_MAX, root, comm);
    WEFT_RANK_EXPECT(most == std::vector<int>(count, rank == root ? size : -1));
    if (rank == root) in = numbers_of(17, count);
    MPI_Bcast(in.data(), n, MPI_INT, root, comm);
    WEFT_RANK_EXPECT(in == numbers_of(17, count));
    MPI_Barrier(comm);
  }
  long expected[2] = {1, 0};
  for (int i = 0; i < size; ++i) {
    const long next[2] = {i + 2, 3 * i + 1};
    expected[1] = (expected[1] * next[0] + next[1]) % 10007;
    expected[0] = expected[0] * next[0] % 10007;
  }
  MPI_Op operation = MPI_OP_NULL;
  MPI_Op_create(&compose, 0, &operation);
  const long mine[2] = {rank + 2, 3 * rank + 1};
  long all[2] = {0, 0};
  MPI_Datatype pair = MPI_DATATYPE_NULL;
  MPI_Allreduce(mine, all, 2, MPI_LONG, operation, comm);
  WEFT_RANK_EXPECT(all[0] == expected[0] && all[1] == expected[1]);
  all[0] = all[1] = 0;
  MPI_Reduce(mine, all, 2, MPI_LONG, operation, size - 1, comm);
  WEFT_RANK_EXPECT(rank != size - 1 || (all[0] == expected[0] && all[1] == expected[1]));
  MPI_Op_free(&operation);
  static_cast<void>(pair);
  return 0;
}

inline int combines() {
  MPI_Init(nullptr, nullptr);
  const World world;
  WEFT_RANK_EXPECT(combines_on(MPI_COMM_WORLD) == 0);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, -world.rank, &half);
  WEFT_RANK_EXPECT(combines_on(half) == 0);
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(half, &copy);
  MPI_Comm_free(&half);
  WEFT_RANK_EXPECT(combines_on(copy) == 0);
  // Several collectives under way at once, completed in the other order.
  std::vector<MPI_Request> requests(4, MPI_REQUEST_NULL);
  const int one = 1;
  int counted = 0;
  int root_rank = world.rank;
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
  MPI_Iallreduce(&one, &counted, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
  MPI_Ibcast(&root_rank, 1, MPI_INT, world.size - 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Ibarrier(copy, &requests[3]);
  for (std::size_t i = requests.size(); i > 0; --i) MPI_Wait(&requests[i - 1], MPI_STATUS_IGNORE);
  WEFT_RANK_EXPECT(counted == world.size && root_rank == world.size - 1);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  return 0;
}

inline int makes_communicators() {
  MPI_Init(nullptr, nullptr);
  const World world;
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  int place = -1;
  MPI_Group_rank(all, &place);
  WEFT_RANK_EXPECT(place == world.rank);
  const int without[1] = {0};
  MPI_Group others = MPI_GROUP_NULL;
  MPI_Group_excl(all, 1, without, &others);
  if (world.rank != 0) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_create_group(MPI_COMM_WORLD, others, 4, &comm);
    WEFT_RANK_EXPECT(combines_on(comm) == 0);
    MPI_Comm_free(&comm);
  }
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world.rank % 2, 0, &part);
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, 1 - world.rank % 2, 9, &inter);
  const int mine = world.rank + 1;
  int theirs = 0;
  MPI_Allreduce(&mine, &theirs, 1, MPI_INT, MPI_SUM, inter);
  int expected = 0;
  for (int i = 1 - world.rank % 2; i < world.size; i += 2) expected += i + 1;
  WEFT_RANK_EXPECT(theirs == expected);
  MPI_Barrier(inter);
  MPI_Comm whole = MPI_COMM_NULL;
  MPI_Intercomm_merge(inter, world.rank % 2, &whole);
  WEFT_RANK_EXPECT(combines_on(whole) == 0);
  for (MPI_Comm* const comm : {&whole, &inter, &part}) MPI_Comm_free(comm);
  MPI_Group_free(&others);
  MPI_Group_free(&all);
  MPI_Finalize();
  return 0;
}

// A rank waits inside of catch blocks while others throw.
inline int catches_exceptions() {
  MPI_Init(nullptr, nullptr);
  const World world;
  for (int i = 0; i < 5; ++i) {
    try {
      throw std::runtime_error(std::to_string(world.rank * 10 + i));
    } catch (const std::runtime_error&) {
      MPI_Barrier(MPI_COMM_WORLD);
      try {
        throw;
      } catch (const std::runtime_error& mine) {
        MPI_Barrier(MPI_COMM_WORLD);
        WEFT_RANK_EXPECT(mine.what() == std::to_string(world.rank * 10 + i));
      }
    }
  }
  MPI_Finalize();
  return 0;
}

inline int uses_sessions() {
  MPI_Session session = MPI_SESSION_NULL;
  for (int i = 0; i < 2; ++i) {
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_create_from_group(group, "a test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    int rank = -1;
    MPI_Comm_rank(comm, &rank);
    WEFT_RANK_EXPECT(rank == weft_mpi_host_current_rank());
    WEFT_RANK_EXPECT(combines_on(comm) == 0);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
  }
  return 0;
}

// Half of the ranks end early, with exit().
inline int exits_early() {
  MPI_Init(nullptr, nullptr);
  const World world;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (world.rank % 2 == 1) weft_mpi_host_exit_rank(0);
  return 0;
}

inline int fails_at_rank_2() {
  MPI_Init(nullptr, nullptr);
  const World world;
  MPI_Finalize();
  return world.rank == 2 ? 7 : 0;
}

inline int forgets_to_finalize() {
  MPI_Init(nullptr, nullptr);
  const World world;
  MPI_Barrier(MPI_COMM_WORLD);
  if (world.rank == 1) return 3;
  MPI_Finalize();
  return 0;
}

inline int never_starts_mpi() {
  if (weft_mpi_host_current_rank() == 1) return 0;
  MPI_Init(nullptr, nullptr);
  MPI_Finalize();
  return 0;
}

// The first rank of the process ends before another one starts MPI.
inline int ends_before_mpi_starts() {
  if (weft_mpi_host_current_rank() == 0) return 0;
  MPI_Init(nullptr, nullptr);
  MPI_Finalize();
  return 0;
}

inline int aborts() {
  MPI_Init(nullptr, nullptr);
  const World world;
  if (world.rank == 1) MPI_Abort(MPI_COMM_WORLD, 5);
  MPI_Barrier(MPI_COMM_WORLD);
  return 0;
}

inline int uses_no_mpi() { return 0; }

using RankProgram = int (*)();
inline const std::map<std::string, RankProgram>& rank_programs() {
  static const std::map<std::string, RankProgram> programs = {
      {"knows_its_number", &knows_its_number},
      {"passes_messages", &passes_messages},
      {"keeps_order", &keeps_order},
      {"polls", &polls},
      {"combines", &combines},
      {"makes_communicators", &makes_communicators},
      {"catches_exceptions", &catches_exceptions},
      {"uses_sessions", &uses_sessions},
      {"exits_early", &exits_early},
      {"fails_at_rank_2", &fails_at_rank_2},
      {"forgets_to_finalize", &forgets_to_finalize},
      {"never_starts_mpi", &never_starts_mpi},
      {"aborts", &aborts},
      {"uses_no_mpi", &uses_no_mpi},
  };
  return programs;
}

// Runs the program as the ranks of this PE. Returns the exit code.
inline int run_as_ranks(RankProgram program, int pe, int num_pes, const std::vector<int>& pe_of_rank) {
  const weft_mpi_host_program hosted{
      .revision = WEFT_MPI_HOST_REVISION,
      .pe = pe,
      .num_pes = num_pes,
      .num_ranks = static_cast<int>(pe_of_rank.size()),
      .pe_of_rank = pe_of_rank.data(),
      .stack_size_bytes = std::size_t{1} << 20,
      .run_rank = [](void* context, int /*rank*/) { return (*static_cast<RankProgram*>(context))(); },
      .stack_of_rank = nullptr,
      .openmp = nullptr,
      .moves = nullptr,
      .context = static_cast<void*>(&program)};
  return weft_mpi_host_run(&hosted);
}

}  // namespace weft::testing
