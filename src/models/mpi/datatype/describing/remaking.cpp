#include "models/mpi/datatype/describing/remaking.h"

#include <cstddef>
#include <vector>

#include "base/format.h"
#include "models/mpi/datatype/describing/arrays.h"
#include "models/mpi/datatype/describing/constructors.h"

namespace weft::mpi {

namespace {

// Gives the arguments of the call in the order in which the constructor has added them.
class RecipeReader {
 public:
  explicit RecipeReader(const Recipe& recipe) : recipe_(recipe) {}

  int integer() { return recipe_.integers.at(next_integer_++); }
  MPI_Count count() { return is_small() ? integer() : recipe_.counts.at(next_count_++); }
  MPI_Count bytes() {
    return is_small() ? recipe_.addresses.at(next_address_++) : recipe_.counts.at(next_count_++);
  }

  std::vector<int> integers(std::size_t number) {
    std::vector<int> values;
    for (std::size_t i = 0; i < number; ++i) values.push_back(integer());
    return values;
  }
  std::vector<MPI_Count> counts(std::size_t number) {
    std::vector<MPI_Count> values;
    for (std::size_t i = 0; i < number; ++i) values.push_back(count());
    return values;
  }
  std::vector<MPI_Count> all_bytes(std::size_t number) {
    std::vector<MPI_Count> values;
    for (std::size_t i = 0; i < number; ++i) values.push_back(bytes());
    return values;
  }
  // A number of values that follow.
  std::size_t number() { return static_cast<std::size_t>(count()); }
  std::size_t dimensions() { return static_cast<std::size_t>(integer()); }

 private:
  bool is_small() const { return recipe_.form == CallForm::kSmall; }

  const Recipe& recipe_;
  std::size_t next_integer_ = 0;
  std::size_t next_address_ = 0;
  std::size_t next_count_ = 0;
};

VectorShape read_vector(RecipeReader& reader, bool stride_in_bytes) {
  VectorShape vector{};
  vector.count = reader.count();
  vector.blocklength = reader.count();
  vector.stride = stride_in_bytes ? reader.bytes() : reader.count();
  return vector;
}

Error remake_indexed(const Recipe& recipe, Ref<Datatype>* made) {
  RecipeReader reader(recipe);
  const std::size_t blocks = reader.number();
  const std::vector<MPI_Count> lengths = reader.counts(blocks);
  Datatype& old = *recipe.datatypes.at(0);
  if (recipe.combiner == MPI_COMBINER_INDEXED)
    return make_indexed(lengths, reader.counts(blocks), old, recipe.form, made);
  return make_hindexed(lengths, reader.all_bytes(blocks), old, recipe.form, made);
}

Error remake_indexed_block(const Recipe& recipe, Ref<Datatype>* made) {
  RecipeReader reader(recipe);
  const std::size_t blocks = reader.number();
  const MPI_Count length = reader.count();
  Datatype& old = *recipe.datatypes.at(0);
  if (recipe.combiner == MPI_COMBINER_INDEXED_BLOCK)
    return make_indexed_block(length, reader.counts(blocks), old, recipe.form, made);
  return make_hindexed_block(length, reader.all_bytes(blocks), old, recipe.form, made);
}

Error remake_struct(const Recipe& recipe, Ref<Datatype>* made) {
  RecipeReader reader(recipe);
  const std::size_t blocks = reader.number();
  const std::vector<MPI_Count> lengths = reader.counts(blocks);
  const std::vector<MPI_Count> displacements = reader.all_bytes(blocks);
  std::vector<Datatype*> types;
  for (const Ref<Datatype>& type : recipe.datatypes) types.push_back(type.get());
  if (types.size() != blocks) return {MPI_ERR_INTERN, "a recipe of a struct lacks datatypes"};
  return make_struct(lengths, displacements, types, recipe.form, made);
}

Error remake_subarray(const Recipe& recipe, Ref<Datatype>* made) {
  RecipeReader reader(recipe);
  const std::size_t dimensions = reader.dimensions();
  const std::vector<MPI_Count> sizes = reader.counts(dimensions);
  const std::vector<MPI_Count> subsizes = reader.counts(dimensions);
  const std::vector<MPI_Count> starts = reader.counts(dimensions);
  const Subarray array{.sizes = sizes, .subsizes = subsizes, .starts = starts, .order = reader.integer()};
  return make_subarray(array, *recipe.datatypes.at(0), recipe.form, made);
}

Error remake_darray(const Recipe& recipe, Ref<Datatype>* made) {
  RecipeReader reader(recipe);
  DistributedArray array{};
  array.size = reader.integer();
  array.rank = reader.integer();
  const std::size_t dimensions = reader.dimensions();
  const std::vector<MPI_Count> sizes = reader.counts(dimensions);
  const std::vector<int> distributions = reader.integers(dimensions);
  const std::vector<int> arguments = reader.integers(dimensions);
  const std::vector<int> processes = reader.integers(dimensions);
  array.sizes = sizes;
  array.distributions = distributions;
  array.arguments = arguments;
  array.processes = processes;
  array.order = reader.integer();
  return make_darray(array, *recipe.datatypes.at(0), recipe.form, made);
}

// `types` keeps the datatype, and gives it for each such request.
Error remake_requested(const Recipe& recipe, PredefinedTypes& types, Ref<Datatype>* made) {
  RecipeReader reader(recipe);
  const int first = reader.integer();
  Datatype* type = nullptr;
  Error error;
  if (recipe.combiner == MPI_COMBINER_F90_INTEGER) {
    error = types.f90_integer(first, &type);
  } else if (recipe.combiner == MPI_COMBINER_F90_REAL) {
    error = types.f90_real(first, reader.integer(), &type);
  } else {
    error = types.f90_complex(first, reader.integer(), &type);
  }
  if (type != nullptr) *made = Ref<Datatype>(*type);
  return error;
}

Error remake(const Recipe& recipe, PredefinedTypes& types, Ref<Datatype>* made) {
  RecipeReader reader(recipe);
  switch (recipe.combiner) {
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
      return remake_requested(recipe, types, made);
    case MPI_COMBINER_CONTIGUOUS:
      return make_contiguous(reader.count(), *recipe.datatypes.at(0), recipe.form, made);
    case MPI_COMBINER_VECTOR:
      return make_vector(read_vector(reader, false), *recipe.datatypes.at(0), recipe.form, made);
    case MPI_COMBINER_HVECTOR:
      return make_hvector(read_vector(reader, true), *recipe.datatypes.at(0), recipe.form, made);
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
      return remake_indexed(recipe, made);
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
      return remake_indexed_block(recipe, made);
    case MPI_COMBINER_STRUCT:
      return remake_struct(recipe, made);
    case MPI_COMBINER_SUBARRAY:
      return remake_subarray(recipe, made);
    case MPI_COMBINER_DARRAY:
      return remake_darray(recipe, made);
    case MPI_COMBINER_RESIZED: {
      const MPI_Count lower_bound = reader.bytes();
      return make_resized(lower_bound, reader.bytes(), *recipe.datatypes.at(0), recipe.form, made);
    }
    default:
      return {MPI_ERR_INTERN, base::format("no datatype is made with the combiner {}", recipe.combiner)};
  }
}

}  // namespace

Error remake_shape(const Recipe& recipe, PredefinedTypes& types, Shape* shape) {
  if (recipe.combiner == MPI_COMBINER_DUP) {
    *shape = recipe.datatypes.at(0)->shape();
    return {};
  }
  Ref<Datatype> made;
  if (Error error = remake(recipe, types, &made); !error.ok()) return error;
  *shape = made->shape();
  return {};
}

}  // namespace weft::mpi
