/* Grids and graphs of ranks, their neighbourhood collectives, and collectives between two groups. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                             \
  do {                                                                                               \
    if (!(condition)) {                                                                              \
      fprintf(stderr, "%s:%d: rank %d: %s is not true\n", __FILE__, __LINE__, rank, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                                  \
    }                                                                                                \
  } while (0)

static int rank, size;

/* A periodic line. What goes down comes from above, also where both neighbours are the same rank. */
static void line(void) {
  MPI_Comm grid;
  const int periodic = 1;
  int below, above, in[2], out[2];
  MPI_Request request;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &grid);
  MPI_Cart_shift(grid, 0, 1, &below, &above);
  CHECK(below == (rank + size - 1) % size && above == (rank + 1) % size);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, grid);
  CHECK(in[0] == below && in[1] == above);
  out[0] = rank * 10;
  out[1] = rank * 10 + 1;
  MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, grid);
  CHECK(in[0] == below * 10 + 1 && in[1] == above * 10);
  memset(in, -1, sizeof in);
  MPI_Neighbor_alltoall_init(out, 1, MPI_INT, in, 1, MPI_INT, grid, MPI_INFO_NULL, &request);
  for (int run = 0; run < 2; ++run) {
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in[0] == below * 10 + 1 && in[1] == above * 10);
  }
  MPI_Request_free(&request);
  MPI_Comm_free(&grid);
}

static void grid(void) {
  MPI_Comm comm, row, copy;
  int dims[2] = {0, 0}, periods[2] = {0, 0}, coords[2], kind, back, in[4], sub_dims, first;
  const int keep[2] = {0, 1};
  MPI_Dims_create(size, 2, dims);
  CHECK(dims[0] * dims[1] == size && dims[0] >= dims[1]);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 1, &comm);
  MPI_Topo_test(comm, &kind);
  CHECK(kind == MPI_CART);
  MPI_Cart_coords(comm, rank, 2, coords);
  MPI_Cart_rank(comm, coords, &back);
  CHECK(back == rank && coords[0] == rank / dims[1] && coords[1] == rank % dims[1]);
  memset(in, -1, sizeof in);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, comm);
  CHECK(in[0] == (coords[0] > 0 ? rank - dims[1] : -1));
  CHECK(in[3] == (coords[1] + 1 < dims[1] ? rank + 1 : -1));
  MPI_Cart_sub(comm, keep, &row);
  MPI_Cartdim_get(row, &sub_dims);
  MPI_Comm_size(row, &back);
  CHECK(sub_dims == 1 && back == dims[1]);
  MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, row);
  CHECK(first == coords[0] * dims[1]);
  MPI_Comm_dup(comm, &copy);
  MPI_Topo_test(copy, &kind);
  CHECK(kind == MPI_CART);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&row);
  MPI_Comm_free(&comm);
  dims[0] = 1;
  dims[1] = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm);
  CHECK((comm == MPI_COMM_NULL) == (rank != 0));
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

/* Each rank sends to the next two, with other counts for each. */
static void distributed_graph(int named_by_all) {
  MPI_Comm comm;
  int sources[2], destinations[2], weights[2] = {5, 6}, in_degree, out_degree, weighted, found[2], found_weights[2], out_found[2],
      out_weights[2];
  for (int i = 0; i < 2; ++i) {
    destinations[i] = (rank + i + 1) % size;
    sources[i] = (rank + 2 * size - i - 1) % size;
  }
  if (named_by_all) {
    const int degree = 2;
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, destinations, weights, MPI_INFO_NULL, 0, &comm);
  } else {
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, weights, 2, destinations, weights, MPI_INFO_NULL, 0, &comm);
  }
  MPI_Dist_graph_neighbors_count(comm, &in_degree, &out_degree, &weighted);
  CHECK(in_degree == 2 && out_degree == 2 && weighted != 0);
  MPI_Dist_graph_neighbors(comm, 2, found, found_weights, 2, out_found, out_weights);
  CHECK(out_found[0] == destinations[0] && out_found[1] == destinations[1] && out_weights[1] == 6);
  for (int i = 0; i < 2; ++i) CHECK((found[i] + (found_weights[i] - 4)) % size == rank);
  {
    int out[3] = {rank, rank + 100, rank + 200}, in[4] = {-1, -1, -1, -1};
    const int counts[2] = {1, 2}, places[2] = {0, 1};
    int in_counts[2], in_places[2] = {0, 2};
    for (int i = 0; i < 2; ++i) in_counts[i] = found_weights[i] - 4;
    MPI_Neighbor_alltoallv(out, counts, places, MPI_INT, in, in_counts, in_places, MPI_INT, comm);
    for (int i = 0; i < 2; ++i) CHECK(in[2 * i] == found[i] + (in_counts[i] == 1 ? 0 : 100));
  }
  MPI_Comm_free(&comm);
}

static void graph(void) {
  MPI_Comm comm;
  int* index = malloc(sizeof(int) * (size_t)size);
  int* edges = malloc(sizeof(int) * (size_t)size);
  int count, neighbour, in;
  for (int i = 0; i < size; ++i) {
    index[i] = i + 1;
    edges[i] = size - 1 - i;
  }
  MPI_Graph_create(MPI_COMM_WORLD, size, index, edges, 0, &comm);
  MPI_Graph_neighbors_count(comm, rank, &count);
  MPI_Graph_neighbors(comm, rank, 1, &neighbour);
  CHECK(count == 1 && neighbour == size - 1 - rank);
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, &in, 1, MPI_INT, comm);
  CHECK(in == size - 1 - rank);
  MPI_Comm_free(&comm);
  free(index);
  free(edges);
}

/* The even and the odd ranks. */
static void two_groups(void) {
  MPI_Comm half, other;
  int half_rank, half_size, other_size, value, in[64], root, sum;
  const int odd = rank % 2;
  MPI_Comm_split(MPI_COMM_WORLD, odd, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, odd ? 0 : 1, 3, &other);
  MPI_Comm_rank(other, &half_rank);
  MPI_Comm_size(other, &half_size);
  MPI_Comm_remote_size(other, &other_size);
  MPI_Barrier(other);
  /* From the last even rank to the odd ones, and back. */
  root = odd ? other_size - 1 : half_rank == half_size - 1 ? MPI_ROOT : MPI_PROC_NULL;
  value = root == MPI_ROOT ? 77 : -1;
  MPI_Bcast(&value, 1, MPI_INT, root, other);
  CHECK(value == (root == MPI_PROC_NULL ? -1 : 77));
  memset(in, -1, sizeof in);
  MPI_Gather(&rank, 1, MPI_INT, in, 1, MPI_INT, root, other);
  for (int i = 0; root == MPI_ROOT && i < other_size; ++i) CHECK(in[i] == 2 * i + 1);
  for (int i = 0; i < 64; ++i) in[i] = 3 * i;
  MPI_Scatter(in, 1, MPI_INT, &value, 1, MPI_INT, root, other);
  if (odd) CHECK(value == 3 * half_rank);
  MPI_Allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, other);
  for (int i = 0; i < other_size; ++i) CHECK(in[i] == 2 * i + 1 - odd);
  for (int i = 0; i < other_size; ++i) in[i] = rank * 100 + i;
  {
    int got[64];
    MPI_Alltoall(in, 1, MPI_INT, got, 1, MPI_INT, other);
    for (int i = 0; i < other_size; ++i) CHECK(got[i] == (2 * i + 1 - odd) * 100 + half_rank);
  }
  sum = 0;
  for (int i = 0; i < other_size; ++i) sum += 2 * i + 1 - odd;
  MPI_Allreduce(&rank, &value, 1, MPI_INT, MPI_SUM, other);
  CHECK(value == sum);
  value = -1;
  MPI_Reduce(&rank, &value, 1, MPI_INT, MPI_SUM, root, other);
  if (root == MPI_ROOT) CHECK(value == sum);
  if (half_size == other_size) {
    for (int i = 0; i < half_size; ++i) in[i] = rank + i * 1000;
    MPI_Reduce_scatter_block(in, &value, 1, MPI_INT, MPI_SUM, other);
    CHECK(value == sum + half_rank * 1000 * other_size);
  }
  MPI_Comm_free(&other);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  line();
  grid();
  if (size > 2) distributed_graph(0);
  if (size > 2) distributed_graph(1);
  graph();
  if (size > 1) two_groups();
  if (rank == 0) printf("topologies of %d ranks: as expected\n", size);
  MPI_Finalize();
  return 0;
}
