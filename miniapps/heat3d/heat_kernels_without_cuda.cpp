// Replaces heat_kernels_cuda.cu if there is no CUDA compiler.
#include "decomposition.h"
#include "heat_kernels.h"

namespace heat3d {

std::unique_ptr<HeatDevice> make_cuda_heat(const Body&, jacobi3d::KernelDevice&) {
  throw miniapps::UserError("this program was built without a CUDA compiler");
}

}  // namespace heat3d
