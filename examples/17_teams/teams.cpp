// PGAS teams: one main on every PE, calls of functions, a distributed object, teams and their collective operations.
#include "weft/pgas/teams.h"

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "weft/job/pgas_run.h"
#include "weft/weft.h"

using weft::pgas::DistObject;
using weft::pgas::Team;
using weft::pgas::World;

// A dictionary over all PEs: a word belongs to the rank that its first letter names.
using Counts = std::map<std::string, int>;
void insert(DistObject<Counts>& counts, const std::string& word) { ++(*counts)[word]; }
int owner_of(const World& world, const std::string& word) { return word.front() % world.size(); }

weft::Task<> start(World& world) {
  DistObject<Counts> counts(world, {});
  const std::vector<std::string> words = {"warp", "weft", "loom", "weft", "yarn"};
  for (const std::string& word : words) co_await world.rpc<&insert>(owner_of(world, word), counts, word);
  co_await world.barrier();
  if (world.rank() == 0) {
    const Counts theirs = co_await counts.fetch(owner_of(world, "weft"));
    std::printf("weft was inserted %d times by each of %d PEs\n", theirs.at("weft") / world.size(),
                world.size());
  }

  const Team parity = co_await world.split(world.rank() % 2, world.rank());
  const int sum = co_await parity.allreduce(world.rank(), weft::Reducer::kSum);
  const std::vector<int> sums = co_await world.allgather(sum);
  if (world.rank() == 0) {
    std::printf("the ranks of the even team add up to %d\n", sums[0]);
    if (world.size() > 1) std::printf("the ranks of the odd team add up to %d\n", sums[1]);
  }
}

int main(int argc, char** argv) { return weft::pgas::run(argc, argv, start); }
