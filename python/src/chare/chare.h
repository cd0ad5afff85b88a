// The one C++ chare type behind every Python class, and the Python object that it owns.
#pragma once

#include <string>

#include "weft/chare/chare.h"

#include "chare/classes.h"
#include "support/support.h"

namespace weft::python {

class PyChare final : public chare::ChareBase {
 public:
  explicit PyChare(const ClassInfo& info) : info_(info) {}
  ~PyChare() override;

  // Calls the class. Throws PythonError.
  void construct(PyObject* arguments);
  const ClassInfo& info() const { return info_; }
  PyObject* object() const { return object_.get(); }
  // "Ring[3].work on PE 1".
  std::string where_in(std::size_t method) const;

  // tp_new of weft.Chare: the object of the chare that is being constructed. Throws base::Error if none is.
  static PyObject* make_object(PyTypeObject* type);
  static std::size_t object_size_bytes();

 private:
  const ClassInfo& info_;
  Ref object_;
};

// The C++ chare of a weft.Chare. Throws base::Error after the job has ended, or its collection.
PyChare& chare_of(PyObject* object);

}  // namespace weft::python
