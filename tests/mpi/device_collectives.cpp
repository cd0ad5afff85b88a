// Every collective in its three forms with device memory: argument 1 names the kind, emulated or cuda. The data of even ranks, odd
// ranks or all ranks is on the device, or only what is sent, or only what is received.
#include <functional>
#include <numeric>

#include "device.hpp"

namespace {

using device::Ints;
using Values = std::vector<int>;

int rank = 0;
int size = 1;

enum Form { kWaiting, kStarted, kPersistent };

// Which memory a buffer is in.
struct Memory {
  std::string sent;
  std::string received;
};

void finish(MPI_Request* request, Form form) {
  if (form == kPersistent) {
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    MPI_Request_free(request);
  } else {
    MPI_Wait(request, MPI_STATUS_IGNORE);
  }
}

// Calls MPI_NAME, MPI_INAME or MPI_NAME_init.
#define CALL(form, comm, Name, Iname, ...)                                                      \
  do {                                                                                          \
    MPI_Request request_;                                                                       \
    if ((form) == kWaiting) {                                                                   \
      CHECK(MPI_##Name(__VA_ARGS__, comm) == MPI_SUCCESS);                                      \
    } else {                                                                                    \
      if ((form) == kStarted) CHECK(MPI_I##Iname(__VA_ARGS__, comm, &request_) == MPI_SUCCESS); \
      if ((form) == kPersistent)                                                                \
        CHECK(MPI_##Name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request_) == MPI_SUCCESS);   \
      finish(&request_, form);                                                                  \
    }                                                                                           \
  } while (0)

Values values(int count, const std::function<int(int)>& value) {
  Values made(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) made[static_cast<std::size_t>(i)] = value(i);
  return made;
}
Values nothing(int count) { return Values(static_cast<std::size_t>(count), -1); }

// Counts and displacements: process i has i + 1 numbers, with a number in between.
struct Parts {
  Parts() {
    for (int i = 0; i < size; ++i) {
      counts.push_back(i + 1);
      places.push_back(total);
      total += i + 2;
    }
  }
  Values counts;
  Values places;
  int total = 0;

  Values expected(const std::function<int(int, int)>& value) const {
    Values made = nothing(total);
    for (int i = 0; i < size; ++i)
      for (int k = 0; k < counts[static_cast<std::size_t>(i)]; ++k)
        made[static_cast<std::size_t>(places[static_cast<std::size_t>(i)] + k)] = value(i, k);
    return made;
  }
};

void move_data(Form form, const Memory& in, int count) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  const auto mine = values(count, [](int i) { return rank * 1000 + i; });
  const auto of_all = values(count * size, [&](int i) { return i / count * 1000 + i % count; });
  for (int root = 0; root < size; ++root) {
    Ints data(rank == root ? mine : nothing(count), in.received);
    CALL(form, comm, Bcast, bcast, data.data(), count, MPI_INT, root);
    CHECK(data.read() == values(count, [&](int i) { return root * 1000 + i; }));

    Ints out(mine, in.sent);
    Ints all(nothing(count * size), in.received);
    CALL(form, comm, Gather, gather, out.data(), count, MPI_INT, all.data(), count, MPI_INT, root);
    CHECK(all.read() == (rank == root ? of_all : nothing(count * size)));
    Ints whole(of_all, in.sent);
    Ints part(nothing(count), in.received);
    CALL(form, comm, Scatter, scatter, whole.data(), count, MPI_INT, part.data(), count, MPI_INT, root);
    CHECK(part.read() == mine);
  }
  Ints out(mine, in.sent);
  Ints all(nothing(count * size), in.received);
  CALL(form, comm, Allgather, allgather, out.data(), count, MPI_INT, all.data(), count, MPI_INT);
  CHECK(all.read() == of_all);
  Values own = nothing(count * size);
  std::copy(mine.begin(), mine.end(), own.begin() + rank * count);
  all.write(own);
  CALL(form, comm, Allgather, allgather, MPI_IN_PLACE, 0, MPI_INT, all.data(), count, MPI_INT);
  CHECK(all.read() == of_all);

  const auto to_all = values(count * size, [&](int i) { return rank * 1000 + i / count; });
  const auto from_all = values(count * size, [&](int i) { return i / count * 1000 + rank; });
  Ints sent(to_all, in.sent);
  Ints received(nothing(count * size), in.received);
  CALL(form, comm, Alltoall, alltoall, sent.data(), count, MPI_INT, received.data(), count, MPI_INT);
  CHECK(received.read() == from_all);
  received.write(to_all);
  CALL(form, comm, Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_INT, received.data(), count, MPI_INT);
  CHECK(received.read() == from_all);
}

void move_varying(Form form, const Memory& in) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  const Parts parts;
  const int* const counts = parts.counts.data();
  const int* const places = parts.places.data();
  const auto mine = values(rank + 1, [](int k) { return rank * 1000 + k; });
  const Values of_all = parts.expected([](int i, int k) { return i * 1000 + k; });
  for (int root = 0; root < size; ++root) {
    Ints out(mine, in.sent);
    Ints all(nothing(parts.total), in.received);
    CALL(form, comm, Gatherv, gatherv, out.data(), rank + 1, MPI_INT, all.data(), counts, places, MPI_INT,
         root);
    CHECK(all.read() == (rank == root ? of_all : nothing(parts.total)));
    Ints whole(of_all, in.sent);
    Ints part(nothing(rank + 1), in.received);
    CALL(form, comm, Scatterv, scatterv, whole.data(), counts, places, MPI_INT, part.data(), rank + 1,
         MPI_INT, root);
    CHECK(part.read() == mine);
  }
  Ints out(mine, in.sent);
  Ints all(nothing(parts.total), in.received);
  CALL(form, comm, Allgatherv, allgatherv, out.data(), rank + 1, MPI_INT, all.data(), counts, places,
       MPI_INT);
  CHECK(all.read() == of_all);

  // Process i gets i + 1 numbers of each; each gets as many from all.
  const Values equal_counts(static_cast<std::size_t>(size), rank + 1);
  Values equal_places;
  for (int i = 0; i < size; ++i) equal_places.push_back(i * (rank + 1));
  Ints sent(parts.expected([](int i, int k) { return rank * 1000 + i * 10 + k; }), in.sent);
  Ints received(nothing(size * (rank + 1)), in.received);
  const auto expected =
      values(size * (rank + 1), [](int i) { return i / (rank + 1) * 1000 + rank * 10 + i % (rank + 1); });
  CALL(form, comm, Alltoallv, alltoallv, sent.data(), counts, places, MPI_INT, received.data(),
       equal_counts.data(), equal_places.data(), MPI_INT);
  CHECK(received.read() == expected);

  Values byte_places = parts.places;
  Values equal_bytes = equal_places;
  for (int& place : byte_places) place *= static_cast<int>(sizeof(int));
  for (int& place : equal_bytes) place *= static_cast<int>(sizeof(int));
  const std::vector<MPI_Datatype> types(static_cast<std::size_t>(size), MPI_INT);
  received.write(nothing(size * (rank + 1)));
  CALL(form, comm, Alltoallw, alltoallw, sent.data(), counts, byte_places.data(), types.data(),
       received.data(), equal_counts.data(), equal_bytes.data(), types.data());
  CHECK(received.read() == expected);
}

void add_in_order(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<int*>(inout)[i] += static_cast<int*>(in)[i];
}

void combine(Form form, const Memory& in, int count, MPI_Op op) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  const auto mine = values(count, [](int i) { return rank + i; });
  const auto sum_to = [&](int last) {
    return values(count, [&](int i) { return last * (last + 1) / 2 + (last + 1) * i; });
  };
  const Values sum = sum_to(size - 1);
  Ints out(mine, in.sent);
  Ints result(nothing(count), in.received);
  for (int root = 0; root < size; ++root) {
    result.write(nothing(count));
    CALL(form, comm, Reduce, reduce, out.data(), result.data(), count, MPI_INT, op, root);
    CHECK(result.read() == (rank == root ? sum : nothing(count)));
  }
  CALL(form, comm, Allreduce, allreduce, out.data(), result.data(), count, MPI_INT, op);
  CHECK(result.read() == sum);
  result.write(mine);
  CALL(form, comm, Allreduce, allreduce, MPI_IN_PLACE, result.data(), count, MPI_INT, op);
  CHECK(result.read() == sum);
  CALL(form, comm, Scan, scan, out.data(), result.data(), count, MPI_INT, op);
  CHECK(result.read() == sum_to(rank));
  result.write(nothing(count));
  CALL(form, comm, Exscan, exscan, out.data(), result.data(), count, MPI_INT, op);
  CHECK(result.read() == (rank == 0 ? nothing(count) : sum_to(rank - 1)));

  Ints whole(values(count * size, [](int i) { return rank + i; }), in.sent);
  const auto part = values(count, [&](int i) { return size * (size - 1) / 2 + size * (rank * count + i); });
  CALL(form, comm, Reduce_scatter_block, reduce_scatter_block, whole.data(), result.data(), count, MPI_INT,
       op);
  CHECK(result.read() == part);
  const Values counts(static_cast<std::size_t>(size), count);
  result.write(nothing(count));
  CALL(form, comm, Reduce_scatter, reduce_scatter, whole.data(), result.data(), counts.data(), MPI_INT, op);
  CHECK(result.read() == part);

  result.write(mine);
  MPI_Reduce_local(out.data(), result.data(), count, MPI_INT, op);
  CHECK(result.read() == values(count, [](int i) { return 2 * (rank + i); }));
}

void neighbours(Form form, const Memory& in) {
  const int periodic = 1;
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  const int left = (rank + size - 1) % size;
  const int right = (rank + 1) % size;
  Ints out({rank * 10, rank * 10 + 1}, in.sent);
  Ints all(nothing(4), in.received);
  CALL(form, ring, Neighbor_allgather, neighbor_allgather, out.data(), 2, MPI_INT, all.data(), 2, MPI_INT);
  CHECK(all.read() == (Values{left * 10, left * 10 + 1, right * 10, right * 10 + 1}));
  const Values counts{1, 1};
  const Values places{1, 0};
  Ints pair(nothing(2), in.received);
  CALL(form, ring, Neighbor_allgatherv, neighbor_allgatherv, out.data(), 1, MPI_INT, pair.data(),
       counts.data(), places.data(), MPI_INT);
  CHECK(pair.read() == (Values{right * 10, left * 10}));
  CALL(form, ring, Neighbor_alltoall, neighbor_alltoall, out.data(), 1, MPI_INT, pair.data(), 1, MPI_INT);
  CHECK(pair.read() == (Values{left * 10 + 1, right * 10}));
  CALL(form, ring, Neighbor_alltoallv, neighbor_alltoallv, out.data(), counts.data(), places.data(), MPI_INT,
       pair.data(), counts.data(), places.data(), MPI_INT);
  CHECK(pair.read() == (Values{right * 10 + 1, left * 10}));
  const std::vector<MPI_Aint> bytes{4, 0};
  const std::vector<MPI_Datatype> types(2, MPI_INT);
  pair.write(nothing(2));
  CALL(form, ring, Neighbor_alltoallw, neighbor_alltoallw, out.data(), counts.data(), bytes.data(),
       types.data(), pair.data(), counts.data(), bytes.data(), types.data());
  CHECK(pair.read() == (Values{right * 10 + 1, left * 10}));
  MPI_Comm_free(&ring);
}

// Columns of a matrix: both the sums and the columns that are received have gaps.
void columns(const Memory& in) {
  MPI_Datatype column;
  MPI_Datatype resized;
  MPI_Type_vector(3, 1, size, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &resized);
  MPI_Type_commit(&resized);
  Ints out({rank, rank + 100, rank + 200}, in.sent);
  Ints matrix(nothing(3 * size), in.received);
  MPI_Allgather(out.data(), 3, MPI_INT, matrix.data(), 1, resized, MPI_COMM_WORLD);
  CHECK(matrix.read() == values(3 * size, [](int i) { return i / size * 100 + i % size; }));
  Ints sums(nothing(3 * size), in.received);
  MPI_Op op;
  MPI_Op_create(
      [](void* from, void* into, int*, MPI_Datatype*) {
        for (int i = 0; i < 3; ++i) static_cast<int*>(into)[i * size] += static_cast<int*>(from)[i * size];
      },
      1, &op);
  MPI_Allreduce(matrix.data(), sums.data(), 1, resized, op, MPI_COMM_WORLD);
  CHECK(sums.read() == values(3 * size, [](int i) { return i % size == 0 ? i / size * 100 * size : -1; }));
  MPI_Op_free(&op);
  MPI_Type_free(&resized);
  MPI_Type_free(&column);
}

void two_groups(const Memory& in, int count) {
  if (size < 2) return;
  MPI_Comm half;
  MPI_Comm inter;
  const int side = rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &inter);
  int theirs = 0;
  MPI_Comm_remote_size(inter, &theirs);
  const auto mine = values(count, [](int i) { return rank + i; });
  int sum_of_ranks = 0;
  for (int other = 1 - side; other < size; other += 2) sum_of_ranks += other;
  Ints out(mine, in.sent);
  Ints result(nothing(count), in.received);
  MPI_Allreduce(out.data(), result.data(), count, MPI_INT, MPI_SUM, inter);
  CHECK(result.read() == values(count, [&](int i) { return sum_of_ranks + theirs * i; }));
  Ints all(nothing(count * theirs), in.received);
  MPI_Allgather(out.data(), count, MPI_INT, all.data(), count, MPI_INT, inter);
  const auto of_others =
      values(count * theirs, [&](int i) { return 2 * (i / count) + 1 - side + i % count; });
  CHECK(all.read() == of_others);
  const int root = side == 1 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  Ints data(rank == 0 ? mine : nothing(count), in.received);
  MPI_Bcast(data.data(), count, MPI_INT, root, inter);
  if (side == 1) CHECK(data.read() == values(count, [](int i) { return i; }));
  all.write(nothing(count * theirs));
  MPI_Gather(out.data(), count, MPI_INT, all.data(), count, MPI_INT, root, inter);
  if (rank == 0) CHECK(all.read() == of_others);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

}  // namespace

int main(int argc, char** argv) {
  device::kind() = argc > 1 ? argv[1] : "emulated";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string kind = device::kind();
  const std::string if_even = rank % 2 == 0 ? kind : "host";
  const std::string if_odd = rank % 2 == 1 ? kind : "host";
  MPI_Op in_order;
  MPI_Op_create(add_in_order, 0, &in_order);
  for (const Memory& in :
       {Memory{kind, kind}, {kind, "host"}, {"host", kind}, {if_even, if_even}, {if_even, if_odd}}) {
    for (const Form form : {kWaiting, kStarted, kPersistent}) {
      for (const int count : {1, 5000}) move_data(form, in, count);
      move_varying(form, in);
      for (const int count : {1, 20000}) combine(form, in, count, MPI_SUM);
      combine(form, in, 7, in_order);
      neighbours(form, in);
    }
    columns(in);
    for (const int count : {1, 5000}) two_groups(in, count);
  }
  MPI_Op_free(&in_order);
  MPI_Finalize();
  if (rank == 0) std::printf("collectives of %d ranks in %s memory: as expected\n", size, kind.c_str());
  return 0;
}
