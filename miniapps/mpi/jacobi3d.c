// Jacobi's iteration on a 3D grid, in plain C and MPI: an ordinary program, which virtual ranks overdecompose.
//
//     weft mpicc -O2 miniapps/mpi/jacobi3d.c -o jacobi3d
//     weft run -n 2 ./jacobi3d 96 200                 one block per PE
//     weft run -n 2 --ranks 16 ./jacobi3d 96 200      eight blocks per PE
//
// Arguments: points along each dimension (96), iterations (100). Each rank has one block, with a layer of points around it. The
// faces go to the neighbours as subarray datatypes, so nothing is packed by hand. The faces of the grid hold 1, all other
// points begin with 0. Rank 0 prints the time of an iteration and the largest change of the last one, which does not depend
// on the number of ranks.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { kDimensions = 3, kDirections = 6 };

typedef struct {
  MPI_Comm grid;
  int points[kDimensions];  // of the block, without the layer around it
  double* now;
  double* next;
  int neighbour[kDirections];
  MPI_Datatype sent[kDirections];
  MPI_Datatype received[kDirections];
} Block;

static size_t at(const Block* block, int x, int y, int z) {
  return ((size_t)x * (size_t)(block->points[1] + 2) + (size_t)y) * (size_t)(block->points[2] + 2) +
         (size_t)z;
}

// How many of `points` the part `place` of `parts` has.
static int part_of(int points, int parts, int place) {
  return points / parts + (place < points % parts ? 1 : 0);
}

static MPI_Datatype face(const Block* block, int dimension, int layer) {
  int sizes[kDimensions], subsizes[kDimensions], starts[kDimensions];
  for (int i = 0; i < kDimensions; ++i) {
    sizes[i] = block->points[i] + 2;
    subsizes[i] = i == dimension ? 1 : block->points[i];
    starts[i] = i == dimension ? layer : 1;
  }
  MPI_Datatype type;
  MPI_Type_create_subarray(kDimensions, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

static void make_block(Block* block, int points) {
  int num_ranks, rank, dims[kDimensions] = {0, 0, 0}, periods[kDimensions] = {0, 0, 0}, coords[kDimensions];
  MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
  MPI_Dims_create(num_ranks, kDimensions, dims);
  MPI_Cart_create(MPI_COMM_WORLD, kDimensions, dims, periods, 0, &block->grid);
  MPI_Comm_rank(block->grid, &rank);
  MPI_Cart_coords(block->grid, rank, kDimensions, coords);
  for (int i = 0; i < kDimensions; ++i) {
    block->points[i] = part_of(points, dims[i], coords[i]);
    if (block->points[i] == 0) {
      fprintf(stderr, "jacobi3d: %d ranks are too many for %d points along a dimension\n", num_ranks, points);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Cart_shift(block->grid, i, 1, &block->neighbour[2 * i], &block->neighbour[2 * i + 1]);
  }
  for (int i = 0; i < kDimensions; ++i) {
    block->sent[2 * i] = face(block, i, 1);
    block->received[2 * i] = face(block, i, 0);
    block->sent[2 * i + 1] = face(block, i, block->points[i]);
    block->received[2 * i + 1] = face(block, i, block->points[i] + 1);
  }
  const size_t num_points = at(block, block->points[0] + 1, block->points[1] + 1, block->points[2] + 1) + 1;
  block->now = malloc(num_points * sizeof *block->now);
  block->next = malloc(num_points * sizeof *block->next);
  if (block->now == NULL || block->next == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
  // What no neighbour writes is a face of the grid.
  for (size_t i = 0; i < num_points; ++i) block->now[i] = block->next[i] = 1.0;
  for (int x = 1; x <= block->points[0]; ++x)
    for (int y = 1; y <= block->points[1]; ++y)
      for (int z = 1; z <= block->points[2]; ++z) block->now[at(block, x, y, z)] = 0.0;
}

static void exchange_faces(Block* block) {
  MPI_Request requests[2 * kDirections];
  for (int i = 0; i < kDirections; ++i)
    MPI_Irecv(block->now, 1, block->received[i], block->neighbour[i], i ^ 1, block->grid, &requests[i]);
  for (int i = 0; i < kDirections; ++i)
    MPI_Isend(block->now, 1, block->sent[i], block->neighbour[i], i, block->grid, &requests[kDirections + i]);
  MPI_Waitall(2 * kDirections, requests, MPI_STATUSES_IGNORE);
}

// Returns the largest change of a point.
static double update(Block* block) {
  double most = 0.0;
  for (int x = 1; x <= block->points[0]; ++x)
    for (int y = 1; y <= block->points[1]; ++y)
      for (int z = 1; z <= block->points[2]; ++z) {
        const double* now = block->now;
        const double value =
            (now[at(block, x - 1, y, z)] + now[at(block, x + 1, y, z)] + now[at(block, x, y - 1, z)] +
             now[at(block, x, y + 1, z)] + now[at(block, x, y, z - 1)] + now[at(block, x, y, z + 1)]) /
            6.0;
        const double change = value - now[at(block, x, y, z)];
        if (change > most) most = change;
        block->next[at(block, x, y, z)] = value;
      }
  double* const former = block->now;
  block->now = block->next;
  block->next = former;
  return most;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int points = argc > 1 ? atoi(argv[1]) : 96;
  const int iterations = argc > 2 ? atoi(argv[2]) : 100;
  if (points < 1 || iterations < 1) {
    fprintf(stderr, "usage: jacobi3d [POINTS [ITERATIONS]]\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Block block;
  make_block(&block, points);
  double change = 0.0, most = 0.0;
  MPI_Barrier(block.grid);
  const double start = MPI_Wtime();
  for (int i = 0; i < iterations; ++i) {
    exchange_faces(&block);
    change = update(&block);
  }
  MPI_Barrier(block.grid);
  const double elapsed_s = MPI_Wtime() - start;
  MPI_Reduce(&change, &most, 1, MPI_DOUBLE, MPI_MAX, 0, block.grid);
  int rank, num_ranks;
  MPI_Comm_rank(block.grid, &rank);
  MPI_Comm_size(block.grid, &num_ranks);
  if (rank == 0)
    printf("%d ranks: %.3f ms an iteration, largest change %.17g\n", num_ranks, 1e3 * elapsed_s / iterations,
           most);
  for (int i = 0; i < kDirections; ++i) {
    MPI_Type_free(&block.sent[i]);
    MPI_Type_free(&block.received[i]);
  }
  free(block.now);
  free(block.next);
  MPI_Comm_free(&block.grid);
  MPI_Finalize();
  return 0;
}
