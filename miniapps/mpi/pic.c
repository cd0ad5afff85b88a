// Charged particles in a periodic grid of fixed charges, in plain C and MPI: the PIC kernel of the Parallel Research Kernels. An
// ordinary program with unequal work, which virtual ranks overdecompose.
//
//     weft mpicc -O2 miniapps/mpi/pic.c -lm -o pic
//     weft run -n 2 ./pic 998 60100 60                one strip of columns per PE
//     weft run -n 2 --ranks 32 --lb greedy_refine ./pic 998 60100 60 10
//
// Arguments: cells along each dimension, even (998), particles (60100), steps (60), steps between load balancing (0: none), K (0),
// M (1), ratio (0.99). Particles move 2 K + 1 columns to the right and M rows up in each step. A column begins with `ratio` times the
// particles of the column before it. Each rank has a strip of columns. Rank 0 prints the time of a step and the particles of the
// fullest strip; the program ends with 1 if a particle is not exactly where it must be, or is lost or doubled.
//
// With other MPI libraries, which have no Weft_load_balance(), it runs without load balancing.
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern int Weft_load_balance(void);
#pragma weak Weft_load_balance

enum { kNumbersPerParticle = 6 };

typedef struct {
  double x, y, vx, vy, charge, id;
} Particle;

typedef struct {
  long size, particles, steps, balance_every, k, m;
  double ratio;
  long* starts;  // element c: the number of particles that begin in columns before c
} Problem;

typedef struct {
  int rank, num_ranks;
  long first_column, end_column;
  Particle* particles;
  size_t count, room;
  Particle* leaving;
  size_t leaving_room;
} Strip;

static void fail(const char* what) {
  fprintf(stderr, "pic: %s\n", what);
  MPI_Abort(MPI_COMM_WORLD, 2);
}

static void* larger(void* block, size_t* room, size_t needed) {
  if (needed <= *room) return block;
  *room = needed + needed / 2;
  block = realloc(block, *room * sizeof(Particle));
  if (block == NULL) fail("the memory is exhausted");
  return block;
}

static long modulo(long value, long size) { return (value % size + size) % size; }

// The `value`-th output of the generator SplitMix64 (Steele, Lea, Flood 2014) after the seed 1.
static uint64_t hash_of(uint64_t value) {
  uint64_t z = value * 0x9E3779B97F4A7C15u + 1;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// The first row of a particle follows from its id alone.
static long first_row(const Problem* problem, long id) {
  return (long)((hash_of((uint64_t)id) >> 32) * (uint64_t)problem->size >> 32);
}

static long first_column(const Problem* problem, long id) {
  long low = 0, high = problem->size;
  while (high - low > 1) {
    const long middle = (low + high) / 2;
    if (problem->starts[middle] < id) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

static void share_out(Problem* problem) {
  problem->starts = malloc((size_t)(problem->size + 1) * sizeof *problem->starts);
  if (problem->starts == NULL) fail("the memory is exhausted");
  double total = 0.0, weight = 1.0, sum = 0.0;
  for (long column = 0; column < problem->size; ++column, weight *= problem->ratio) total += weight;
  weight = 1.0;
  for (long column = 0; column <= problem->size; ++column, weight *= problem->ratio) {
    const double share = column == problem->size ? 1.0 : sum / total;
    problem->starts[column] = (long)floor((double)problem->particles * share + 0.5);
    sum += weight;
  }
}

static void make_particles(const Problem* problem, Strip* strip) {
  // By which a particle in the centre of a cell moves 2 K + 1 columns from rest in a step of time 1.
  const double r_squared = 0.5 * 0.5 + 0.5 * 0.5;
  const double cosine = 0.5 / sqrt(r_squared);
  const double charge = (double)(2 * problem->k + 1) / (2.0 * cosine / r_squared);
  const long first = problem->starts[strip->first_column], end = problem->starts[strip->end_column];
  strip->particles = larger(NULL, &strip->room, (size_t)(end - first));
  for (long id = first + 1; id <= end; ++id) {
    const long column = first_column(problem, id);
    strip->particles[strip->count++] = (Particle){.x = (double)column + 0.5,
                                                  .y = (double)first_row(problem, id) + 0.5,
                                                  .vx = 0.0,
                                                  .vy = (double)problem->m,
                                                  .charge = column % 2 == 0 ? charge : -charge,
                                                  .id = (double)id};
  }
}

// Coulomb's law: adds the force of a charge at that distance.
static void add_force(double dx, double dy, double charges, double* fx, double* fy) {
  const double r_squared = dx * dx + dy * dy;
  const double force = charges / (r_squared * sqrt(r_squared));
  *fx += force * dx;
  *fy += force * dy;
}

// One step of all particles. Grid points of even columns have the charge 1, those of odd columns -1.
static void move_particles(const Problem* problem, Strip* strip) {
  const double length = (double)problem->size;
  for (size_t i = 0; i < strip->count; ++i) {
    Particle* const one = &strip->particles[i];
    const long column = (long)one->x;
    const double left = one->x - (double)column, below = one->y - floor(one->y);
    const double charges = column % 2 == 0 ? one->charge : -one->charge;
    double fx = 0.0, fy = 0.0;
    add_force(left, below, charges, &fx, &fy);
    add_force(left, below - 1.0, charges, &fx, &fy);
    add_force(left - 1.0, below, -charges, &fx, &fy);
    add_force(left - 1.0, below - 1.0, -charges, &fx, &fy);
    const double x = one->x + one->vx + 0.5 * fx, y = one->y + one->vy + 0.5 * fy;
    one->x = x - length * floor(x / length);
    one->y = y - length * floor(y / length);
    one->vx += fx;
    one->vy += fy;
  }
}

static int is_in(const Strip* strip, const Particle* particle) {
  return particle->x >= (double)strip->first_column && particle->x < (double)strip->end_column;
}

// What has left goes to the strip on the right, which is at least as wide as a step.
static void exchange_particles(Strip* strip) {
  size_t num_leaving = 0;
  for (size_t i = 0; i < strip->count;) {
    if (is_in(strip, &strip->particles[i])) {
      ++i;
      continue;
    }
    strip->leaving = larger(strip->leaving, &strip->leaving_room, num_leaving + 1);
    strip->leaving[num_leaving++] = strip->particles[i];
    strip->particles[i] = strip->particles[--strip->count];
  }
  const int right = (strip->rank + 1) % strip->num_ranks;
  const int left = (strip->rank + strip->num_ranks - 1) % strip->num_ranks;
  MPI_Request sending;
  MPI_Status status;
  int num_numbers;
  MPI_Isend(strip->leaving, (int)num_leaving * kNumbersPerParticle, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &sending);
  MPI_Probe(left, 0, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_DOUBLE, &num_numbers);
  const int num_arrived = num_numbers / kNumbersPerParticle;
  strip->particles = larger(strip->particles, &strip->room, strip->count + (size_t)num_arrived);
  MPI_Recv(strip->particles + strip->count, num_numbers, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&sending, MPI_STATUS_IGNORE);
  for (int i = 0; i < num_arrived; ++i) {
    if (!is_in(strip, &strip->particles[strip->count++])) fail("a particle has moved further than a step");
  }
}

// Returns the number of particles of this rank that are not where they must be, and adds up the ids.
static long examine(const Problem* problem, const Strip* strip, long* id_sum) {
  const double epsilon = 1e-6;
  const long steps = problem->steps + 1;
  long misplaced = 0;
  for (size_t i = 0; i < strip->count; ++i) {
    const Particle* const one = &strip->particles[i];
    const long id = (long)one->id;
    if (id < 1 || id > problem->particles) {
      ++misplaced;
      continue;
    }
    const long column = modulo(first_column(problem, id) + steps * (2 * problem->k + 1), problem->size);
    const long row = modulo(first_row(problem, id) + steps * problem->m, problem->size);
    *id_sum += id;
    if (!(fabs(one->x - ((double)column + 0.5)) <= epsilon && fabs(one->y - ((double)row + 0.5)) <= epsilon))
      ++misplaced;
  }
  return misplaced;
}

// Returns the exit code.
static int report(const Problem* problem, const Strip* strip, double elapsed_s) {
  enum { kCount, kIds, kMisplaced, kNumSums };
  long own[kNumSums] = {(long)strip->count, 0, 0}, sums[kNumSums], fullest;
  own[kMisplaced] = examine(problem, strip, &own[kIds]);
  MPI_Allreduce(own, sums, kNumSums, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(&own[kCount], &fullest, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
  const long n = problem->particles;
  const int right = sums[kCount] == n && sums[kIds] == n * (n + 1) / 2 && sums[kMisplaced] == 0;
  if (strip->rank == 0) {
    printf("%d ranks: %.3f ms a step, %ld of %ld particles in the fullest strip, %s\n", strip->num_ranks,
           1e3 * elapsed_s / (double)problem->steps, fullest, n,
           right ? "all where they must be" : "WRONG: particles are lost, doubled or elsewhere");
  }
  return right ? 0 : 1;
}

static Problem problem_of(int argc, char** argv) {
  Problem problem = {.size = argc > 1 ? atol(argv[1]) : 998,
                     .particles = argc > 2 ? atol(argv[2]) : 60100,
                     .steps = argc > 3 ? atol(argv[3]) : 60,
                     .balance_every = argc > 4 ? atol(argv[4]) : 0,
                     .k = argc > 5 ? atol(argv[5]) : 0,
                     .m = argc > 6 ? atol(argv[6]) : 1,
                     .ratio = argc > 7 ? atof(argv[7]) : 0.99};
  if (problem.size < 2 || problem.size % 2 != 0 || problem.size > 40000 || problem.particles < 1 ||
      problem.particles > INT32_MAX || problem.steps < 1 || problem.balance_every < 0 || problem.k < 0 || problem.k > problem.size ||
      labs(problem.m) > problem.size || !(problem.ratio > 0.0 && problem.ratio <= 1.0)) {
    fail("usage: pic [SIZE [PARTICLES [STEPS [LB_EVERY [K [M [RATIO]]]]]]], with an even SIZE and 0 < RATIO <= 1");
  }
  share_out(&problem);
  return problem;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Problem problem = problem_of(argc, argv);
  Strip strip = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &strip.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &strip.num_ranks);
  if (strip.num_ranks > 1 && problem.size / strip.num_ranks < 2 * problem.k + 1)
    fail("a strip is narrower than a step: take a larger SIZE, a smaller K or fewer ranks");
  strip.first_column = strip.rank * problem.size / strip.num_ranks;
  strip.end_column = (strip.rank + 1) * problem.size / strip.num_ranks;
  make_particles(&problem, &strip);
  double start_s = 0.0;
  for (long step = 0; step <= problem.steps; ++step) {  // the first one is not timed
    move_particles(&problem, &strip);
    exchange_particles(&strip);
    if (step == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      start_s = MPI_Wtime();
    }
    // MPI objects would be freed before, and no request is pending.
    if (Weft_load_balance && problem.balance_every > 0 && step % problem.balance_every == 0) Weft_load_balance();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int code = report(&problem, &strip, MPI_Wtime() - start_s);
  free(strip.particles);
  free(strip.leaving);
  free(problem.starts);
  MPI_Finalize();
  return code;
}
