// Virtual topologies: grids, graphs, and graphs of which each process knows its own edges.
#include <algorithm>
#include <climits>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "communication/communication.h"
#include "entry/entry.h"
#include "entry/type_handles.h"
#include "models/mpi/collective/data_movement.h"
#include "models/mpi/communicators/communicator_creation.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/topology/dimensions.h"
#include "models/mpi/topology/topology.h"

namespace weft::mpi {

namespace {

using IntSpan = std::span<const int>;

// Checks the length of an array of the program and gives a span of it.
Error span_of(const int* values, int length, IntSpan* span) {
  if (length < 0) return {MPI_ERR_ARG, base::format("the length of an array is {}; give 0 or more", length)};
  if (length > 0 && !is_address(values))
    return {MPI_ERR_ARG, base::format("an array is {}; give its address", describe_sentinel(values))};
  *span = {values, static_cast<std::size_t>(length)};
  return {};
}

// A call that makes a communicator leaves MPI_COMM_NULL behind an error.
Error begin_new(MPI_Comm* newcomm) {
  if (Error error = check_result(newcomm); !error.ok()) return error;
  *newcomm = MPI_COMM_NULL;
  return {};
}

Error give_new(Ref<Communicator> made, MPI_Comm* newcomm) {
  *newcomm = made ? make_handle<MPI_Comm>(std::move(made)) : MPI_COMM_NULL;
  return {};
}

// A communicator of the first `size` processes with a topology.
Error create_of_first(Communicator& parent, int size, Topology topology, MPI_Comm* newcomm) {
  const Choice choice{parent.rank() < size ? 0 : kNoColor, parent.rank()};
  Ref<Communicator> made = this_process().run(split(Ref<Communicator>(parent), choice));
  if (made) made->topology = std::make_shared<const Topology>(std::move(topology));
  return give_new(std::move(made), newcomm);
}

// A communicator of the same processes with a topology.
Error create_of_all(Communicator& parent, Topology topology, MPI_Comm* newcomm) {
  Ref<Communicator> copy = begin_duplicate(parent);
  this_process().run(duplicate(Ref<Communicator>(parent), copy));
  copy->topology = std::make_shared<const Topology>(std::move(topology));
  return give_new(std::move(copy), newcomm);
}

// The topology of a communicator, as the kind that Topology::*of gives.
template <class Kind>
Error find_topology(MPI_Comm comm, const Kind* (Topology::*of)() const, const char* name,
                    Communicator** communicator, const Kind** found) {
  if (Error error = find_communicator(comm, communicator); !error.ok()) return error;
  const auto& topology = (*communicator)->topology;
  *found = topology == nullptr ? nullptr : (topology.get()->*of)();
  if (*found != nullptr) return {};
  return {MPI_ERR_TOPOLOGY, base::format("the communicator is no {}; MPI_Topo_test tells what it is", name)};
}

// Calls `body(communicator, topology)` with a grid, a graph, or a distributed graph.
template <class Kind, class Body>
int with_topology(const char* function, MPI_Comm comm, const Kind* (Topology::*of)() const, const char* name,
                  const Body& body) {
  return guarded(function, comm, [&]() -> Error {
    Communicator* communicator = nullptr;
    const Kind* topology = nullptr;
    if (Error error = find_topology(comm, of, name, &communicator, &topology); !error.ok()) return error;
    return body(*communicator, *topology);
  });
}

template <class Body>
int with_grid(const char* function, MPI_Comm comm, const Body& body) {
  return with_topology(function, comm, &Topology::cartesian, "grid", body);
}

template <class Body>
int with_graph(const char* function, MPI_Comm comm, const Body& body) {
  return with_topology(function, comm, &Topology::graph, "graph", body);
}

template <class Body>
int with_own_edges(const char* function, MPI_Comm comm, const Body& body) {
  return with_topology(function, comm, &Topology::distributed_graph, "distributed graph", body);
}

Error check_rank(const Communicator& communicator, int rank) {
  if (rank >= 0 && rank < communicator.size()) return {};
  return {MPI_ERR_RANK,
          base::format("rank {} does not exist; the ranks are 0 to {}", rank, communicator.size() - 1)};
}

// Copies as many values as there is room for.
Error copy_some(IntSpan values, int room, int* to) {
  const std::size_t count = std::min(values.size(), static_cast<std::size_t>(std::max(room, 0)));
  if (count == 0) return {};
  if (Error error = check_result(to); !error.ok()) return error;
  std::copy_n(values.begin(), count, to);
  return {};
}

// Copies several arrays, of each as many values as there is room for.
struct CopiedArray {
  IntSpan values;
  int room;
  int* to;
};
Error copy_some(std::initializer_list<CopiedArray> arrays) {
  for (const CopiedArray& array : arrays)
    if (Error error = copy_some(array.values, array.room, array.to); !error.ok()) return error;
  return {};
}

Error check_dimensions_fit(std::size_t dimensions, int room) {
  if (room >= 0 && dimensions <= static_cast<std::size_t>(room)) return {};
  return {MPI_ERR_ARG,
          base::format("there is room for {} dimensions, but the grid has {}", room, dimensions)};
}

Error make_grid(Communicator& communicator, int ndims, const int* dims, const int* periods, Cartesian* grid) {
  IntSpan extents;
  IntSpan periodic;
  if (Error error = span_of(dims, ndims, &extents); !error.ok()) return error;
  if (Error error = span_of(periods, ndims, &periodic); !error.ok()) return error;
  return Cartesian::make(extents, periodic, communicator.size(), grid);
}

Error make_graph(Communicator& communicator, int nnodes, const int* indx, const int* edges, Graph* graph) {
  IntSpan ends;
  IntSpan neighbours;
  if (Error error = span_of(indx, nnodes, &ends); !error.ok()) return error;
  if (Error error = span_of(edges, ends.empty() ? 0 : ends.back(), &neighbours); !error.ok()) return error;
  return Graph::make(ends, neighbours, communicator.size(), graph);
}

// The weights of edges: none for MPI_UNWEIGHTED.
Error weights_of(const int* weights, int count, IntSpan* span) {
  if (weights == MPI_UNWEIGHTED || (weights == MPI_WEIGHTS_EMPTY && count == 0)) return {};
  return span_of(weights, count, span);
}

Error make_side(const Communicator& communicator, const int* ranks, const int* weights, int count,
                std::vector<int>* kept_ranks, std::vector<int>* kept_weights) {
  IntSpan all;
  IntSpan all_weights;
  if (Error error = span_of(ranks, count, &all); !error.ok()) return error;
  if (Error error = weights_of(weights, count, &all_weights); !error.ok()) return error;
  if (Error error = check_edges(all, all_weights, communicator.size()); !error.ok()) return error;
  kept_ranks->assign(all.begin(), all.end());
  kept_weights->assign(all_weights.begin(), all_weights.end());
  return {};
}

// The edges that this process names in MPI_Dist_graph_create.
Error named_edges(const Communicator& communicator, IntSpan sources, IntSpan degrees, const int* destinations,
                  const int* weights, std::vector<NamedEdge>* edges) {
  long long count = 0;
  for (const int degree : degrees) {
    if (degree < 0)
      return {MPI_ERR_ARG, base::format("the degree of a process is {}; give 0 or more", degree)};
    count += degree;
  }
  if (count > INT_MAX)
    return {MPI_ERR_ARG, base::format("this process names {} edges; that is too many", count)};
  IntSpan all;
  IntSpan all_weights;
  if (Error error = span_of(destinations, static_cast<int>(count), &all); !error.ok()) return error;
  if (Error error = weights_of(weights, static_cast<int>(count), &all_weights); !error.ok()) return error;
  if (Error error = check_edges(all, all_weights, communicator.size()); !error.ok()) return error;
  if (Error error = check_edges(sources, {}, communicator.size()); !error.ok()) return error;
  std::size_t next = 0;
  for (std::size_t i = 0; i < sources.size(); ++i)
    for (int edge = 0; edge < degrees[i]; ++edge, ++next)
      edges->push_back({sources[i], all[next], all_weights.empty() ? 0 : all_weights[next]});
  return {};
}

// The edges that all processes name, in the order of ranks. `mine` lives until the end.
runtime::Task<std::vector<NamedEdge>> all_edges(CollectiveContext context,
                                                const std::vector<NamedEdge>& mine) {
  std::size_t count = mine.size();
  const std::vector<std::byte> packed_counts = co_await allgather_bytes(context, bytes_of_value(count));
  std::vector<std::size_t> counts(static_cast<std::size_t>(context.size()));
  std::copy(packed_counts.begin(), packed_counts.end(), std::as_writable_bytes(std::span(counts)).begin());
  std::size_t total = 0;
  for (const std::size_t part : counts) total += part;
  std::vector<NamedEdge> all(total);
  Views parts;
  std::size_t first = 0;
  for (const std::size_t part : counts) {
    parts.push_back(DataView::of_bytes(all.data() + first, part * sizeof(NamedEdge)));
    first += part;
  }
  const OwnView own{DataView::of_bytes(mine.data(), mine.size() * sizeof(NamedEdge)), false};
  co_await allgather(context, own, parts);
  co_return all;
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Dims_create(int nnodes, int ndims, int dims[]) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (ndims < 0)
      return {MPI_ERR_DIMS, weft::base::format("there are {} dimensions; give 0 or more", ndims)};
    if (ndims > 0)
      if (Error error = check_result(dims); !error.ok()) return error;
    return balance_dimensions(nnodes, {dims, static_cast<std::size_t>(ndims)});
  });
}

int MPI_Topo_test(MPI_Comm comm, int* status) {
  return guarded(__func__, comm, [&]() -> Error {
    Communicator* communicator = nullptr;
    if (Error error = check_result(status); !error.ok()) return error;
    if (Error error = find_communicator(comm, &communicator); !error.ok()) return error;
    *status = communicator->topology == nullptr ? MPI_UNDEFINED : communicator->topology->kind();
    return {};
  });
}

// --- Grids

int MPI_Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int,
                    MPI_Comm* comm_cart) {
  return guarded(__func__, comm_old, [&]() -> Error {
    Communicator* parent = nullptr;
    Cartesian grid;
    if (Error error = begin_new(comm_cart); !error.ok()) return error;
    if (Error error = find_intracommunicator(comm_old, &parent); !error.ok()) return error;
    if (Error error = make_grid(*parent, ndims, dims, periods, &grid); !error.ok()) return error;
    const int size = grid.size();
    return create_of_first(*parent, size, Topology(std::move(grid)), comm_cart);
  });
}

int MPI_Cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int* newrank) {
  return guarded(__func__, comm, [&]() -> Error {
    Communicator* communicator = nullptr;
    Cartesian grid;
    if (Error error = check_result(newrank); !error.ok()) return error;
    if (Error error = find_intracommunicator(comm, &communicator); !error.ok()) return error;
    if (Error error = make_grid(*communicator, ndims, dims, periods, &grid); !error.ok()) return error;
    *newrank = communicator->rank() < grid.size() ? communicator->rank() : MPI_UNDEFINED;
    return {};
  });
}

int MPI_Cartdim_get(MPI_Comm comm, int* ndims) {
  return with_grid(__func__, comm, [&](Communicator&, const Cartesian& grid) -> Error {
    if (Error error = check_result(ndims); !error.ok()) return error;
    *ndims = static_cast<int>(grid.extents().size());
    return {};
  });
}

int MPI_Cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[]) {
  return with_grid(__func__, comm, [&](Communicator& communicator, const Cartesian& grid) -> Error {
    if (Error error = check_dimensions_fit(grid.extents().size(), maxdims); !error.ok()) return error;
    const std::vector<int> own = grid.coordinates(communicator.rank());
    return copy_some(
        {{grid.extents(), maxdims, dims}, {grid.periodic(), maxdims, periods}, {own, maxdims, coords}});
  });
}

int MPI_Cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[]) {
  return with_grid(__func__, comm, [&](Communicator& communicator, const Cartesian& grid) -> Error {
    if (Error error = check_rank(communicator, rank); !error.ok()) return error;
    if (Error error = check_dimensions_fit(grid.extents().size(), maxdims); !error.ok()) return error;
    return copy_some(grid.coordinates(rank), maxdims, coords);
  });
}

int MPI_Cart_rank(MPI_Comm comm, const int coords[], int* rank) {
  return with_grid(__func__, comm, [&](Communicator&, const Cartesian& grid) -> Error {
    IntSpan coordinates;
    if (Error error = check_result(rank); !error.ok()) return error;
    if (Error error = span_of(coords, static_cast<int>(grid.extents().size()), &coordinates); !error.ok())
      return error;
    return grid.rank(coordinates, rank);
  });
}

int MPI_Cart_shift(MPI_Comm comm, int direction, int disp, int* rank_source, int* rank_dest) {
  return with_grid(__func__, comm, [&](Communicator& communicator, const Cartesian& grid) -> Error {
    Cartesian::Neighbours found{};
    if (Error error = check_result(rank_source); !error.ok()) return error;
    if (Error error = check_result(rank_dest); !error.ok()) return error;
    if (Error error = grid.shift(communicator.rank(), direction, disp, &found); !error.ok()) return error;
    *rank_source = found.source;
    *rank_dest = found.destination;
    return {};
  });
}

int MPI_Cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm* newcomm) {
  return with_grid(__func__, comm, [&](Communicator& communicator, const Cartesian& grid) -> Error {
    IntSpan remain;
    if (Error error = begin_new(newcomm); !error.ok()) return error;
    if (Error error = span_of(remain_dims, static_cast<int>(grid.extents().size()), &remain); !error.ok())
      return error;
    const Cartesian::Part part = grid.part_of(communicator.rank(), remain);
    Ref<Communicator> made =
        this_process().run(split(Ref<Communicator>(communicator), Choice{part.colour, part.key}));
    made->topology = std::make_shared<const Topology>(Topology(grid.subgrid(remain)));
    return give_new(std::move(made), newcomm);
  });
}

// --- Graphs

int MPI_Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[], int,
                     MPI_Comm* comm_graph) {
  return guarded(__func__, comm_old, [&]() -> Error {
    Communicator* parent = nullptr;
    Graph graph;
    if (Error error = begin_new(comm_graph); !error.ok()) return error;
    if (Error error = find_intracommunicator(comm_old, &parent); !error.ok()) return error;
    if (Error error = make_graph(*parent, nnodes, indx, edges, &graph); !error.ok()) return error;
    return create_of_first(*parent, nnodes, Topology(std::move(graph)), comm_graph);
  });
}

int MPI_Graph_map(MPI_Comm comm, int nnodes, const int indx[], const int edges[], int* newrank) {
  return guarded(__func__, comm, [&]() -> Error {
    Communicator* communicator = nullptr;
    Graph graph;
    if (Error error = check_result(newrank); !error.ok()) return error;
    if (Error error = find_intracommunicator(comm, &communicator); !error.ok()) return error;
    if (Error error = make_graph(*communicator, nnodes, indx, edges, &graph); !error.ok()) return error;
    *newrank = communicator->rank() < nnodes ? communicator->rank() : MPI_UNDEFINED;
    return {};
  });
}

int MPI_Graphdims_get(MPI_Comm comm, int* nnodes, int* nedges) {
  return with_graph(__func__, comm, [&](Communicator&, const Graph& graph) -> Error {
    if (Error error = check_result(nnodes); !error.ok()) return error;
    if (Error error = check_result(nedges); !error.ok()) return error;
    *nnodes = graph.size();
    *nedges = static_cast<int>(graph.edges().size());
    return {};
  });
}

int MPI_Graph_get(MPI_Comm comm, int maxindex, int maxedges, int indx[], int edges[]) {
  return with_graph(__func__, comm, [&](Communicator&, const Graph& graph) -> Error {
    return copy_some({{graph.ends(), maxindex, indx}, {graph.edges(), maxedges, edges}});
  });
}

int MPI_Graph_neighbors_count(MPI_Comm comm, int rank, int* nneighbors) {
  return with_graph(__func__, comm, [&](Communicator& communicator, const Graph& graph) -> Error {
    if (Error error = check_result(nneighbors); !error.ok()) return error;
    if (Error error = check_rank(communicator, rank); !error.ok()) return error;
    *nneighbors = static_cast<int>(graph.neighbours(rank).size());
    return {};
  });
}

int MPI_Graph_neighbors(MPI_Comm comm, int rank, int maxneighbors, int neighbors[]) {
  return with_graph(__func__, comm, [&](Communicator& communicator, const Graph& graph) -> Error {
    if (Error error = check_rank(communicator, rank); !error.ok()) return error;
    return copy_some(graph.neighbours(rank), maxneighbors, neighbors);
  });
}

// --- Distributed graphs

int MPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[],
                                   const int sourceweights[], int outdegree, const int destinations[],
                                   const int destweights[], MPI_Info, int, MPI_Comm* comm_dist_graph) {
  return guarded(__func__, comm_old, [&]() -> Error {
    Communicator* parent = nullptr;
    DistributedGraph graph;
    if (Error error = begin_new(comm_dist_graph); !error.ok()) return error;
    if (Error error = find_intracommunicator(comm_old, &parent); !error.ok()) return error;
    if (Error error =
            make_side(*parent, sources, sourceweights, indegree, &graph.sources, &graph.source_weights);
        !error.ok())
      return error;
    if (Error error = make_side(*parent, destinations, destweights, outdegree, &graph.destinations,
                                &graph.destination_weights);
        !error.ok())
      return error;
    graph.weighted = sourceweights != MPI_UNWEIGHTED && destweights != MPI_UNWEIGHTED;
    return create_of_all(*parent, Topology(std::move(graph)), comm_dist_graph);
  });
}

int MPI_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[], const int degrees[],
                          const int destinations[], const int weights[], MPI_Info, int,
                          MPI_Comm* comm_dist_graph) {
  return guarded(__func__, comm_old, [&]() -> Error {
    Communicator* parent = nullptr;
    IntSpan all_sources;
    IntSpan all_degrees;
    std::vector<NamedEdge> mine;
    if (Error error = begin_new(comm_dist_graph); !error.ok()) return error;
    if (Error error = find_intracommunicator(comm_old, &parent); !error.ok()) return error;
    if (Error error = span_of(sources, n, &all_sources); !error.ok()) return error;
    if (Error error = span_of(degrees, n, &all_degrees); !error.ok()) return error;
    if (Error error = named_edges(*parent, all_sources, all_degrees, destinations, weights, &mine);
        !error.ok())
      return error;
    const std::vector<NamedEdge> edges =
        this_process().run(all_edges(parent->next_collective_contexts().local, mine));
    DistributedGraph graph;
    graph.weighted = weights != MPI_UNWEIGHTED;
    add_named_edges(edges, parent->rank(), &graph);
    return create_of_all(*parent, Topology(std::move(graph)), comm_dist_graph);
  });
}

int MPI_Dist_graph_neighbors_count(MPI_Comm comm, int* indegree, int* outdegree, int* weighted) {
  return with_own_edges(__func__, comm, [&](Communicator&, const DistributedGraph& graph) -> Error {
    for (const int* result : {indegree, outdegree, weighted})
      if (Error error = check_result(result); !error.ok()) return error;
    *indegree = static_cast<int>(graph.sources.size());
    *outdegree = static_cast<int>(graph.destinations.size());
    *weighted = graph.weighted ? 1 : 0;
    return {};
  });
}

int MPI_Dist_graph_neighbors(MPI_Comm comm, int maxindegree, int sources[], int sourceweights[],
                             int maxoutdegree, int destinations[], int destweights[]) {
  return with_own_edges(__func__, comm, [&](Communicator&, const DistributedGraph& graph) -> Error {
    const auto writable = [](const int* weights) {
      return weights != MPI_UNWEIGHTED && weights != MPI_WEIGHTS_EMPTY;
    };
    return copy_some({{graph.sources, maxindegree, sources},
                      {graph.destinations, maxoutdegree, destinations},
                      {graph.source_weights, writable(sourceweights) ? maxindegree : 0, sourceweights},
                      {graph.destination_weights, writable(destweights) ? maxoutdegree : 0, destweights}});
  });
}

}  // extern "C"
