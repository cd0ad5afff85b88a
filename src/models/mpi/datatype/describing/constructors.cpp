#include "models/mpi/datatype/describing/constructors.h"

#include <cstddef>
#include <limits>
#include <utility>

#include "base/format.h"
#include "models/mpi/datatype/describing/assembly.h"

namespace weft::mpi {
namespace {

Error check_count(MPI_Count count) {
  if (count >= 0) return {};
  return {MPI_ERR_COUNT, base::format("count is {}; give 0 or more", count)};
}

Error check_blocklength(MPI_Count blocklength, std::size_t block) {
  if (blocklength >= 0) return {};
  return {MPI_ERR_ARG, base::format("the length of block {} is {}; give 0 or more", block, blocklength)};
}

Error check_blocklengths(CountSpan blocklengths) {
  for (std::size_t i = 0; i < blocklengths.size(); ++i)
    if (Error error = check_blocklength(blocklengths[i], i); !error.ok()) return error;
  return {};
}

void add_counts(CountSpan values, Recipe* recipe) {
  for (const MPI_Count value : values) recipe->add_count(value);
}

void add_bytes(CountSpan values, Recipe* recipe) {
  for (const MPI_Count value : values) recipe->add_bytes(value);
}

// `unit`: the bytes that one unit of a stride has.
Error assemble_vector(const VectorShape& vector, MPI_Count unit, Datatype& old, Recipe recipe,
                      Ref<Datatype>* made) {
  if (Error error = check_count(vector.count); !error.ok()) return error;
  if (Error error = check_blocklength(vector.blocklength, 0); !error.ok()) return error;
  recipe.datatypes.emplace_back(old);
  Shape block;
  Shape whole;
  if (vector.count == 0 || vector.blocklength == 0) return Assembly().finish(std::move(recipe), made);
  // The stride of a single block has no meaning, so it may have any value.
  const Wide stride = vector.count == 1 ? 0 : Wide{vector.stride} * unit;
  if (!repeat_shape(old.shape(), vector.blocklength, old.extent(), &block) ||
      !repeat_shape(block, vector.count, stride, &whole))
    return too_large_error();
  *made = make_datatype(std::move(whole), std::move(recipe));
  return {};
}

Error assemble_blocks(CountSpan blocklengths, CountSpan displacements, MPI_Count unit, Datatype& old,
                      Recipe recipe, Ref<Datatype>* made) {
  recipe.datatypes.emplace_back(old);
  Assembly assembly;
  assembly.reserve(displacements.size());
  for (std::size_t i = 0; i < displacements.size(); ++i) {
    const MPI_Count length = blocklengths.size() == 1 ? blocklengths[0] : blocklengths[i];
    assembly.add_block(Wide{displacements[i]} * unit, length, old);
  }
  return assembly.finish(std::move(recipe), made);
}

}  // namespace

Error make_contiguous(MPI_Count count, Datatype& old, CallForm form, Ref<Datatype>* made) {
  if (Error error = check_count(count); !error.ok()) return error;
  Recipe recipe(MPI_COMBINER_CONTIGUOUS, form);
  recipe.add_count(count);
  recipe.datatypes.emplace_back(old);
  Assembly assembly;
  assembly.add_block(0, count, old);
  return assembly.finish(std::move(recipe), made);
}

Error make_vector(const VectorShape& vector, Datatype& old, CallForm form, Ref<Datatype>* made) {
  Recipe recipe(MPI_COMBINER_VECTOR, form);
  recipe.add_count(vector.count);
  recipe.add_count(vector.blocklength);
  recipe.add_count(vector.stride);
  return assemble_vector(vector, old.extent(), old, std::move(recipe), made);
}

Error make_hvector(const VectorShape& vector, Datatype& old, CallForm form, Ref<Datatype>* made) {
  Recipe recipe(MPI_COMBINER_HVECTOR, form);
  recipe.add_count(vector.count);
  recipe.add_count(vector.blocklength);
  recipe.add_bytes(vector.stride);
  return assemble_vector(vector, 1, old, std::move(recipe), made);
}

Error make_indexed(CountSpan blocklengths, CountSpan displacements, Datatype& old, CallForm form,
                   Ref<Datatype>* made) {
  if (Error error = check_blocklengths(blocklengths); !error.ok()) return error;
  Recipe recipe(MPI_COMBINER_INDEXED, form);
  recipe.add_count(static_cast<MPI_Count>(displacements.size()));
  add_counts(blocklengths, &recipe);
  add_counts(displacements, &recipe);
  return assemble_blocks(blocklengths, displacements, old.extent(), old, std::move(recipe), made);
}

Error make_hindexed(CountSpan blocklengths, CountSpan displacements, Datatype& old, CallForm form,
                    Ref<Datatype>* made) {
  if (Error error = check_blocklengths(blocklengths); !error.ok()) return error;
  Recipe recipe(MPI_COMBINER_HINDEXED, form);
  recipe.add_count(static_cast<MPI_Count>(displacements.size()));
  add_counts(blocklengths, &recipe);
  add_bytes(displacements, &recipe);
  return assemble_blocks(blocklengths, displacements, 1, old, std::move(recipe), made);
}

Error make_indexed_block(MPI_Count blocklength, CountSpan displacements, Datatype& old, CallForm form,
                         Ref<Datatype>* made) {
  if (Error error = check_blocklength(blocklength, 0); !error.ok()) return error;
  Recipe recipe(MPI_COMBINER_INDEXED_BLOCK, form);
  recipe.add_count(static_cast<MPI_Count>(displacements.size()));
  recipe.add_count(blocklength);
  add_counts(displacements, &recipe);
  return assemble_blocks({&blocklength, 1}, displacements, old.extent(), old, std::move(recipe), made);
}

Error make_hindexed_block(MPI_Count blocklength, CountSpan displacements, Datatype& old, CallForm form,
                          Ref<Datatype>* made) {
  if (Error error = check_blocklength(blocklength, 0); !error.ok()) return error;
  Recipe recipe(MPI_COMBINER_HINDEXED_BLOCK, form);
  recipe.add_count(static_cast<MPI_Count>(displacements.size()));
  recipe.add_count(blocklength);
  add_bytes(displacements, &recipe);
  return assemble_blocks({&blocklength, 1}, displacements, 1, old, std::move(recipe), made);
}

Error make_struct(CountSpan blocklengths, CountSpan displacements, std::span<Datatype* const> types,
                  CallForm form, Ref<Datatype>* made) {
  if (Error error = check_blocklengths(blocklengths); !error.ok()) return error;
  Recipe recipe(MPI_COMBINER_STRUCT, form);
  recipe.add_count(static_cast<MPI_Count>(types.size()));
  add_counts(blocklengths, &recipe);
  add_bytes(displacements, &recipe);
  recipe.datatypes.reserve(types.size());
  Assembly assembly;
  assembly.reserve(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    recipe.datatypes.emplace_back(*types[i]);
    assembly.add_block(displacements[i], blocklengths[i], *types[i]);
  }
  assembly.pad();
  return assembly.finish(std::move(recipe), made);
}

Error make_resized(MPI_Count lower_bound, MPI_Count extent, Datatype& old, CallForm form,
                   Ref<Datatype>* made) {
  Recipe recipe(MPI_COMBINER_RESIZED, form);
  recipe.add_bytes(lower_bound);
  recipe.add_bytes(extent);
  recipe.datatypes.emplace_back(old);
  Shape shape = old.shape();
  shape.bounds = shape.bounds.resized(lower_bound, extent);
  if (!shape.bounds.fits()) return too_large_error();
  *made = make_datatype(std::move(shape), std::move(recipe));
  return {};
}

Error make_dup(Datatype& old, Ref<Datatype>* made) {
  Recipe recipe(MPI_COMBINER_DUP);
  recipe.datatypes.emplace_back(old);
  *made = make_datatype(old.shape(), std::move(recipe));
  if (old.is_committed()) (*made)->commit();
  return {};
}

}  // namespace weft::mpi
