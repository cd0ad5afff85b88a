// Makes a datatype again from its recipe, for a rank that has moved.
#pragma once

#include "models/mpi/datatype/predefined.h"

namespace weft::mpi {

// The shape of the datatype that the call of the recipe makes. `types`: of the rank. Errors: those of the constructors, and
// MPI_ERR_INTERN for a recipe that no constructor writes. Throws std::out_of_range if the recipe lacks arguments.
Error remake_shape(const Recipe& recipe, PredefinedTypes& types, Shape* shape);

}  // namespace weft::mpi
