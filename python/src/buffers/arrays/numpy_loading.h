// Imports NumPy at the first array or element type instead of with the extension, because a PE starts faster
// without it.
//
// Threads: the PE's thread.
#pragma once

namespace weft::python {

namespace numpy_detail {
inline bool loaded = false;
}

// Whether NumPy's C API (numpy_api.h) can be used.
inline bool numpy_is_loaded() { return numpy_detail::loaded; }
// Imports NumPy, once. Throws PythonError if that fails.
void load_numpy();
// If the program has imported NumPy, loads its C API and returns true. Else returns false: no array exists then.
bool has_numpy();

// Calls `then` once, when NumPy is loaded. REQUIRES: NumPy is not loaded yet.
void when_numpy_is_loaded(void (*then)());

}  // namespace weft::python
