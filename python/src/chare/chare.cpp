#include "chare/chare.h"

#include <utility>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::python {

namespace {

struct ChareObject {
  PyObject_HEAD PyChare* chare;  // null when the collection has been destroyed or the job has ended
  bool is_destroyed;
};

// The chare under construction; its object takes it.
PyChare* being_made = nullptr;

}  // namespace

PyChare::~PyChare() {
  if (!object_) return;
  auto* const object = reinterpret_cast<ChareObject*>(object_.get());
  object->chare = nullptr;
  object->is_destroyed = collection().is_destroyed();
}

void PyChare::construct(PyObject* arguments) {
  being_made = this;
  const Ref object = Ref::steal(PyObject_CallObject(info_.type(), arguments));
  being_made = nullptr;
  if (!object) throw PythonError();
  if (object.get() == object_.get()) return;
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("{}.__new__ must return the object that weft.Chare.__new__ made for this element, and "
                   "returned another one",
                   info_.name()));
}

std::string PyChare::where_in(std::size_t method) const {
  return base::format("{}.{} on PE {}", collection().element_name(linear_index()),
                      text_of(info_.method_name(method)), pe());
}

PyObject* PyChare::make_object(PyTypeObject* type) {
  PyChare* chare = std::exchange(being_made, nullptr);
  if (chare == nullptr) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} is a chare class and cannot be called directly; make chares with weft.Array, "
                     "weft.Group or weft.Singleton",
                     type->tp_name));
  }
  Ref object = checked(type->tp_alloc(type, 0));
  reinterpret_cast<ChareObject*>(object.get())->chare = chare;
  chare->object_ = object;
  return object.release();
}

std::size_t PyChare::object_size_bytes() { return sizeof(ChareObject); }

PyChare& chare_of(PyObject* object) {
  const auto* const known = reinterpret_cast<ChareObject*>(object);
  if (known->chare == nullptr) {
    throw base::Error(base::StatusCode::kClosed, known->is_destroyed
                                                     ? "this chare's collection has been destroyed"
                                                     : "this chare's job has ended");
  }
  return *known->chare;
}

}  // namespace weft::python
