// Pickles of whole values whose objects refer to one another (ValueTag::kLinkedPickle): python/weft/_codec/linked_pickle.py makes them.
//
// Pickle keeps identity and cycles. Objects in the value's containers that have forms of their own are parts beside the pickle,
// because some of them cannot be pickled (weft.nocopy, device arrays, memoryviews), and because arrays may travel out of band.
#pragma once

#include <functional>
#include <vector>

#include "support/support.h"

namespace weft::python {

void init_linked_pickle(PyObject* module);

// The function with the signature of pickle.dumps by which values are pickled.
Ref pickle_dumps();

// Encodes an object as the next part and returns its number; -1 if the object is to be pickled.
using EncodePart = std::function<int(PyObject* object)>;
// Pickles `value`, and has its parts encoded meanwhile. Appends the pickle.PickleBuffers that it leaves out to `buffers`, a list.
// Throws PythonError.
Ref dump_linked(const EncodePart& encode_part, PyObject* value, PyObject* buffers);

// While it exists, pickles that are loaded find these parts.
class PartsToLoad {
 public:
  explicit PartsToLoad(const std::vector<Ref>& parts);
  ~PartsToLoad();
  PartsToLoad(const PartsToLoad&) = delete;
  PartsToLoad& operator=(const PartsToLoad&) = delete;

 private:
  const std::vector<Ref>* outer_;
};

}  // namespace weft::python
