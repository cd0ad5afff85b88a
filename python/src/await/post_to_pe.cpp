#include "await/post_to_pe.h"

#include <utility>

#include "await/context.h"
#include "engine/ending.h"

namespace weft::python {

void post_to_pe(Engine& engine, Ref function, Ref arguments, const char* where) {
  engine.runtime().post_from_any_thread([&engine, function = std::move(function),
                                         arguments = std::move(arguments), context = copy_of_context(),
                                         where] {
    Ref result;
    {
      const InContext entered(context.get());
      result = Ref::steal(PyObject_CallObject(function.get(), arguments.get()));
    }
    end_if_forked();
    if (!result) end_by_exception(engine, where);
  });
}

void post_method_to_pe(Engine& engine, PyObject* self, const char* method, PyObject* argument,
                       const char* where) {
  post_to_pe(engine, checked(PyObject_GetAttrString(self, method)), checked(PyTuple_Pack(1, argument)),
             where);
}

}  // namespace weft::python
