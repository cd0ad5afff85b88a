// Collectives that are queued on streams: `collectives KIND` on any number of ranks, and `collectives KIND
// WHAT` for misuse and ends of the job.
#include <cstdint>
#include <type_traits>

#include "stream.hpp"

namespace {

using device::Bytes;
using device::class_of;
using device::pattern;
using device::Stream;

int rank = 0, size = 0;

template <class T>
std::vector<char> bytes_of(const std::vector<T>& values) {
  std::vector<char> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// The collectives of MPI that streams have too: calls that queue them, and calls that wait.
struct Calls {
  decltype(&MPI_Allreduce) allreduce;
  decltype(&MPI_Allreduce_c) allreduce_c;
  decltype(&MPI_Reduce) reduce;
  decltype(&MPI_Reduce_c) reduce_c;
  decltype(&MPI_Reduce_scatter_block) reduce_scatter_block;
  decltype(&MPI_Reduce_scatter_block_c) reduce_scatter_block_c;
  decltype(&MPI_Bcast) bcast;
  decltype(&MPI_Allgather) allgather;
  decltype(&MPI_Allgather_c) allgather_c;
  decltype(&MPI_Alltoall) alltoall;
  decltype(&MPI_Alltoall_c) alltoall_c;
  decltype(&MPI_Barrier) barrier;
};
const Calls kQueued{&MPIX_Allreduce_enqueue,
                    &MPIX_Allreduce_enqueue_c,
                    &MPIX_Reduce_enqueue,
                    &MPIX_Reduce_enqueue_c,
                    &MPIX_Reduce_scatter_block_enqueue,
                    &MPIX_Reduce_scatter_block_enqueue_c,
                    &MPIX_Bcast_enqueue,
                    &MPIX_Allgather_enqueue,
                    &MPIX_Allgather_enqueue_c,
                    &MPIX_Alltoall_enqueue,
                    &MPIX_Alltoall_enqueue_c,
                    &MPIX_Barrier_enqueue};
const Calls kWaiting{&MPI_Allreduce,
                     &MPI_Allreduce_c,
                     &MPI_Reduce,
                     &MPI_Reduce_c,
                     &MPI_Reduce_scatter_block,
                     &MPI_Reduce_scatter_block_c,
                     &MPI_Bcast,
                     &MPI_Allgather,
                     &MPI_Allgather_c,
                     &MPI_Alltoall,
                     &MPI_Alltoall_c,
                     &MPI_Barrier};
const Calls* calls = &kQueued;

// --- Reductions

struct Operator {
  MPI_Op handle;
  double (*combine)(double, double);
};
const Operator kOperators[] = {
    {MPI_SUM, [](double a, double b) { return a + b; }},
    {MPI_PROD, [](double a, double b) { return a * b; }},
    {MPI_MIN, [](double a, double b) { return a < b ? a : b; }},
    {MPI_MAX, [](double a, double b) { return a > b ? a : b; }},
};

// Small numbers, of which all types have the results.
template <class T>
T element(int of_rank, int i) {
  return static_cast<T>((of_rank * 3 + i) % 5 - 2);
}
template <class T>
std::vector<T> elements(int of_rank, int count) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) values.push_back(element<T>(of_rank, i));
  return values;
}
template <class T>
std::vector<T> combined(const Operator& op, int count) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i) {
    double value = element<T>(0, i);
    for (int other = 1; other < size; ++other) value = op.combine(value, element<T>(other, i));
    values.push_back(static_cast<T>(value));
  }
  return values;
}

template <class T>
void reductions(MPI_Comm comm, const Stream& stream, MPI_Datatype type, const Operator& op, int part) {
  const int count = part * size;
  const std::vector<char> mine = bytes_of(elements<T>(rank, count));
  const std::vector<char> all = bytes_of(combined<T>(op, count));
  const auto begin = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank * part) * sizeof(T));
  const auto part_bytes = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(part) * sizeof(T));
  const std::vector<char> own(all.begin() + begin, all.begin() + begin + part_bytes);
  const int root = size - 1;
  const Bytes in(mine), out(mine.size()), in_place(mine), scattered(own.size()), scattered_in_place(mine);
  const Bytes at_root(mine), at_root_in_place(mine);
  CHECK(calls->allreduce(in.data(), out.data(), count, type, op.handle, comm) == MPI_SUCCESS);
  CHECK(calls->allreduce_c(MPI_IN_PLACE, in_place.data(), count, type, op.handle, comm) == MPI_SUCCESS);
  CHECK(calls->reduce(in.data(), rank == root ? at_root.data() : nullptr, count, type, op.handle, root,
                      comm) == MPI_SUCCESS);
  const void* const sent = rank == root ? MPI_IN_PLACE : at_root_in_place.data();
  CHECK(calls->reduce_c(sent, at_root_in_place.data(), count, type, op.handle, root, comm) == MPI_SUCCESS);
  CHECK(calls->reduce_scatter_block(in.data(), scattered.data(), part, type, op.handle, comm) == MPI_SUCCESS);
  CHECK(calls->reduce_scatter_block_c(MPI_IN_PLACE, scattered_in_place.data(), part, type, op.handle, comm) ==
        MPI_SUCCESS);
  stream.wait();
  CHECK(in.read() == mine && out.read() == all && in_place.read() == all);
  CHECK(at_root.read() == (rank == root ? all : mine));
  CHECK(at_root_in_place.read() == (rank == root ? all : mine));
  std::vector<char> first = scattered_in_place.read();
  first.resize(own.size());
  CHECK(scattered.read() == own && first == own);
}

// Types that are defined by others.
void derived_types(MPI_Comm comm, const Stream& stream) {
  MPI_Datatype triple = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(3, MPI_INT, &triple);
  MPI_Type_commit(&triple);
  reductions<std::int32_t>(comm, stream, MPI_INTEGER4, kOperators[0], 3);
  const Bytes in(bytes_of(elements<int>(rank, 12)));
  const Bytes out(12 * sizeof(int));
  CHECK(MPIX_Allreduce_enqueue(in.data(), out.data(), 4, triple, MPI_MAX, comm) == MPI_SUCCESS);
  stream.wait();
  CHECK(out.read() == bytes_of(combined<int>(kOperators[3], 12)));
  MPI_Type_free(&triple);
}

// --- Moving data

std::vector<char> of_all(const std::vector<int>& seeds, int part) {
  std::vector<char> all;
  for (const int seed : seeds) {
    const std::vector<char> one = pattern(part, seed);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

// `type`: of `width` bytes. The bytes begin at any address.
void moves(MPI_Comm comm, const Stream& stream, MPI_Datatype type, int width, int count, int shift) {
  const int part = width * count;
  const auto places = static_cast<std::size_t>(part * size + shift);
  std::vector<int> gathered_from, sent, got;
  for (int other = 0; other < size; ++other) {
    gathered_from.push_back(other);
    sent.push_back(rank * 100 + other);
    got.push_back(other * 100 + rank);
  }
  const auto shifted = [&](const std::vector<char>& bytes) {
    std::vector<char> moved(static_cast<std::size_t>(shift));
    moved.insert(moved.end(), bytes.begin(), bytes.end());
    moved.resize(places);
    return moved;
  };
  const auto read = [&](const Bytes& bytes, std::size_t length) {
    const std::vector<char> found = bytes.read();
    return std::vector<char>(found.begin() + shift,
                             found.begin() + shift + static_cast<std::ptrdiff_t>(length));
  };
  const int root = size / 2;
  const Bytes broadcast(shifted(rank == root ? pattern(part, 50) : std::vector<char>()));
  const Bytes mine(shifted(pattern(part, rank))), out(places),
      out_in_place(shifted(of_all(std::vector<int>(static_cast<std::size_t>(size), rank), part)));
  const Bytes to_all(shifted(of_all(sent, part))), from_all(places), both(shifted(of_all(sent, part)));
  CHECK(calls->bcast(broadcast.data() + shift, count, type, root, comm) == MPI_SUCCESS);
  CHECK(calls->allgather(mine.data() + shift, count, type, out.data() + shift, part, MPI_BYTE, comm) ==
        MPI_SUCCESS);
  CHECK(calls->barrier(comm) == MPI_SUCCESS);
  CHECK(calls->allgather_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out_in_place.data() + shift, count, type,
                           comm) == MPI_SUCCESS);
  CHECK(calls->alltoall(to_all.data() + shift, count, type, from_all.data() + shift, count, type, comm) ==
        MPI_SUCCESS);
  CHECK(calls->alltoall_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, both.data() + shift, count, type, comm) ==
        MPI_SUCCESS);
  stream.wait();
  const auto all = static_cast<std::size_t>(part * size);
  CHECK(read(broadcast, static_cast<std::size_t>(part)) == pattern(part, 50));
  CHECK(read(out, all) == of_all(gathered_from, part) &&
        read(out_in_place, all) == of_all(gathered_from, part));
  CHECK(read(from_all, all) == of_all(got, part) && read(both, all) == of_all(got, part));
}

// All is queued before the streams begin: sums that go on from one another, with messages between and before them.
void among_messages(MPI_Comm comm, const Stream& stream) {
  constexpr int kRounds = 7;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const Bytes value(bytes_of(std::vector<std::int64_t>{rank + 1}));
  const Bytes passed(sizeof(std::int64_t));
  std::vector<MPI_Request> requests(2);
  std::int64_t expected = 0;
  for (int other = 1; other <= size; ++other) expected += other;
  for (int round = 0; round < kRounds; ++round) {
    CHECK(MPIX_Allreduce_enqueue(MPI_IN_PLACE, value.data(), 1, MPI_INT64_T, MPI_SUM, comm) == MPI_SUCCESS);
    // Started, and not awaited before the next collective, which comes behind them.
    MPIX_Irecv_enqueue(passed.data(), 1, MPI_INT64_T, left, round, comm, &requests[0]);
    MPIX_Isend_enqueue(value.data(), 1, MPI_INT64_T, right, round, comm, &requests[1]);
    CHECK(MPIX_Allreduce_enqueue(passed.data(), value.data(), 1, MPI_INT64_T, MPI_MAX, comm) == MPI_SUCCESS);
    CHECK(MPIX_Waitall_enqueue(2, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(MPIX_Bcast_enqueue(value.data(), 1, MPI_LONG, round % size, comm) == MPI_SUCCESS);
    if (round > 0) expected *= size;
  }
  stream.wait();
  CHECK(value.read() == bytes_of(std::vector<std::int64_t>{expected}));
}

// A communicator of its own for some ranks, with the same stream, and one that ends with work under way.
void parts_of_the_ranks(const Stream& stream) {
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm comm = stream.with(half);
  int in_half = 0;
  MPI_Comm_size(half, &in_half);
  const Bytes value(bytes_of(std::vector<float>{1, 2}));
  CHECK(MPIX_Allreduce_enqueue(MPI_IN_PLACE, value.data(), 2, MPI_FLOAT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
  const auto number = static_cast<float>(in_half);
  CHECK(value.read() == bytes_of(std::vector<float>{number, 2 * number}));
  MPI_Comm_free(&half);
}

// Ordinary calls come behind what is queued. They stage what streams do not do, and if one rank alone has other memory.
void ordinary_calls(MPI_Comm comm, const Stream& stream) {
  calls = &kWaiting;
  for (const int part : {0, 1, 1000}) reductions<double>(comm, stream, MPI_DOUBLE, kOperators[0], part);
  reductions<std::int32_t>(comm, stream, MPI_INT, kOperators[3], 70001);
  for (const int count : {1, 5000}) moves(comm, stream, MPI_CHAR, 1, count, 3);
  calls = &kQueued;
  const Bytes value(bytes_of(std::vector<std::int64_t>{rank + 1})), sum(sizeof(std::int64_t));
  std::int64_t expected = size * (size + 1) / 2;
  for (int round = 0; round < 5; ++round, expected *= size) {
    CHECK(MPIX_Allreduce_enqueue(MPI_IN_PLACE, value.data(), 1, MPI_INT64_T, MPI_SUM, comm) == MPI_SUCCESS);
    CHECK(MPI_Allreduce(value.data(), sum.data(), 1, MPI_INT64_T, MPI_MAX, comm) == MPI_SUCCESS);
    CHECK(sum.read() == bytes_of(std::vector<std::int64_t>{expected}));
  }
  const Bytes flags(bytes_of(std::vector<int>{rank == 0 ? 5 : 7})), both(sizeof(int));
  CHECK(MPI_Allreduce(flags.data(), both.data(), 1, MPI_INT, MPI_BAND, comm) == MPI_SUCCESS);
  CHECK(both.read() == bytes_of(std::vector<int>{size == 1 ? 5 : 5 & 7}));
  int on_host = 3;
  const Bytes mine(bytes_of(std::vector<int>{3})), all(sizeof(int));
  void* const sent = rank == size - 1 ? static_cast<void*>(&on_host) : mine.data();
  CHECK(MPI_Allreduce(sent, all.data(), 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  CHECK(all.read() == bytes_of(std::vector<int>{3 * size}));
  int root_has = rank == 0 ? 9 : 0;
  CHECK(MPI_Bcast(&root_has, 1, MPI_INT, 0, comm) == MPI_SUCCESS && root_has == 9);
  CHECK(class_of(MPI_Allreduce(mine.data(), all.data(), -1, MPI_INT, MPI_SUM, comm)) == MPI_ERR_COUNT);
}

void all(const Stream& stream) {
  MPI_Comm comm = stream.with(MPI_COMM_WORLD);
  for (const Operator& op : kOperators) {
    for (const int part : {0, 1, 1000}) {
      reductions<std::int32_t>(comm, stream, MPI_INT32_T, op, part);
      reductions<std::int32_t>(comm, stream, MPI_INT, op, part);
      reductions<std::int64_t>(comm, stream, MPI_INT64_T, op, part);
      reductions<std::int64_t>(comm, stream, MPI_LONG, op, part);
      reductions<std::int64_t>(comm, stream, MPI_LONG_LONG, op, part);
      reductions<float>(comm, stream, MPI_FLOAT, op, part);
      reductions<double>(comm, stream, MPI_DOUBLE, op, part);
    }
    reductions<double>(comm, stream, MPI_DOUBLE, op, 70001);  // more than one step takes
  }
  derived_types(comm, stream);
  for (const int count : {0, 1, 3, 5000, 300001}) moves(comm, stream, MPI_CHAR, 1, count, 3);
  for (const int count : {1, 1000, 70001}) moves(comm, stream, MPI_INT, 4, count, 4);
  moves(comm, stream, MPI_SHORT, 2, 77, 2);
  among_messages(comm, stream);
  parts_of_the_ranks(stream);
  among_messages(comm, stream);
  ordinary_calls(comm, stream);
  CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
}

// --- Misuse: errors with a class, which queue nothing

void misuse(MPI_Comm comm, const Stream& stream) {
  int host[64] = {0};
  const Bytes bytes(bytes_of(elements<int>(rank, 64))), result(64 * sizeof(int));
  char* const in = bytes.data();
  char* const out = result.data();
  const auto reduce = [&](const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm on) {
    const int code = class_of(MPIX_Allreduce_enqueue(from, to, count, type, op, on));
    CHECK(code == class_of(MPIX_Reduce_enqueue(from, to, count, type, op, rank, on)));
    return code;
  };
  CHECK(reduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_ERR_COMM);
  CHECK(reduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL) == MPI_ERR_COMM);
  CHECK(reduce(in, out, 1, MPI_INT, MPI_BAND, comm) == MPI_ERR_OP);
  CHECK(reduce(in, out, 1, MPI_INT, MPI_OP_NULL, comm) == MPI_ERR_OP);
  CHECK(reduce(in, out, 1, MPI_2INT, MPI_SUM, comm) == MPI_ERR_OP);
  for (const MPI_Datatype type : {MPI_CHAR, MPI_SHORT, MPI_UNSIGNED, MPI_C_DOUBLE_COMPLEX, MPI_C_BOOL,
                                  MPI_DATATYPE_NULL, MPI_DOUBLE_INT})
    CHECK(reduce(in, out, 1, type, MPI_SUM, comm) == MPI_ERR_TYPE);
  CHECK(reduce(in, out, -1, MPI_INT, MPI_SUM, comm) == MPI_ERR_COUNT);
  CHECK(reduce(host, out, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
  CHECK(reduce(in, host, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
  CHECK(reduce(in, nullptr, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
  CHECK(reduce(in, in, 1, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
  CHECK(reduce(in, in + 8, 4, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
  CHECK(reduce(in + 1, out, 4, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
  CHECK(reduce(in, out, 65, MPI_INT, MPI_SUM, comm) == MPI_ERR_BUFFER);
  CHECK(class_of(MPIX_Reduce_enqueue(in, out, 1, MPI_INT, MPI_SUM, size, comm)) == MPI_ERR_ROOT);
  if (size > 1)
    CHECK(class_of(MPIX_Reduce_enqueue(MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM, (rank + 1) % size, comm)) ==
          MPI_ERR_BUFFER);
  CHECK(class_of(MPIX_Reduce_scatter_block_enqueue_c(in, out, INT64_MAX / 2, MPI_INT, MPI_SUM, comm)) ==
        MPI_ERR_COUNT);
  CHECK(class_of(MPIX_Bcast_enqueue(out, 1, MPI_INT, -5, comm)) == MPI_ERR_ROOT);
  CHECK(class_of(MPIX_Bcast_enqueue(host, 1, MPI_INT, 0, comm)) == MPI_ERR_BUFFER);
  CHECK(class_of(MPIX_Bcast_enqueue(MPI_IN_PLACE, 1, MPI_INT, 0, comm)) == MPI_ERR_BUFFER);
  MPI_Datatype gaps = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  CHECK(class_of(MPIX_Bcast_enqueue(out, 1, gaps, 0, comm)) == MPI_ERR_TYPE);  // not committed
  MPI_Type_commit(&gaps);
  CHECK(class_of(MPIX_Bcast_enqueue(out, 1, gaps, 0, comm)) == MPI_ERR_TYPE);
  CHECK(reduce(in, out, 1, gaps, MPI_SUM, comm) == MPI_ERR_TYPE);
  MPI_Type_free(&gaps);
  const auto gather = [&](const void* from, int sent, void* to, int received) {
    const int code = class_of(MPIX_Allgather_enqueue(from, sent, MPI_INT, to, received, MPI_INT, comm));
    CHECK(code == class_of(MPIX_Alltoall_enqueue(from, sent, MPI_INT, to, received, MPI_INT, comm)));
    return code;
  };
  CHECK(gather(in, 2, out, 1) == MPI_ERR_TRUNCATE && gather(in, 1, out, 2) == MPI_ERR_TRUNCATE);
  CHECK(gather(in, 1, in, 1) == MPI_ERR_BUFFER && gather(host, 1, out, 1) == MPI_ERR_BUFFER);
  CHECK(gather(in, 1, MPI_IN_PLACE, 1) == MPI_ERR_BUFFER && gather(in, 1, nullptr, 1) == MPI_ERR_BUFFER);
  CHECK(gather(in, -1, out, 1) == MPI_ERR_COUNT && gather(in, 1, out, -1) == MPI_ERR_COUNT);
  CHECK(class_of(MPIX_Barrier_enqueue(MPI_COMM_WORLD)) == MPI_ERR_COMM);
  CHECK(MPIX_Allreduce_enqueue(in, out, 64, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  stream.wait();
  CHECK(result.read() == bytes_of(combined<int>(kOperators[0], 64)));
}

// The default stream of the process, which its ranks share, and that of a device that is not its own.
void streams_without_group(bool of_other_device) {
  void* const null = nullptr;
  MPI_Info info = MPI_INFO_NULL;
  MPIX_Stream stream = MPIX_STREAM_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "type", "emulated");
  CHECK(MPIX_Info_set_hex(info, "value", &null, sizeof null) == MPI_SUCCESS);
  if (of_other_device) MPI_Info_set(info, "weft_memory_kind", "emulated:1");
  CHECK(MPIX_Stream_create(info, &stream) == MPI_SUCCESS);
  CHECK(MPIX_Stream_comm_create(MPI_COMM_WORLD, stream, &comm) == MPI_SUCCESS);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  CHECK(class_of(MPIX_Barrier_enqueue(comm)) == MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && MPIX_Stream_free(&stream) == MPI_SUCCESS);
  MPI_Info_free(&info);
}

// A communicator that has messages on streams alone.
void without_group(MPI_Comm comm, const Stream& stream) {
  const Bytes in(pattern(40, rank)), out(40);
  CHECK(class_of(MPIX_Allreduce_enqueue(in.data(), out.data(), 10, MPI_INT, MPI_SUM, comm)) ==
        MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(class_of(MPIX_Bcast_enqueue(out.data(), 1, MPI_INT, 0, comm)) == MPI_ERR_UNSUPPORTED_OPERATION);
  CHECK(class_of(MPIX_Barrier_enqueue(comm)) == MPI_ERR_UNSUPPORTED_OPERATION);
  MPIX_Send_enqueue(in.data(), 40, MPI_CHAR, (rank + 1) % size, 0, comm);
  MPIX_Recv_enqueue(out.data(), 40, MPI_CHAR, (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE);
  stream.wait();
  CHECK(out.read() == pattern(40, (rank + size - 1) % size));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (argc > 1) device::kind() = argv[1];
  const std::string what = argc > 2 ? argv[2] : "";
  if (what == "") {
    const Stream stream;
    all(stream);
  } else {
    const Stream& stream = *new Stream;  // a stream may wait at the end of the job
    MPI_Comm comm = stream.with(MPI_COMM_WORLD);
    const Bytes& bytes = *new Bytes(64);
    if (what == "misuse") misuse(comm, stream);
    if (what == "without_group") without_group(comm, stream);
    if (what == "shared_stream" || what == "other_device") streams_without_group(what == "other_device");
    if (what == "forgotten") MPIX_Allreduce_enqueue(MPI_IN_PLACE, bytes.data(), 4, MPI_INT, MPI_SUM, comm);
    if (what == "fatal") {
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
      MPIX_Allreduce_enqueue(MPI_IN_PLACE, bytes.data(), 1, MPI_CHAR, MPI_SUM, comm);
    }
    if (what == "waits_at_end" && rank == 0) MPIX_Barrier_enqueue(comm);
    if (what == "misuse" || what == "without_group") CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
  }
  MPI_Finalize();
  if (rank == 0)
    std::printf("collectives on streams of %d ranks in %s memory: as expected\n", size,
                device::kind().c_str());
  return 0;
}
