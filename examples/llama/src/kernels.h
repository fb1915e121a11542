// The kernels of the model, and lists of launches.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include <tk/module.h>

namespace llama {

/// The kernels of kernels/*.tk: from bundles that are part of the program if it was built with them
/// and runs on a GPU, else compiled from the folder's text when they are first used.
struct Kernels {
  Kernels(const std::string &folder, const std::string &target);

  tk::Module model, sample;
  tk::Kernel random_weights, scale_columns, embed, embed_normed, qkv, rope, rope_keep,
      attention_prefill, attention_decode, copy_page, project, project_parts, add_parts, gate_up,
      last_rows, logits, advance, greedy, top_p;
};

/// Launches in their order, each bound to its shapes and addresses: checked once, run often.
class LaunchList {
public:
  /// `is_captured`: the launches may be captured in a graph, for which scratch memory is reserved.
  explicit LaunchList(bool is_captured = false) : m_is_captured(is_captured) {}
  /// Binds a kernel to values in the order of its signature. Compiles if needed.
  void add(const tk::Kernel &kernel, std::initializer_list<tk::Value> values);
  void run(tk::Stream stream) const;
  size_t size() const { return m_launches.size(); }

private:
  struct BoundLaunch {
    tk::BoundKernel kernel;
    std::vector<void *> pointers;
  };
  bool m_is_captured;
  std::vector<BoundLaunch> m_launches;
};

} // namespace llama
