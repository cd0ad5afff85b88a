// Pickles of whole values whose objects refer to one another (ValueTag::kLinkedPickle): python/weft/_linked_pickle.py makes them.
//
// Pickle keeps identity and cycles. Objects in the value's containers that have forms of their own are parts beside the pickle,
// because some of them cannot be pickled (weft.nocopy, device arrays, memoryviews), and because arrays may travel beside the message.
#pragma once

#include <vector>

#include "support/support.h"

namespace weft::python {

class Encoder;

void init_linked_pickle(PyObject* module);

// Pickles `value`, and encodes its parts with `encoder` meanwhile. Appends the pickle.PickleBuffers that it leaves out to
// `buffers`, a list. Throws PythonError.
Ref dump_linked(Encoder& encoder, PyObject* value, PyObject* buffers);

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
