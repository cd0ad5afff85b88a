// The constructors of derived datatypes, MPI 5.0, section 5.1. All take the counts of the large form; `form` says in which form the
// program called, and so how the contents are reported. Distances of hvector, hindexed, hindexed_block and struct are in bytes.
//
// Each sets *made on success. Errors: MPI_ERR_COUNT and MPI_ERR_ARG for arguments that the standard forbids, MPI_ERR_VALUE_TOO_LARGE
// for a datatype whose size or bounds do not fit 64 bits.
#pragma once

#include <span>

#include "models/mpi/datatype/datatype.h"

namespace weft::mpi {

using CountSpan = std::span<const MPI_Count>;

Error make_contiguous(MPI_Count count, Datatype& old, CallForm form, Ref<Datatype>* made);

struct VectorShape {
  MPI_Count count;
  MPI_Count blocklength;
  MPI_Count stride;
};
Error make_vector(const VectorShape& vector, Datatype& old, CallForm form, Ref<Datatype>* made);
Error make_hvector(const VectorShape& vector, Datatype& old, CallForm form, Ref<Datatype>* made);

// blocklengths and displacements have one value for each block.
Error make_indexed(CountSpan blocklengths, CountSpan displacements, Datatype& old, CallForm form,
                   Ref<Datatype>* made);
Error make_hindexed(CountSpan blocklengths, CountSpan displacements, Datatype& old, CallForm form,
                    Ref<Datatype>* made);
Error make_indexed_block(MPI_Count blocklength, CountSpan displacements, Datatype& old, CallForm form,
                         Ref<Datatype>* made);
Error make_hindexed_block(MPI_Count blocklength, CountSpan displacements, Datatype& old, CallForm form,
                          Ref<Datatype>* made);
Error make_struct(CountSpan blocklengths, CountSpan displacements, std::span<Datatype* const> types,
                  CallForm form, Ref<Datatype>* made);

Error make_resized(MPI_Count lower_bound, MPI_Count extent, Datatype& old, CallForm form,
                   Ref<Datatype>* made);

// Makes a copy of datatype `old`, committed if `old` is. The caller copies the attributes.
Error make_dup(Datatype& old, Ref<Datatype>* made);

}  // namespace weft::mpi
