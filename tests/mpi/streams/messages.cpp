// Messages that are queued on streams: `messages KIND` on any number of ranks, and `messages KIND WHAT` for errors and ends
// of the job.
#include <algorithm>
#include <csignal>
#include <random>

#include "stream.hpp"

namespace {

using device::Bytes;
using device::class_of;
using device::pattern;
using device::Stream;

constexpr int kPiece = 256 << 10;

int rank = 0, size = 0, right = 0, left = 0;

// --- Messages

// All ranks at once, in both directions, and to themselves if there is one.
void exchanges(MPI_Comm comm, const Stream& stream, int count) {
  const Bytes out(pattern(count, rank));
  const Bytes from_left(static_cast<std::size_t>(count));
  const Bytes from_right(static_cast<std::size_t>(count));
  MPI_Request requests[5] = {MPI_REQUEST_NULL};
  CHECK(MPIX_Irecv_enqueue(from_left.data(), count, MPI_CHAR, left, 3, comm, &requests[0]) == MPI_SUCCESS);
  CHECK(MPIX_Isend_enqueue(out.data(), count, MPI_CHAR, right, 3, comm, &requests[1]) == MPI_SUCCESS);
  CHECK(MPIX_Isend_enqueue(out.data(), count, MPI_CHAR, left, 4, comm, &requests[2]) == MPI_SUCCESS);
  CHECK(MPIX_Irecv_enqueue(from_right.data(), count, MPI_CHAR, right, 4, comm, &requests[3]) == MPI_SUCCESS);
  requests[4] = MPI_REQUEST_NULL;
  MPI_Status statuses[5];
  CHECK(MPIX_Waitall_enqueue(5, requests, statuses) == MPI_SUCCESS);
  int got = -1;
  MPI_Get_count(&statuses[3], MPI_CHAR, &got);
  CHECK(got == count && statuses[3].MPI_SOURCE == right && statuses[3].MPI_TAG == 4);
  CHECK(statuses[0].MPI_SOURCE == left && statuses[4].MPI_SOURCE == MPI_ANY_SOURCE);
  for (const MPI_Request request : requests) CHECK(request == MPI_REQUEST_NULL);
  stream.wait();
  CHECK(from_left.read() == pattern(count, left) && from_right.read() == pattern(count, right));
}

// A receive that comes first in the program, and a send that waits for it in the end.
void receives_first(MPI_Comm comm, const Stream& stream, int count) {
  const Bytes out(pattern(count, rank));
  const Bytes in(static_cast<std::size_t>(count));
  MPI_Request request = MPI_REQUEST_NULL;
  CHECK(MPIX_Irecv_enqueue(in.data(), count, MPI_CHAR, left, 0, comm, &request) == MPI_SUCCESS);
  CHECK(MPIX_Send_enqueue(out.data(), count, MPI_CHAR, right, 0, comm) == MPI_SUCCESS);
  CHECK(MPIX_Wait_enqueue(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && request == MPI_REQUEST_NULL);
  stream.wait();
  CHECK(in.read() == pattern(count, left));
}

// A message goes around, from buffer to buffer; all is queued before rank 0 begins.
void goes_around(MPI_Comm comm, const Stream& stream, int count) {
  constexpr int kRounds = 10;
  const Bytes token(rank == 0 ? pattern(count, 5) : std::vector<char>(static_cast<std::size_t>(count)));
  if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
  for (int round = 0; round < kRounds; ++round) {
    if (rank == 0) CHECK(MPIX_Send_enqueue(token.data(), count, MPI_CHAR, right, round, comm) == MPI_SUCCESS);
    MPI_Status status;
    CHECK(MPIX_Recv_enqueue(token.data(), count, MPI_CHAR, left, round, comm, &status) == MPI_SUCCESS);
    CHECK(status.MPI_SOURCE == left && status.MPI_TAG == round);
    if (rank != 0) CHECK(MPIX_Send_enqueue(token.data(), count, MPI_CHAR, right, round, comm) == MPI_SUCCESS);
  }
  if (rank != 0) MPI_Barrier(MPI_COMM_WORLD);
  stream.wait();
  CHECK(token.read() == pattern(count, 5));
}

// Rank 0 starts both sides of a request and its answer.
void asks(MPI_Comm comm, const Stream& stream, int count) {
  if (size == 1 || rank > 1) return;
  const Bytes question(rank == 0 ? pattern(count, 7) : std::vector<char>(static_cast<std::size_t>(count)));
  const Bytes answer(static_cast<std::size_t>(count));
  if (rank == 0) {
    MPI_Request requests[2];
    MPIX_Irecv_enqueue(answer.data(), count, MPI_CHAR, 1, 0, comm, &requests[0]);
    MPIX_Isend_enqueue(question.data(), count, MPI_CHAR, 1, 0, comm, &requests[1]);
    CHECK(MPIX_Waitall_enqueue(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    stream.wait();
    CHECK(answer.read() == pattern(count, 7));
  } else {
    MPIX_Recv_enqueue(question.data(), count, MPI_CHAR, 0, 0, comm, MPI_STATUS_IGNORE);
    CHECK(MPIX_Send_enqueue(question.data(), count, MPI_CHAR, 0, 0, comm) == MPI_SUCCESS);
    stream.wait();
  }
}

// A wait queues the receive that it names, and not one whose message depends on what follows.
void waits_for_one(MPI_Comm comm, const Stream& stream) {
  if (size == 1 || rank > 1) return;
  constexpr int kCount = 1000;
  const int other = 1 - rank;
  const Bytes out(pattern(kCount, rank));
  const Bytes first(kCount);
  const Bytes second(kCount);
  if (rank == 0) {
    MPI_Request requests[2];
    MPIX_Irecv_enqueue(first.data(), kCount, MPI_CHAR, other, 1, comm, &requests[0]);
    MPIX_Irecv_enqueue(second.data(), kCount, MPI_CHAR, other, 2, comm, &requests[1]);
    MPIX_Wait_enqueue(&requests[0], MPI_STATUS_IGNORE);
    MPIX_Send_enqueue(out.data(), kCount, MPI_CHAR, other, 0, comm);
    MPIX_Wait_enqueue(&requests[1], MPI_STATUS_IGNORE);
    stream.wait();
    CHECK(first.read() == pattern(kCount, other) && second.read() == pattern(kCount, 0));
  } else {
    MPIX_Send_enqueue(out.data(), kCount, MPI_CHAR, other, 1, comm);
    MPIX_Recv_enqueue(first.data(), kCount, MPI_CHAR, other, 0, comm, MPI_STATUS_IGNORE);
    MPIX_Send_enqueue(first.data(), kCount, MPI_CHAR, other, 2, comm);
    stream.wait();
  }
}

// Many messages of many sizes, some in groups whose other end is not in groups.
void keeps_order(MPI_Comm comm, const Stream& stream) {
  constexpr int kMessages = 60;
  std::vector<Bytes> out;
  std::vector<Bytes> in;
  std::vector<MPI_Request> requests;
  const auto count_of = [](int i) { return i % 7 == 0 ? 0 : i % 11 == 0 ? kPiece + i : i * 37; };
  for (int i = 0; i < kMessages; ++i) {
    out.emplace_back(pattern(count_of(i), rank + i));
    in.emplace_back(static_cast<std::size_t>(count_of(i)));
  }
  for (int i = 0; i < kMessages; ++i) {
    const auto at = static_cast<std::size_t>(i);
    MPIX_Isend_enqueue(out[at].data(), count_of(i), MPI_CHAR, right, i, comm, &requests.emplace_back());
    if (rank % 2 == 0) {
      MPIX_Irecv_enqueue(in[at].data(), count_of(i), MPI_CHAR, left, i, comm, &requests.emplace_back());
    } else {
      MPIX_Recv_enqueue(in[at].data(), count_of(i), MPI_CHAR, left, i, comm, MPI_STATUS_IGNORE);
    }
    if (i % 5 != 4) continue;
    CHECK(MPIX_Waitall_enqueue(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE) ==
          MPI_SUCCESS);
    requests.clear();
  }
  stream.wait();
  for (int i = 0; i < kMessages; ++i)
    CHECK(in[static_cast<std::size_t>(i)].read() == pattern(count_of(i), left + i));
}

void to_all(MPI_Comm comm, const Stream& stream) {
  const int count = 2 * kPiece + 5;
  const auto length = static_cast<std::size_t>(count);
  const Bytes out(pattern(count, rank));
  std::vector<Bytes> in;
  std::vector<MPI_Request> requests(2 * static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) in.emplace_back(length);
  for (int i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    MPIX_Isend_enqueue_c(out.data(), count, MPI_CHAR, i, 0, comm, &requests[2 * at]);
    MPIX_Irecv_enqueue_c(in[at].data(), count, MPI_CHAR, i, 0, comm, &requests[2 * at + 1]);
  }
  CHECK(MPIX_Waitall_enqueue(2 * size, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  stream.wait();
  for (int i = 0; i < size; ++i) CHECK(in[static_cast<std::size_t>(i)].read() == pattern(count, i));
}

// Groups of messages that all ranks know: any number between each two, of any size, in any order of the pairs.
void groups(MPI_Comm comm, const Stream& stream, unsigned seed) {
  std::mt19937 shared(seed);
  std::mt19937 own(seed + 1000 + static_cast<unsigned>(rank));
  const auto below = [](std::mt19937& numbers, unsigned limit) {
    return static_cast<int>(numbers() % limit);
  };
  struct Planned {
    int from, to, tag, count;
  };
  std::vector<Bytes> out;
  std::vector<Bytes> in;
  std::vector<std::vector<char>> expected;
  for (int group = 0; group < 8; ++group) {
    std::vector<Planned> plan;
    for (int from = 0; from < size; ++from) {
      for (int to = 0; to < size; ++to) {
        for (int i = below(shared, 3); i > 0; --i) {
          const int count = below(shared, 3) == 0 ? below(shared, 7 * kPiece) : below(shared, 1000);
          plan.push_back({from, to, below(shared, 3), count});
        }
      }
    }
    // Those of a pair keep their order.
    std::vector<int> keys(static_cast<std::size_t>(size * size));
    for (int& key : keys) key = below(own, 1000);
    const auto key_of = [&](const Planned& one) {
      return keys[static_cast<std::size_t>(one.from * size + one.to)];
    };
    std::stable_sort(plan.begin(), plan.end(),
                     [&](const Planned& a, const Planned& b) { return key_of(a) < key_of(b); });
    std::vector<MPI_Request> requests;
    for (const Planned& one : plan) {
      const std::vector<char> bytes = pattern(one.count, one.from * 7 + one.to + one.tag + group);
      if (one.from == rank) {
        out.emplace_back(bytes);
        MPIX_Isend_enqueue(out.back().data(), one.count, MPI_CHAR, one.to, one.tag, comm,
                           &requests.emplace_back());
      }
      if (one.to == rank) {
        in.emplace_back(bytes.size());
        expected.push_back(bytes);
        MPIX_Irecv_enqueue(in.back().data(), one.count, MPI_CHAR, one.from, one.tag, comm,
                           &requests.emplace_back());
      }
    }
    CHECK(MPIX_Waitall_enqueue(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE) ==
          MPI_SUCCESS);
  }
  stream.wait();
  for (std::size_t i = 0; i < in.size(); ++i) CHECK(in[i].read() == expected[i]);
}

// The end of a communicator queues what has been started.
void ends_with_pending(const Stream& stream) {
  const int count = 3 * kPiece;
  const Bytes out(pattern(count, rank));
  const Bytes in(static_cast<std::size_t>(count));
  MPI_Comm comm = stream.with(MPI_COMM_WORLD);
  MPI_Request requests[2];
  MPIX_Isend_enqueue(out.data(), count, MPI_CHAR, right, 0, comm, &requests[0]);
  MPIX_Irecv_enqueue(in.data(), count, MPI_CHAR, left, 0, comm, &requests[1]);
  CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
  CHECK(in.read() == pattern(count, left));
  CHECK(MPIX_Waitall_enqueue(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
}

// Two communicators with one stream, each with messages of its own, also of the whole standard.
void two_communicators(MPI_Comm comm, const Stream& stream) {
  MPI_Comm other = stream.with(comm);
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(comm, &copy);
  MPIX_Stream found = MPIX_STREAM_NULL;
  CHECK(MPIX_Comm_get_stream(other, 0, &found) == MPI_SUCCESS && found == stream.handle);
  CHECK(MPIX_Comm_get_stream(copy, 0, &found) == MPI_SUCCESS && found == MPIX_STREAM_NULL);
  MPI_Comm_free(&copy);
  const Bytes out(pattern(500, rank));
  const Bytes again(pattern(500, rank + 9));
  const Bytes in(500);
  const Bytes in_other(500);
  MPIX_Send_enqueue(out.data(), 500, MPI_CHAR, right, 1, comm);
  MPIX_Send_enqueue(again.data(), 500, MPI_CHAR, right, 1, other);
  MPIX_Recv_enqueue(in_other.data(), 500, MPI_CHAR, left, 1, other, MPI_STATUS_IGNORE);
  MPIX_Recv_enqueue(in.data(), 500, MPI_CHAR, left, 1, comm, MPI_STATUS_IGNORE);
  stream.wait();
  CHECK(in.read() == pattern(500, left) && in_other.read() == pattern(500, left + 9));
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, other);
  CHECK(sum == size * (size - 1) / 2);
  CHECK(MPI_Comm_disconnect(&other) == MPI_SUCCESS);
}

void all(const Stream& stream) {
  MPI_Comm comm = stream.with(MPI_COMM_WORLD);
  for (const int count : {0, 8, kPiece, kPiece + 1, 4 * kPiece, 3 << 20}) {
    exchanges(comm, stream, count);
    receives_first(comm, stream, count);
    if (size > 1 || count <= 4 * kPiece) goes_around(comm, stream, count);
    if (count <= 4 * kPiece) asks(comm, stream, count);
  }
  waits_for_one(comm, stream);
  keeps_order(comm, stream);
  to_all(comm, stream);
  for (const unsigned seed : {1U, 2U, 3U}) groups(comm, stream, seed);
  two_communicators(comm, stream);
  ends_with_pending(stream);
  CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
}

// --- Ends of the job, on two ranks

void end_by(const std::string& what, MPI_Comm comm, const Stream& stream) {
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  const Bytes& bytes = *new Bytes(64);  // a stream may wait at the end of the job
  if (what == "other_tag" || what == "other_size" || what == "unnoticed" || what == "free_fails") {
    if (rank == 0) MPIX_Send_enqueue(bytes.data(), what == "other_size" ? 16 : 32, MPI_CHAR, 1, 6, comm);
    if (rank == 1)
      MPIX_Recv_enqueue(bytes.data(), 32, MPI_CHAR, 0, what == "other_size" ? 6 : 5, comm, MPI_STATUS_IGNORE);
    if (what == "unnoticed") return;  // MPI_Finalize notices it
    if (what != "free_fails") return stream.wait();
    const int code = class_of(MPI_Comm_free(&comm));
    CHECK(code == (rank == 1 ? MPI_ERR_OTHER : MPI_SUCCESS) && (comm == MPI_COMM_NULL) == (rank == 0));
    if (rank == 0) return;
    CHECK(class_of(MPIX_Send_enqueue(bytes.data(), 1, MPI_CHAR, 0, 0, comm)) == MPI_ERR_COMM);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
    return;
  }
  if (what == "forgotten") {  // to free and to wait
    MPI_Request request = MPI_REQUEST_NULL;
    MPIX_Send_enqueue(bytes.data(), 64, MPI_CHAR, right, 0, comm);
    MPIX_Recv_enqueue(bytes.data(), 64, MPI_CHAR, left, 0, comm, MPI_STATUS_IGNORE);
    MPIX_Irecv_enqueue(bytes.data(), 64, MPI_CHAR, left, 0, comm, &request);
    return;
  }
  if (rank == 0) MPIX_Recv_enqueue(bytes.data(), 64, MPI_CHAR, 1, 0, comm, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  if (what == "waits_at_end") return;
  if (rank == 1 && what == "dies") std::raise(SIGKILL);
  if (rank == 1 && what == "aborts") MPI_Abort(MPI_COMM_WORLD, 9);
  stream.wait();
}

}  // namespace

int main(int argc, char** argv) {
  device::kind() = argc > 1 ? argv[1] : "emulated";
  const std::string what = argc > 2 ? argv[2] : "all";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  right = (rank + 1) % size;
  left = (rank + size - 1) % size;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  auto* const stream = new Stream;
  if (what == "all") {
    all(*stream);
    delete stream;
  } else {
    end_by(what, stream->with(MPI_COMM_WORLD), *stream);
  }
  MPI_Finalize();
  if (rank == 0)
    std::printf("messages on streams of %d ranks in %s memory: as expected\n", size, device::kind().c_str());
  return 0;
}
