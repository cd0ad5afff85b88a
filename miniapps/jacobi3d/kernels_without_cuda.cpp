// Replaces kernels_cuda.cu if there is no CUDA compiler.
#include "decomposition.h"
#include "kernels.h"

namespace jacobi3d {

bool cuda_is_built() { return false; }

std::unique_ptr<KernelDevice> make_cuda_device(int) {
  throw UserError("this program was built without a CUDA compiler");
}

}  // namespace jacobi3d
