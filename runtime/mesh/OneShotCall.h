// What the kernel of one-shot exchanges is given. NVRTC compiles this text, too, so it includes
// nothing.
#pragma once

namespace tk::one_shot {

using Word = unsigned;
using Size = unsigned long long;
using Address = unsigned long long;

inline constexpr Word most_ranks = 16, most_moves = 8, most_blocks = 128, block_threads = 512;

/// How blocks of ranks are combined.
enum class Combine : Word { sum, prod, max, min };

/// A tensor of which each rank has a block for each other one. A block is `rows` rows of `width`
/// bytes. Ranks are numbered by their position along the axis.
struct Move {
  Address from = 0; ///< the block for rank p begins p * from_peer further on
  Size from_peer = 0, from_pitch = 0;
  Size to = 0; ///< from the beginning of a window: the block of rank p lands p * to_peer further on
  Size to_peer = 0, to_pitch = 0;
  Size width = 0, rows = 1;
  Address counts = 0; ///< i32 of this rank: how many rows go to each rank; 0: all
  /// Where blocks go that have landed; 0: they stay. Combined ones are one block. Of others the
  /// block of rank p is p * result_peer further on.
  Address result = 0;
  Size result_peer = 0, result_pitch = 0;
  /// Bytes of an access, by which all of the above can be divided: a power of two up to 16; of
  /// blocks that are combined 16 or an element.
  Word unit = 1;
  bool is_combined = false;
};

/// Words in the window of a rank, for one axis. Peers write the first three.
struct Signals {
  Word ready[most_blocks][most_ranks];   ///< the epoch in which the peer's window may be written
  Word arrived[most_blocks][most_ranks]; ///< the epoch of which the peer's block has arrived
  Word gone[most_ranks];                 ///< not 0: the peer has given up
  Word epoch;                            ///< of the last exchange
  Word finished;                         ///< thread blocks of the exchange that runs
  Word failed;                           ///< not 0: a peer did not come, and nobody waits any more
  Word unused;
};

struct Call {
  Address windows[most_ranks] = {}; ///< where the window of each rank begins
  Size signals = 0;                 ///< from there on
  Size timeout = 0;                 ///< nanoseconds
  Address failure = 0;              ///< a word of the host: 1 + the number of a rank that is lost
  Word numbers[most_ranks] = {};    ///< of the ranks in the mesh
  Word ranks = 0, own = 0, num_moves = 0;
  Move moves[most_moves];
};

} // namespace tk::one_shot
