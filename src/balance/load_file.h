// A snapshot as a text file, to compare strategies without the program that it was recorded from.
//
//     weft-load 1                  the first line: the format and its version
//     counts 2 3 1                 PEs, objects, edges
//     pe 0.5 1                     background load in s, speed: one line for each PE, from PE 0 on
//     pe 0 1
//     object 7 0 0 0.25 4096 moves     collection, index, PE, load in s, size in bytes (0: unknown), moves or stays
//     object 7 1 0 0.5 0 stays
//     object 7 2 1 0.125 64 moves
//     edge 0 2 10 4096             from, to (objects by their line, from 0 on), messages, bytes
//
// Words are separated by blanks. Empty lines and lines that begin with # mean nothing. Numbers are written so that they are
// read back exactly. The counts make a file that was cut off an error.
//
// The text is a claim, as a message of a peer is: each number is checked before use. A count that the size of the text rules
// out is refused before memory is reserved for it.
#pragma once

#include <string>
#include <string_view>

#include "weft/balance/snapshot.h"
#include "weft/base/status.h"

namespace weft::balance {

std::string format_loads(const Snapshot& snapshot);

// `name` is the file's, for messages. kCorrupt: "NAME:LINE: expected ..., found ...", or "NAME:LINE:" and the limits of a number.
// A result passes check().
base::Result<Snapshot> parse_loads(std::string_view text, std::string_view name);

// Replaces the file. Blocks until it is written. The errors name the path and the system's reason.
base::Status write_load_file(const std::string& path, const Snapshot& snapshot);
// Blocks until the file is read. kNotFound if it cannot be opened.
base::Result<Snapshot> read_load_file(const std::string& path);

}  // namespace weft::balance
