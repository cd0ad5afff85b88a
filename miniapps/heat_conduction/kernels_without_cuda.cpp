// Replaces kernels_cuda.cu if there is no CUDA compiler.
#include "command_line/user_error.h"
#include "kernels.h"

namespace heat_conduction {

std::unique_ptr<Kernels> make_cuda_kernels(void*, int) {
  throw miniapps::UserError("this program was built without a CUDA compiler");
}

bool cuda_is_built() { return false; }

}  // namespace heat_conduction
