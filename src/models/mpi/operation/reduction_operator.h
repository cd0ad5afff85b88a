// ReductionOperator: what a handle of type MPI_Op stands for.
#pragma once

#include <array>
#include <cstdint>

#include "models/mpi/datatype/datatype.h"
#include "models/mpi/objects/object.h"
#include "models/mpi/operation/kernels.h"

namespace weft::mpi {

class ReductionOperator final : public Object {
 public:
  ReductionOperator(MPI_Op constant, const char* name, bool commutative);
  ReductionOperator(MPI_User_function* function, bool commutative);
  ReductionOperator(MPI_User_function_c* function, bool commutative);

  MPI_Op handle() const { return handle_; }
  bool is_predefined() const { return name_ != nullptr; }
  bool is_commutative() const { return commutative_; }
  // The functions of an operator that the program made: one of the two is null.
  MPI_User_function* function() const { return function_; }
  MPI_User_function_c* large_function() const { return large_function_; }

  // Errors: MPI_ERR_OP if the operator is not defined for the datatype.
  Error check(const Datatype& type) const;

  // inout[i] = in[i] op inout[i] for `count` elements. REQUIRES: check(type) succeeded; the buffers do not overlap.
  void reduce(const void* in, void* inout, MPI_Count count, const Datatype& type) const;
  // What reduce() calls, with `values` for each element, if that is a loop; else without a kernel.
  struct Loop {
    Kernel kernel = nullptr;
    MPI_Count values = 1;
  };
  Loop loop(const Datatype& type) const {
    const Plan made = plan(type);
    return made.way == Plan::Way::kLoop ? Loop{made.kernel, made.values} : Loop{};
  }

 private:
  // The work of reduce() for a datatype: none, a copy, or a loop over `values` times the count.
  struct Plan {
    enum class Way { kUndefined, kUser, kLoop, kReplace, kNothing } way = Way::kUndefined;
    Kernel kernel = nullptr;
    MPI_Count values = 1;
  };
  Plan plan(const Datatype& type) const {
    if (type.handle() == last_type_) [[likely]]
      return last_plan_;
    const Plan made = make_plan(type);
    if (!type.is_predefined()) return made;
    last_type_ = type.handle();
    last_plan_ = made;
    return made;
  }
  Plan make_plan(const Datatype& type) const;
  void call_user_function(const void* in, void* inout, MPI_Count count, const Datatype& type) const;

  MPI_Op handle_;
  const char* name_ = nullptr;  // of a predefined operator
  bool commutative_;
  MPI_User_function* function_ = nullptr;
  MPI_User_function_c* large_function_ = nullptr;
  // The last plan, for a datatype of mpi.h: a reduction uses one several times.
  mutable MPI_Datatype last_type_ = MPI_DATATYPE_NULL;
  mutable Plan last_plan_{};
};

// The name of the predefined operator whose handle is that number; null for other numbers.
const char* predefined_operation_name(std::uintptr_t handle);

// The operators of the ABI. A rank has one object of this class.
class PredefinedOperators {
 public:
  PredefinedOperators();

  // The operator of a constant of the ABI; null for MPI_OP_NULL and for other handles.
  ReductionOperator* find(MPI_Op constant) const;

 private:
  std::array<Ref<ReductionOperator>, 32> operations_;
};

}  // namespace weft::mpi
